"""The judge: blind pairs, in both orders; and grades of answers."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

from mindstream.frozen import Frozen
from mindstream.models.ask import ask
from mindstream.models.model import Model
from mindstream.models.prompt import Prompt


class Preference(Frozen):
    """Which of two transcripts is better."""

    why: str = Field("", max_length=4_000)
    preferred: Literal["A", "B", "same"]


class Judge(Prompt[Preference]):
    """Which coach would this person prefer to return to?"""

    role = "judge"

    a: str
    b: str
    who: str = ""


class Vote(BaseModel):
    """A judge's verdict on a pair, by side. `first`: the side that the prompt showed as A."""

    first: str
    preferred: str
    why: str


async def vote(model: Model, first: tuple[str, str], second: tuple[str, str], who: str) -> Vote:
    """Ask which of two (side, transcript) is better, without naming the sides."""
    found = await ask(model, Judge(a=first[1], b=second[1], who=who))
    sides = {"A": first[0], "B": second[0], "same": "same"}
    return Vote(first=first[0], preferred=sides[found.preferred], why=found.why)


POINTS = {"right": 1.0, "partly": 0.5, "wrong": 0.0}


class Grade(Frozen):
    """How much of the key an answer holds."""

    why: str = Field("", max_length=2_000)
    grade: Literal["right", "partly", "wrong"]


class GradeAnswer(Prompt[Grade]):
    """Does the answer contain what a right one must?"""

    role = "judge"

    question: str
    key: str
    answer: str
