"""Read as JSON5 what a model could not write as JSON, and say that it was so."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from mindstream.errors import ReplyInvalid
from mindstream.models.fitting import mend_json
from mindstream.models.model import Model, Part, Piece, Request
from mindstream.models.wrappers.meter import Metered


class Mend:
    """Around `Repair`: when its tries are used up, takes the last reply if a library can read it and it fits.

    Whoever listens to the request's calls is told that this call was mended; nothing else is different, so what such a
    reply claims is held to the same grounds as any.
    """

    def __init__(self, model: Model) -> None:
        self.name = model.name
        self._model = model

    def reply(self, request: Request) -> AsyncGenerator[Part]:
        return self._model.reply(request) if request.schema is None else self._mended(request)

    async def _mended(self, request: Request) -> AsyncGenerator[Part]:
        calls = _Calls(request.on_call)
        try:
            async with aclosing(self._model.reply(request.but(on_call=calls.take))) as parts:
                async for part in parts:
                    yield part
        except ReplyInvalid as error:
            mended = _mend(request, error.reply)
            if mended is None:
                raise
            calls.mark_last()
            yield Piece(mended)
        finally:
            calls.pass_on()


def _mend(request: Request, text: str) -> str | None:
    mended = mend_json(text)
    if mended is not None:
        try:
            request.prompt.parse(mended)
        except ReplyInvalid:
            return None
    return mended


class _Calls:
    """Passes calls on, each when the next one has ended: of the last it is not known yet whether it was mended."""

    def __init__(self, on_call: Callable[[Any], None] | None) -> None:
        self._on_call = on_call
        self._last: Metered | None = None

    def take(self, call: Metered) -> None:
        self.pass_on()
        self._last = call

    def mark_last(self) -> None:
        if self._last is not None:
            self._last = replace(self._last, mended=True)

    def pass_on(self) -> None:
        last, self._last = self._last, None
        if last is not None and self._on_call is not None:
            self._on_call(last)
