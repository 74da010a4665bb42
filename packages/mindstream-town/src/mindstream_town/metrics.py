"""Measures of a town: activity, conduct, acquaintance (Park 2023, 7.1.2), the spread of facts, attendance of an event,
and curves over time.

A resident knows a fact if one of its memories is derived from the fact, by evidence or by what a speaker passed on.
Texts are not compared; `trace_meaning` lets a model read them. First memories are those that residents had when the
town began, and those that users added (`Town.whisper`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations, cycle
from types import MappingProxyType
from typing import Literal

import leather
from pydantic import Field

from mindstream.encodings import csv_text
from mindstream.errors import InputError
from mindstream.frozen import Frozen
from mindstream.log.events import ModelCalled, Reflected
from mindstream.memory.store.record import Record
from mindstream.models.model import Model
from mindstream.models.prompt import Prompt, ask, rule
from mindstream.reasoners.reflect.reflect import BY as REFLECT
from mindstream.text.words import terms
from mindstream_town.events import Acted, DayPlanned, Talked
from mindstream_town.inspect.history import History
from mindstream_town.world.routes import read_walk
from mindstream_town.world.tree import ARENA, SECTOR, Address, Spot

__path__: list[str] = []  # so that moved.py can redirect imports of former submodules


@dataclass(frozen=True)
class OddAct:
    """An act at a place where, or a time when, the resident was not allowed to be."""

    name: str
    time: str
    what: str
    place: str
    why: str


@dataclass(frozen=True)
class Conduct:
    """The conduct of all residents.

    Attributes:
        planned, kept: waking minutes with a planned place, and how many of these minutes were spent in the arena of the
            place.
        acts, believable: number of acts whose place the resident has reached, and how many of these acts were permitted
            on arrival. An act is permitted if the place is not full and the resident may enter: the resident is an
            owner, the place is open to the resident at this time, or an owner is awake in the house.
        not_believable: number of acts that were not permitted, by reason.
        odd: the acts that were not permitted, by resident and time.
        in_walls: number of positions inside a wall. asleep_elsewhere: number of sleeps outside the resident's own
            house.
        talking_asleep: number of conversations that began while the resident slept, counted for each resident.
    """

    planned: int
    kept: int
    acts: int
    believable: int
    not_believable: dict[str, int]
    in_walls: int
    asleep_elsewhere: int
    talking_asleep: int
    odd: tuple[OddAct, ...] = ()

    @property
    def adherence(self) -> float:
        """The share of planned minutes that were spent at the planned place; 1 if none were planned."""
        return self.kept / self.planned if self.planned else 1.0

    @property
    def believable_share(self) -> float:
        """The share of the acts that were permitted; 1 if there were no acts."""
        return self.believable / self.acts if self.acts else 1.0


def examine_conduct(history: History) -> Conduct:
    """Compare all acts with plans, rules of places, and physical limits."""
    planned = kept = acts = walls = elsewhere = talking = 0
    odd: list[OddAct] = []
    for name in history.names:
        minutes = [is_kept for _, is_kept in _minutes(history, name)]
        planned, kept = planned + len(minutes), kept + sum(minutes)
        for _, acted in history.events(name, Acted):
            act = acted.act
            tiles = read_walk(act.path)
            walls += sum(not history.setting.world.walkable(tile) for tile in tiles)
            elsewhere += act.asleep and not _is_home(history, name, tiles[-1])
            if act.place and act.arrives <= history.step and history.state(name, act.arrives).act == act:
                acts += 1
                if why := _objection(history, name, act.place, act.arrives):
                    odd.append(OddAct(name, history.clock(act.arrives), act.what, act.place, why))
        talking += sum(_slept(history, name, talk) for _, talk in history.events(name, Talked))
    why_not = dict(Counter(each.why for each in odd))
    return Conduct(planned, kept, acts, acts - len(odd), why_not, walls, elsewhere, talking, tuple(odd))


def trace_adherence(history: History, steps: Sequence[int]) -> list[float]:
    """Return, for each step, the share of the planned minutes so far that were spent at the planned place.

    The share is 1 if no minutes were planned up to the step.
    """
    minutes = sorted(each for name in history.names for each in _minutes(history, name))
    shares, at, kept = list[float](), 0, 0
    for step in steps:
        while at < len(minutes) and minutes[at][0] <= step:
            kept += minutes[at][1]
            at += 1
        shares.append(kept / at if at else 1.0)
    return shares


def _minutes(history: History, name: str) -> Iterator[tuple[int, bool]]:
    """Yield each waking minute with a planned place, and whether the resident spent it there."""
    setting = history.setting
    for step in range(0, history.step + 1, setting.profile.a_minute):
        state = history.state(name, step)
        block = state.block_at(setting.minute(step))
        if state.day != setting.day(step) or block is None or block.asleep or block.place not in setting.addresses:
            continue
        wanted = setting.addresses[block.place].upto(ARENA)
        yield step, setting.world.address_at(state.spot(step)).is_within(wanted)


def _is_home(history: History, name: str, spot: Spot) -> bool:
    home = history.setting.addresses[history.setting.people[name].home].upto(SECTOR)
    return history.setting.world.address_at(spot).is_within(home)


def _slept(history: History, name: str, talk: Talked) -> bool:
    """Return whether a resident was asleep when a talk began."""
    begun = talk.since or talk.step
    before = history.state(name, begun - 1)
    return before.asleep and before.act is not None and before.act.until > begun


def _objection(history: History, name: str, place: str, step: int) -> str:
    """Return why a resident's act at a place is not permitted; "" if it is permitted.

    The reasons: the place is closed; no owner is at home and awake to let the resident in; the place is full.
    """
    rules, at = history.setting.rules, history.setting.when(step)
    address = history.setting.addresses[place]
    owners = rules.owners(address)
    if not rules.may_enter(name, address, at):
        if not owners:
            return "closed"
        house = address.upto(SECTOR)
        if not any(
            owner in history.setting.people
            and not history.state(owner, step).asleep
            and history.place(owner, step).is_within(house)
            for owner in owners
        ):
            return "nobody let them in"
    capacity = rules.capacity(address)
    if capacity is not None:
        counted = rules.counted_at(address)
        if sum(history.place(each, step).is_within(counted) for each in history.names) > capacity:
            return "full"
    return ""


@dataclass(frozen=True)
class Counts:
    """Numbers of events in a town.

    Attributes:
        days: days that the town has run.
        reflections: number of reflections by resident. talks: number of conversations.
        calls: number of model calls by prompt.
    """

    days: float
    reflections: dict[str, int]
    talks: int
    calls: dict[str, int]

    @property
    def reflections_a_day(self) -> float:
        """Reflections per resident and day."""
        of_all = len(self.reflections) * self.days
        return sum(self.reflections.values()) / of_all if of_all else 0.0

    @property
    def talks_a_day(self) -> float:
        """Conversations of the whole town per day."""
        return self.talks / self.days if self.days else 0.0


def count_events(history: History) -> Counts:
    """Count reflections, conversations and model calls."""
    calls: Counter[str] = Counter()
    for rows in history.rows.values():
        calls.update(row.event.prompt for row in rows if isinstance(row.event, ModelCalled))
    return Counts(
        (history.step + 1) / history.setting.profile.a_day,
        {name: sum(1 for _ in history.events(name, Reflected)) for name in history.names},
        sum(1 for _ in history.talks()),
        dict(sorted(calls.items())),
    )


@dataclass(frozen=True)
class Acquaintance:
    """The pairs of residents who know each other, each from its own memory. `since`: by pair, the first step at which
    both knew the other."""

    residents: int
    since: dict[tuple[str, str], int]

    def density(self, step: int) -> float:
        """Return the density of the network after a step, 2|E| / (|V| (|V| - 1)).

        E is the set of pairs who know each other, and V the set of all residents.
        """
        pairs = self.residents * (self.residents - 1)
        return 2 * sum(each <= step for each in self.since.values()) / pairs if pairs else 0.0

    def curve(self, steps: Iterable[int]) -> list[float]:
        """Return the density after each of some steps."""
        return [self.density(step) for step in steps]


def trace_acquaintance(history: History) -> Acquaintance:
    """Return the pairs of residents who know each other, each with the first step at which both know the other.

    A resident knows another one if the two have talked, or if the resident has a note that names the other one and is
    derived from no other memory.
    """
    known: dict[tuple[str, str], int] = {}
    for name in history.names:
        for record in history.records[name]:
            if record.kind == "note" and not record.evidence:
                step = history.step_of(record.created)
                for other in history.names:
                    if other != name and other in record.text:
                        known.setdefault((name, other), step)
        for step, talk in history.events(name, Talked):
            pair = name, talk.partner
            known[pair] = min(step, known.get(pair, step))
    edges = {
        (a, b): max(known[a, b], known[b, a])
        for a, b in combinations(history.names, 2)
        if (a, b) in known and (b, a) in known
    }
    return Acquaintance(len(history.names), edges)


ENOUGH = 0.5
"""Minimum share of the words of a typed fact that a memory must contain to state the fact."""
Key = tuple[str, str]
"""A resident and the id of one of its records."""


@dataclass(frozen=True)
class Fact:
    """A fact: the typed text, the first memories (see `is_first`) that state it, and the text of these memories."""

    text: str
    records: frozenset[Key]
    says: str


def is_first(record: Record) -> bool:
    """Return whether a memory is a first memory: a note that is no plan and is derived from no other memory.

    First memories are from before the town began, or were added by a user (`Town.whisper`).
    """
    return record.kind == "note" and not record.evidence and "plan" not in record.keywords


def find_fact(text: str, history: History) -> Fact:
    """Return the residents' first memory (see `is_first`) that contains the largest share of the text's words.

    Equal memories of several residents count as one fact.

    Raises:
        InputError: no first memory has at least half of the words.
    """
    words = frozenset(terms(text))
    share, said = max(
        ((len(words & {*terms(said)}) / max(1, len(words)), said) for said in _said(history)), default=(0.0, "")
    )
    if share < ENOUGH:
        raise InputError(
            f"no memory that a resident had when the town began, or that a user added, has half of the words"
            f" {text.strip()!r:.99}: use words from such a memory"
        )
    held = {(name, each.id) for name in history.names for each in history.records[name] if each.text == said}
    return Fact(text.strip(), frozenset(key for key in held if is_first(history.by_id[key[0]][key[1]])), said)


def _said(history: History) -> Iterator[str]:
    yield from (each.text for name in history.names for each in history.records[name] if is_first(each))


@dataclass(frozen=True)
class Knower:
    """A resident who knows a fact.

    Attributes:
        step, time: since when the resident knows it.
        how: from a first memory (see `is_first`), told by a speaker, or learned otherwise.
        by: the speaker.
        record: id of the resident's earliest memory that is derived from the fact.
        text: the text of this memory.
        chain: speakers who passed the fact on, from the first knower to this one.
    """

    name: str
    step: int
    time: str
    how: Literal["beginning", "told", "learned"]
    by: str
    record: str
    text: str
    chain: tuple[str, ...]


@dataclass(frozen=True)
class Diffusion:
    """The residents who know a fact, in the order of time. `residents`: number of all residents; `records`: the
    memories that state the fact or are derived from it."""

    fact: str
    residents: int
    knowers: tuple[Knower, ...]
    records: frozenset[Key]

    def count(self, step: int) -> int:
        """Return how many residents knew the fact after a step."""
        return sum(knower.step <= step for knower in self.knowers)

    def by_how(self) -> dict[str, int]:
        """Return how many residents know the fact, by the way in which they learned it (`how`)."""
        return dict(sorted(Counter(knower.how for knower in self.knowers).items()))


def trace_fact(history: History, fact: Fact) -> Diffusion:
    """Return who knows a fact, and since when."""
    origins, knowers = _descent(history, fact), dict[str, Knower]()
    for name, id_ in origins:  # oldest first
        if name not in knowers:
            chain, record = _chain(origins, (name, id_)), history.by_id[name][id_]
            step, by = history.step_of(record.created), chain[-2] if len(chain) > 1 else ""
            how: Literal["beginning", "told"] = "told" if by else "beginning"
            knowers[name] = Knower(name, step, history.clock(step), how, by, id_, record.text, chain)
    ordered = sorted(knowers.values(), key=lambda each: (each.step, each.name))
    return Diffusion(fact.text, len(history.names), tuple(ordered), frozenset(origins))


def parents_of(name: str, record: Record) -> list[Key]:
    """Return the records that a resident's record is derived from.

    These are the evidence of the record, and, for a line of a talk, the speaker's memories that the line passes on.
    """
    return [*((name, id_) for id_ in record.evidence), *((record.by, id_) for id_ in told_ids(record))]


def _descent(history: History, fact: Fact) -> dict[Key, Key | None]:
    """Return the records of a fact and all records derived from them, each with the record that it is derived from.

    The fact's own records have None. A record is newer than its sources, so one pass in the order of time is enough.
    """
    origins: dict[Key, Key | None] = {}
    for name, record in _in_order(history):
        if (name, record.id) in fact.records:
            origins[name, record.id] = None
            continue
        parents = parents_of(name, record)
        parent = next((each for each in parents if each in origins), None)
        if parent is not None:
            origins[name, record.id] = parent
    return origins


def count_knowers(history: History) -> dict[str, int]:
    """Return the residents' first memories (see `is_first`) by text, each with the number of residents who know it now.

    The best known memory comes first.
    """
    facts: dict[Key, frozenset[str]] = {}
    knowers: dict[str, set[str]] = {}
    for name, record in _in_order(history):
        if is_first(record):
            known = frozenset({record.text})
        else:
            parents = parents_of(name, record)
            known = frozenset[str]().union(*(facts.get(each, ()) for each in parents))
        if known:
            facts[name, record.id] = known
        for fact in known:
            knowers.setdefault(fact, set()).add(name)
    return {fact: len(names) for fact, names in sorted(knowers.items(), key=lambda each: -len(each[1]))}


def _in_order(history: History) -> Iterator[tuple[str, Record]]:
    every = ((name, n, record) for name in history.names for n, record in enumerate(history.records[name]))
    for name, _, record in sorted(every, key=lambda each: (each[2].created, each[0], each[1])):
        yield name, record


def told_ids(record: Record) -> tuple[str, ...]:
    """Return the ids of the speaker's memories that a line of a talk passes on; (): none."""
    told = record.data.get("told")
    return tuple(each for each in told if isinstance(each, str)) if isinstance(told, list) else ()


