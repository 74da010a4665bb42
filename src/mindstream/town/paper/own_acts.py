"""What one does is remembered as what one sees is; and what is remembered is rated many at a time (Park 2023, 4.1)."""

from __future__ import annotations

from mindstream.memory.lifecycle.rate_importance import RateImportance
from mindstream.memory.store.record import Record, RecordDraft, Triple
from mindstream.memory.store.store import Revision
from mindstream.town.events import Act, ActFinished, MemoriesRated
from mindstream.town.residents.turn import ResidentTurn

AT_ONCE = 60
"""So many memories are rated in one call at most."""


async def finish_act(turn: ResidentTurn, act: Act | None) -> None:
    """Remember what has been done, when it is over or broken off; sleep and talks are kept otherwise, or not at all.

    Who does the same for longer remembers it once.
    """
    if act is None or act.asleep or act.why in ("talk", "wait", "") or not act.has_arrived(turn.step):
        return
    minutes = (turn.step - act.since) * turn.profile.step_s // 60
    if not minutes:
        return
    is_new = not turn.state.done or turn.state.done[-1].what != act.what
    draft = RecordDraft(
        text=f"{turn.name} is {act.what}",
        kind="observation",
        by=turn.name,
        about=Triple(turn.name, "is", act.what),
        keywords=tuple(dict.fromkeys((turn.name.lower(), act.what.lower()))),
        data={"place": act.place} if act.place else {},
    )
    records = await turn.build(draft) if is_new else ()
    start, ids = turn.setting.minute(act.since), tuple(record.id for record in records)
    turn.write(ActFinished(step=turn.step, what=act.what, start=start, minutes=minutes, records=ids), records)


def is_own_act(turn: ResidentTurn, record: Record) -> bool:
    """Tell whether a memory is of what the resident itself did."""
    return record.about is not None and record.about.subject == turn.name


async def rate_memories(turn: ResidentTurn, *, at_once: bool = False) -> None:
    """Rate what has gathered unrated before this step, when an hour of the clock is over, or at once."""
    setting, state = turn.setting, turn.resident.state
    ids = state.unrated[:AT_ONCE]
    is_over = setting.minute(turn.step) // 60 != setting.minute(state.unrated_since) // 60
    if not ids or ids[0] not in turn.state.unrated or not (at_once or is_over):
        return
    await turn.resident.written()
    memory = turn.resident.memory
    records = await memory.store.records(memory.key, ids)
    texts = tuple(dict.fromkeys(record.text for record in records))
    rated = await turn.ask(RateImportance(who=turn.name, memories=texts)) if texts else None
    of_text = dict(zip(texts, rated.ratings, strict=True)) if rated else {}
    turn.revisions += [Revision(id=record.id, importance=float(of_text[record.text])) for record in records]
    ratings = {record.id: of_text[record.text] for record in records}
    gathered = float(sum(ratings.values()))
    event = MemoriesRated(
        step=turn.step, records=ids, ratings=tuple(ratings.get(each, 0) for each in ids), gathered=gathered
    )
    turn.write(event)
