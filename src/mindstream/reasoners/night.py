"""The sleep reasoner: when the user has been idle for a while, the mind tidies its memory (the M0, M1, M2 system)."""

from __future__ import annotations

from dataclasses import dataclass, field

from mindstream.clock import HOUR_S
from mindstream.memory.lifecycle.sleep import DRAWN
from mindstream.models.model import Model
from mindstream.reasoners.reasoner import RunContext, RunResult, Trigger


@dataclass(frozen=True)
class SleepReasoner:
    """Run one sleep when the mind has been idle; utterances are answered as usual in the meantime.

    Each step of the sleep commits its own changes (memory/lifecycle/sleep), so the result has nothing to write.
    """

    model: Model
    drawn: int = DRAWN
    slot: str = "night"
    trigger: Trigger = field(default_factory=lambda: Trigger(every=0, idle_s=HOUR_S))
    timeout_s: float = 600.0

    async def think(self, context: RunContext) -> RunResult:
        dream = await context.memory.sleep(self.model, self.drawn)
        return RunResult(dream or "slept without a dream", self.model.name)