def _chain(origins: Mapping[Key, Key | None], key: Key) -> tuple[str, ...]:
    """Return the names of the speakers who passed a fact on, from its first knower to the resident of `key`."""
    names: list[str] = []
    at: Key | None = key
    while at is not None:
        if not names or names[-1] != at[0]:
            names.append(at[0])
        at = origins[at]
    return tuple(reversed(names))


@dataclass(frozen=True)
class Followed:
    """Number of insights, of insights that a plan or a conversation cites, and of residents with a cited insight."""

    insights: int
    cited: int
    residents: int


def trace_insights(history: History) -> Followed:
    """Count the insights of all residents, and those that a day plan cites or a line of a conversation passes on."""
    insights, cited = set[Key](), set[Key]()
    for name in history.names:
        insights |= {(name, each.id) for each in history.records[name] if each.kind == "thought" and each.by == REFLECT}
        cited |= {(name, id_) for _, event in history.events(name, DayPlanned) for id_ in event.cites}
        talks = (line for _, event in history.events(name, Talked) for line in event.lines if line.by == name)
        cited |= {(name, id_) for line in talks for id_ in line.told}
    followed = insights & cited
    return Followed(len(insights), len(followed), len({name for name, _ in followed}))


def write_csv(diffusion: Diffusion) -> str:
    """Return the residents who know a fact, and since when, as CSV."""
    columns = ("name", "step", "time", "how", "by", "chain", "record", "text")
    rows = (asdict(knower) | {"chain": " > ".join(knower.chain)} for knower in diffusion.knowers)
    return csv_text(columns, ([row[name] for name in columns] for row in rows))


