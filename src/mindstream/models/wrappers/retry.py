"""Limit parallel requests, repeat failed requests, and pause all requests during an outage.

`Fallback` asks the next model if one fails; it is used only if the user configured a fallback.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from contextvars import ContextVar
from itertools import count

from mindstream.chance import fraction, token
from mindstream.clock import Clock, SystemClock
from mindstream.errors import BudgetSpent, ModelError, ModelResting, ModelSilent, ModelUnavailable, RateLimited
from mindstream.models.model import Model, Part, Request

FIRST_REST_S, MAX_WISH_S = 5.0, 300.0
"""Duration in seconds of the first rest after an outage, and of the longest rest that an endpoint may ask for."""


class Limit:
    """Lets `at_once` requests run at the same time; the others wait."""

    def __init__(self, model: Model, at_once: int = 8) -> None:
        if at_once < 1:
            raise ValueError(f"at_once must be at least 1, not {at_once}")
        self.name, self._model, self._room = model.name, model, asyncio.Semaphore(at_once)

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        async with self._room, aclosing(self._model.reply(request)) as parts:
            async for part in parts:
                yield part


class Pauses:
    """Computes the pauses before a failed request is repeated, for at most `attempts` attempts.

    The pause is the one that the endpoint asks for; otherwise `base_s`, doubled after each attempt up to `longest_s`,
    minus a random part of up to half. A request is not repeated if the endpoint asks for more than `longest_s`, or
    timed out.
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
        self._name, self._attempts = name, max(1, attempts)
        self._base_s, self._longest_s = base_s, longest_s
        self._seed, self._draws = token() if seed is None else seed, count()

    def after(self, attempt: int, error: ModelUnavailable) -> float | None:
        """Return the pause in seconds after a failed attempt (from 1); None: do not ask again."""
        if isinstance(error, RateLimited) and error.retry_after_s is not None:
            pause_s = error.retry_after_s
        else:
            random = fraction(self._seed, "retry", self._name, next(self._draws))
            pause_s = min(self._longest_s, self._base_s * 2.0 ** (attempt - 1)) * (1 - random / 2)
        over = isinstance(error, ModelSilent) or attempt >= self._attempts or not pause_s <= self._longest_s
        return None if over else pause_s


class Retry:
    """Repeats failed requests with `Pauses`, unless a part of the answer has been passed on."""

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
        self.name, self._model, self._clock = model.name, model, clock or SystemClock()
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


class Breaker:
    """A circuit breaker: after an outage, calls fail at once during a rest; then a single call is made as a trial.

    A rest lasts FIRST_REST_S, doubled after each failed trial up to `longest_s`; or as long as the endpoint asks for,
    up to MAX_WISH_S. The outage ends with a reply, or with a refusal, because an endpoint that refuses is available.
    All callers of a model share one breaker.
    """

    def __init__(self, model: Model, *, clock: Clock | None = None, longest_s: float = 60.0) -> None:
        self.name, self._model, self._clock, self._longest_s = model.name, model, clock or SystemClock(), longest_s
        self._rest_s = self._until = 0.0
        self._why, self._trying, self._outages = "", False, 0

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        trial, known = self._admit(), self._outages
        try:
            async with aclosing(self._model.reply(request)) as parts:
                async for part in parts:
                    if self._why:  # available again; the length of the next rest is reset by a complete reply
                        self._why, self._trying = "", False
                    yield part
            self._rest_s = 0.0
        except ModelUnavailable as error:
            if known == self._outages:  # of simultaneous calls, only the first failure counts
                wished_s = (error.retry_after_s or 0.0) if isinstance(error, RateLimited) else 0.0
                backoff_s = min(self._longest_s, max(FIRST_REST_S, 2 * self._rest_s))
                self._rest_s = max(backoff_s, min(MAX_WISH_S, wished_s))
                self._until = self._clock.elapsed() + self._rest_s
                self._why, self._outages = str(error), known + 1
            raise
        except BudgetSpent:
            raise
        except ModelError:
            self._rest_s, self._why = 0.0, ""
            raise
        finally:
            if trial:
                self._trying = False

    def _admit(self) -> bool:
        """Let a call through unless the model rests; return whether it is a trial."""
        if not self._why:
            return False
        left_s = self._until - self._clock.elapsed()
        if left_s > 0:
            raise ModelResting(f"{self.name} is not called for {max(1.0, left_s):.0f} s, after: {self._why}", left_s)
        if self._trying:
            raise ModelResting(f"another call tests whether {self.name} is available again, after: {self._why}", 1.0)
        self._trying = True
        return True


class Fallback:
    """Asks its models in order until one answers; a model that fails in the middle of a reply is not replaced."""

    def __init__(self, models: Sequence[Model]) -> None:
        self._models = tuple(models)
        self._answered: ContextVar[str] = ContextVar("answered", default=models[0].name)

    @property
    def name(self) -> str:
        """The model that answered this task's last request; before the first request, the first model."""
        return self._answered.get()

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        for model in self._models:
            begun = False
            try:
                async with aclosing(model.reply(request)) as parts:
                    async for part in parts:
                        if not begun:
                            self._answered.set(model.name)
                        begun = True
                        yield part
                return
            except ModelError:
                if begun or model is self._models[-1]:
                    raise
