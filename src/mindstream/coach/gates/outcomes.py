"""Gate decisions and their outcomes as log entries."""

from __future__ import annotations

from collections.abc import Sequence

from mindstream.coach.events import Decided, Judged
from mindstream.coach.gates.gate import Decision
from mindstream.log.events import BeliefChanged, PlanChanged
from mindstream.memory.store.store import Entry
from mindstream.reasoners.reasoner import RunResult, Utterance

BY = "gate"


def judge_outcome(result: RunResult, written: Sequence[Entry], utterances: Sequence[Utterance]) -> list[Entry]:
    """Judge the utterances that a belief reasoner has thought about.

    A new or changed plan, or a correction, is what an answer should have waited for (`needed`); a change of
    belief is why it was worth thinking at all (`changed`). Where several utterances were thought about at once and
    something came of it, only the newest is judged: it cannot be told which of them it came from.
    """
    needs = {
        "plan": any(isinstance(entry.event, PlanChanged) for entry in written),
        "correction": bool(result.follow_up),
    }
    changed = any(isinstance(entry.event, BeliefChanged) for entry in written)
    why = ", ".join(name for name, found in needs.items() if found)
    about = utterances if not why and not changed else utterances[-1:]
    return [Entry(Judged(about=each.seq, needed=bool(why), changed=changed, why=why), BY) for each in about]


def decision_entry(decision: Decision, gate: str, phase: str, heard: int) -> Entry:
    """Write down what was decided of an utterance (its seq)."""
    event = Decided(
        answers=heard, gate=gate, waits=decision.waits, thinks=decision.thinks, why=decision.why, phase=phase
    )
    return Entry(event, BY)
