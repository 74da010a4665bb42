"""The coaching plan: steps with reasons and resources; stored in versions, across sessions, and edited by step.

The reasoner states how likely the user is to do a step; `Calibration` compares these forecasts with the outcomes. The
paper names this as future work (Christakopoulou 2024).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, Field, ValidationError
from pydantic.json_schema import SkipJsonSchema

from mindstream.frozen import Frozen
from mindstream.memory.store.record import shortened
from mindstream.models.untrusted import indented

State = Literal["now", "going_on", "later", "done", "dropped", "not_needed"]
OPEN: tuple[State, ...] = ("now", "later")
"""States of unfinished steps; a step in the state `going_on` (a habit) is neither open nor closed."""
MOST_OPEN, MOST_CLOSED = 20, 40
"""Maximum number of steps in a version of the plan. MOST_OPEN: open steps and habits together, of which at most half
may be habits. MOST_CLOSED: closed steps. If there are more, the first open steps, the newest habits and the newest
closed steps are kept."""
TITLE, TEXT, LINK, RESOURCES, REPORTS = 200, 2_000, 1_000, 8, 3
"""Maximum length of a step's title, text and link, in characters; maximum number of its resources and reports."""
REPORTED = 5
"""Maximum number of closed steps whose newest report a prompt shows: the last ones that have a report."""
Title = Annotated[str, AfterValidator(lambda text: shortened(text, TITLE))]
Words = Annotated[str, AfterValidator(lambda text: shortened(text, TEXT))]
FOLLOWED = re.compile(r"(?:https?:|tel:|mailto:|(?![a-z][a-z0-9+.-]*:))[^\s<>\"]+", re.IGNORECASE)
"""Matches links that a user may open: web page, phone number, e-mail address. A link without a scheme is a web page."""


def _checked_link(link: str | None) -> str | None:
    """Return a link if a user may open it safely, otherwise None (code, local files, invisible characters)."""
    return link if link and len(link) <= LINK and link.isprintable() and FOLLOWED.fullmatch(link) else None


Link = Annotated[str | None, AfterValidator(_checked_link)]
MARKS: dict[State, str] = {
    "now": "now",
    "going_on": "going on",
    "later": "later",
    "done": "done",
    "dropped": "dropped",
    "not_needed": "no longer needed",
}


class NamedResource(Frozen):
    """Something to read, watch, listen to or call."""

    title: Title
    publisher: Title = Field("", description="Publisher or channel.")
    link: Link = Field(None, description="Only a link that the tool gave.")
    language: SkipJsonSchema[str] = ""
    why: Words = Field("", description="Why this one, in a sentence.")

    def __str__(self) -> str:
        named = f"“{self.title}” ({self.publisher})" if self.publisher else f"“{self.title}”"
        return f"{named}: {self.why}" + (f" {self.link}" if self.link else "")


class StepEdit(Frozen):
    """A new step of the plan, or the changes of an existing step, which is found by its title. Long texts are
    shortened.

    Attributes:
        do, why, resources: the new values; if empty, the old values stay.
        caution: the new caution; None: the old one stays; "": the old one is removed.
        likely: how likely this user is to do the step, 0 to 1. Once the user was told of the step, an existing value
            stays.
        report: how the step went, in the user's words.
        did: whether the user did the step.
    """

    title: Title = Field(min_length=1)
    state: State | None = None
    do: Words = ""
    why: Words = ""
    caution: Words | None = None
    resources: Annotated[list[NamedResource], AfterValidator(lambda named: named[:RESOURCES])] = Field(
        default_factory=list
    )
    told: bool | None = None
    likely: float | None = Field(None, ge=0, le=1)
    report: Words = ""
    did: bool | None = None
    source: SkipJsonSchema[Title] = ""

    @classmethod
    def of(cls, step: PlanStep) -> StepEdit:
        """Return an edit that creates this step."""
        return cls(**step.model_dump(include=set(cls.model_fields)))


