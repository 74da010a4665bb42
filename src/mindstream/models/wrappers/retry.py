"""Limit parallel requests, repeat failed requests, and pause all requests during an outage.

`Fallback` asks the next model if one fails; it is used only if the user configured a fallback.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextvars import ContextVar
from itertools import count

from mindstream.chance import fraction, token
from mindstream.clock import Clock, SystemClock
from mindstream.errors import BudgetSpent, ModelError, ModelResting, ModelSilent, ModelUnavailable, RateLimited
from mindstream.models.model import Model, Part, Request
from mindstream.models.wrappers.layer import Layer, Layered

FIRST_REST_S, MAX_WISH_S = 5.0, 300.0
"""Duration in seconds of the first rest after an outage, and of the longest rest that an endpoint may ask for."""


class Limit(Layered):
    """Lets `at_once` requests run at the same time; the others wait."""

    def __init__(self, inner: Model, at_once: int = 8) -> None:
        super().__init__(inner)
        if at_once < 1:
            raise ValueError(f"at_once must be at least 1, not {at_once}")
        self._room = asyncio.Semaphore(at_once)

    def layer(self, request: Request) -> Layer:
        return _Limited(self.inner, request, self._room)


class _Limited(Layer):
    def __init__(self, inner: Model, request: Request, room: asyncio.Semaphore) -> None:
        super().__init__(inner, request)
        self._room = room

    async def begin(self) -> None:
        await self._room.acquire()

    def close(self, failure: BaseException | None) -> None:  # noqa: ARG002
        self._room.release()


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
        """Return the pause in seconds after a failed attempt (`attempt`, counted from 1); None: do not ask again."""
        if isinstance(error, RateLimited) and error.retry_after_s is not None:
            pause_s = error.retry_after_s
        else:
            random = fraction(self._seed, "retry", self._name, next(self._draws))
            pause_s = min(self._longest_s, self._base_s * 2.0 ** (attempt - 1)) * (1 - random / 2)
        over = isinstance(error, ModelSilent) or attempt >= self._attempts or not pause_s <= self._longest_s
        return None if over else pause_s


class Retry(Layered):
    """Repeats requests that failed because the model was unavailable, with pauses between the attempts (`Pauses`),
    unless a part of the answer has been passed on."""

    def __init__(
        self,
        inner: Model,
        attempts: int = 3,
        *,
        clock: Clock | None = None,
        base_s: float = 0.5,
        longest_s: float = 30.0,
        seed: int | str | None = None,
    ) -> None:
        super().__init__(inner)
        self._clock = clock or SystemClock()
        self._pauses = Pauses(inner.name, attempts, base_s=base_s, longest_s=longest_s, seed=seed)

    def layer(self, request: Request) -> Layer:
        return _Retried(self.inner, request, self._pauses, self._clock)


class _Retried(Layer):
    def __init__(self, inner: Model, request: Request, pauses: Pauses, clock: Clock) -> None:
        super().__init__(inner, request)
        self._pauses, self._clock, self._attempts = pauses, clock, count(1)

    async def again(self, failure: Exception | None) -> bool:
        if not isinstance(failure, ModelUnavailable):
            return False
        pause_s = self._pauses.after(next(self._attempts), failure)
        if self.begun or pause_s is None:
            return False
        await self._clock.sleep(pause_s)
        return True


class Breaker(Layered):
    """A circuit breaker: after an outage, calls fail at once during a rest; then a single call is made as a trial.

    A rest lasts FIRST_REST_S, doubled after each failed trial up to `longest_s`; or, if that is longer, as long as the
    endpoint asks for, up to MAX_WISH_S. The outage ends with a reply, or with a refusal, because an endpoint that
    refuses is available.
    All callers of a model share one breaker.
    """

    def __init__(self, inner: Model, *, clock: Clock | None = None, longest_s: float = 60.0) -> None:
        super().__init__(inner)
        self._clock, self._longest_s = clock or SystemClock(), longest_s
        self._rest_s = self._until = 0.0
        self._why, self._trying, self._outages = "", False, 0

    def layer(self, request: Request) -> Layer:
        return _Watched(self, request)

    def admit(self) -> tuple[bool, int]:
        """Let a call through unless the model rests; return whether it is a trial, and the number of outages so far.

        Raises:
            ModelResting: the model rests, or another call is a trial.
        """
        if not self._why:
            return False, self._outages
        left_s = self._until - self._clock.elapsed()
        if left_s > 0:
            raise ModelResting(f"{self.name} is not called for {max(1.0, left_s):.0f} s, after: {self._why}", left_s)
        if self._trying:
            raise ModelResting(f"another call tests whether {self.name} is available again, after: {self._why}", 1.0)
        self._trying = True
        return True, self._outages

    def note_part(self) -> None:
        """Note that a part of a reply has arrived, which ends the outage. Only a complete reply or a refusal resets the
        length of the next rest."""
        if self._why:
            self._why, self._trying = "", False

    def note_end(self, failure: BaseException | None, outages: int, *, is_trial: bool) -> None:
        """Note the end of a call that began after this number of outages.

        Of simultaneous calls, only the first failure counts.
        """
        if is_trial:
            self._trying = False
        if failure is None:
            self._rest_s = 0.0
        elif isinstance(failure, ModelUnavailable):
            if outages == self._outages:
                wished_s = (failure.retry_after_s or 0.0) if isinstance(failure, RateLimited) else 0.0
                backoff_s = min(self._longest_s, max(FIRST_REST_S, 2 * self._rest_s))
                self._rest_s = max(backoff_s, min(MAX_WISH_S, wished_s))
                self._until = self._clock.elapsed() + self._rest_s
                self._why, self._outages = str(failure), outages + 1
        elif isinstance(failure, ModelError) and not isinstance(failure, BudgetSpent):
            self._rest_s, self._why = 0.0, ""


class _Watched(Layer):
    def __init__(self, breaker: Breaker, request: Request) -> None:
        super().__init__(breaker.inner, request)
        self._breaker, self._is_trial, self._outages = breaker, False, 0

    async def begin(self) -> None:
        self._is_trial, self._outages = self._breaker.admit()

    def take(self, part: Part) -> Sequence[Part]:
        self._breaker.note_part()
        return (part,)

    def close(self, failure: BaseException | None) -> None:
        self._breaker.note_end(failure, self._outages, is_trial=self._is_trial)


class Fallback(Layered):
    """Asks its models in order until one answers; a model that fails in the middle of a reply is not replaced."""

    def __init__(self, models: Sequence[Model]) -> None:
        super().__init__(models[0])
        self._models = tuple(models)
        self._answered: ContextVar[str] = ContextVar("answered", default=models[0].name)

    @property
    def name(self) -> str:
        """The name of the model that answered this task's last request; before that, of the first model."""
        return self._answered.get()

    def layer(self, request: Request) -> Layer:
        return _Replaced(self._models, request, self._answered)


class _Replaced(Layer):
    def __init__(self, models: tuple[Model, ...], request: Request, answered: ContextVar[str]) -> None:
        super().__init__(models[0], request)
        self._others, self._answered = list(models[1:]), answered

    async def start(self) -> None:
        self._answered.set(self.inner.name)

    async def again(self, failure: Exception | None) -> bool:
        if self.begun or not self._others or not isinstance(failure, ModelError):
            return False
        self.inner = self._others.pop(0)
        return True
