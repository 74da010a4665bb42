"""The question to a small model beside the Talker: do these words suggest danger to life?"""

from __future__ import annotations

from typing import ClassVar

from mindstream.coach.packs.recogniser import recognises
from mindstream.models.decide import Question
from mindstream.models.prompt import rule
from mindstream.models.questions.predicate import YesNo

LIKELY = 0.9


class SuggestsDanger(YesNo, Question):
    """Does the newest message suggest danger to life?"""

    role: ClassVar[str] = "safety"

    utterance: str
    said: str = ""


@rule(SuggestsDanger)
def answer_by_recogniser(ask: SuggestsDanger) -> dict[str, float]:
    """Answer as the recogniser hears it."""
    likely = LIKELY if recognises("danger", ask.utterance) else 1 - LIKELY
    return {"yes": likely, "no": 1 - likely}
