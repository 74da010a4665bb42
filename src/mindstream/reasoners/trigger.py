"""When a reasoner wakes."""

from __future__ import annotations

from dataclasses import dataclass

from mindstream.clock import Moment


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Something that happens, as triggers see it; mostly an utterance.

    Attributes:
        number: how often that has happened to this mind, this time included.
        phase, before: the phase that the talk is in now, and was in the time before.
        kind: what happens: the kind of the event.
    """

    number: int
    phase: str
    before: str
    kind: str = "heard"


@dataclass(frozen=True, slots=True)
class Trigger:
    """Wakes a reasoner on utterances, or other events, that meet all of its conditions, or on silence.

    Attributes:
        every: on every so many of them; 0: on none.
        phases: only in these phases; empty: in any.
        entering: only at the first one after the phase has changed.
        on: the kinds of events that it is for (`heard`: an utterance).
        idle_s: when so many seconds have passed without an utterance, once until the next one.
        at: at that moment, by itself; a reasoner that has a time of its own gives another trigger when it has been.
        each: at that moment in each process that has the mind open, where what is done then has a lease of its own (a
            life). Else one of all processes does what silence or a moment calls for, as with what is heard.
    """

    every: int = 1
    phases: tuple[str, ...] = ()
    entering: bool = False
    idle_s: float | None = None
    at: Moment | None = None
    on: tuple[str, ...] = ("heard",)
    each: bool = False

    def fires(self, turn: Occurrence) -> bool:
        """Return whether this wakes the reasoner."""
        if turn.kind not in self.on or self.every == 0 or turn.number % self.every:
            return False
        if self.entering and turn.phase == turn.before:
            return False
        return not self.phases or turn.phase in self.phases


EVERY_TURN = Trigger()
