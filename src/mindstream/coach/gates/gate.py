"""`Gate`, which decides whether an answer waits for the reasoner, and `Handover`, the talker's own decision.

The talker's decision is a mark such as `[WAIT]` at the beginning of its reply, so that one model call both decides and
answers. Users never see the mark. See docs/gates.md.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal, Protocol

from pydantic import JsonValue

from mindstream.coach.belief.plan import CoachingPlan
from mindstream.coach.events import Decided, Judged
from mindstream.coach.packs.pack import Pack, Phase
from mindstream.coach.packs.safety import find_hint
from mindstream.errors import SettingsError
from mindstream.foreign_code import describe
from mindstream.log.events import BeliefChanged, PlanChanged
from mindstream.memory.store.store import Entry
from mindstream.models.model import Model
from mindstream.models.rules import Rules
from mindstream.models.untrusted import HALF, legible
from mindstream.reasoners.reasoner import RunResult, Utterance


@dataclass(frozen=True, slots=True)
class Situation:
    """An utterance, and the state of the conversation before its answer.

    Attributes:
        phase: the phase of the conversation, according to the belief.
        belief: the other fields of the belief.
        version: the version of that belief.
        said: the last answer in this session; "" before the first one.
        erasures: number of the last erasure of stored words before belief and plan were read.
    """

    text: str
    phase: Phase
    belief: Mapping[str, JsonValue] = field(default_factory=dict)
    version: int = 0
    plan: CoachingPlan = field(default_factory=CoachingPlan)
    said: str = ""
    erasures: int = 0

    @property
    def has_plan(self) -> bool:
        """Whether the plan has a current step."""
        return self.plan.now is not None


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision about an utterance.

    Attributes:
        waits: whether the talker waits for the reasoner before it answers.
        thinks: whether the reasoner is woken; if not, the reasoner sees the utterance when it is woken the next time.
        why: the reason in a few words, for the log.
        hands_over: whether the talker itself decides, at the beginning of its reply (see the top of this module).
    """

    waits: bool
    thinks: bool = True
    why: str = ""
    hands_over: bool = False


class Gate(Protocol):
    """Decides about each utterance before it is committed, and again if the answer had to wait for its turn."""

    @property
    def name(self) -> str:
        """The name of the gate in the log."""

    def decide(self, situation: Situation) -> Decision:
        """Return the decision within a millisecond, because the utterance is acknowledged only after it."""


class Gatekeeper:
    """Call a gate safely: if it raises an error, `BeliefGate` (the rule of Christakopoulou 2024) decides. If an
    utterance hints at danger, the reasoner is always woken.
    """

    def __init__(self, gate: Gate, pack: Pack) -> None:
        self.name = gate.name
        self._gate, self._pack = gate, pack

    def decide(self, situation: Situation) -> Decision:
        """Decide about an utterance. If the gate fails, `BeliefGate` decides; a hint of danger always wakes the
        reasoner."""
        try:
            decision = self._gate.decide(situation)
        except Exception as error:  # noqa: BLE001 (a gate is third-party code)
            decision = BeliefGate().decide(situation)
            decision = replace(decision, why=f"{decision.why} (the gate failed: {describe(error)})")
        if not decision.thinks and self.hints(situation.text):
            return replace(decision, thinks=True, why=f"a hint of danger; {decision.why}")
        return decision

    def hints(self, text: str) -> bool:
        """Return whether an utterance hints at danger."""
        return find_hint(self._pack, text) is not None


GATES = ("talker", "belief")


class BeliefGate:
    """The paper's rule (Christakopoulou 2024, 4.2): the answer waits in the phases that the pack marks; the reasoner is
    always woken.
    """

    name = "belief"

    def decide(self, situation: Situation) -> Decision:
        return Decision(situation.phase.waits, why=f"phase {situation.phase.name}")


class TalkerGate:
    """A gate that lets the talker's model decide whether to wait for the reasoner (see the top of this module). It
    understands requests in any language."""

    name = "talker"

    def decide(self, situation: Situation) -> Decision:
        return Decision(waits=False, why=f"the Talker's to say, in phase {situation.phase.name}", hands_over=True)


def gate_named(name: str, talker: Model) -> Gate:
    """Return a gate by name; "" is `talker` if a language model answers, otherwise `belief`.

    Raises:
        SettingsError: the name is unknown, or the gate needs a language model.
    """
    answers = talker.name != Rules.name
    if name == "belief" or not (name or answers):
        return BeliefGate()
    if name == "talker" and not answers:
        raise SettingsError("the gate 'talker' needs a language model for the role talker; use 'belief' without one")
    if name in ("", "talker"):
        return TalkerGate()
    raise SettingsError(
        f"unknown gate {name!r}; choose one of {', '.join(GATES)}, or leave the gate"
        " out (the default is talker with a model, belief without)"
    )


