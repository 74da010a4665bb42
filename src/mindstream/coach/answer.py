"""An answer while it is being said."""

from __future__ import annotations

from dataclasses import dataclass, field

from mindstream.coach.alarms import Verdict
from mindstream.coach.gates.gate import Decision
from mindstream.coach.handover import Handover

UNAVAILABLE = "unavailable"
"""Named as the model of an answer that says that there is none: a model was asked and failed."""


@dataclass
class Answer:
    """What is being said to an utterance.

    Attributes:
        model: who found the words.
        decision: what was decided of the utterance, by the gate or, as it began, by the Talker (`handover`).
        one_answer: nothing can follow it.
        words: all that was shown.
        kept: what of it is remembered.
        verdict: what an alarm adds to it; None before that was judged.
        erasures: the number of the last erasure when the Talker began to read for it.
        written: it was tried to keep it. decided: what was decided stands in the log.
        speaking: words of it are coming, so that silence need not be filled.
        turn: the work that it is, which ends with it; None: it is none.
        reading: the Talker's model has been asked and has said nothing yet.
    """

    heard: int
    model: str
    decision: Decision
    one_answer: bool = False
    waited: bool = False
    late: bool = False
    words: str = ""
    kept: str = ""
    verdict: Verdict | None = None
    decided: bool = False
    speaking: bool = False
    reading: bool = False
    erasures: int | None = None
    written: bool = False
    turn: int | None = None
    handover: Handover = field(default_factory=Handover)

    @property
    def hands_over(self) -> bool:
        """The Talker has said that it waits, and has not waited yet."""
        return self.decision.hands_over and not self.waited and self.handover.way == "wait"


class Aside(str):
    """Words that are shown and not remembered: that a model could not be reached says nothing of the user."""
