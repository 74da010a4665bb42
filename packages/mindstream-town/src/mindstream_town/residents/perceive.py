"""Which of the percepts are new and become memories (Park 2023, 4)."""

from __future__ import annotations

from collections.abc import Sequence

from mindstream.memory.lifecycle.importance import RateImportance
from mindstream.memory.store.record import RecordDraft, Triple
from mindstream_town.events import Perceived
from mindstream_town.residents.percept import Percept
from mindstream_town.residents.turn import ResidentTurn
from mindstream_town.state import ResidentState

PEOPLE, THING, DANGER = 1.0, 3.0, 8.0
"""Importance of a percept when no model rates it."""


def is_news(percepts: Sequence[Percept], state: ResidentState) -> bool:
    """Return whether a percept is not among the last ones, or still needs a decision."""
    return any(each.triple not in state.seen or is_undecided(state, each) for each in percepts)


def is_undecided(state: ResidentState, percept: Percept) -> bool:
    """Return whether a resident still has to decide about a thing in sight.

    It decides once; again when the condition changes, when it needs the thing, and for a danger with each new act.
    """
    if percept.who or percept.passing or state.act is None or state.act.sees_to == percept.place:
        return False
    decided = state.considered.get(percept.place, -2)
    return decided <= percept.since or (
        decided <= state.act.since and (state.act.needs(percept.place) or percept.danger)
    )


async def perceive(turn: ResidentTurn) -> list[Percept]:
    """Write the new percepts as memories and return them."""
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
    """Rate percepts: by rule in scenes, later in a batch in the paper's way, else by the model now."""
    if turn.lives_in_scenes:
        return [DANGER if each.danger else PEOPLE if each.who else THING for each in new]
    if turn.is_paper():
        return [1.0 if each.passing else None for each in new]  # the state of a thing in use is mundane
    if not new:
        return []
    rated = await turn.ask(RateImportance(who=turn.name, memories=tuple(each.text for each in new)))
    return [float(each) for each in rated.ratings]


def _keywords(percept: Percept) -> tuple[str, ...]:
    return tuple(dict.fromkeys((percept.subject.lower(), percept.object.lower())))
