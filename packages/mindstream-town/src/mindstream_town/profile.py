"""The constants of a town's simulation."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, Field

OF_SCENES = ("lives", "day_calls", "day_tokens")


class Profile(BaseModel, frozen=True, extra="forbid"):
    """Constants of a town's simulation. Many defaults are from Park 2023, or from the data of its authors.

    Attributes:
        step_s: seconds of the town's time per step.
        vision: how far a resident sees inside its arena, in tiles to each side.
        attention: maximum number of events perceived at once, the nearest first; dangers are perceived in addition.
        retention: number of the last percepts that do not count as new. With 8, as in the published data, a resident in
            a full room perceives the same people as new every minute.
        reflect_at: total importance of new memories that triggers a reflection; 150 in the paper, 250 in the published
            data of its 25 residents.
        decay: factor of recency per hour since a memory was last recalled.
        recency, importance, relevance: weights in the ranking of memories.
        recalled: default number of memories per recall.
        talk_lines: maximum lines of a conversation; no effect in scenes (see `lives`).
        talk_rest: minimum steps from the end of a talk of two residents, or from a decision against one, to their next
            talk; no effect in scenes.
        observes, reflects, plans: whether residents do this; False: for an ablation.
        recalls, talks: whether residents do this; False: news cannot spread (a control run).
        lives: mode of residents whose planner is a model: `scenes` (one call plans a day, one call is a talk), or
            `paper` (step by step as in the paper). Without a model it has no effect.
        day_calls, day_tokens: for `scenes`: a resident's daily budget for model calls, in calls and in tokens (input
            and output). When the budget is spent, the resident meets no one until its next plan. It still reacts to
            objects and dangers.
        compat: no effect; stored profiles contain it.
    """

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
    day_tokens: int = Field(16_000, ge=1_000)
    compat: bool = False

    def dump(self) -> str:
        """Return the constants as JSON for the log; the constants of the mode "scenes" are included only if they differ
        from the defaults."""
        usual = Profile()
        return self.model_dump_json(exclude={each for each in OF_SCENES if getattr(self, each) == getattr(usual, each)})

    @property
    def a_minute(self) -> int:
        """Steps per minute, rounded, at least 1."""
        return max(1, round(60 / self.step_s))

    @property
    def a_day(self) -> int:
        """Steps per day."""
        return 86_400 // self.step_s
