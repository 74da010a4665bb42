"""The constants of a town: the intended behaviour by default, the published code's as `COMPAT`."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

OF_SCENES = ("lives", "day_calls", "day_tokens")


class Profile(BaseModel):
    """What residents can and what a step is. Source: Park 2023, and the data that its authors ship.

    Attributes:
        step_s: seconds of the town's time a step.
        vision: so many tiles to each side are seen (a square), within the own arena.
        attention: so many of the nearest events are taken in at once.
        retention: what was among the last so many percepts is not new. The published data has 8, with which a full room
            is new every minute.
        reflect_at: so much importance gathers between two reflections: 150 in the paper, 250 in the data of its 25.
        decay: of recency, for each hour since a memory was last returned.
        recency, importance, relevance: weights of what a memory is ranked by.
        recalled: so many memories are recalled for a thought.
        talk_lines: utterances of a conversation, of both together, at most.
        talk_rest: steps in which two who talked do not talk again.
        observes, reflects, plans: what is switched off for an ablation.
        recalls, talks: False: a control, in which nothing can spread.
        lives: how residents live whose planner is a model: in `scenes` (a day is planned in one call, a talk is one),
            or as the `paper` does it, step by step. Without a model it says nothing.
        day_calls, day_tokens: in scenes, so many calls and tokens (in and out) of a resident's day are for its plan,
            its talks and its evening. When they are spent it meets nobody; what it does about dangers goes on.
        compat: as the published code does it, where that is not what was meant (docs/town-inside.md lists where).
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    step_s: int = Field(10, ge=1, le=3_600)
    vision: int = Field(8, ge=0, le=100)
    attention: int = Field(8, ge=1, le=100)
    retention: int = Field(40, ge=0, le=1_000)
    reflect_at: float = Field(150.0, gt=0)
    decay: float = Field(0.995, gt=0, le=1)
    recency: float = Field(1.0, ge=0)
    importance: float = Field(1.0, ge=0)
    relevance: float = Field(1.0, ge=0)
    recalled: int = Field(15, ge=1, le=200)
    talk_lines: int = Field(8, ge=2, le=64)
    talk_rest: int = Field(800, ge=0)
    observes: bool = True
    reflects: bool = True
    plans: bool = True
    recalls: bool = True
    talks: bool = True
    lives: Literal["scenes", "paper"] = "scenes"
    day_calls: int = Field(12, ge=2, le=1_000)
    day_tokens: int = Field(15_000, ge=1_000)
    compat: bool = False

    def dump(self) -> str:
        """Write it as JSON, as a town's log keeps it: of what is for scenes, only what is not as usual."""
        usual = Profile()
        return self.model_dump_json(exclude={each for each in OF_SCENES if getattr(self, each) == getattr(usual, each)})

    @property
    def a_minute(self) -> int:
        """How many steps are nearest to a minute, at least one."""
        return max(1, round(60 / self.step_s))

    @property
    def a_day(self) -> int:
        """How many steps a day has."""
        return 86_400 // self.step_s


COMPAT = Profile(retention=8, recency=0.5, importance=2.0, relevance=3.0, recalled=30, talk_lines=16, compat=True)
