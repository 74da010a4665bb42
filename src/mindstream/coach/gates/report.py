"""How a data folder's gates have done: wait rate, regret, Reasoner calls avoided; from the log alone."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from mindstream.coach.events import Decided, Judged
from mindstream.log.events import Logged
from mindstream.log.names import StreamKey
from mindstream.memory.store.store import LogStore


class GateReport(BaseModel):
    """How one gate has done.

    Attributes:
        judged: decisions whose outcome is known: the Reasoner has thought about the utterance.
        regret: the share of judged turns that waited for nothing or spoke too soon.
        avoided: the share of turns for which the belief reasoner was not woken.
        useless_calls: the share of judged turns in which the Reasoner came to nothing at all.
    """

    model_config = ConfigDict(frozen=True)

    gate: str
    turns: int
    judged: int
    wait_rate: float
    waited_for_nothing: float
    spoke_too_soon: float
    regret: float
    avoided: float
    useless_calls: float


@dataclass
class _Counts:
    turns: int = 0
    waits: int = 0
    judged: int = 0
    nothing: int = 0
    soon: int = 0
    avoided: int = 0
    useless: int = 0


async def gate_report(store: LogStore, mind: StreamKey | None = None) -> list[GateReport]:
    """Return a report per gate, in the order of first use; `mind` None: all minds of the data folder."""
    counts: dict[str, _Counts] = {}
    undecided: dict[int, Decided] = {}
    async for logged in _rows(store, mind):
        event = logged.event
        if isinstance(event, Decided):
            count = counts.setdefault(event.gate, _Counts())
            count.turns += 1
            count.waits += event.waits
            count.avoided += not event.thinks
            undecided[event.answers] = event
        elif isinstance(event, Judged) and (decision := undecided.pop(event.about, None)):
            count = counts[decision.gate]
            count.judged += 1
            count.nothing += decision.waits and not event.needed
            count.soon += event.needed and not decision.waits
            count.useless += not (event.needed or event.changed)
    return [_report(gate, count) for gate, count in counts.items()]


async def _rows(store: LogStore, mind: StreamKey | None) -> AsyncIterator[Logged]:
    after = 0
    while found := await store.events(mind, after, [Decided.kind, Judged.kind]):
        for row in found:
            yield row
        after = found[-1].seq


def _report(gate: str, count: _Counts) -> GateReport:
    def share(part: int, of: int) -> float:
        return round(part / of, 4) if of else 0.0

    return GateReport(
        gate=gate,
        turns=count.turns,
        judged=count.judged,
        wait_rate=share(count.waits, count.turns),
        waited_for_nothing=share(count.nothing, count.judged),
        spoke_too_soon=share(count.soon, count.judged),
        regret=share(count.nothing + count.soon, count.judged),
        avoided=share(count.avoided, count.turns),
        useless_calls=share(count.useless, count.judged),
    )