class PlanStep(BaseModel, frozen=True):
    """A step of the plan.

    Attributes:
        told: whether the user was told of the step.
        likely: forecast probability that the user does the step; an existing value stays once the user was told of
            the step.
        reports: how the step went, in the user's words, the newest last.
        did: whether the user did the step, according to the last report.
        source: the id of the library step in the pack that this one is based on; "": none.
    """

    title: Title
    do: Words = ""
    why: Words = ""
    caution: Words = ""
    state: State = "later"
    resources: list[NamedResource] = []
    source: Title = ""
    told: bool = False
    likely: float | None = None
    reports: list[Words] = []
    did: bool | None = None

    def edit(self, edit: StepEdit) -> PlanStep:
        """Return the step changed by an edit."""
        new = {name: value for name in ("do", "why", "state", "resources", "source") if (value := getattr(edit, name))}
        new |= {name: value for name in ("caution", "told", "did") if (value := getattr(edit, name)) is not None}
        if edit.likely is not None and (self.likely is None or not self.told):
            new["likely"] = edit.likely
        if edit.report:
            new["reports"] = [*self.reports, edit.report][-REPORTS:]
        return self.model_copy(update=new)

    def full(self, *, told: bool = True) -> str:
        """Return the step with all texts; `told`: whether to mark an open step that the user was not told of."""
        parts = [self.head(told=told), self.do]
        named = {"Why": self.why, "Caution": self.caution, "How it went": " / ".join(self.reports)}
        parts += [f"{name}: {text}" for name, text in named.items() if text]
        parts += [str(resource) for resource in self.resources]
        return "\n  ".join(indented(part) for part in parts if part)

    def head(self, *, told: bool = True) -> str:
        """Return the step's title and state; `told`: whether to mark an open step that the user was not told of."""
        unheard = told and not self.told and self.state in OPEN
        return f"{self.title} ({MARKS[self.state]}{', not told yet' if unheard else ''})"


class CoachingPlan(BaseModel, frozen=True):
    """All steps of a user's plan, including done and dropped ones, so that no step is offered twice."""

    steps: list[PlanStep] = []

    @property
    def now(self) -> PlanStep | None:
        """The current step; None: no step is in the state `now`."""
        return next((step for step in self.steps if step.state == "now"), None)

    @property
    def open(self) -> list[PlanStep]:
        """The unfinished steps, the current one first."""
        return [s for s in self.steps if s.state == "now"] + [s for s in self.steps if s.state == "later"]

    def edit(self, edits: Sequence[StepEdit]) -> CoachingPlan:
        """Return the plan changed by edits. A new "now" step moves the old "now" step to "later". New steps come last.

        If there are too many steps (MOST_OPEN, MOST_CLOSED), some are removed: the oldest closed steps, the oldest
        habits, and the last of the "later" steps.
        """
        steps = {step.title.casefold(): step for step in self.steps}
        for edit in edits:
            key = edit.title.casefold()
            if edit.state == "now":
                steps = {
                    k: step.model_copy(update={"state": "later"}) if step.state == "now" else step
                    for k, step in steps.items()
                }
            steps[key] = steps.get(key, PlanStep(title=edit.title)).edit(edit)
        return CoachingPlan(steps=_within_limits(list(steps.values())))

    def written(self, *, full: bool = False, told: bool = True) -> str:
        """Return the plan as text: the current step in full, the others by title.

        Args:
            full: whether to show all unfinished steps and all habits in full, and how the last closed steps went.
            told: whether to mark open steps that the user was not told of.
        """
        whole: tuple[State, ...] = (*OPEN, "going_on") if full else ("now",)
        closed = [step.title for step in self.steps if step.state not in whole and step.reports]
        reported = closed[-REPORTED:] if full else []
        lines = (
            step.full(told=told)
            if step.state in whole
            else indented(step.head(told=told) + (f": {step.reports[-1]}" if step.title in reported else ""))
            for step in self.steps
        )
        return "\n".join(f"- {line}" for line in lines)


