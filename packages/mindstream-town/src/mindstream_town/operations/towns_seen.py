"""Operations for whoever draws a town, or asks how it came to be so: its recording, who knows what, who knows whom.

The town's time goes on only with what is done, so a browser may keep a pace of its own: it asks to wait a minute, as
often as it likes, and hears what happened.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from mindstream.errors import InputError
from mindstream.service.operations.house import House
from mindstream.service.operations.logs import (
    CallList,
    CallRequest,
    CallsRequest,
    CallWords,
    Cost,
    days_of,
    find_call,
    list_calls,
)
from mindstream.service.operations.shapes import CallerName, Reply
from mindstream.service.operations.table import operation
from mindstream.service.operations.who import Who
from mindstream_town.embody.living import LONGEST_DONE, LONGEST_SAID, MOST_MINUTES, Way
from mindstream_town.embody.outlook import Surroundings
from mindstream_town.operations.towns import TownName, open_town, settings_of, watched

if TYPE_CHECKING:
    from mindstream_town.embody.embodied import Embodied
    from mindstream_town.inspect.history import History
    from mindstream_town.town import Town

MOST_FACTS = 200
MOST_CURVE = 200
"""A curve has so many points at most."""


class RecordingRequest(TownName):
    """What a page plays: all of it, from one step to another, or, `since` the last answer's `next`, what is new."""

    first: int | None = Field(None, ge=0, le=2**40)
    last: int | None = Field(None, ge=0, le=2**40)
    since: str = Field("", max_length=100)


class Recording(Reply):
    """Timelines of a town (see town/replay/recording).

    `whole`: all of it, with the ground to draw; else entries to add to those of before. `step`: the last that is done;
    -1: none. `next`: what to ask with as `since` for what comes after this; "" where steps were named.
    """

    town: str
    whole: bool
    step: int
    next: str
    recording: dict[str, Any]


class SetRequest(TownName):
    """An object by its address, and its condition in words, "" for as it should be; `danger`: None: it is judged."""

    object: str = Field(min_length=1, max_length=300)
    condition: str = Field("", max_length=300)
    danger: bool | None = None


class HasSet(Reply):
    """It is so from the next step on."""

    object: str
    condition: str
    danger: bool


class FactRequest(TownName):
    """A fact, by words that stand in a memory with which somebody began; "": which facts there are."""

    fact: str = Field("", max_length=1_000)


class KnowerShape(Reply):
    """Somebody who knows a fact.

    Since which step; `how`: from the beginning, or told `by` whom; `chain`: from whom to whom it came; `memory`: the
    first that goes back to it.
    """

    name: str
    step: int
    time: str
    how: str
    by: str
    chain: list[str]
    memory: str
    text: str


class FactShape(Reply):
    """A memory with which somebody began, and how many know it by now."""

    text: str
    knowers: int


class Knowledge(Reply):
    """Who knows a fact, the first first; of how many `residents`; `facts`: what can be asked for, where nothing was."""

    fact: str
    says: str
    residents: int
    knowers: list[KnowerShape]
    facts: list[FactShape]


class TownCallsRequest(TownName, CallsRequest):
    """A page of calls of models that a town's residents made; of one of them; at a step."""

    resident: str = Field("", max_length=100)
    step: int | None = Field(None, ge=0, le=2**40)


class TownCallRequest(TownName, CallRequest):
    """A call, by its row of the town's log."""


class PairShape(Reply):
    """Two who know each other, since which step, and how often they talked."""

    names: list[str]
    since: int
    talks: list[int]


class Relations(Reply):
    """Who knows whom, the first first; `curve`: steps, and how dense the network was after each, 0 to 1."""

    residents: list[str]
    pairs: list[PairShape]
    curve: list[tuple[int, float]]


@operation("towns.recording", "read", "GET /towns/{town}/recording")
async def recording(house: House, who: Who, ask: RecordingRequest) -> Recording:
    """Return what a page plays of a town, of one that lives too: ask again with `since`, and only what is new comes."""
    if ask.first is not None or ask.last is not None:
        if ask.since:
            raise InputError("`since` goes on with a whole recording: it is not asked for with `first` or `last`")
        return await _span(house, who, ask)
    found = await watched(house, who, ask.town).since(ask.since)
    return Recording(town=ask.town, whole=found.whole, step=found.step, next=found.mark, recording=found.recording)


async def _span(house: House, who: Who, ask: RecordingRequest) -> Recording:
    from mindstream_town import opened as service
    from mindstream_town.replay.ground import ground_of
    from mindstream_town.replay.recording import record

    async with service.look_in(settings_of(house, who, ask.town)) as look:
        last = look.now if ask.last is None else min(ask.last, look.now)
        found = await record(look.store, look.setting, ask.first, last)
        return Recording(town=ask.town, whole=True, step=look.now, next="", recording=found | ground_of(look.setting))


