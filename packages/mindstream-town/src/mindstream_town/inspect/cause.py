"""Find what caused an outcome: for each memory on its path, run forks of the town without this memory, with several
seeds.

An outcome is a resident's presence at an event ("Klaus at the party") or knowledge ("Klaus knows of the election").
The path of an outcome consists of:
- the resident's memories of the event or the fact,
- the evidence of these memories, and the memories that other residents told in the talks behind them,
- for an event, the memories behind the resident's plan of that day.

`first_difference` compares two towns.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

from mindstream import chance
from mindstream.errors import InputError
from mindstream.location import AnyData, Location
from mindstream.memory.store.record import Record, normalised
from mindstream.settings import Settings
from mindstream.significance import mcnemar, wilson
from mindstream.text.words import terms
from mindstream_town.events import DayPlanned, ObjectChanged
from mindstream_town.forking import fork
from mindstream_town.inspect.history import History, open_store, read_history
from mindstream_town.inspect.lookup import find_place, find_resident
from mindstream_town.journal import journal, read_setting
from mindstream_town.metrics import LEAST, Event, find_fact, minutes_at, parents_of, trace_fact
from mindstream_town.opened import open_town
from mindstream_town.residents.person import Appointment, appointment_of

CONTROL = "control"
"""`Cause.how` of a memory that is not on the path of the outcome; its removal is expected to change nothing."""


@dataclass(frozen=True)
class Outcome:
    """An outcome to explain: a resident (`who`) is present at an event, or knows a fact.

    Attributes:
        end: the last step of the event, or the step at which the resident knows the fact.
        event: the event at which the resident is present; None: the outcome is that the resident knows `fact`.
        fact: words of the fact, as for `find_fact`.
        appointment: the appointment that named the event; None: there is none.
    """

    who: str
    end: int
    event: Event | None = None
    fact: str = ""
    appointment: Appointment | None = None

    def happens(self, history: History) -> bool:
        """Return whether the outcome happens in a town."""
        if self.event is not None:
            return minutes_at(history, self.event, self.who) >= LEAST
        return any(each.name == self.who for each in trace_fact(history, find_fact(self.fact, history)).knowers)


class Cause(NamedTuple):
    """A memory that may have caused an outcome.

    Attributes:
        whose: the resident who has the memory. step: when the memory was made.
        how: how the memory led to the outcome, such as "memory of the event" or "told by Ada Brook"; CONTROL: it did
            not lead to the outcome.
        records: ids of the memory, and of the resident's other memories up to this step with the same text.
    """

    whose: str
    step: int
    how: str
    text: str
    records: tuple[str, ...]


class Effect(NamedTuple):
    """How often the outcome happens with a memory and without it, in forks with the same seeds.

    Attributes:
        seeds: number of pairs of forks, one with the memory and one without it.
        kept: number of forks with the memory in which the outcome happens.
        lost: number of forks without the memory in which the outcome happens.
    """

    cause: Cause
    seeds: int
    kept: int
    lost: int
    interval: tuple[float, float]
    """95 % interval (Wilson) of the share of forks without the memory in which the outcome happens."""
    p: float
    """P-value of the difference between forks with the memory and without it (McNemar)."""


def find_outcome(history: History, typed: str, span: tuple[int, int] | None) -> Outcome:
    """Return the outcome of a typed text: `NAME at PLACE`, `NAME at EVENT` or `NAME knows FACT`.

    Args:
        span: for `NAME at PLACE`: the first and the last step of the period in which NAME is at PLACE; None: the text
            names an event.

    Raises:
        InputError: the text has another form, or there is no such resident, event or fact.
    """
    for word in sorted((each for each in (" at ", " knows ") if each in typed), key=typed.index)[:1]:
        name, _, rest = typed.partition(word)
        if word == " knows ":
            find_fact(rest, history)
            return Outcome(find_resident(history.setting, name), history.step, fact=rest)
        return _event_outcome(history, find_resident(history.setting, name), rest, span)
    raise InputError(
        'expected "NAME at EVENT", "NAME at PLACE" or "NAME knows FACT", such as "Klaus at the party";'
        f" found {typed!r:.99}"
    )


def _event_outcome(history: History, who: str, typed: str, span: tuple[int, int] | None) -> Outcome:
    """Return the outcome that a resident is present at an event.

    Args:
        typed: with `span`: a place. Without: words of an appointment; the memory with most of these words decides.
        span: first and last step of the event; None: the time of the appointment.

    Raises:
        InputError: `span` is given, and the text does not name one place; or `span` is None, and no memory of an
            appointment has a word of the text.
    """
    words, setting = {*terms(typed)}, history.setting
    found = {
        each.text: at
        for records in history.records.values()
        for each in records
        if (at := appointment_of(each.data)) and at.place in setting.addresses and words & {*terms(each.text)}
    }
    if span is None and found:
        at = found[max(found, key=lambda text: (len(words & {*terms(text)}), text))]
        first, last = (setting.step_at_moment(when.timestamp()) for when in (at.start, at.end))
        return Outcome(who, last, Event(setting.addresses[at.place], first, last), appointment=at)
    if span is None:
        raise InputError(f"no memory has an appointment like {typed!r:.99}: name a place, with --from and --to")
    return Outcome(who, span[1], Event(setting.addresses[find_place(setting, typed)], *span))


def find_causes(history: History, outcome: Outcome, most: int) -> list[Cause]:
    """Return at most `most` notes and thoughts that led to an outcome, and a control.

    The notes and thoughts are in the order of the search: a memory, then the memories that it is derived from. The last
    item of the list is the control: a memory that did not lead to the outcome. Without such a memory there is no
    control.
    """
    begins = outcome.event.start if outcome.event else outcome.end
    path = dict[tuple[str, str], str]()
    for key, how in _roots(history, outcome, begins):
        if key not in path:
            path[key] = how
            for source, said in _sources(history, *key, how):
                path.setdefault(source, said)
    on_path = [(whose, history.by_id[whose][id_], how) for (whose, id_), how in path.items()]
    texts = {record.text for _, record, _ in on_path}
    causes = dict.fromkeys(_cause(history, *each) for each in on_path if each[1].kind in ("note", "thought"))
    others = [
        each
        for each in history.records[outcome.who]
        if each.kind in ("note", "thought", "observation") and each.text not in texts
        and not appointment_of(each.data) and history.step_of(each.created) < begins
    ]  # fmt: skip
    control = [_cause(history, outcome.who, chance.pick(others, "control", outcome.who), CONTROL)] if others else []
    return [*list(causes)[:most], *control]


def _roots(history: History, outcome: Outcome, begins: int) -> Iterator[tuple[tuple[str, str], str]]:
    who, held = outcome.who, [r for r in history.records[outcome.who] if history.step_of(r.created) < begins]
    if outcome.event is None:
        known = trace_fact(history, find_fact(outcome.fact, history)).knowers
        yield from (((who, each.record), "what it knows of the fact") for each in known if each.name == who)
        return
    for record in held:
        at = appointment_of(record.data)
        if at and outcome.appointment and at.is_same(outcome.appointment):
            yield (who, record.id), "memory of the event"
    day = history.setting.day(begins)
    for _, plan in history.events(who, DayPlanned):
        if plan.day == day:
            notes = [history.by_id[who][id_] for id_ in plan.records if id_ in history.by_id[who]]
            ids = [each for note in notes for each in note.evidence if each in history.by_id[who]]
            yield from (((who, each), "behind the plan of the day") for each in ids)


def _sources(history: History, whose: str, id_: str, how: str) -> Iterator[tuple[tuple[str, str], str]]:
    """Yield the memories that a memory is derived from, recursively, each with its connection to the outcome.

    These are the memory's evidence, and the memories of other residents that were told in the talk behind the memory.
    If the connection `how` says that the memory is behind the plan of the day, yield nothing.
    """
    record = history.by_id[whose].get(id_)
    if record is None or how.startswith("behind"):
        return
    for name, each in parents_of(whose, record):
        if name in history.by_id and each in history.by_id[name]:
            said = how if name == whose else f"told by {name}"
            yield (name, each), said
            yield from _sources(history, name, each, said)


def _cause(history: History, whose: str, record: Record, how: str) -> Cause:
    step, same = max(0, history.step_of(record.created)), normalised(record.text)
    held = (each for each in history.records[whose] if history.step_of(each.created) <= step)
    ids = tuple(each.id for each in held if normalised(each.text) == same or each.id == record.id)
    return Cause(whose, step, how, record.text, ids)


class Job(NamedTuple):
    """A fork to run: from a step, without some memories, with a seed."""

    settings: Settings
    outcome: Outcome
    step: int
    lost: tuple[str, ...]
    seed: int
    withheld: tuple[str, str] | None = None
    """A resident, and the text that it does not remember if others tell it."""

    @property
    def key(self) -> str:
        return json.dumps([self.outcome.who, self.outcome.end, self.step, self.lost, self.seed])


def jobs_of(settings: Settings, outcome: Outcome, causes: Sequence[Cause], seeds: Sequence[int]) -> list[Job]:
    """Return the forks that show the effects of memories.

    For each memory and seed there are two forks: one with all memories, and one without this memory. Both begin at the
    step at which the memory was made. Memories of the same step share the fork with all memories.
    """
    arms = dict[tuple[int, tuple[str, ...], tuple[str, str] | None], None]()
    for each in causes:
        arms |= {(each.step, (), None): None, (each.step, each.records, (each.whose, each.text)): None}
    return [Job(settings, outcome, step, lost, seed, withheld) for seed in seeds for step, lost, withheld in arms]


async def live_fork(job: Job) -> bool:
    """Fork a town, run the fork to the last step of the outcome, and return whether the outcome happens in the fork."""
    with tempfile.TemporaryDirectory(prefix="mindstream-fork-") as folder:
        place = Path(folder) / "town"
        withheld = {job.withheld[0]: (job.withheld[1],)} if job.withheld else {}
        await fork(job.settings.data, place, job.step, job.lost, job.seed, withheld)
        async with open_town(job.settings.model_copy(update={"data": Location(place)})) as town:
            await town.run(max(town.step, job.outcome.end))
        return job.outcome.happens(await read_history(place))


def effects_of(causes: Sequence[Cause], jobs: Sequence[Job], happened: dict[str, bool]) -> list[Effect]:
    """Return the effect of each memory from the finished forks; `happened`: for each `Job.key`, whether the outcome
    happened."""
    ended = {(job.step, job.lost, job.seed): happened[job.key] for job in jobs if job.key in happened}
    effects = []
    for cause in causes:
        pairs = [
            (with_it, ended[cause.step, cause.records, seed])
            for (step, lost, seed), with_it in ended.items()
            if step == cause.step and not lost and (cause.step, cause.records, seed) in ended
        ]
        kept, without = sum(a for a, _ in pairs), sum(b for _, b in pairs)
        p = mcnemar(sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs))
        effects.append(Effect(cause, len(pairs), kept, without, wilson(without, len(pairs)), p))
    return effects


class Difference(NamedTuple):
    """The first row in which two journals differ.

    Attributes:
        here, there: the row of each town in words; "": the town has no row of this resident at this step.
    """

    step: int
    who: str
    here: str
    there: str


async def first_difference(one: AnyData, other: AnyData) -> Difference | None:
    """Return the first difference between two towns with the same beginning.

    The result is None if their journals are equal up to the end of the shorter journal.

    Raises:
        InputError: one of the two data locations has no town.
    """
    here, there = [[line async for line in _lines(each)] for each in (one, other)]
    for a, b in zip_longest(here, there):
        if a != b and a and b:
            first = min((a, b), key=lambda row: (row[0], row[2] == ObjectChanged.kind, row[1]))
            return Difference(first[0], str(first[1]), *(_told(row, first[:2]) for row in (a, b)))
    return None


async def _lines(data: AnyData) -> AsyncIterator[list[Any]]:
    async with open_store(data) as store:
        async for line in journal(store, await read_setting(store)):
            yield json.loads(line)[:-1]


def _told(row: Sequence[Any], first: Sequence[Any]) -> str:
    """Return a row in words; "" if it is of another step or resident than the first difference."""
    if row[:2] != first:
        return ""
    _, _, kind, by, payload, records = row
    said = [str(each["text"]) for each in records] or [str(value) for value in payload.values() if value]
    return f"{kind} ({by}): {'; '.join(said)[:300]}"
