"""Read as JSON5 what a model could not write as JSON, and say that it was so."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import Any

from mindstream.errors import ReplyInvalid
from mindstream.models.legible import without_controls
from mindstream.models.model import Model, Part, Piece, Request
from mindstream.models.reply import DEEPEST, broken_json
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
            async with aclosing(self._model.reply(replace(request, on_call=calls.take))) as parts:
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


# JSON as people write it, read as a last resort: by `pyjson5`, which knows a grammar and guesses nothing.
#
# JSON5 has comments, a comma too many, single quotes, names without quotes. What it does not have either, a value that
# is missing, a quote within a text, an end that was cut off, stays broken: to mend that would be to make something up.


LONGEST = 100_000
"""A text of more characters is not mended."""


def mend_json(text: str) -> str | None:
    """Return a text with JSON in the place of each JSON5 object or list that is no JSON; None where that cannot be.

    Linear in the text. What is read is what was written; whether it is what was asked for is for others to find out.
    """
    if len(text) > LONGEST:
        return None
    text = without_controls(text)
    parts, at = [], 0
    try:
        for start, end in broken_json(text):
            parts += [text[at:start], _read(text[start:end])]
            at = end
    except (ReplyInvalid, ValueError):
        return None
    return "".join([*parts, text[at:]]) if parts else None


def _read(text: str) -> str:
    """Return JSON for JSON5.

    Raises:
        ValueError: it is none, or JSON has no such number.
    """
    import pyjson5  # only where a model could not mend its own reply

    try:
        value = pyjson5.decode(text, maxdepth=DEEPEST)
    except pyjson5.Json5Exception as error:
        raise ValueError(str(error)[:200]) from None
    return json.dumps(value, ensure_ascii=False, allow_nan=False)
