"""What of what a resident sees is new: that goes into memory (Park 2023, 4), and things are to be decided about."""

from __future__ import annotations

from collections.abc import Sequence

from mindstream.memory.lifecycle.importance import RateImportance
from mindstream.memory.store.record import RecordDraft, Triple
from mindstream_town.events import Perceived
from mindstream_town.residents.percept import Percept
from mindstream_town.residents.person import IDLE
from mindstream_town.residents.turn import ResidentTurn
from mindstream_town.state import ResidentState

PEOPLE, THING, DANGER = 1.0, 3.0, 8.0
"""How much it matters to have seen something, where nobody is asked."""


def is_news(percepts: Sequence[Percept], state: ResidentState) -> bool:
    """Tell whether any of these percepts is not among the last ones, or is yet to be decided about."""
    return any(each.triple not in state.seen or is_undecided(state, each) for each in percepts)


def is_undecided(state: ResidentState, percept: Percept) -> bool:
    """Tell whether somebody has yet to decide about a thing that it sees.

    It does so once; anew when the thing comes into another condition, when it needs the thing, and about a danger
    with each new act.
    """
    if (
        percept.who
        or percept.passing
        or percept.object == IDLE
        or state.act is None
        or state.act.sees_to == percept.place
    ):
        return False
    decided = state.considered.get(percept.place, -2)
    return decided <= percept.since or (
        decided <= state.act.since and (state.act.needs(percept.place) or percept.danger)
    )


async def perceive(turn: ResidentTurn) -> list[Percept]:
    """Take in what is new of what can be seen; return it."""
    new = [each for each in turn.percepts if each.triple not in turn.state.seen]
    if not (new or turn.places):
        return []
    ratings = await _importance(turn, new)
    records = await turn.build(
        *(
            RecordDraft(
                text=each.text,
                kind="observation",
                by=turn.name,
                importance=rating,
                about=Triple(*each.triple),
                keywords=_keywords(each),
                data={"place": each.place} if each.place else {},
            )
            for each, rating in zip(new, ratings, strict=True)
        )
    )
    event = Perceived(
        step=turn.step,
        seen=tuple(each.triple for each in new),
        records=tuple(record.id for record in records),
        places=turn.places,
        gathered=sum(filter(None, ratings)),
        unrated=tuple(record.id for record in records if record.importance is None),
    )
    turn.write(event, records)
    return new


async def _importance(turn: ResidentTurn, new: Sequence[Percept]) -> list[float | None]:
    """Rate what was seen: by rule in scenes; later, many in one, where the day is planned step by step; else now."""
    if turn.lives_in_scenes:
        return [DANGER if each.danger else PEOPLE if each.who else THING for each in new]
    if turn.is_paper():
        return [1.0 if each.passing else None for each in new]  # what a thing is while somebody uses it is mundane
    return list(await _rate(turn, [each.text for each in new])) if new else []


def _weigh(percepts: Sequence[Percept]) -> list[float]:
    """Weigh what was seen by what it is: what people do, things that are not as they should be, dangers."""
    return [DANGER if each.danger else PEOPLE if each.who else THING for each in percepts]


async def _rate(turn: ResidentTurn, texts: Sequence[str]) -> list[float | None]:
    """Rate what was seen; what is as it should be is mundane, and nobody is asked."""
    odd = [text for text in texts if not text.endswith(f" is {IDLE}")]
    rated = await turn.ask(RateImportance(who=turn.name, memories=tuple(odd))) if odd else None
    ratings = dict(zip(odd, rated.ratings, strict=True)) if rated else {}
    return [float(ratings.get(text, 1)) for text in texts]


def _keywords(percept: Percept) -> tuple[str, ...]:
    return tuple(dict.fromkeys((percept.subject.lower(), percept.object.lower())))
