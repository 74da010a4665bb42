"""What one has done is remembered, by rule: what, where, from when to when, and who was in sight (Park 2023, 4.1)."""

from __future__ import annotations

from mindstream.memory.store.record import RecordDraft
from mindstream.town.events import Perceived
from mindstream.town.residents.places import words_of
from mindstream.town.residents.surroundings import people_in_sight
from mindstream.town.residents.turn import ResidentTurn

DAILY = 1
"""How much it matters to have done something of which nobody said how much."""


async def remember_deed(turn: ResidentTurn) -> None:
    """Remember what has come to its end: what one slept, said, or did not get to is none."""
    act = turn.state.act
    if act is None or act.asleep or act.why not in ("plan", "react") or not act.has_arrived(turn.step):
        return
    setting, seen = turn.setting, people_in_sight(turn.percepts)
    when = f"{setting.when(act.since):%H:%M}-{setting.when(turn.step):%H:%M}"
    where = ", ".join(each for each in (words_of(act.place) if act.place else "", when) if each)
    text = f"{turn.name}: {act.what} ({where}{'; ' + ', '.join(seen) if seen else ''})"
    importance = float(act.weight or DAILY)
    (record,) = await turn.build(
        RecordDraft(
            text=text,
            kind="observation",
            by=turn.name,
            importance=importance,
            keywords=(turn.name.lower(), *(each.lower() for each in seen)),
            data={"place": act.place} if act.place else {},
        )
    )
    turn.write(Perceived(step=turn.step, seen=(), records=(record.id,), gathered=importance), (record,))
