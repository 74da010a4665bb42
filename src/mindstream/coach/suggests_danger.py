"""The question to a small model beside the Talker: do these words suggest danger, or answer what was asked of it?"""

from __future__ import annotations

from typing import ClassVar

from mindstream.coach.packs.safety import recognises_danger
from mindstream.models.decide import LETTERS, Question
from mindstream.models.prompt import rule
from mindstream.models.questions.predicate import YES_NO

ANSWERS = (
    "yes, it is so, or it was",
    "no, it is not so",
    "takes it back: it was not meant like that",
    "no answer to it, and danger all the same",
    "no answer to it, and no danger",
)
AFFIRMS, DENIES, TAKES_BACK, DANGER, NOTHING = ANSWERS
LIKELY = 0.9


class SuggestsDanger(Question):
    """Does the newest message suggest danger to life?

    `open_question`: what was asked of the user because of a hint: then also whether the message answers it, and how.
    """

    role: ClassVar[str] = "safety"

    utterance: str
    said: str = ""
    open_question: str = ""

    def answers(self) -> tuple[str, ...]:
        return ANSWERS if self.open_question else YES_NO

    def marks(self) -> tuple[str, ...]:
        return tuple(LETTERS[: len(ANSWERS)]) if self.open_question else YES_NO


@rule(SuggestsDanger)
def answer_by_recogniser(ask: SuggestsDanger) -> dict[str, float]:
    """Stand in: answer as the recogniser hears it."""
    likely = LIKELY if recognises_danger(ask.utterance) else 1 - LIKELY
    yes, no = (DANGER, NOTHING) if ask.open_question else YES_NO
    return dict.fromkeys(ask.answers(), 0.0) | {yes: likely, no: 1 - likely}
