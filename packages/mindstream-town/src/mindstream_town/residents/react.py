"""Reactions to percepts: continue, act, wait, or talk (Park 2023, 4.3.1)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from mindstream_town.paper.people import react_to_people
from mindstream_town.prompts.conduct import ShouldTalk
from mindstream_town.residents.converse import OF_OTHER, OF_PEOPLE, can_begin_talk, untold_news
from mindstream_town.residents.percept import Percept
from mindstream_town.residents.remedies import react_to_things
from mindstream_town.residents.shown import show
from mindstream_town.residents.turn import ResidentTurn
from mindstream_town.state import ResidentState

LATEST_HOUR = 23


async def react(turn: ResidentTurn, new: Sequence[Percept], others: Mapping[str, ResidentState]) -> None:
    """React to things first, then to people who are new in sight, the nearest first."""
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
    """Decide whether to begin a talk with another resident."""
    if turn.setting.when(turn.step).hour >= LATEST_HOUR or not can_begin_talk(turn, other):
        return False
    assert turn.state.act is not None and other.act is not None
    about = await turn.recall_about([other.name], OF_OTHER)
    recalled = await turn.recall(other.name, OF_OTHER, kinds=OF_PEOPLE, touch=False)
    at_heart = await untold_news(turn, other.name)
    memories = turn.beyond_identity([*about, *(each.record for each in recalled)])
    question = ShouldTalk(
        who=turn.name,
        identity=turn.identity,
        doing=turn.state.act.what,
        other=other.name,
        other_doing=other.act.what,
        when=turn.date_and_time,
        relation=turn.relation(other.name),
        memories=tuple(each for each in memories if each not in {one.text for one in at_heart}),
        news=show(at_heart),
        last_talk=turn.last_talk(other.name),
    )
    return await turn.decide(f"to talk to {other.name}", question, recalled, other=other.name)
