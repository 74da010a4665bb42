"""What will somebody do today, from getting up to going to bed? All of it in one reply."""

from __future__ import annotations

from typing import Any, ClassVar, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from mindstream.models.prompt import Prompt, rule
from mindstream.town.prompts.memory import Memory
from mindstream.town.prompts.plan_day import AT_HOME, BED, LEAST_AWAKE, WAKE, Clock, Place
from mindstream.town.world.hours import DAY_MINUTES, clock, minute_of

MOST = 60
LONGEST = 16 * 60
"""Minutes of an item; one that would be longer past midnight ends before it begins."""
NIGHT_ENDS = 5 * 60
"""An item that begins before this minute, after one of the evening, is past midnight."""


class SceneItem(BaseModel):
    """A part of a day."""

    model_config = ConfigDict(frozen=True, populate_by_name=True)

    start: Clock = Field(alias="from")
    end: Clock = Field(alias="to")
    what: str = Field(min_length=1, max_length=200)
    place: str = Field("", max_length=200, description="A name from the list; empty: at home.")
    thing: str = Field("", max_length=100)
    state: str = Field("", max_length=80)
    busy: bool = False
    weight: int = Field(1, ge=1, le=10)

    @field_validator("place", "thing", "state", mode="before")
    @classmethod
    def _nothing(cls, given: Any) -> Any:
        return given or ""


class SceneDay(BaseModel):
    """A day."""

    model_config = ConfigDict(frozen=True)

    items: list[SceneItem] = Field(min_length=1, max_length=MOST)

    @model_validator(mode="after")
    def _lasts(self) -> Self:
        """Refuse items that end before they begin, and a day without hours."""
        for number, each in enumerate(self.items, 1):
            is_bedtime = number == len(self.items) > 1 and each.start == each.end
            if not is_bedtime and not 0 < _length(each) <= LONGEST and not _is_whole_day(each):
                raise ValueError(
                    f"item {number}, {each.what!r:.60}, is from {each.start} to {each.end}: it must end after it begins"
                )
        spans = self.spans()
        if spans[-1][1] - spans[0][0] < LEAST_AWAKE:
            raise ValueError(f"the day has {spans[-1][1] - spans[0][0]} minutes: plan from getting up to going to bed")
        return self

    def spans(self) -> list[tuple[int, int, SceneItem]]:
        """Return the items in the order of the day, with the minutes of its beginning and end, on past midnight.

        They are taken in the order in which they are given where that is one of a day, else sorted.
        """
        found, past = list[tuple[int, int, SceneItem]](), 0
        for each in self.items:
            start = minute_of(each.start) + past
            if found and start < found[-1][0]:
                if minute_of(each.start) >= NIGHT_ENDS and found[-1][1] <= past + DAY_MINUTES:
                    break  # no midnight lies between the two
                past += DAY_MINUTES
                start += DAY_MINUTES
            found.append((start, start + _length(each), each))
        if len(found) < len(self.items) or found[-1][0] - found[0][0] >= DAY_MINUTES:
            starts = [minute_of(each.start) for each in self.items]
            starts = [start + DAY_MINUTES * (start < NIGHT_ENDS) for start in starts]
            found = [(start, start + _length(each), each) for start, each in zip(starts, self.items, strict=True)]
            found.sort(key=lambda span: span[0])
        return found


def _length(item: SceneItem) -> int:
    if _is_whole_day(item):
        return DAY_MINUTES
    return (minute_of(item.end) - minute_of(item.start)) % DAY_MINUTES


def _is_whole_day(item: SceneItem) -> bool:
    """Tell whether an item lasts from midnight to midnight."""
    return minute_of(item.start) % DAY_MINUTES == minute_of(item.end) % DAY_MINUTES == 0


class PlanScenes(Prompt[SceneDay]):
    """What will somebody do today?"""

    role: ClassVar[str] = "planner"

    who: str
    identity: str
    date: str
    weather: str = ""
    memories: tuple[Memory, ...] = ()
    """What comes to mind, each after the day on which it was written down."""
    yesterday: tuple[str, ...] = ()
    places: tuple[Place, ...]
    usual: tuple[str, ...] = ()
    """The usual day, as it is on such a weekday: `08:00-12:00 work (duty)`."""


@rule(PlanScenes)
def stay_at_home(ask: PlanScenes) -> SceneDay:  # noqa: ARG001
    """Stand in where a model plans elsewhere: a day at home."""
    return SceneDay(items=[SceneItem(start=clock(WAKE), end=clock(BED), what=AT_HOME)])
