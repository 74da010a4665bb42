"""Make requests fit the model's window, known or learnt."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from mindstream.errors import PromptTooLong
from mindstream.models.model import Model, Part, Request
from mindstream.models.providers.limits import all_tokens
from mindstream.models.shorten import request_tokens, shorten

TRIES = 4
SPARE = 0.95
"""The share of the window that is used: tokens are estimated."""


def room(request: Request, window: int) -> tuple[int, int]:
    """Share a window out: tokens for the question, tokens for the reply with its thoughts."""
    reply = min(all_tokens(request), window // 3)
    return int(window * SPARE) - reply, reply


class Fit:
    """Cuts a request that does not fit the model's window, and asks again; at once where `window` (tokens) is known.

    What the endpoint says of its window, and of how it counts, is kept for the next request.
    """

    def __init__(self, model: Model, window: int | None = None) -> None:
        self.name = model.name
        self._model = model
        self._window = window
        self._longest_reply = 0
        self._counts = 1.0

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        asked = self._fitted(request)
        for attempt in range(1, TRIES + 1):
            begun = False
            try:
                async with aclosing(self._model.reply(asked)) as parts:
                    async for part in parts:
                        begun = True
                        yield part
                return
            except PromptTooLong as error:
                aim = self._learn(asked, error)
                if aim is not None:  # the reply may be what is too long
                    request = request.but(longest_reply=all_tokens(asked) // 2)
                shorter = self._fitted(request, aim)
                if begun or attempt == TRIES or shorter == asked:
                    raise
                asked = shorter

    def _learn(self, asked: Request, error: PromptTooLong) -> int | None:
        """Keep what the endpoint says; return the tokens to aim at where it does not say enough."""
        estimate = request_tokens(asked)
        if error.longest_reply:
            self._longest_reply = error.longest_reply
            return None
        if error.counted and error.counted > estimate * self._counts:
            self._counts = min(10.0, error.counted / estimate)
        if error.window and error.window != self._window:
            self._window = error.window
            return None
        return estimate * 2 // 3

    def _fitted(self, request: Request, aim: int | None = None) -> Request:
        if self._longest_reply and not request.longest_reply:
            request = request.but(longest_reply=self._longest_reply)
        if self._window:
            known, reply = room(request, self._window)
            request = request.but(longest_reply=reply)
            aim = min(aim or known, int(known / self._counts))
        return shorten(request, aim) if aim is not None and request_tokens(request) > aim else request
