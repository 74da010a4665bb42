"""A resident's scratch as `scratch.json` has it: who they are, what they do now, how they perceive (Park 2023)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from mindstream.town.formats.typed import ClockText, Number, Whole

Tile = tuple[Whole, Whole]
Triple = tuple[str | None, str | None, str | None]
Chat = tuple[tuple[str, str], ...]
Schedule = tuple[tuple[str, Number], ...]
"""What is done, and for how many minutes."""


@dataclass(frozen=True)
class Scratch:
    """The 47 keys, named and ordered as in the file; times are texts (`parse_clock`), tiles are (x, y)."""

    vision_r: Whole
    att_bandwidth: Whole
    retention: Whole
    curr_time: ClockText | None
    curr_tile: Tile | None
    daily_plan_req: str
    name: str
    first_name: str
    last_name: str
    age: Whole
    innate: str
    learned: str
    currently: str
    lifestyle: str
    living_area: str
    concept_forget: Number
    daily_reflection_time: Number
    daily_reflection_size: Number
    overlap_reflect_th: Number
    kw_strg_event_reflect_th: Number
    kw_strg_thought_reflect_th: Number
    recency_w: Number
    relevance_w: Number
    importance_w: Number
    recency_decay: Number
    importance_trigger_max: Number
    importance_trigger_curr: Number
    importance_ele_n: Whole
    thought_count: Whole
    daily_req: tuple[str, ...]
    f_daily_schedule: Schedule
    f_daily_schedule_hourly_org: Schedule
    act_address: str | None
    act_start_time: ClockText | None
    act_duration: Number | None
    act_description: str | None
    act_pronunciatio: str | None
    act_event: Triple
    act_obj_description: str | None
    act_obj_pronunciatio: str | None
    act_obj_event: Triple
    chatting_with: str | None
    chat: Chat | None
    chatting_with_buffer: Mapping[str, Whole]
    chatting_end_time: ClockText | None
    act_path_set: bool
    planned_path: tuple[Tile, ...]
    extra: Mapping[str, JsonValue]
