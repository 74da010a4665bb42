"""Off-policy evaluation of gates from the log of conversations: stale answers against waiting time.

For each utterance with a thought, the log shows whether the thought was needed and how long it took, whether or not
the answer waited for it. So any waiting rule can be scored on the same conversations by two figures: the share of
answers that lacked a needed thought, and the seconds of waiting. Not in the paper (Christakopoulou 2024 names it as
future work).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from mindstream.clock import Moment
from mindstream.coach.events import Decided, Judged
from mindstream.frozen import Frozen
from mindstream.identifiers import StreamKey
from mindstream.log.events import Heard, ModelCalled, Said, Thought, Waiting
from mindstream.memory.store.store import LogStore, read_log

DEADLINES_S = (1.0, 2.0, 5.0, 10.0, 20.0)
KINDS = [each.kind for each in (Heard, Said, Waiting, Thought, Decided, Judged, ModelCalled)]


class Point(Frozen):
    """The score of a waiting rule.

    Attributes:
        deadline_s: maximum waiting time; None: no limit.
        stale: share of the turns whose answer lacked a needed thought.
        for_nothing: share of the turns that waited for a thought that was not needed.
        seconds: average waiting time per turn.
        tokens: average tokens per turn of Talker and Reasoner.
    """

    rule: str
    deadline_s: float | None = None
    wait_rate: float
    stale: float
    for_nothing: float
    seconds: float
    tokens: int


@dataclass(frozen=True, slots=True)
class ThoughtTurn:
    """An utterance with a thought: whether the thought was needed, how long it took, and whether the answer waited.

    Attributes:
        asked_twice: whether the Talker was called to decide about waiting, and again to answer.
    """

    phase: str
    waited: bool
    asked_twice: bool
    needed: bool
    thought_s: float


@dataclass(frozen=True)
class Turns:
    """The logged turns for scoring, with the average tokens of a Talker call and of a thought."""

    turns: Sequence[ThoughtTurn]
    talk_tokens: float
    thought_tokens: float


async def thought_turns(store: LogStore, mind: StreamKey | None = None) -> Turns:
    """Read the turns that have a thought and a known outcome; `mind` None: of all minds in the data folder."""
    begun: dict[int, Moment] = {}
    thought_s: dict[int, float] = {}
    decided: dict[int, Decided] = {}
    found, calls = list[ThoughtTurn](), list[ModelCalled]()
    async for row in read_log(store, mind, kinds=KINDS):
        event = row.event
        if isinstance(event, Heard):
            begun[row.seq] = row.at
        elif isinstance(event, Said | Waiting) and event.answers in begun:
            begun[event.answers] = row.at
        elif isinstance(event, Thought):
            thought_s |= {seq: max(0.0, row.at - begun.pop(seq)) for seq in event.about if seq in begun}
        elif isinstance(event, Decided):
            decided[event.answers] = event
        elif isinstance(event, ModelCalled):
            calls.append(event)
        elif isinstance(event, Judged) and (one := decided.pop(event.about, None)) and event.about in thought_s:
            twice = one.gate == "talker" and one.waits
            found.append(ThoughtTurn(one.phase, one.waits, twice, event.needed, thought_s.pop(event.about)))
    talks = [call for call in calls if call.role == "talker"]
    thoughts = [call for call in calls if call.role == "reasoner"]
    return Turns(found, _tokens(talks) / max(1, len(talks)), _tokens(thoughts) / max(1, len(found)))


def _tokens(calls: Sequence[ModelCalled]) -> int:
    return sum(call.input_tokens + call.output_tokens for call in calls)


def gate_curve(found: Turns, waiting_phases: Collection[str]) -> list[Point]:
    """Score rules for which turns wait for their thought. The result is [] if there are no turns.

    The rules in order: no turn; the turns that did wait; the turns in a waiting phase (as in the paper); every turn, at
    most for a time limit (one rule for each limit); every turn.
    """
    rules: list[tuple[str, Callable[[ThoughtTurn], bool], float | None]] = [
        ("never", lambda _: False, None),
        ("as decided", lambda turn: turn.waited, None),
        ("belief (its phase waits)", lambda turn: turn.phase in waiting_phases, None),
        *((f"always, at most {deadline_s:g} s", lambda _: True, deadline_s) for deadline_s in DEADLINES_S),
        ("always", lambda _: True, None),
    ]
    return [_score(found, *rule) for rule in rules] if found.turns else []


def _score(found: Turns, rule: str, waits: Callable[[ThoughtTurn], bool], deadline_s: float | None) -> Point:
    turns, most_s = found.turns, float("inf") if deadline_s is None else deadline_s

    def share(of: Callable[[ThoughtTurn], float]) -> float:
        return round(sum(map(of, turns)) / len(turns), 4)

    twice = share(lambda turn: turn.asked_twice) if rule == "as decided" else 0.0
    return Point(
        rule=rule,
        deadline_s=deadline_s,
        wait_rate=share(waits),
        stale=share(lambda turn: turn.needed and not (waits(turn) and turn.thought_s <= most_s)),
        for_nothing=share(lambda turn: waits(turn) and not turn.needed),
        seconds=share(lambda turn: min(turn.thought_s, most_s) if waits(turn) else 0.0),
        tokens=round((1 + twice) * found.talk_tokens + found.thought_tokens),
    )


class GateReport(Frozen):
    """The statistics of one gate.

    Attributes:
        judged: number of decisions with a known outcome: the Reasoner has processed the utterance.
        regret: share of the judged decisions that waited for nothing or spoke too soon.
        avoided: share of the turns that did not wake the belief reasoner.
        useless_calls: share of the judged turns in which the thought changed nothing.
    """

    gate: str
    turns: int
    judged: int
    wait_rate: float
    waited_for_nothing: float
    spoke_too_soon: float
    regret: float
    avoided: float
    useless_calls: float


async def gate_report(store: LogStore, mind: StreamKey | None = None) -> list[GateReport]:
    """Return a report per gate, in the order of first use; `mind` None: over all minds in the data folder."""
    counts: dict[str, Counter[str]] = {}
    undecided: dict[int, Decided] = {}
    async for row in read_log(store, mind, kinds=[Decided.kind, Judged.kind]):
        event = row.event
        if isinstance(event, Decided):
            undecided[event.answers] = event
            count = counts.setdefault(event.gate, Counter())
            count.update(turns=1, waits=event.waits, avoided=not event.thinks)
        elif isinstance(event, Judged) and (decision := undecided.pop(event.about, None)):
            counts[decision.gate].update(
                judged=1,
                nothing=decision.waits and not event.needed,
                soon=event.needed and not decision.waits,
                useless=not (event.needed or event.changed),
            )
    return [_report(gate, count) for gate, count in counts.items()]


def _report(gate: str, count: Counter[str]) -> GateReport:
    def share(of: str, *parts: str) -> float:
        return round(sum(count[part] for part in parts) / count[of], 4) if count[of] else 0.0

    return GateReport(
        gate=gate,
        turns=count["turns"],
        judged=count["judged"],
        wait_rate=share("turns", "waits"),
        waited_for_nothing=share("judged", "nothing"),
        spoke_too_soon=share("judged", "soon"),
        regret=share("judged", "nothing", "soon"),
        avoided=share("turns", "avoided"),
        useless_calls=share("judged", "useless"),
    )
