"""A run of a reasoner, and the slot that it runs in."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

from mindstream.clock import Moment
from mindstream.foreign_code import ForeignTask
from mindstream.log.work import Work
from mindstream.reasoners.reasoner import Reasoner, RunResult

TRIES = 3
"""So many runs about an utterance may fail; then it is set aside."""
CRASHES = 20
"""So often it may be taken up and neither finished nor put back, as where the process dies of it."""
LONGEST_REST_S = 60.0
"""A reasoner whose model cannot be had asks it again after so long, or sooner."""
STUCK = 3
"""After so many failures of the store in a row nobody waits for it any longer."""


@dataclass(eq=False)
class Run:
    """A run that goes on; what it is about grows when it is steered."""

    work: list[Work]
    thinking: ForeignTask[RunResult] | None = None

    @property
    def ids(self) -> tuple[int, ...]:
        return tuple(each.id for each in self.work)

    @property
    def about(self) -> tuple[int, ...]:
        """The seqs of the utterances; an occasion has none."""
        return tuple(each.cause for each in self.work if each.cause > 0)


@dataclass(eq=False)
class Slot:
    """A reasoner and what goes on for it.

    Attributes:
        silent_at: when it may use the silence, in seconds of the loop's clock; None: it has, since something was heard.
        hour: the last moment of its trigger on which it was woken here.
        due: when it tries again after a failure, in seconds of the loop's clock.
        stuck: how often in a row the store could not be used.
        outages: how often in a row its model could not be had.
        quiet: how often in a row nothing was open when it looked of itself; it looks less often then.
    """

    reasoner: Reasoner
    woken: asyncio.Event = field(default_factory=asyncio.Event)
    silent_at: float | None = None
    hour: Moment | None = None
    run: Run | None = None
    due: float | None = None
    stuck: int = 0
    outages: int = 0
    quiet: int = 0

    @property
    def name(self) -> str:
        return self.reasoner.slot

    @property
    def is_resting(self) -> bool:
        """It waits before it tries again, after a failure or for a model that cannot be had."""
        return self.due is not None and asyncio.get_running_loop().time() < self.due

    @property
    def is_waiting_out(self) -> bool:
        """Its model cannot be had, and is left alone for a while: nothing comes of waiting for it."""
        return self.outages > 0 and self.is_resting

    def rest(self, seconds: float) -> None:
        """Try nothing for so long."""
        self.due = asyncio.get_running_loop().time() + seconds