def measure(history: History, facts: Sequence[str] = ()) -> dict[str, float]:
    """Return the measures of `town metrics`, and the share of residents who know each of the facts.

    Raises:
        InputError: for one of the facts, no first memory (see `is_first`) has at least half of the fact's words.
    """
    counts, conduct, people = count_events(history), examine_conduct(history), max(1, len(history.names))
    return {
        "talks a day": counts.talks_a_day,
        "reflections a day and resident": counts.reflections_a_day,
        "pairs that know each other": trace_acquaintance(history).density(history.step),
        "planned minutes that were kept": conduct.adherence,
        "acts where and when one may": conduct.believable_share,
    } | {f"“{fact}” is known to": len(trace_fact(history, find_fact(fact, history)).knowers) / people for fact in facts}


COLOURS = ("#1764ab", "#c0392b", "#2e8b57", "#8e44ad", "#b8860b", "#00838f")
WIDTH, HEIGHT = 900, 420


def hours(history: History) -> list[int]:
    """Return the first step of each hour, and the last step."""
    an_hour = 60 * history.setting.profile.a_minute
    return sorted({*range(0, history.step + 1, an_hour), history.step})


def curves_csv(history: History, steps: Sequence[int], curves: Mapping[str, Sequence[float]]) -> str:
    """Return curves as CSV, a line for each step."""
    rows = (
        [step, history.clock(step), *(f"{values[n]:g}" for values in curves.values())] for n, step in enumerate(steps)
    )
    return csv_text(["step", "time", *curves], rows)


