"""What kind of thing did each step find? Whoever mends a plan is told this of strangers' words, and never the words.

The values fit a schema (numbers, dates, kinds of things), so that no order can stand in them (Debenedetti 2025, CaMeL).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import date
from typing import Annotated, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.prompt import Prompt, rule
from mindstream.planning.evidence import Evidence
from mindstream.planning.plan import Plan
from mindstream.planning.prompts.answer_from_evidence import Shown, show_steps

MOST = 6
Kind = Literal["person", "place", "organisation", "work", "amount", "date", "yes_or_no", "text"]


class Found(BaseModel):
    """What a step found: how much of what it looked for, which kinds of things, and numbers and dates of these."""

    model_config = ConfigDict(frozen=True)

    step: Annotated[str, Field(pattern=r"^E\d{1,4}$")]
    holds: Literal["all", "part", "nothing"]
    kinds: list[Kind] = Field(default_factory=list, max_length=MOST)
    numbers: list[Annotated[float, Field(allow_inf_nan=False)]] = Field(default_factory=list, max_length=MOST)
    dates: list[date] = Field(default_factory=list, max_length=MOST)

    def __str__(self) -> str:
        said = ", ".join([*self.kinds, *(f"{each:g}" for each in self.numbers), *map(str, self.dates)])
        much = {"all": "", "part": "a part of ", "nothing": "nothing of "}[self.holds]
        return f"{much}what it looked for" + f" ({said})" * bool(said)


class AllFound(BaseModel):
    """One for each step that is shown."""

    model_config = ConfigDict(frozen=True)

    steps: list[Found] = Field(max_length=100)


class SortFound(Prompt[AllFound]):
    """Say of each step what it found, by kinds and numbers alone."""

    role: ClassVar[str] = "solver"
    reply_tokens: ClassVar[int] = 1_000

    task: str
    steps: tuple[Shown, ...]


@rule(SortFound)
def say_nothing(ask: SortFound) -> AllFound:  # noqa: ARG001
    """Stand in: nothing is said of them."""
    return AllFound(steps=[])


def sortable(plan: Plan, evidence: Mapping[str, Evidence], asked: Collection[str]) -> tuple[Shown, ...]:
    """Return the steps of which it is asked: those of `asked` that found what strangers wrote."""
    found = {id for id in asked if id in evidence and evidence[id].foreign and not evidence[id].failed}
    return tuple(step for step in show_steps(plan, evidence) if step.id in found)