@operation("towns.set", "write", "POST /towns/{town}/set", mcp="town_set", cli="town set", tenant_wide=True)
async def set_object(house: House, who: Who, ask: SetRequest) -> HasSet:
    """Put an object of a town into a condition, in words: "leaking"; whoever comes by sees it."""
    from mindstream_town.inspect.lookup import find_object

    async with open_town(house, who, ask.town) as town:
        place = find_object(town.setting, ask.object)
        danger = await town.set_object(place, ask.condition.strip(), danger=ask.danger)
    return HasSet(object=place, condition=ask.condition.strip(), danger=danger)


@operation("towns.knows", "read", "GET /towns/{town}/knows", mcp="town_knows")
async def knows(house: House, who: Who, ask: FactRequest) -> Knowledge:
    """Say who in a town knows a fact, since when and from whom; without a fact, which memories residents began with."""
    history = await watched(house, who, ask.town).history()
    return await asyncio.to_thread(_knowledge, history, ask.fact)


def _knowledge(history: History, fact: str) -> Knowledge:
    from mindstream_town.metrics.measures import count_knowers, find_fact, trace_fact

    people = sum(not each.visits for each in history.setting.people.values())
    if not fact.strip():
        facts = [FactShape(text=text, knowers=count) for text, count in count_knowers(history).items()]
        return Knowledge(fact="", says="", residents=people, knowers=[], facts=facts[:MOST_FACTS])
    found = find_fact(fact, history)
    knowers = [
        KnowerShape(
            name=each.name,
            step=max(0, each.step),
            time=each.time,
            how=each.how,
            by=each.by,
            chain=list(each.chain),
            memory=each.record,
            text=each.text,
        )
        for each in trace_fact(history, found).knowers
    ]
    return Knowledge(fact=fact, says=found.says, residents=people, knowers=knowers, facts=[])


@operation("towns.calls", "read", "GET /towns/{town}/calls")
async def calls(house: House, who: Who, ask: TownCallsRequest) -> CallList:
    """List the calls of models that were made for a town's residents, newest first."""
    from mindstream_town import opened as service
    from mindstream_town.events import JOURNAL
    from mindstream_town.inspect.lookup import find_resident

    async with service.look_in(settings_of(house, who, ask.town)) as look:
        name = find_resident(look.setting, ask.resident) if ask.resident else ""
        return await list_calls(look.store, look.store.key(JOURNAL), ask, name, ask.step)


@operation("towns.call", "read", "GET /towns/{town}/calls/{seq}")
async def call(house: House, who: Who, ask: TownCallRequest) -> CallWords:
    """Return a call of a model that was made for a town's residents, word by word."""
    from mindstream_town import opened as service
    from mindstream_town.events import JOURNAL

    async with service.look_in(settings_of(house, who, ask.town)) as look:
        return await find_call(look.store, look.store.key(JOURNAL), ask.seq)


@operation("towns.cost", "read", "GET /towns/{town}/cost")
async def cost(house: House, who: Who, ask: TownName) -> Cost:
    """Say what a town's calls of models came to: tokens, seconds, US dollars, by day, role and model."""
    from mindstream.service.cost import bill
    from mindstream_town import opened as service

    async with service.look_in(settings_of(house, who, ask.town)) as look:
        found = await bill(look.store)
    by = {str(name): [total.plain() for total in totals] for name, totals in found.by.items() if name != "user"}
    return Cost(total=found.total.plain(), by=by, days=days_of(found))


@operation("towns.relations", "read", "GET /towns/{town}/relations")
async def relations(house: House, who: Who, ask: TownName) -> Relations:
    """Say who knows whom in a town since when, when they talked, and how dense the network became."""
    history = await watched(house, who, ask.town).history()
    return await asyncio.to_thread(_relations, history)


