"""Which record holds the item of a namespace and a key; what filters and conditions let pass."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

from langgraph.store.base import MatchCondition

from mindstream import caches
from mindstream.clock import Moment
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import Record

Namespace: TypeAlias = tuple[str, ...]
Place: TypeAlias = tuple[Namespace, str]
BY = "langgraph"
PORTION, WHOLE = 1_000, 16_384
"""So many records are taken over at once; so many are held with what they say."""


@dataclass(frozen=True, slots=True)
class Held:
    """The record that holds an item; `until`: when its time to live ends."""

    id: str
    seq: int
    until: Moment | None

    def holds(self, now: Moment) -> bool:
        return self.until is None or self.until > now


class Items:
    """The places of a memory's items, caught up with whatever anybody has written, or erased, before each use."""

    def __init__(self) -> None:
        self._current: dict[Place, Held] = {}
        self._others: dict[Place, list[Held]] = {}
        self._place: dict[str, Place] = {}
        self._whole = OrderedDict[str, Record]()
        self._upto = 0
        self._reading = asyncio.Lock()
        caches.watch(self)

    def forget(self, _: str) -> None:
        """Let go of everything: something was erased."""
        self._current, self._others, self._place, self._upto = {}, {}, {}, 0
        self._whole.clear()

    async def catch_up(self, memory: Memory) -> None:
        """Take over what is new."""
        async with self._reading:
            after, reached = 0, 0
            while True:
                changes = await memory.store.changes(memory.key, self._upto, after, PORTION)
                reached = reached or changes.upto
                for record in changes.records:
                    self._take(record)
                for id_ in changes.gone:
                    self._lose(id_)
                if not (after := changes.left):
                    self._upto = reached
                    return

    def _take(self, record: Record) -> None:
        if record.by != BY or "namespace" not in record.data:
            return
        place = place_of(record)
        if record.superseded_by or record.forgotten is not None:
            self._lose(record.id)
        else:
            self._lose(record.id)
            self._hold(place, Held(record.id, record.seq, record.valid_until))
            self._whole[record.id] = replace(record, vector=None)
            if len(self._whole) > WHOLE:
                self._whole.popitem(last=False)

    def _hold(self, place: Place, new: Held) -> None:
        others = [*self._others.pop(place, []), *filter(None, [self._current.pop(place, None)]), new]
        others.sort(key=lambda each: each.seq)
        self._current[place] = others.pop()  # the newest stand last
        self._place[new.id] = place
        if others:  # another process wrote it for the first time at the same moment: the later one holds
            self._others[place] = others

    def _lose(self, id_: str) -> None:
        self._whole.pop(id_, None)
        place = self._place.pop(id_, None)
        if place is None:
            return
        there = [each for each in self.all_held(place) if each.id != id_]
        self._current.pop(place, None)
        self._others.pop(place, None)
        for each in there:
            self._hold(place, each)

    def held(self, place: Place) -> Held | None:
        """Return which record holds an item, also where its time is over."""
        return self._current.get(place)

    def all_held(self, place: Place) -> list[Held]:
        """Return all records that say of themselves that they hold an item; more than one where two wrote at once."""
        return [*filter(None, [self._current.get(place)]), *self._others.get(place, ())]

    def is_current(self, record: Record) -> bool:
        """Tell whether a record holds its item: two processes may have written one at the same moment."""
        held = self._current.get(place_of(record))
        return held is not None and held.id == record.id

    def below(self, prefix: Namespace, now: Moment) -> list[str]:
        """Return which records hold items below a namespace, the newest first."""
        n = len(prefix)
        return [
            held.id for (namespace, _), held in reversed(self._current.items())
            if namespace[:n] == prefix and held.holds(now)
        ]  # fmt: skip

    def expired(self, now: Moment) -> list[str]:
        """Return which records' time to live is over."""
        return [held.id for held in self._current.values() if not held.holds(now)]

    def namespaces(self, conditions: Sequence[MatchCondition], depth: int | None, now: Moment) -> list[Namespace]:
        """Return the namespaces that hold something and meet all conditions, cut at a depth, in order."""
        there = {namespace for (namespace, _), held in self._current.items() if held.holds(now)}
        return sorted({each[:depth] for each in there if all(_meets(each, condition) for condition in conditions)})

    async def records(self, memory: Memory, ids: Sequence[str]) -> list[Record]:
        """Return records, from the store where they are not at hand."""
        found = {id_: self._whole[id_] for id_ in ids if id_ in self._whole}
        if missing := [id_ for id_ in ids if id_ not in found]:
            found |= {record.id: record for record in await memory.store.records(memory.key, missing)}
        return [found[id_] for id_ in ids if id_ in found]


def place_of(record: Record) -> Place:
    """Return whose item a record is."""
    return tuple(record.data["namespace"]), str(record.data["key"])  # type: ignore[arg-type]


def value_of(record: Record) -> dict[str, Any]:
    """Return the value of an item."""
    return {name[1:]: each for name, each in record.data.items() if name.startswith("=")}


def fields_of(record: Record) -> dict[str, Any]:
    """Return what LangGraph's `Item` is made of."""
    namespace, key = place_of(record)
    first = datetime.fromtimestamp(float(str(record.data.get("first", record.created))), UTC)
    changed = datetime.fromtimestamp(record.created, UTC)
    return {"namespace": namespace, "key": key, "value": value_of(record), "created_at": first, "updated_at": changed}


def _meets(namespace: Namespace, condition: MatchCondition) -> bool:
    path = condition.path
    part = namespace[: len(path)] if condition.match_type == "prefix" else namespace[-len(path) :] if path else ()
    return len(part) == len(path) and all(wanted in ("*", there) for wanted, there in zip(path, part, strict=True))


def passes(value: Mapping[str, Any], wanted: Mapping[str, Any] | None) -> bool:
    """Tell whether a value is what a filter asks for: fields alike, or compared by $eq, $ne, $gt, $gte, $lt, $lte."""
    return all(_fits(value.get(name), each) for name, each in (wanted or {}).items())


def _fits(value: Any, wanted: Any) -> bool:
    if isinstance(wanted, Mapping):
        if any(name.startswith("$") for name in wanted):
            return all(_compares(value, name, other) for name, other in wanted.items())
        return isinstance(value, Mapping) and passes(value, wanted)
    if isinstance(wanted, list | tuple):
        return isinstance(value, list) and len(value) == len(wanted) and all(map(_fits, value, wanted))
    return bool(value == wanted)


def _compares(value: Any, operator: str, other: Any) -> bool:
    """Compare numbers with numbers, texts with texts; what cannot be compared does not fit."""
    if operator in ("$eq", "$ne"):
        return bool((value == other) is (operator == "$eq"))
    if operator not in ("$gt", "$gte", "$lt", "$lte"):
        raise ValueError(f"there is no operator {operator!r}; there are $eq, $ne, $gt, $gte, $lt and $lte")
    if isinstance(value, str) != isinstance(other, str) or not isinstance(value, str | int | float):
        return False
    return bool(
        value > other if operator == "$gt" else value >= other if operator == "$gte"
        else value < other if operator == "$lt" else value <= other
    )  # fmt: skip
