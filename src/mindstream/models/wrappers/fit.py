"""Make requests fit the model's window, whether it is known or learnt."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from mindstream.errors import PromptTooLong
from mindstream.models.model import Model, Part, Request
from mindstream.models.providers.limits import all_tokens
from mindstream.models.shorten import request_tokens, shorten

ATTEMPTS = 4
USED = 0.95
"""Share of the window that is used, since token counts are estimates."""


def room(request: Request, window: int) -> tuple[int, int]:
    """Divide a window: return the tokens for the question, and for the reply with its thoughts."""
    reply = min(all_tokens(request), window // 3)
    return int(window * USED) - reply, reply


class Fit:
    """Shortens a request that does not fit the model's window, and asks again; at once if `window` (tokens) is known.

    What the endpoint says about its window, and how it counts, is remembered for the next request.
    """

    def __init__(self, model: Model, window: int | None = None) -> None:
        self.name, self._model, self._window = model.name, model, window
        self._longest_reply, self._counts = 0, 1.0

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        asked = self._fitted(request)
        for attempt in range(1, ATTEMPTS + 1):
            begun = False
            try:
                async with aclosing(self._model.reply(asked)) as parts:
                    async for part in parts:
                        begun = True
                        yield part
                return
            except PromptTooLong as error:
                aim = self._learn(asked, error)
                if aim is not None:  # the length of the reply may be what is too long
                    request = request.but(longest_reply=all_tokens(asked) // 2)
                shorter = self._fitted(request, aim)
                if begun or attempt == ATTEMPTS or shorter == asked:
                    raise
                asked = shorter

    def _learn(self, asked: Request, error: PromptTooLong) -> int | None:
        """Remember what the endpoint says; return the tokens to aim for if it does not say enough."""
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
        return request if aim is None else shorten(request, aim)