def _relations(history: History) -> Relations:
    from mindstream_town.metrics.relationships import trace_acquaintance

    found, talks = trace_acquaintance(history), dict[tuple[str, str], list[int]]()
    for name, talk in history.talks():
        talks.setdefault((min(name, talk.partner), max(name, talk.partner)), []).append(talk.step)
    pairs = [
        PairShape(names=list(pair), since=max(0, step), talks=talks.get(pair, []))
        for pair, step in sorted(found.since.items(), key=lambda each: (each[1], each[0]))
    ]
    last = max(history.step, 0)
    steps = sorted({0, last, *(each.since for each in pairs if each.since <= last)})
    steps = steps[:: -(-len(steps) // MOST_CURVE)]
    return Relations(
        residents=list(history.names), pairs=pairs, curve=list(zip(steps, found.curve(steps), strict=True))
    )


class EmbodiedName(TownName):
    """A person as somebody in a town.

    `resident`: the whole name. `visitor`: somebody who lives nowhere there. `person`: who lives as a resident; a
    visitor is itself. With a token for one user the person is that user.
    """

    resident: str = Field(min_length=1, max_length=100)
    person: CallerName = Field("a person", min_length=1, max_length=100)
    visitor: bool = False


class EmbodyRequest(EmbodiedName):
    """Live as somebody; `place`: where a visitor comes in, "": at one that is open to all."""

    place: str = Field("", max_length=300)


class ActRequest(EmbodiedName):
    """Do something, and hear what happened since the step `since`.

    `go` takes `place`; `step` takes `way`, and is one step over a map of tiles; `do` takes `text`, `minutes` and maybe
    `place`; `say` takes `text` and maybe `to`; `wait` takes `minutes`, or goes on until what one does is done. With
    `waits` false, `go` and `do` take one step only.
    """

    act: Literal["go", "step", "do", "say", "decline", "wait"]
    text: str = Field("", max_length=max(LONGEST_DONE, LONGEST_SAID))
    to: str = Field("", max_length=100)
    place: str = Field("", max_length=300)
    way: Way | None = None
    minutes: int | None = Field(None, ge=1, le=MOST_MINUTES)
    waits: bool = True
    since: int | None = Field(None, ge=-1, le=2**40)


class LookRequest(EmbodiedName):
    """Look around; `since`: with what happened after that step."""

    since: int | None = Field(None, ge=-1, le=2**40)


class HasLeft(Reply):
    """Who is lived no longer, and when that was."""

    resident: str
    step: int
    time: str


@operation("towns.embody", "write", "POST /towns/{town}/embody/{resident}", mcp="town_embody", cli="town embody")
async def embody(house: House, who: Who, ask: EmbodyRequest) -> Surroundings:
    """Live as a resident, or as a visitor, from now on; or go on where one does."""
    async with open_town(house, who, ask.town) as town:
        me = await town.embody(ask.resident, _person(who, ask), as_visitor=ask.visitor, at=ask.place)
        return await me.look()


@operation("towns.act", "write", "POST /towns/{town}/embody/{resident}/act", mcp="town_act", cli="town embody")
async def do_as(house: House, who: Who, ask: ActRequest) -> Surroundings:
    """Do something as somebody as whom one lives: it ends when it is done, or when somebody speaks to one."""
    async with open_town(house, who, ask.town) as town:
        me = await _living(town, who, ask)
        me.waits, before = ask.waits, town.step
        match ask.act:
            case "go":
                await me.go(ask.place)
            case "step" if ask.way is None:
                raise InputError("a step wants its `way`: up, down, left or right")
            case "step" if ask.way:
                await me.step(ask.way)
            case "do":
                await me.do(ask.text, ask.minutes or 15, ask.place)
            case "say":
                await me.say(ask.text, ask.to)
            case "decline":
                await me.decline()
            case "wait":
                await me.wait(ask.minutes)
        return await me.look(before if ask.since is None else ask.since)


@operation("towns.look", "read", "GET /towns/{town}/embody/{resident}", mcp="town_look", cli="town embody")
async def look(house: House, who: Who, ask: LookRequest) -> Surroundings:
    """Say where one is as somebody, what and who is around, what was said, and what happened."""
    async with open_town(house, who, ask.town) as town:
        return await (await _living(town, who, ask)).look(ask.since)


@operation("towns.leave", "write", "POST /towns/{town}/embody/{resident}/leave", mcp="town_leave", cli="town embody")
async def leave(house: House, who: Who, ask: EmbodiedName) -> HasLeft:
    """Live as somebody no longer: a resident plans the rest of its day, a visitor is gone."""
    from mindstream_town.inspect.time_words import format_time

    async with open_town(house, who, ask.town) as town:
        await (await _living(town, who, ask)).leave()
        return HasLeft(resident=ask.resident, step=town.step, time=format_time(town.setting, town.step))


def _person(who: Who, ask: EmbodiedName) -> str:
    """Return who lives as a resident; "": a visitor, by its own name."""
    return who.bound_user or ("" if ask.visitor else ask.person)


async def _living(town: Town, who: Who, ask: EmbodiedName) -> Embodied:
    """Return a person as whom it lives.

    Raises:
        InputError: it does not, or not any more.
    """
    resident = town.residents.get(ask.resident)
    if resident is None or not resident.state.embodied:
        raise InputError(f"nobody lives as {ask.resident!r} now: begin first")
    return await town.embody(ask.resident, _person(who, ask), as_visitor=ask.visitor)
