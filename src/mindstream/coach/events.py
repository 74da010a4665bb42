"""What can happen to a coach, besides what can happen to any mind."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from mindstream.log.declared import NoWords, Quotes
from mindstream.log.events import Event

Strength = Literal["sure", "hint", "taken_back"]
Basis = Literal["words", "recogniser", "answer", "model"]
"""By what an alarm was heard: the pack's patterns, a recogniser, the answer to what was asked, a model."""


class Believed(Event):
    """A Reasoner wrote down what it believes between two calls of tools; composed into the next belief."""

    kind = "believed"
    slot: NoWords[str]
    patch: Quotes[dict[str, JsonValue]]


class Decided(Event):
    """It was decided of an utterance whether its answer waits, and whether it is thought about (see coach/gates)."""

    kind = "decided"
    answers: int
    """The seq of what was heard."""
    gate: NoWords[str]
    waits: bool
    thinks: bool
    """The belief reasoner thinks about it."""
    why: Quotes[str] = ""
    phase: NoWords[str]


class LeftUnsaid(Event):
    """What the Reasoner would have added to an answer where nothing could follow one; the next answer may say it."""

    kind = "left_unsaid"
    text: Quotes[str]
    answers: int
    """The seq of what was heard."""


class Judged(Event):
    """What came of an utterance, once the Reasoner had thought about it."""

    kind = "judged"
    about: int
    """The seq of what was heard."""
    needed: bool
    """The Reasoner had something that the answer should have waited for."""
    changed: bool
    """It changed a belief."""
    why: Quotes[str] = ""


class Alarmed(Event):
    """An alarm was raised by what was heard; a hint of one does not stop the talk."""

    kind = "alarmed"
    session: NoWords[str]
    answers: int
    """The seq of what was heard."""
    alarm: NoWords[str]
    """The id of the pack's alarm."""
    strength: Strength
    basis: Basis
    spoken: bool
    """Something was said or asked because of it."""


EVENTS: tuple[type[Event], ...] = (Believed, Decided, LeftUnsaid, Judged, Alarmed)
