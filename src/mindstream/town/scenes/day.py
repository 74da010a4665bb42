"""A day in one reply: from getting up to going to bed, so fine that nothing has to be broken down."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from mindstream.memory.store.record import Record, RecordDraft
from mindstream.town.events import Block, DayPlanned
from mindstream.town.prompts.plan_day import LEAST_AWAKE, DayPlan, Item, Place, say_date
from mindstream.town.prompts.scenes.plan_scenes import PlanScenes, SceneDay, SceneItem
from mindstream.town.residents.appointment import Appointment
from mindstream.town.residents.places import is_let_in, known_places, words_of
from mindstream.town.residents.plan import PLAN_IMPORTANCE, blocks_of, minutes_between
from mindstream.town.residents.shown import show
from mindstream.town.residents.surroundings import weather_on
from mindstream.town.residents.turn import ResidentTurn
from mindstream.town.scenes.naming import by_words, find_place, find_thing
from mindstream.town.scenes.who import identity
from mindstream.town.world.hours import DAY_MINUTES, clock

SHOWN = 12
"""So many memories at most come to mind when a day is planned, and"""
RECALLED = 6
"""so many by one question."""
EARLY = 45
"""So many minutes before it opens somebody who means to be there when it does may have set out."""


async def plan_scenes(turn: ResidentTurn, day: int) -> None:
    """Plan a day, with what the days before have taught."""
    date = turn.setting.when(turn.step)
    records, dated = await _come_to_mind(turn, date)
    known = _places(turn, date, dated)
    shown = tuple(each for address, each in known.items() if address.rpartition(":")[0] not in known)
    said = say_date(date)
    reply = await turn.ask(
        PlanScenes(
            who=turn.name,
            identity=identity(turn),
            date=said,
            weather=weather_on(turn.setting, turn.step),
            memories=show(records, [f"{datetime.fromtimestamp(each.created, UTC):%A}" for each in records]),
            yesterday=turn.state.broad,
            places=shown,
            usual=_usual(turn, date),
        )
    )
    broad = tuple(f"{item.start} {item.what}" for item in reply.items)
    written = await turn.build(
        RecordDraft(
            text=f"{turn.name}'s plan for {said}: {'; '.join(broad)}.",
            kind="note",
            by=turn.name,
            importance=PLAN_IMPORTANCE,
            evidence=tuple(each.id for each in records),
            keywords=("plan",),
        )
    )
    event = DayPlanned(
        step=turn.step,
        day=day,
        currently=turn.state.currently or turn.person.currently,
        broad=broad,
        blocks=tuple(_on_opening(turn, _fine(turn, reply, list(known), day))),
        records=tuple(each.id for each in written),
    )
    turn.write(event, written)


async def _come_to_mind(turn: ResidentTurn, date: datetime) -> tuple[list[Record], list[Appointment]]:
    """Return what comes to mind for a day, and the appointments of it."""
    today = [(each, at) for each, at in await turn.recall_appointments() if at.start.date() == date.date()]
    later = [each for each, at in await turn.recall_appointments() if at.start.date() > date.date()][:3]
    found = [
        *await turn.recall(f"What has {turn.name} planned, agreed on or promised?", RECALLED),
        *await turn.recall(turn.at_heart, RECALLED),
    ]
    records = [*(each for each, _ in today), *later, *(each.record for each in found)]
    known = identity(turn)
    fresh = {each.id: each for each in records if each.text not in known and not _is_known_anyway(each)}
    return list(fresh.values())[:SHOWN], [at for _, at in today]


def _is_known_anyway(record: Record) -> bool:
    return "background" in record.data or "plan" in record.keywords


def _places(turn: ResidentTurn, date: datetime, dated: Sequence[Appointment]) -> dict[str, Place]:
    """Return where one can go on a day, by address: what one knows, and where one is let in for what was agreed on."""
    known = dict(known_places(turn.setting, turn.person, turn.state.knows, date))
    for at in dated:
        if at.place and is_let_in(turn.setting, turn.person, at):
            known.setdefault(at.place, Place(words=words_of(at.place), address=at.place))
    return known


def _usual(turn: ResidentTurn, date: datetime) -> tuple[str, ...]:
    return tuple(
        f"{clock(each.start)}-{clock(each.end)} {each.what} ({words_of(each.place)}{', duty' if each.duty else ''})"
        for each in turn.person.day
        if each.is_on(date)
    )


def _fine(turn: ResidentTurn, reply: SceneDay, places: Sequence[str], day: int) -> list[Block]:
    """Return a day without gaps of which nothing is broken down any more."""
    named, by_address = by_words(places), dict[tuple[str, str], SceneItem]()
    where: list[str] = []
    items = []
    spans = reply.spans()
    for start, end, each in spans:
        place = find_place(each.place, named) or turn.person.home
        place = find_thing(turn.setting, place, each.thing) if each.thing else place
        where.append(place)
        by_address[each.what, place] = each
        minutes = max(5, end - start)
        items.append(Item.model_construct(start=each.start, minutes=minutes, what=each.what, place=len(where), keeps=0))
    wake = spans[0][0]
    bed = min(max(end for _, end, _ in spans), wake + DAY_MINUTES - LEAST_AWAKE)
    plan = DayPlan.model_construct(wake=clock(wake % DAY_MINUTES), bed=clock(bed), items=items, currently="")
    blocks = []
    for block in blocks_of(turn, plan, where, [], day):
        item = None if block.asleep else by_address.get((block.what, block.place))
        told = {"busy": item.busy, "weight": item.weight, "state": item.state.strip()} if item else {}
        blocks.append(block.model_copy(update={"fine": True} | told))
    return blocks


def _on_opening(turn: ResidentTurn, blocks: Sequence[Block]) -> list[Block]:
    """Let nobody come to a place before it opens: who would sets out later, and goes on with what was before."""
    moved = list(blocks)
    for at in range(1, len(moved)):
        before, block = moved[at - 1], moved[at]
        way = max(0, minutes_between(turn, before.place, block.place) - 2)
        later = _opens_in(turn, block, block.start + way)
        if 0 < later < min(block.minutes, EARLY):
            moved[at - 1] = before.model_copy(update={"minutes": before.minutes + later})
            moved[at] = block.model_copy(update={"start": block.start + later, "minutes": block.minutes - later})
    return moved


def _opens_in(turn: ResidentTurn, block: Block, minute: int) -> int:
    """Return in how many minutes the place of a block opens; 0: it is open, or lets its owners in, or stays closed."""
    setting = turn.setting
    address = setting.addresses.get(block.place)
    if address is None or block.asleep:
        return 0
    midnight = setting.step_at(setting.day(turn.step), 0)
    for later in range(EARLY):
        if setting.rules.may_enter(
            turn.name, address, setting.when(midnight + (minute + later) * setting.profile.a_minute)
        ):
            return later
    return 0