@dataclass(frozen=True)
class Mark:
    """A time span that is highlighted in a chart."""

    start: int
    end: int
    text: str


def draw_curves(
    history: History,
    steps: Sequence[int],
    curves: Mapping[str, Sequence[float]],
    title: str,
    *,
    said: Mapping[str, str] = MappingProxyType({}),
    mark: Mark | None = None,
) -> str:
    """Draw shares (0 to 1) over time as step curves.

    Args:
        said: label of the last value, such as `12 of 25`, by curve. A curve without a label shows the share in %.
        mark: a time span to highlight.
    """
    chart = leather.Chart(title)
    shown = {
        f"{name}: {said.get(name, f'{values[-1]:.0%}')}": list(zip(steps, values, strict=True))
        for name, values in curves.items()
    }
    if mark is not None and mark.start <= steps[-1]:
        shown[mark.text] = [(steps[0], 0.0), (mark.start, 1.0), (min(mark.end, steps[-1]), 0.0), (steps[-1], 0.0)]
    for (name, points), colour in zip(shown.items(), cycle(COLOURS), strict=False):
        before = [points[0][1], *(share for _, share in points)]
        stairs = [(step, share) for (step, new), old in zip(points, before, strict=False) for share in (old, new)]
        days = [(history.setting.when(step).replace(tzinfo=None), 100 * share) for step, share in stairs]
        chart.add_line(days, name=name, stroke_color=colour)
    chart.add_y_scale(0, 100)
    chart.add_y_axis(name="%")
    return str(chart.to_svg(width=WIDTH, height=HEIGHT))


