"""What a resident makes of what it sees: it goes on, talks, waits, or acts (Park 2023, 4.3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mindstream.memory.recall import Recalled
from mindstream.town.converse import OF_OTHER, OF_PEOPLE, TELLABLE, TO_TELL
from mindstream.town.events import Decided
from mindstream.town.percept import Percept
from mindstream.town.places import words_of
from mindstream.town.plan import begin, break_down
from mindstream.town.prompts.should_act import ShouldAct
from mindstream.town.prompts.should_talk import ShouldTalk
from mindstream.town.ranking import IDLE
from mindstream.town.state import ResidentState
from mindstream.town.turn import Turn

LATEST_HOUR = 23
RECALLED = 8


async def react(turn: Turn, new: Sequence[Percept], others: Mapping[str, ResidentState]) -> None:
    """Decide about what is new: things first, since they cannot wait, then people, the nearest first."""
    if turn.state.is_talking(turn.step):
        return
    for percept in new:
        if not percept.who and percept.object != IDLE and await _acts(turn, percept):
            return
    for percept in new:
        if percept.who and await _wants_to_talk(turn, others[percept.who]):
            turn.wish = percept.who
            return


async def _acts(turn: Turn, percept: Percept) -> bool:
    """Decide about a thing that is not as it should be; if so, what is planned for now changes."""
    act = turn.state.act
    assert act is not None
    recalled = await turn.recall(percept.text, RECALLED, touch=False)
    memories = turn.beyond_identity(each.record for each in recalled if "plan" not in each.record.keywords)
    question = ShouldAct(
        who=turn.name, identity=turn.identity, doing=act.what, sees=percept.text,
        uses_it=act.place == percept.place, is_home=percept.place.startswith(_sector(turn.person.home)),
        memories=memories,
    )  # fmt: skip
    if not await _decided(turn, f"{percept.text}", question, recalled):
        return False
    minute = turn.setting.minute(turn.step)
    block = turn.state.block_at(minute)
    if block is None:
        return False
    near = block.model_copy(update={"place": percept.place})
    await break_down(turn, near, minute, because=f"{percept.text} ({words_of(percept.place)})", memories=memories)
    changed = turn.state.block_at(minute)
    assert changed is not None
    begin(turn, changed, why="react", because=percept.text)
    return True


def _sector(place: str) -> str:
    return ":".join(place.split(":")[:2])


async def _wants_to_talk(turn: Turn, other: ResidentState) -> bool:
    """Decide whether to begin to talk with somebody who is near."""
    profile, state, step = turn.profile, turn.state, turn.step
    out_of_question = (
        not profile.talks or state.asleep or other.asleep or other.act is None or other.is_talking(step)
        or turn.setting.when(step).hour >= LATEST_HOUR or state.rested.get(other.name, 0) > step
        or other.rested.get(turn.name, 0) > step or state.act is None
    )  # fmt: skip
    if out_of_question:
        return False
    assert state.act is not None and other.act is not None
    about = await turn.recall_about([other.name], OF_OTHER)
    recalled = await turn.recall(other.name, OF_OTHER, kinds=OF_PEOPLE, touch=False)
    shared = state.shared.get(other.name, frozenset())
    at_heart = [
        each.record
        for each in await turn.recall(turn.at_heart, TO_TELL, kinds=TELLABLE, touch=False)
        if each.record.id not in shared
        and not each.record.data.get("background")
        and "plan" not in each.record.keywords
    ]
    news = tuple(each.text for each in at_heart)
    memories = turn.beyond_identity([*about, *(each.record for each in recalled)])
    question = ShouldTalk(
        who=turn.name, identity=turn.identity, doing=state.act.what, other=other.name,
        other_doing=other.act.what, when=turn.date_and_time, relation=turn.relation(other.name),
        memories=tuple(each for each in memories if each not in news), news=news,
        last_talk=turn.last_talk(other.name),
    )  # fmt: skip
    return await _decided(turn, f"to talk to {other.name}", question, recalled, other.name)


async def _decided(
    turn: Turn, about: str, question: ShouldAct | ShouldTalk, recalled: Sequence[Recalled], other: str = ""
) -> bool:
    p = await turn.decide(question)
    yes = turn.setting.draw("decide", turn.step, turn.name, about) < p
    brought_up = tuple((each.record.id, round(each.score, 4)) for each in recalled)
    turn.write(
        Decided(
            step=turn.step,
            about=about,
            other=other,
            question=question.label(),
            p=round(p, 4),
            yes=yes,
            recalled=brought_up,
        )
    )
    return yes
