"""What a resident does and has planned, as the scratch of a saved simulation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from mindstream.town.events import Act, Block, SpokenLine
from mindstream.town.formats.scratch import Schedule, Scratch
from mindstream.town.formats.typed import CLOCK
from mindstream.town.residents.person import Person
from mindstream.town.setting import Setting
from mindstream.town.state import ResidentState
from mindstream.town.world.walk import read_walk

EMOJI: Mapping[str, str] = {"talk": "💬", "wait": "⌛"}
ASLEEP, OTHER = "💤", "🙂"


def emoji_of(act: Act) -> str:
    """Return the picture that stands for an act: what is none of a few has the published code's own for all else."""
    return ASLEEP if act.asleep else EMOJI.get(act.why, OTHER)


def address_of(setting: Setting, act: Act, step: int, partner: str = "") -> str:
    """Return where something is done, as a save has it: an address, or with whom."""
    if act.why == "talk" and partner:
        return f"<persona> {partner}"
    return act.place or str(setting.world.address_at(act.spot(step)))


def clock_of(setting: Setting, step: int) -> str:
    """Return a step's moment as a save has it."""
    return datetime.fromtimestamp(setting.moment(step), UTC).strftime(CLOCK)


def export_scratch(
    setting: Setting, person: Person, state: ResidentState, step: int, lines: Sequence[SpokenLine]
) -> Scratch:
    """Return the scratch of a resident after a step; `lines` of the talk that it is in."""
    first, _, last = person.name.partition(" ")
    profile, act = setting.profile, state.act
    talks = state.is_talking(step + 1)
    left = max(0.0, profile.reflect_at - state.gathered)
    thing = act.place.split(":")[3:] if act else []
    did = None if act is None else act.what
    return Scratch(
        vision_r=profile.vision, att_bandwidth=profile.attention, retention=profile.retention,
        curr_time=clock_of(setting, max(step, 0)), curr_tile=state.spot(max(step, 0)),
        daily_plan_req=person.routine, name=person.name, first_name=first, last_name=last, age=person.age,
        innate=person.innate, learned=person.learned, currently=state.currently or person.currently,
        lifestyle=person.lifestyle, living_area=person.home, concept_forget=100, daily_reflection_time=180,
        daily_reflection_size=5, overlap_reflect_th=4, kw_strg_event_reflect_th=10, kw_strg_thought_reflect_th=9,
        recency_w=1, relevance_w=1, importance_w=1, recency_decay=profile.decay,
        importance_trigger_max=_whole(profile.reflect_at), importance_trigger_curr=_whole(left),
        importance_ele_n=len(state.seen), thought_count=5, daily_req=state.broad,
        f_daily_schedule=tuple((block.what, block.minutes) for block in state.blocks),
        f_daily_schedule_hourly_org=_in_hours(state.blocks),
        act_address=address_of(setting, act, step, state.partner) if act else None,
        act_start_time=clock_of(setting, act.since) if act else None,
        act_duration=_minutes(setting, act) if act else None, act_description=did,
        act_pronunciatio=emoji_of(act) if act else None,
        act_event=(person.name, "chat with", state.partner) if talks else (person.name, "is" if act else None, did),
        act_obj_description="being used" if thing else None, act_obj_pronunciatio=OTHER if thing else None,
        act_obj_event=(thing[0], "is", "being used") if thing else (None, None, None),
        chatting_with=state.partner if talks else None,
        chat=tuple((line.by, line.text) for line in lines) if talks else None,
        chatting_with_buffer={name: until - step for name, until in sorted(state.rested.items()) if until > step},
        chatting_end_time=clock_of(setting, act.until) if act and talks else None,
        act_path_set=act is not None, planned_path=read_walk(act.path)[step + 1 - act.since :] if act else (), extra={},
    )  # fmt: skip


def _in_hours(blocks: Sequence[Block]) -> Schedule:
    """Return a plan before it was broken down: `task (part)` rows of one task are one."""
    merged: list[tuple[str, int]] = []
    for block in blocks:
        task = block.what.partition(" (")[0]
        if merged and merged[-1][0] == task:
            merged[-1] = (task, int(merged[-1][1]) + block.minutes)
        else:
            merged.append((task, block.minutes))
    return tuple(merged)


def _minutes(setting: Setting, act: Act) -> int:
    """Return how long an act takes, from the next whole minute after it began."""
    begins = -int(-setting.moment(act.since) // 60)
    return max(0, -int(-setting.moment(act.until) // 60) - begins)


def _whole(number: float) -> int | float:
    return int(number) if number == int(number) else number