LEAST = 5
"""Minimum waking minutes at the place that make a resident a guest."""


@dataclass(frozen=True)
class Event:
    """An event at a place, from step `start` to before step `end`."""

    place: Address
    start: int
    end: int


@dataclass(frozen=True)
class Attendance:
    """The guests of an event.

    Attributes:
        minutes: minutes at the event, by guest.
        invited: residents who were told of the event before it began.
        came_invited: guests who heard of the event before or during it.
        invitations: speaker, hearer and step of each invitation, in order.
        talked: pairs who talked at the event, in order.
    """

    minutes: Mapping[str, int]
    invited: tuple[str, ...]
    came_invited: tuple[str, ...]
    invitations: tuple[tuple[str, str, int], ...]
    talked: tuple[tuple[str, str], ...]


def trace_attendance(history: History, event: Event, known: Diffusion) -> Attendance:
    """Return the attendance of an event: guests, residents who were told of the event, invitations, and talks there.

    Raises:
        InputError: the town does not have the event's place, or the event does not end after its start.
    """
    if str(event.place) not in history.setting.addresses or event.end <= event.start:
        raise InputError(
            f"an event needs a place of the town, and an end after its start: found {event.place}, from step"
            f" {event.start} to step {event.end}"
        )
    minutes = {name: count for name in history.names if (count := minutes_at(history, event, name)) >= LEAST}
    told = {each.name: each.step for each in known.knowers if each.how == "told" and each.step < event.end}
    return Attendance(
        minutes,
        tuple(sorted(name for name, step in told.items() if step < event.start)),
        tuple(name for name in minutes if name in told),
        tuple(_invitations(history, event, known)),
        tuple(_talks(history, event)),
    )


