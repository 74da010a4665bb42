"""Leave a model alone that has just failed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from mindstream.clock import Clock, SystemClock
from mindstream.errors import BudgetSpent, ModelError, ModelResting, ModelUnavailable, RateLimited
from mindstream.models.model import Model, Part, Request

FIRST_S, LONGEST_WISH_S = 5.0, 300.0


class Breaker:
    """Lets a model rest after an outage: calls fail at once, then one is let through to try.

    The rest is FIRST_S, twice as long after each try that fails, up to `longest_s`; or as long as the endpoint
    wishes, up to LONGEST_WISH_S. A reply ends it, and so does a refusal: who refuses is there. All who ask a model
    share one.
    """

    def __init__(
        self,
        model: Model,
        *,
        clock: Clock | None = None,
        longest_s: float = 60.0,
    ) -> None:
        self.name = model.name
        self._model = model
        self._clock = clock or SystemClock()
        self._longest_s = longest_s
        self._rest_s = self._until = 0.0
        self._why = ""
        self._trying = False
        self._outages = 0

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        trial, known = self._admit(), self._outages
        try:
            async with aclosing(self._model.reply(request)) as parts:
                async for part in parts:
                    if self._why:  # it is there again; the rest is forgotten when a reply is whole
                        self._why, self._trying = "", False
                    yield part
            self._rest_s = 0.0
        except ModelUnavailable as error:
            if known == self._outages:  # of calls that ran side by side the first one counts
                self._rest(error)
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
        """Let a call through; return whether it is the one that tries."""
        if not self._why:
            return False
        left_s = self._until - self._clock.elapsed()
        if left_s > 0:
            raise ModelResting(f"{self.name} is left alone for {max(1.0, left_s):.0f} s more: {self._why}", left_s)
        if self._trying:
            raise ModelResting(f"{self.name} is being tried again: {self._why}", 1.0)
        self._trying = True
        return True

    def _rest(self, error: ModelUnavailable) -> None:
        wished_s = (error.retry_after_s or 0.0) if isinstance(error, RateLimited) else 0.0
        backoff_s = min(self._longest_s, max(FIRST_S, 2 * self._rest_s))
        self._rest_s = max(backoff_s, min(LONGEST_WISH_S, wished_s))
        self._until = self._clock.elapsed() + self._rest_s
        self._why = str(error)
        self._outages += 1
