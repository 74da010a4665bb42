"""What can happen to a coach, besides what can happen to any mind."""

from __future__ import annotations

from typing import Literal

from pydantic import JsonValue

from mindstream.log.events import Event, register

Strength = Literal["sure", "hint", "taken_back"]
Basis = Literal["words", "recogniser", "answer", "model"]
"""By what an alarm was heard: the pack's patterns, a recogniser, the answer to what was asked, a model."""


class PlanMade(Event):
    """A Reasoner made or changed the plan."""

    kind = "plan_made"
    version: int
    text: str
    """The plan in the Reasoner's words."""
    changed: str = ""
    """What is different from the plan before, and why."""


class Believed(Event):
    """A Reasoner wrote down what it believes between two calls of tools; composed into the next belief."""

    kind = "believed"
    slot: str
    patch: dict[str, JsonValue]


class Decided(Event):
    """A gate has decided about an utterance; with what it saw, so that it can be learned from (see coach/gates)."""

    kind = "decided"
    answers: int
    """The seq of what was heard."""
    gate: str
    waits: bool
    thinks: bool
    """The belief reasoner was woken."""
    why: str = ""
    probability: float | None = None
    """How likely the Reasoner was thought to have something that the answer needs."""
    pack: str
    phase: str
    known: tuple[str, ...] = ()
    """The fields of the belief that held something."""
    has_plan: bool = False
    said: str = ""
    """The end of what the mind had said before."""
    unthought: int = 0


class Judged(Event):
    """What came of an utterance, once the Reasoner had thought about it."""

    kind = "judged"
    about: int
    """The seq of what was heard."""
    needed: bool
    """The Reasoner had something that the answer should have waited for."""
    changed: bool
    """It changed a belief."""
    why: str = ""


class Alarmed(Event):
    """An alarm was raised by what was heard; a hint of one does not stop the talk."""

    kind = "alarmed"
    session: str
    answers: int
    """The seq of what was heard."""
    alarm: str
    """The id of the pack's alarm."""
    strength: Strength
    basis: Basis
    spoken: bool
    """Something was said or asked because of it."""


register(PlanMade, Believed, Decided, Judged, Alarmed)
