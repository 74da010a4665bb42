"""When a reasoner wakes."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Turn:
    """An utterance, as triggers see it.

    Attributes:
        number: how many utterances this mind has heard, this one included.
        phase, before: the phase that is believed now, and at the utterance before.
    """

    number: int
    phase: str
    before: str


@dataclass(frozen=True, slots=True)
class Trigger:
    """Wakes a reasoner on utterances that meet all of its conditions, or on silence.

    Attributes:
        every: on every so many utterances; 0: on none.
        phases: only in these phases; empty: in any.
        entering: only at the first utterance after the phase has changed.
        idle_s: when so many seconds have passed without an utterance, once until the next one.
    """

    every: int = 1
    phases: tuple[str, ...] = ()
    entering: bool = False
    idle_s: float | None = None

    def fires(self, turn: Turn) -> bool:
        """Return whether this utterance wakes the reasoner."""
        if self.every == 0 or turn.number % self.every:
            return False
        if self.entering and turn.phase == turn.before:
            return False
        return not self.phases or turn.phase in self.phases


EVERY_TURN = Trigger()
