"""The plan: steps with reasons and resources, kept as versions, adapted by feedback, carried over sessions."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field


class NamedResource(BaseModel):
    """Something to read, watch, listen to or call."""

    model_config = ConfigDict(frozen=True)

    title: str
    publisher: str = Field("", description="Publisher or channel.")
    link: str | None = Field(None, description="Only a link that the tool gave.")
    why: str = Field("", description="Why this one, in a sentence.")


class PlanStep(BaseModel):
    """A step of the plan."""

    model_config = ConfigDict(frozen=True)

    title: str
    do: str = Field("", description="What to do, concretely.")
    why: str = Field("", description="Why it helps.")
    state: Literal["now", "later", "done", "dropped"] = Field("later", description="now: the step the user is at.")
    resources: list[NamedResource] = Field(default_factory=list)
    source: str = Field("", description="Leave empty.")


class Plan(BaseModel):
    """All steps, dropped ones included, so that nothing is offered twice."""

    model_config = ConfigDict(frozen=True)

    steps: list[PlanStep] = Field(default_factory=list)

    @property
    def now(self) -> PlanStep | None:
        """The step the user is at."""
        return next((step for step in self.steps if step.state == "now"), None)

    @property
    def open(self) -> list[PlanStep]:
        """The steps that are still to do, the present one first."""
        return [s for s in self.steps if s.state == "now"] + [s for s in self.steps if s.state == "later"]

    def told(self) -> str:
        """Write the plan as lines, for prompts and people."""
        marks = {"now": "→", "later": "·", "done": "✓", "dropped": "✗"}
        return "\n".join(f"{marks[step.state]} {step.title}: {step.do}" for step in self.steps)