def read_coaching_plan(data: object) -> CoachingPlan:
    """Read a plan from a record's data; invalid parts are left out.

    An unknown state becomes "later". If several steps are in the state "now", all but the first become "later".
    """
    held = data.get("steps") if isinstance(data, dict) else None
    steps: dict[str, PlanStep] = {}
    for each in held if isinstance(held, list) else []:
        step = _step(each)
        if step is not None:
            taken = step.state == "now" and any(other.state == "now" for other in steps.values())
            steps[step.title.casefold()] = step.model_copy(update={"state": "later"}) if taken else step
    return CoachingPlan(steps=list(steps.values()))


def _step(data: object) -> PlanStep | None:
    kept = dict(data) if isinstance(data, dict) else {}
    while kept.get("title"):
        try:
            return PlanStep.model_validate(kept)
        except ValidationError as error:
            misfits = {found["loc"][0] for found in error.errors() if found["loc"]} & kept.keys()
            if not misfits:
                break
            kept = {name: value for name, value in kept.items() if name not in misfits}
    return None


def _within_limits(steps: Sequence[PlanStep]) -> list[PlanStep]:
    begun = [step for step in steps if step.state == "now"]
    begun += [step for step in steps if step.state == "going_on"][-MOST_OPEN // 2 :]
    closed = [step for step in steps if step.state not in (*OPEN, "going_on")][-MOST_CLOSED:]
    later = [step for step in steps if step.state == "later"][: MOST_OPEN - len(begun)]
    kept = {id(step) for step in (*closed, *begun, *later)}
    return [step for step in steps if id(step) in kept]


BINS, LEAST = 5, 3
"""BINS: number of bins of likelihoods from 0 to 1. LEAST: minimum number of steps with a forecast and a report (done or
not) before the forecasts are summarized for the next forecast."""


@dataclass
class Bin:
    """Steps of similar likelihood.

    Attributes:
        steps: number of steps in the bin.
        thought: mean of the forecast likelihoods of the steps.
        done: share of the steps that were done.
    """

    steps: int = 0
    thought: float = 0.0
    done: float = 0.0

    def add(self, likely: float, did: bool) -> None:
        self.thought += (likely - self.thought) / (self.steps + 1)
        self.done += (did - self.done) / (self.steps + 1)
        self.steps += 1


@dataclass
class Calibration:
    """Forecasts compared with outcomes.

    Attributes:
        steps: number of counted steps.
        brier: the mean squared error of the likelihoods: 0 is best; stating .5 for every step gives .25.
        bins: the bins, by the lower limit of the likelihoods in them.
    """

    steps: int = 0
    brier: float = 0.0
    bins: dict[float, Bin] = field(default_factory=dict)

    def add(self, step: PlanStep) -> None:
        """Count a step if it has a forecast and a report and the user was told of it."""
        if step.likely is None or step.did is None or not step.told:
            return
        self.brier += ((step.likely - step.did) ** 2 - self.brier) / (self.steps + 1)
        self.steps += 1
        low = min(int(step.likely * BINS), BINS - 1) / BINS
        self.bins.setdefault(low, Bin()).add(step.likely, step.did)

    def __str__(self) -> str:
        """Return a summary for the next forecast; "" if there are too few steps."""
        if self.steps < LEAST:
            return ""
        thought = sum(each.thought * each.steps for each in self.bins.values()) / self.steps
        done = sum(each.done * each.steps for each in self.bins.values()) / self.steps
        return f"Of {self.steps} steps so far, which you thought {thought:.0%} likely, {done:.0%} were done."


def calibration_of(steps: Iterable[PlanStep]) -> Calibration:
    """Return how well the forecasts for a plan's steps agree with the outcomes (see Calibration)."""
    found = Calibration()
    for step in steps:
        found.add(step)
    return found
