"""Is an answer right? Graded against a key that the one who plays has written, and nobody who answers has seen."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.prompt import Prompt

POINTS = {"right": 1.0, "partly": 0.5, "wrong": 0.0}


class Grade(BaseModel):
    """How much of the key an answer holds."""

    model_config = ConfigDict(frozen=True)

    why: str = Field("", max_length=2_000)
    grade: Literal["right", "partly", "wrong"]


class GradeAnswer(Prompt[Grade]):
    """Does the answer hold what a right one must?"""

    role = "judge"

    question: str
    key: str
    answer: str
