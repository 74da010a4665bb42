"""A life in the background of a conversation: a reasoner with its own goal, which wakes at times that it sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from mindstream.clock import Moment
from mindstream.errors import HeldElsewhere
from mindstream.life.inbox import newest_from_outside
from mindstream.life.life import Life, LifeConfig
from mindstream.memory.recall.exemplars import Exemplars
from mindstream.models.roles import Models
from mindstream.reasoners.reasoner import RunContext, RunResult, Trigger
from mindstream.text.words import count_of
from mindstream.tools.tool import Tool

POLL_S = 5.0
"""Poll interval for answers and news from other processes, in seconds."""


@dataclass
class LifeReasoner:
    """Pursue a goal in the background of a mind: `Mind.open(…, reasoners=[LifeReasoner(models, goal="…")])`.

    Like any life, it commits each step; only one of all processes and sessions of the mind runs it at a time.

    Attributes:
        turns: maximum number of turns in one run, after which other reasoners get their turn.
    """

    models: Models
    goal: str = ""
    orders: Sequence[str] = ()
    tools: Sequence[Tool] = ()
    config: LifeConfig = field(default_factory=lambda: LifeConfig(hears=False))
    exemplars: Exemplars | None = None
    turns: int = 20
    slot: str = "living"
    timeout_s: float = 3_600.0
    _next: Moment = 0.0
    _wakes: Moment | None = 0.0
    _seen: int = 0

    @property
    def trigger(self) -> Trigger:
        """Wake when the next check is due, and at every utterance if the life hears them (`LifeConfig.hears`)."""
        return Trigger(every=1 if self.config.hears else 0, at=self._next, each=True)

    async def think(self, context: RunContext) -> RunResult:
        """Run the life while there is something to do, at most `turns` turns.

        Raises:
            InputError: see `Life.open`.
        """
        stream = context.memory
        now = stream.clock.now()
        self._next = now + POLL_S
        is_due = self._wakes is not None and self._wakes <= now
        if not is_due and await newest_from_outside(stream) <= self._seen:
            return RunResult("", "")
        tools = [*self.tools, *(tool for tool in context.tools if tool not in self.tools)]
        opened = Life.open(
            stream,
            self.models,
            goal=self.goal,
            orders=self.orders,
            tools=tools,
            config=self.config,
            exemplars=self.exemplars,
        )
        try:
            async with opened as life:
                before, self._seen = (
                    life.state.turn,
                    await newest_from_outside(stream),
                )  # all of these rows will be read
                await life.run(self.turns, wait=False)
                now, lived = stream.clock.now(), life.state.turn - before
                self._wakes = self.config.rhythm.next_wake(life.state, now)
                self._next = min(now + POLL_S, self._wakes or now + POLL_S)
        except HeldElsewhere:
            return RunResult("", "")
        self.goal = ""  # the log has the goal from now on
        return RunResult(f"lived {count_of(lived, 'turn')}" if lived else "", self.models.of("M2").name)
