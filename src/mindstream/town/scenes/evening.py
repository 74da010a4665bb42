"""A reflection in one reply, at the end of a day or when enough has gathered; it says anew what the days are about."""

from __future__ import annotations

from collections.abc import Sequence

from mindstream.clock import DAY_S
from mindstream.log.events import Reflected
from mindstream.memory.store.record import Kind, Record, RecordDraft, normalised
from mindstream.reasoners.reflect.reflect import BY, OWN
from mindstream.town.events import Act, Resolved
from mindstream.town.prompts.scenes.reflect_scenes import Evening, ReflectScenes
from mindstream.town.residents.moving_in import SECRET
from mindstream.town.residents.perceive import PEOPLE
from mindstream.town.residents.reflection import is_due
from mindstream.town.residents.turn import ResidentTurn
from mindstream.town.scenes.meeting import has_left
from mindstream.town.scenes.who import identity

OF_A_DAY: tuple[Kind, ...] = ("observation", "thought", "note")
LOOKED_THROUGH, SHOWN, RECALLED = 120, 16, 4
MOST = 3
"""So many insights are kept of an evening."""
LONGEST = 400
"""So many characters of a memory are shown."""
WORTH = 10.0
"""So much importance has gathered on a day that is worth a thought."""


async def reflect_in_scene(turn: ResidentTurn, before: Act | None) -> None:
    """Reflect where somebody goes to bed, or where enough has gathered.

    Args:
        before: what it did when its turn began.
    """
    act = turn.state.act
    to_bed = act is not None and act.asleep and before is not None and not before.asleep
    worth = to_bed and turn.profile.reflects and turn.state.gathered >= WORTH
    if worth or (is_due(turn.state, turn.profile) and has_left(turn.state, turn.profile)):
        await think_about_the_day(turn)


async def reflect_before_midnight(turn: ResidentTurn) -> None:
    """Reflect before the next day is planned, where somebody is still up and has not yet."""
    act = turn.state.act
    if act is not None and not act.asleep and turn.profile.reflects and turn.state.gathered >= WORTH:
        await think_about_the_day(turn)


async def think_about_the_day(turn: ResidentTurn) -> None:
    """Draw insights from what matters most of the day, and see anew what the days are about."""
    await turn.resident.written()
    records = await _come_to_mind(turn)
    if not records:
        return
    evening = await turn.ask(
        ReflectScenes(
            who=turn.name,
            identity=identity(turn),
            when=turn.date_and_time,
            memories=tuple(_shown(each) for each in records),
        )
    )
    thoughts = await turn.build(*_thoughts(turn, evening, records))
    upto = (await turn.resident.memory.columns()).ids[-1]
    told = tuple(each.id for each in thoughts)
    model = turn.resident.models.of(ReflectScenes.role).name
    turn.write(Reflected(upto=upto, questions=(), thoughts=told, model=model), thoughts)
    if evening.currently.strip():
        turn.write(Resolved(step=turn.step, currently=evening.currently.strip()))


async def _come_to_mind(turn: ResidentTurn) -> list[Record]:
    """Return what matters most since this time yesterday, and what that brings up, the oldest first."""
    memory = turn.resident.memory
    newest = await memory.store.latest(memory.key, ("observation", "thought"), LOOKED_THROUGH, now=turn.now)
    own = [each for each in newest if each.created > turn.now - DAY_S and not _is_in_passing(each)]
    own.sort(key=lambda each: (-(each.importance or 0.0), -each.created, each.id))
    recalled = await turn.recall(turn.at_heart, RECALLED, kinds=OF_A_DAY)
    fresh = {normalised(each.text): each for each in (*own[:SHOWN], *(each.record for each in recalled))}
    plain = (each for each in fresh.values() if "background" not in each.data and "plan" not in each.keywords)
    return sorted(plain, key=lambda each: (each.created, each.id))


def _is_in_passing(record: Record) -> bool:
    """Tell whether a memory is of what others were seen to do, and no more."""
    return record.about is not None and (record.importance or 0.0) <= PEOPLE


def _shown(record: Record) -> str:
    kept = " (kept to oneself)" if record.data.get(SECRET) else ""
    return f"{record.text[:LONGEST]}{kept}"


def _thoughts(turn: ResidentTurn, evening: Evening, records: Sequence[Record]) -> list[RecordDraft]:
    """Return insights as thoughts, with their evidence; what follows from what is kept to oneself is kept, too."""
    drafts = list[RecordDraft]()
    for each in evening.insights:
        numbers = [number for number in dict.fromkeys(each.because) if 0 < number <= len(records)]
        evidence = [records[number - 1] for number in numbers]
        if not evidence or len(drafts) == MOST:
            continue
        secret = each.secret or any(record.data.get(SECRET) for record in evidence)
        own = turn.name.casefold() in each.text.casefold()
        names = [name.lower() for name in turn.setting.people if name in each.text]
        data = {key: True for key, holds in ((OWN, own), (SECRET, secret)) if holds}
        drafts.append(
            RecordDraft(
                text=each.text.strip(),
                kind="thought",
                by=BY,
                importance=float(each.weight),
                keywords=tuple(dict.fromkeys((*names, *([SECRET] if secret else [])))),
                evidence=tuple(record.id for record in evidence),
                data=data,
            )
        )
    return drafts
