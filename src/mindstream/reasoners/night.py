"""The sleep reasoner: when the user has been silent for an hour, the mind maintains its memory
(memory/lifecycle/sleep)."""

from __future__ import annotations

from dataclasses import dataclass, field

from mindstream.clock import HOUR_S
from mindstream.models.model import Model
from mindstream.reasoners.reasoner import RunContext, RunResult, Trigger


@dataclass(frozen=True)
class SleepReasoner:
    """Run one sleep (decay, a dream, maintenance of the memory) after a silence. Meanwhile utterances are answered as
    usual.

    Each step of the sleep commits its own changes (memory/lifecycle/sleep), so the run's result has nothing to write.

    Attributes:
        drawn: number of records that the sleep draws at random, to let them decay; None: the number in the policy.
    """

    model: Model
    drawn: int | None = None
    slot: str = "night"
    trigger: Trigger = field(default_factory=lambda: Trigger(every=0, idle_s=HOUR_S))
    timeout_s: float = 600.0

    async def think(self, context: RunContext) -> RunResult:
        dream = await context.memory.sleep(self.model, self.drawn)
        return RunResult(dream or "slept without a dream", self.model.name)
