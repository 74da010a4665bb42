"""Operations for pages that show a town or control a resident: recording, knowledge, relations, acts.

The town's time passes only with acts. So a page sets the pace itself: it sends acts that wait a minute, as often as it
likes, and receives the events of that time.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Literal

from pydantic import Field

from mindstream.errors import InputError
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
from mindstream.service.operations.operation import CallerName, NotBlank, Principal, Reply, Short, operation
from mindstream.service.operations.runtime import Runtime
from mindstream_town.embody.living import LONGEST_DONE, LONGEST_SAID, MOST_MINUTES, Way
from mindstream_town.embody.outlook import Surroundings
from mindstream_town.operations.towns import TownName, look_in, open_town, watched

if TYPE_CHECKING:
    from mindstream_town.embody.embodied import Embodied
    from mindstream_town.inspect.history import History
    from mindstream_town.town import Town

MOST_FACTS = 200
MOST_CURVE = 200
"""Maximum number of points of a curve."""


class RecordingRequest(TownName):
    """A request for a recording of a town. `first`, `last`: only the part between these steps. `since`: the `next` of
    the last reply; the new reply then has only what was added after the last reply."""

    first: int | None = Field(None, ge=0, le=2**40)
    last: int | None = Field(None, ge=0, le=2**40)
    since: Short = ""


class Recording(Reply):
    """Timelines of a town.

    `whole`: true: a recording with the map, complete or from `first` to `last`; false: entries to append to earlier
    replies. `step`: the last finished step; -1: none. `next`: the value of `since` for the next request; "" if the
    request gave `first` or `last`.
    """

    town: str
    whole: bool
    step: int
    next: str
    recording: dict[str, Any]


class SetRequest(TownName):
    """An object by its address, and its condition in words; "": nothing is wrong with it. `danger`: whether the
    condition is a danger; null: the model decides."""

    object: str = Field(min_length=1, max_length=300)
    condition: str = Field("", max_length=300)
    danger: bool | None = None


class HasSet(Reply):
    """An object's condition from the next step on."""

    object: str
    condition: str
    danger: bool


class FactRequest(TownName):
    """The fact to look up, by words of it. Facts are memories that a resident had when the town began, or that a user
    added; "" lists all of them."""

    fact: str = Field("", max_length=1_000)


class KnowerShape(Reply):
    """A resident who knows a fact.

    `step`: since when. `how`: "beginning" (the resident had the fact as a memory when the town began, or a user added
    it), "told" (by the resident `by`), or "learned" (in another way). `chain`: the residents who passed the fact on, up
    to this one. `memory`: the first record that is derived from the fact.
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
    """A memory that a resident had when the town began or that a user added, and how many residents know it now."""

    text: str
    knowers: int


class Knowledge(Reply):
    """Who knows a fact, in the order in which they learned it.

    `residents`: the number of all residents, without visitors. `facts`: possible facts, if none was requested.
    """

    fact: str
    says: str
    residents: int
    knowers: list[KnowerShape]
    facts: list[FactShape]


class TownCallsRequest(TownName, CallsRequest):
    """A page of model calls for a town's residents, optionally for one resident or step."""

    resident: Short = ""
    step: int | None = Field(None, ge=0, le=2**40)


class TownCallRequest(TownName, CallRequest):
    """A model call, by the number of its row in the town's log."""


class PairShape(Reply):
    """Two residents who know each other, since which step, and the steps of their talks."""

    names: list[str]
    since: int
    talks: list[int]


class Relations(Reply):
    """The pairs of residents who know each other, in the order of `since`.

    `curve`: pairs of a step, and the share (0 to 1) of all pairs of residents who know each other after this step.
    """

    residents: list[str]
    pairs: list[PairShape]
    curve: list[tuple[int, float]]


@operation("towns.recording", "read", "GET /towns/{town}/recording")
async def recording(runtime: Runtime, principal: Principal, request: RecordingRequest) -> Recording:
    """Return the recording of a town for a page; with `since`, only the additions."""
    if request.first is not None or request.last is not None:
        if request.since:
            raise InputError("`since` requests the additions to a whole recording: omit it, or omit `first` and `last`")
        return await _span(runtime, principal, request)
    found = await watched(runtime, principal, request.town).since(request.since)
    return Recording(town=request.town, whole=found.whole, step=found.step, next=found.mark, recording=found.recording)