def minutes_at(history: History, event: Event, name: str) -> int:
    """Return the number of waking minutes that a resident spent at the event."""
    a_minute = history.setting.profile.a_minute
    steps = range(event.start, min(event.end, history.step + 1), a_minute)
    return sum(
        not history.state(name, step).asleep and history.place(name, step).is_within(event.place) for step in steps
    )


def _invitations(history: History, event: Event, known: Diffusion) -> list[tuple[str, str, int]]:
    told: dict[tuple[str, str], int] = {}
    for name, talk in history.talks():
        for line in talk.lines:
            if talk.step < event.end and any((line.by, id_) in known.records for id_ in line.told):
                told.setdefault((line.by, talk.partner if line.by == name else name), talk.step)
    return [(*pair, step) for pair, step in told.items()]


def _talks(history: History, event: Event) -> Sequence[tuple[str, str]]:
    return [
        (name, talk.partner)
        for name, talk in history.talks()
        if event.start <= talk.step < event.end and history.place(name, talk.step).is_within(event.place)
    ]


MAX_MEMORIES, MAX_CHARACTERS = 120, 300
"""Maximum memories in one prompt, and characters of each."""


class Stated(Frozen):
    """The memories that state a fact."""

    numbers: list[int] = Field(default_factory=list, max_length=MAX_MEMORIES)


class StatesFact(Prompt[Stated]):
    """Which of these memories state this fact?"""

    who: str
    fact: str
    memories: tuple[str, ...]


@rule(StatesFact)
def state_nothing(ask: StatesFact) -> Stated:  # noqa: ARG001
    """Rule: without a model, facts are traced by evidence (`trace_fact`)."""
    return Stated()


async def trace_meaning(history: History, fact: str, model: Model) -> Diffusion:
    """Return who knows a fact by the meaning of a memory, and since when.

    A resident's memories, except observations and plans, are read from the oldest to the newest, until one of them
    states the fact.

    Raises:
        ModelError: the model gave no usable answer.
    """
    knowers, records = list[Knower](), set[tuple[str, str]]()
    for name in history.names:
        told = [each for each in history.records[name] if each.kind != "observation" and "plan" not in each.keywords]
        told.sort(key=lambda each: (each.created, each.id))
        for batch in (told[at : at + MAX_MEMORIES] for at in range(0, len(told), MAX_MEMORIES)):
            lines = tuple(f"{each.by}: {each.text}"[:MAX_CHARACTERS] for each in batch)
            stated = await ask(model, StatesFact(who=name, fact=fact, memories=lines))
            found = [batch[number - 1] for number in sorted(stated.numbers) if 0 < number <= len(batch)]
            records |= {(name, each.id) for each in found}
            if found:
                knowers.append(_knower(history, name, found[0]))
                break
    ordered = tuple(sorted(knowers, key=lambda each: (each.step, each.name)))
    return Diffusion(fact, len(history.names), ordered, frozenset(records))


def _knower(history: History, name: str, record: Record) -> Knower:
    """Return a resident as a knower of a fact.

    Args:
        record: the resident's earliest memory that states the fact.
    """
    step, of_self = history.step_of(record.created), history.by_id[name]
    sources = [record, *(of_self[each] for each in record.evidence if each in of_self)]
    by = next((each.by for each in sources if each.kind == "chat" and each.by != name), "")
    how: Literal["beginning", "told", "learned"] = "beginning" if is_first(record) else "told" if by else "learned"
    chain = (by, name) if by else (name,)
    return Knower(name, step, history.clock(step), how, by, record.id, record.text, chain)
