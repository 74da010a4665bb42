"""What a resident makes of what it sees: it goes on, acts, waits, or talks (Park 2023, 4.3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mindstream_town.paper.people import react_to_people
from mindstream_town.prompts.conduct import ShouldTalk
from mindstream_town.residents.converse import OF_OTHER, OF_PEOPLE, TELLABLE, TO_TELL, can_be_told
from mindstream_town.residents.percept import Percept
from mindstream_town.residents.remedies import react_to_things
from mindstream_town.residents.shown import show
from mindstream_town.residents.turn import ResidentTurn
from mindstream_town.state import ResidentState

LATEST_HOUR = 23


async def react(turn: ResidentTurn, new: Sequence[Percept], others: Mapping[str, ResidentState]) -> None:
    """Decide about what it sees: things first, since they cannot wait, then people who are new, the nearest first."""
    if await react_to_things(turn, others) or turn.state.is_talking(turn.step):
        return
    if turn.is_paper("decider") and turn.is_paper():
        await react_to_people(turn, new, others)
        return
    for percept in new:
        if percept.who and await _wants_to_talk(turn, others[percept.who]):
            turn.wish = percept.who
            return


async def _wants_to_talk(turn: ResidentTurn, other: ResidentState) -> bool:
    """Decide whether to begin to talk with somebody who is near."""
    profile, state, step = turn.profile, turn.state, turn.step
    out_of_question = (
        not profile.talks
        or state.asleep
        or other.asleep
        or other.act is None
        or other.is_talking(step)
        or turn.setting.when(step).hour >= LATEST_HOUR
        or state.rested.get(other.name, 0) > step
        or other.rested.get(turn.name, 0) > step
        or state.act is None
        or "react" in (state.act.why, other.act.why)
    )
    if out_of_question:
        return False
    assert state.act is not None and other.act is not None
    about = await turn.recall_about([other.name], OF_OTHER)
    recalled = await turn.recall(other.name, OF_OTHER, kinds=OF_PEOPLE, touch=False)
    shared = state.shared.get(other.name, frozenset())
    at_heart = [
        each.record
        for each in await turn.recall(turn.at_heart, TO_TELL, kinds=TELLABLE, touch=False)
        if each.record.id not in shared and can_be_told(each.record)
    ]
    news = show(at_heart)
    memories = turn.beyond_identity([*about, *(each.record for each in recalled)])
    question = ShouldTalk(
        who=turn.name,
        identity=turn.identity,
        doing=state.act.what,
        other=other.name,
        other_doing=other.act.what,
        when=turn.date_and_time,
        relation=turn.relation(other.name),
        memories=tuple(each for each in memories if each not in {one.text for one in at_heart}),
        news=news,
        last_talk=turn.last_talk(other.name),
    )
    return await turn.decide(f"to talk to {other.name}", question, recalled, other=other.name)