async def _span(runtime: Runtime, principal: Principal, request: RecordingRequest) -> Recording:
    from mindstream_town.replay import ground_of, record

    async with look_in(runtime, principal, request.town) as look:
        last = look.now if request.last is None else min(request.last, look.now)
        found = await record(look.store, look.setting, request.first, last)
        return Recording(
            town=request.town, whole=True, step=look.now, next="", recording=found | ground_of(look.setting)
        )


@operation("towns.set", "write", "POST /towns/{town}/set", mcp="town_set", cli="town set", tenant_wide=True)
async def set_object(runtime: Runtime, principal: Principal, request: SetRequest) -> HasSet:
    """Change the condition of an object, in words ("leaking"); residents who see it may react."""
    from mindstream_town.inspect.lookup import find_object

    async with open_town(runtime, principal, request.town) as town:
        place = find_object(town.setting, request.object)
        danger = await town.set_object(place, request.condition.strip(), danger=request.danger)
    return HasSet(object=place, condition=request.condition.strip(), danger=danger)


@operation("towns.knows", "read", "GET /towns/{town}/knows", mcp="town_knows")
async def knows(runtime: Runtime, principal: Principal, request: FactRequest) -> Knowledge:
    """Return who knows a fact, since when and from which speaker. Without a fact, return the possible facts: memories
    that residents had when the town began, and memories that users added."""
    history = await watched(runtime, principal, request.town).history()
    return await asyncio.to_thread(_knowledge, history, request.fact)


def _knowledge(history: History, fact: str) -> Knowledge:
    from mindstream_town.metrics import count_knowers, find_fact, trace_fact

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
async def calls(runtime: Runtime, principal: Principal, request: TownCallsRequest) -> CallList:
    """List the model calls for a town's residents, newest first."""
    from mindstream_town.events import JOURNAL
    from mindstream_town.inspect.lookup import find_resident

    async with look_in(runtime, principal, request.town) as look:
        name = find_resident(look.setting, request.resident) if request.resident else ""
        return await list_calls(look.store, look.store.key(JOURNAL), request, name, request.step)


@operation("towns.call", "read", "GET /towns/{town}/calls/{seq}")
async def call(runtime: Runtime, principal: Principal, request: TownCallRequest) -> CallWords:
    """Return the prompt and the reply of a model call."""
    from mindstream_town.events import JOURNAL

    async with look_in(runtime, principal, request.town) as look:
        return await find_call(look.store, look.store.key(JOURNAL), request.seq)


@operation("towns.cost", "read", "GET /towns/{town}/cost")
async def cost(runtime: Runtime, principal: Principal, request: TownName) -> Cost:
    """Return the cost of a town's model calls: tokens, seconds, US dollars, by day, role and model."""
    from mindstream.service.cost import bill

    async with look_in(runtime, principal, request.town) as look:
        found = await bill(look.store)
    by = {str(name): [total.plain() for total in totals] for name, totals in found.by.items() if name != "user"}
    return Cost(total=found.total.plain(), by=by, days=days_of(found))


@operation("towns.relations", "read", "GET /towns/{town}/relations")
async def relations(runtime: Runtime, principal: Principal, request: TownName) -> Relations:
    """Return which residents know each other and since when, their talks, and the density of the network over time."""
    history = await watched(runtime, principal, request.town).history()
    return await asyncio.to_thread(_relations, history)


def _relations(history: History) -> Relations:
    from mindstream_town.metrics import trace_acquaintance

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
    """A resident or visitor that a user controls.

    `resident`: the full name of the resident or visitor. `visitor`: whether it is a visitor. `person`: the user who
    controls the resident; ignored for a visitor. With a token for one user, that user is in control.
    """

    resident: NotBlank
    person: CallerName = Field("a person", min_length=1, max_length=100)
    visitor: bool = False


class EmbodyRequest(EmbodiedName):
    """Take control; `place`: where a visitor enters, "" for a public place."""

    place: str = Field("", max_length=300)


