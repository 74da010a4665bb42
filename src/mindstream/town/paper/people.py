"""What a resident does about people whom it sees: it goes on, talks, waits, goes along, avoids (Park 2023, 4.3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mindstream.town.events import Block, TasksPlanned
from mindstream.town.paper.own_acts import is_own_act
from mindstream.town.prompts.paper.meet_person import AVOID, GO_ALONG, TALK, WAIT, MeetPerson
from mindstream.town.residents.converse import OF_OTHER, OF_PEOPLE, TELLABLE, TO_TELL, can_be_told
from mindstream.town.residents.percept import Percept
from mindstream.town.residents.places import may_use
from mindstream.town.residents.plan import begin
from mindstream.town.residents.shown import show
from mindstream.town.residents.turn import ResidentTurn
from mindstream.town.state import ResidentState
from mindstream.town.world.hours import DAY_MINUTES, clock

TOLD, WAITED, ALONG, SOON = 6, 5, 60, 60
"""News that are shown; minutes that one waits, goes along at most, and leaves early at most."""


async def react_to_people(turn: ResidentTurn, new: Sequence[Percept], others: Mapping[str, ResidentState]) -> None:
    """Decide about each who is new, the nearest first, until one changes what is done; who has waited decides anew."""
    act = turn.state.act
    waited_for = act.sees_to if act is not None and act.why == "wait" and turn.step >= act.until else ""
    names = dict.fromkeys([*([waited_for] if waited_for in others else []), *(each.who for each in new if each.who)])
    for name in names:
        if _is_out_of_question(turn, others[name], name == waited_for):
            continue
        match await _choose(turn, others[name]):
            case "talk":
                turn.wish = name
                return
            case "wait" if name != waited_for:
                _wait_for(turn, name)
                return
            case "go along":
                if _go_along(turn, others[name]):
                    return
            case "avoid":
                if _avoid(turn, name):
                    return
            case _:
                pass


def _is_out_of_question(turn: ResidentTurn, other: ResidentState, waited: bool) -> bool:
    state, step = turn.state, turn.step
    return (
        not turn.profile.talks
        or state.asleep
        or other.asleep
        or other.act is None
        or state.act is None
        or other.is_talking(step)
        or (state.rested.get(other.name, 0) > step and not waited)
        or other.rested.get(turn.name, 0) > step
        or "react" in (state.act.why, other.act.why)
    )


async def _choose(turn: ResidentTurn, other: ResidentState) -> str:
    assert turn.state.act is not None and other.act is not None
    about = await turn.recall_about([other.name], OF_OTHER)
    recalled = await turn.recall(other.name, OF_OTHER, kinds=OF_PEOPLE, touch=False)
    shared = turn.state.shared.get(other.name, frozenset())
    at_heart = [
        each.record
        for each in await turn.recall(turn.at_heart, TO_TELL, kinds=TELLABLE, touch=False)
        if each.record.id not in shared and can_be_told(each.record)
    ]
    if turn.relation(other.name):  # who one is, acquaintances know
        unsaid = set(turn.beyond_identity(at_heart))
        at_heart = [each for each in at_heart if each.text in unsaid]
    at_heart = at_heart[:TOLD]
    of_other = [each for each in (*about, *(one.record for one in recalled)) if not is_own_act(turn, each)]
    memories = turn.beyond_identity(of_other)
    minute = turn.setting.minute(turn.step)
    later = next((each for each in turn.state.blocks if each.start > minute and not each.asleep), None)
    question = MeetPerson(
        who=turn.name,
        identity=turn.identity,
        doing=turn.state.act.what,
        other=other.name,
        other_doing=other.act.what,
        when=turn.date_and_time,
        relation=turn.relation(other.name),
        next=f"{clock(later.start)} {later.what}" if later else "",
        news=show(at_heart),
        memories=tuple(each for each in memories if each not in {one.text for one in at_heart})[:OF_OTHER],
        last_talk=turn.last_talk(other.name),
    )
    acts = (TALK, WAIT, GO_ALONG)
    return await turn.choose(f"what to do about {other.name}", question, acts, recalled, other.name)


def _wait_for(turn: ResidentTurn, name: str) -> None:
    """Stay for some minutes; then decide anew. What was to be done in them is left out."""
    act, minute = turn.state.act, turn.setting.minute(turn.step)
    assert act is not None
    block = Block(
        start=minute, minutes=WAITED, what=f"waiting for {name}", place=act.place, fine=True, why="wait", sees_to=name
    )
    turn.write(TasksPlanned(step=turn.step, blocks=(block,), because=WAIT))
    begin(turn, block, because=f"{WAIT}: {name}")


def _go_along(turn: ResidentTurn, other: ResidentState) -> bool:
    """Do what the other does, where it does it, as long as it does, an hour at most; tell whether one may."""
    act, setting = other.act, turn.setting
    if act is None or act.place not in setting.addresses or not may_use(setting, turn.person, act.place):
        return False
    minute = setting.minute(turn.step)
    ends = minute + max(WAITED, min(ALONG, (act.until - turn.step) * turn.profile.step_s // 60))
    block = Block(start=minute, minutes=min(ends, DAY_MINUTES) - minute, what=act.what, place=act.place, fine=True)
    turn.write(TasksPlanned(step=turn.step, blocks=(block,), because=f"{GO_ALONG}: {other.name}"))
    begin(turn, block, because=f"{GO_ALONG}: {other.name}")
    return True


def _avoid(turn: ResidentTurn, name: str) -> bool:
    """Go on early to what is planned next elsewhere, if it is soon; tell whether it is."""
    act, minute = turn.state.act, turn.setting.minute(turn.step)
    assert act is not None
    room = act.place.split(":")[:3]
    soon = (each for each in turn.state.blocks if minute < each.start <= minute + SOON and not each.asleep)
    later = next((each for each in soon if each.place.split(":")[:3] != room), None)
    if later is None:
        return False
    early = later.model_copy(update={"start": minute, "minutes": later.end - minute})
    turn.write(TasksPlanned(step=turn.step, blocks=(early,), because=f"{AVOID}: {name}"))
    walks = early.model_copy(update={"minutes": later.start - minute})
    begin(turn, walks, because=f"{AVOID}: {name}")
    return True
