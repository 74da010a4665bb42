"""Ask again when the endpoint was down or busy."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing
from itertools import count

from mindstream.chance import fraction, token
from mindstream.clock import Clock, SystemClock
from mindstream.errors import ModelSilent, ModelUnavailable, RateLimited
from mindstream.models.model import Model, Part, Request


class Pauses:
    """How long to wait before an endpoint is asked again, up to `attempts` times in all.

    `base_s`, then twice as long each time, minus up to half of it by chance; or as long as the endpoint wishes.
    An endpoint that wants more than `longest_s` is not waited for, and one that said nothing at all is not asked
    again at once: the caller is told.
    """

    def __init__(
        self,
        name: str,
        attempts: int = 3,
        *,
        base_s: float = 0.5,
        longest_s: float = 30.0,
        seed: int | str | None = None,
    ) -> None:
        self._name = name
        self._attempts = max(1, attempts)
        self._base_s = base_s
        self._longest_s = longest_s
        self._seed = token() if seed is None else seed
        self._draws = count()

    def after(self, attempt: int, error: ModelUnavailable) -> float | None:
        """Return the pause after an attempt (from 1) that failed, in seconds; None: it is not asked again."""
        pause_s = self._wanted(attempt, error)
        over = isinstance(error, ModelSilent) or attempt >= self._attempts or not pause_s <= self._longest_s
        return None if over else pause_s

    def _wanted(self, attempt: int, error: ModelUnavailable) -> float:
        if isinstance(error, RateLimited) and error.retry_after_s is not None:
            return error.retry_after_s
        backoff_s = min(self._longest_s, self._base_s * 2.0 ** (attempt - 1))
        return backoff_s * (1 - fraction(self._seed, "retry", self._name, next(self._draws)) / 2)


class Retry:
    """Asks up to `attempts` times, with `Pauses`, as long as no part of the answer has come."""

    def __init__(
        self,
        model: Model,
        attempts: int = 3,
        *,
        clock: Clock | None = None,
        base_s: float = 0.5,
        longest_s: float = 30.0,
        seed: int | str | None = None,
    ) -> None:
        self.name = model.name
        self._model = model
        self._clock = clock or SystemClock()
        self._pauses = Pauses(model.name, attempts, base_s=base_s, longest_s=longest_s, seed=seed)

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        for attempt in count(1):
            begun = False
            try:
                async with aclosing(self._model.reply(request)) as parts:
                    async for part in parts:
                        begun = True
                        yield part
                return
            except ModelUnavailable as error:
                pause_s = self._pauses.after(attempt, error)
                if begun or pause_s is None:
                    raise
            await self._clock.sleep(pause_s)