class ActRequest(EmbodiedName):
    """Do something, and receive the events after the step `since`.

    - `go` takes `place`.
    - `step` takes `way`, and walks to the neighbouring tile on a map of tiles.
    - `do` takes `text`, `minutes` and optionally `place`.
    - `say` takes `text` and optionally `to`.
    - `decline` ends a talk, or refuses a talk before the first answer.
    - `wait` takes `minutes`; without `minutes`, it waits until the current act is over.

    With `waits` false, `go` and `do` only begin the act: one step of the town passes.
    """

    act: Literal["go", "step", "do", "say", "decline", "wait"]
    text: str = Field("", max_length=max(LONGEST_DONE, LONGEST_SAID))
    to: Short = ""
    place: str = Field("", max_length=300)
    way: Way | None = None
    minutes: int | None = Field(None, ge=1, le=MOST_MINUTES)
    waits: bool = True
    since: int | None = Field(None, ge=-1, le=2**40)


class LookRequest(EmbodiedName):
    """Look around; `since`: with the events after that step."""

    since: int | None = Field(None, ge=-1, le=2**40)


class HasLeft(Reply):
    """The released resident, and the time."""

    resident: str
    step: int
    time: str


@operation("towns.embody", "write", "POST /towns/{town}/embody/{resident}", mcp="town_embody", cli="town embody")
async def embody(runtime: Runtime, principal: Principal, request: EmbodyRequest) -> Surroundings:
    """Take control of a resident, or enter as a visitor; or resume that control."""
    async with open_town(runtime, principal, request.town) as town:
        me = await town.embody(
            request.resident, _person(principal, request), as_visitor=request.visitor, at=request.place
        )
        return await me.look()


@operation("towns.act", "write", "POST /towns/{town}/embody/{resident}/act", mcp="town_act", cli="town embody")
async def do_as(runtime: Runtime, principal: Principal, request: ActRequest) -> Surroundings:
    """Act as the controlled resident, until the act is over or another resident speaks to it."""
    async with open_town(runtime, principal, request.town) as town:
        me = await _living(town, principal, request)
        me.waits, before = request.waits, town.step
        match request.act:
            case "go":
                await me.go(request.place)
            case "step" if request.way is None:
                raise InputError("`step` needs `way`: up, down, left or right")
            case "step" if request.way:
                await me.step(request.way)
            case "do":
                await me.do(request.text, request.minutes or 15, request.place)
            case "say":
                await me.say(request.text, request.to)
            case "decline":
                await me.decline()
            case "wait":
                await me.wait(request.minutes)
        return await me.look(before if request.since is None else request.since)


@operation("towns.look", "read", "GET /towns/{town}/embody/{resident}", mcp="town_look", cli="town embody")
async def look(runtime: Runtime, principal: Principal, request: LookRequest) -> Surroundings:
    """Return position, surroundings, talk and events of the controlled resident."""
    async with open_town(runtime, principal, request.town) as town:
        return await (await _living(town, principal, request)).look(request.since)


@operation("towns.leave", "write", "POST /towns/{town}/embody/{resident}/leave", mcp="town_leave", cli="town embody")
async def leave(runtime: Runtime, principal: Principal, request: EmbodiedName) -> HasLeft:
    """Give control back: a resident plans the rest of its day, a visitor leaves the town."""
    from mindstream_town.inspect.lookup import format_time

    async with open_town(runtime, principal, request.town) as town:
        await (await _living(town, principal, request)).leave()
        return HasLeft(resident=request.resident, step=town.step, time=format_time(town.setting, town.step))


def _person(principal: Principal, request: EmbodiedName) -> str:
    """Return the name of the user who controls a resident. If the caller's token is bound to one user, this is that
    user; else the name in the request. "" for a visitor without a bound user: the visitor's own name is used."""
    return principal.bound_user or ("" if request.visitor else request.person)


async def _living(town: Town, principal: Principal, request: EmbodiedName) -> Embodied:
    """Return the resident that the caller controls.

    Raises:
        InputError: no user, or another user, controls it.
    """
    resident = town.residents.get(request.resident)
    if resident is None or not resident.state.embodied:
        raise InputError(f"no user controls {request.resident!r} now: take control of it first (`towns.embody`)")
    return await town.embody(request.resident, _person(principal, request), as_visitor=request.visitor)
