"""Events of a coach, in addition to those of any mind."""

from __future__ import annotations

from typing import Literal

from mindstream.json_values import JsonObject
from mindstream.log.declared import Name, Quotes
from mindstream.log.events import Event

Strength = Literal["sure", "hint", "taken_back"]
Basis = Literal["words", "recogniser", "answer", "model"]
"""What detected an alarm: the pack's patterns, a recogniser, the answer to a question, a model."""


class Believed(Event):
    """A reasoner noted an interim belief between two tool calls. It becomes part of the next version of the belief."""

    kind = "believed"
    slot: Name
    patch: Quotes[JsonObject]


class Decided(Event):
    """The decision about an utterance: whether its answer waits for the reasoner, and whether the reasoner is woken."""

    kind = "decided"
    answers: int
    """Sequence number (`seq`) of the log row of the utterance."""
    gate: Name
    waits: bool
    thinks: bool
    """Whether the belief reasoner is woken. If not, but `why` ends with ": think", its next run processes the
    utterance."""
    why: Quotes[str] = ""
    phase: Name


class LeftUnsaid(Event):
    """A follow-up was not sent, because none was possible after the answer; the next answer may contain it."""

    kind = "left_unsaid"
    text: Quotes[str]
    answers: int
    """Sequence number (`seq`) of the log row of the utterance."""


class Judged(Event):
    """A judgement of a decision (`Decided`): should the answer to an utterance have waited for the reasoner?

    The decision is judged after the reasoner's run.
    """

    kind = "judged"
    about: int
    """Sequence number (`seq`) of the log row of the utterance."""
    needed: bool
    """Whether the answer should have waited for the reasoner."""
    changed: bool
    """Whether a belief changed."""
    why: Quotes[str] = ""


class Alarmed(Event):
    """An utterance raised an alarm, hinted at one (`strength`), or took one back."""

    kind = "alarmed"
    session: Name
    answers: int
    """Sequence number (`seq`) of the log row of the utterance."""
    alarm: Name
    """The id of the pack's alarm."""
    strength: Strength
    basis: Basis
    spoken: bool
    """Whether the words or the question that the pack prescribes for this alarm were said: in the answer, or in a later
    follow-up."""


EVENTS: tuple[type[Event], ...] = (Believed, Decided, LeftUnsaid, Judged, Alarmed)