GATE_AUTHOR = "gate"


def judge_outcome(result: RunResult, written: Sequence[Entry], utterances: Sequence[Utterance]) -> list[Entry]:
    """Return log entries that judge the decisions about the utterances that a belief reasoner has processed.

    An answer should have waited (`needed`) if the plan changed or the talker was corrected; the reasoner was useful if
    the belief changed (`changed`). If several utterances together had such an effect, only the newest is judged,
    because it is unknown which one was the cause.
    """
    needs = {
        "plan": any(isinstance(entry.event, PlanChanged) for entry in written),
        "correction": bool(result.follow_up),
    }
    changed = any(isinstance(entry.event, BeliefChanged) for entry in written)
    why = ", ".join(name for name, found in needs.items() if found)
    about = utterances if not why and not changed else utterances[-1:]
    return [Entry(Judged(about=each.seq, needed=bool(why), changed=changed, why=why), GATE_AUTHOR) for each in about]


def decision_entry(decision: Decision, gate: str, phase: str, heard: int) -> Entry:
    """Return the log entry of a decision about an utterance (its seq)."""
    event = Decided(
        answers=heard, gate=gate, waits=decision.waits, thinks=decision.thinks, why=decision.why, phase=phase
    )
    return Entry(event, GATE_AUTHOR)


Way = Literal["alone", "think", "wait"]
"""The talker's decision. `alone`: the reasoner is not needed; `think`: the reasoner runs after the answer; `wait`: the
answer waits for the reasoner."""

NAMES = ("wait", "alone", "think")
CLOSING = "*_`\"':.。"
EDGE = r"[\s*_`\"'#>~]{0,12}"
MARK = re.compile(rf"{EDGE}[\[［【<]\s*({'|'.join(NAMES)})\s*[\]］】>][*_`\"':.。]*", re.IGNORECASE)
OPEN = re.compile(rf"{EDGE}(?:[\[［【<]\s*([a-z]*)\s*)?$", re.IGNORECASE)
"""Matches the end of a text if it may be the beginning of a mark that the next piece completes."""
BARE = re.compile(rf"{EDGE}([A-Z]{{1,5}}){EDGE}\.?$")
"""Matches a mark without its brackets, which counts only if it is the whole reply."""


class Handover:
    """Read the talker's reply piece by piece; find and remove the marks of its decision, such as `[WAIT]`.

    Args:
        may_wait: whether a mark for waiting is obeyed; otherwise it is only removed.

    Attributes:
        way: the talker's decision; also "wait" if the reply ends with that mark after some words.
        ended: whether the rest of the reply is discarded, because the reply began with the mark for waiting.
    """

    def __init__(self, *, may_wait: bool = True) -> None:
        self.may_wait = may_wait
        self.way: Way = "think"
        self.ended = False
        self._half = self._held = ""
        self._began = self._asks = self._marked = False

    def read(self, piece: str) -> str:
        """Read a piece and return the text that can be shown now."""
        piece = self._half + piece
        self._half = piece[-1] if HALF.search(piece) else ""  # half a character waits for the other half
        text, shown = self._held + legible(piece.removesuffix(self._half)), ""
        while not self.ended and (mark := MARK.search(text)):
            before, text = text[: mark.start()], text[mark.end() :]
            shown += self._show(before)
            self._marked = True
            self._decide(mark[1].lower())
        if self.ended:
            self._held = ""
            return shown
        held = (None if self._began else BARE.match(text)) or OPEN.search(text)
        at = held.start() if held and any(name.startswith((held[1] or "").lower()) for name in NAMES) else len(text)
        self._held = text[at:]
        return shown + self._show(text[:at])

    def finish(self) -> str:
        """End the reply: return the text that was still held back, and set `way` if a mark ended the reply."""
        rest, self._held = self._held, ""
        if not self._began and (bare := BARE.match(rest)) and bare[1].lower() in NAMES:
            self._decide(bare[1].lower())
            rest = ""
        if self._asks:
            self.way = "wait"
        return self._show(rest) if rest.strip() and not self.ended else ""

    def _show(self, text: str) -> str:
        if self._marked:
            text = text.lstrip(CLOSING)
            self._marked = not text
        text = text if self._began else text.lstrip()
        if text.strip():
            self._began, self._asks = True, False
        return text

    def _decide(self, name: str) -> None:
        if name == "wait" and not self.may_wait:
            return
        self._asks = name == "wait"
        if not self._began:
            self.way = name  # type: ignore[assignment]
            self.ended = self._asks
