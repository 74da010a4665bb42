"""Filters of recall: which of a stream's records may be returned."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from mindstream.clock import Moment
from mindstream.memory.store.column_lookups import entries, is_plain
from mindstream.memory.store.columns import KIND_CODES, PORTION, Columns
from mindstream.memory.store.record import Kind
from mindstream.memory.store.store import Store

Mask: TypeAlias = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """Conditions on records. By default all records pass that are not archived and whose validity has not ended.

    Attributes:
        since, until: bounds of the time of writing, both included.
        as_of: use the state of the stream at this moment.
        where: required values of `by`, `episode`, `slot` or fields of `data`.
        asked_in: the id of the record that contains the question itself, which must not be its own answer.
        over: superseded, expired and archived records pass, too.
    """

    kinds: Sequence[Kind] | None = None
    since: Moment | None = None
    until: Moment | None = None
    as_of: Moment | None = None
    where: Mapping[str, JsonValue] = field(default_factory=dict)
    asked_in: str = ""
    over: bool = False


ALL = Filters()


def allowed_mask(columns: Columns, filters: Filters, now: Moment, alike: Mapping[str, Sequence[int]]) -> Mask:
    """Mark the records that pass; `alike`: for each field of `where` with a large value, the rows that match it
    (`compare_large`)."""
    at = now if filters.as_of is None else filters.as_of
    # With `over`, all records pass except erased ones, which have -infinity in this column.
    mask: Mask = columns.forgotten.values > -np.inf if filters.over else columns.held_at(at)
    if filters.as_of is not None:
        mask &= (columns.created.values <= at) & (columns.valid_from.values <= at)
    if filters.kinds is not None:
        kinds = np.zeros(len(KIND_CODES), np.bool_)
        kinds[[KIND_CODES[kind] for kind in filters.kinds]] = True
        mask &= kinds[columns.kind.values]
    if filters.since is not None:
        mask &= columns.created.values >= filters.since
    if filters.until is not None:
        mask &= columns.created.values <= filters.until
    for name, wanted in filters.where.items():
        mask &= _has(columns, name, wanted, alike)
    if (own := columns.position.get(filters.asked_in)) is not None:
        mask[own] = False
    return mask


def _has(columns: Columns, name: str, wanted: JsonValue, alike: Mapping[str, Sequence[int]]) -> Mask:
    """Mark the records in which a field has the wanted value."""
    named = {"by": (columns.names, columns.by), "episode": (columns.episodes, columns.episode)}
    if name in named:
        known, column = named[name]
        none = -1 if wanted == "" else -2
        has: Mask = column.values == (known.get(wanted, none) if isinstance(wanted, str) else -2)
        return has
    if is_plain(wanted):
        return columns.fields.having(name, wanted, len(columns))
    has = np.zeros(len(columns), np.bool_)
    has[list(alike[name])] = True
    return has


async def compare_large(store: Store, columns: Columns, filters: Filters) -> dict[str, list[int]]:
    """Return the rows that match `where` for values that the columns do not contain because they are too large."""
    alike: dict[str, list[int]] = {}
    for name, wanted in filters.where.items():
        if name in ("by", "episode") or is_plain(wanted):
            continue
        places, alike[name] = columns.fields.large(name), []
        for start in range(0, len(places), PORTION):
            ids = [columns.ids[at] for at in places[start : start + PORTION]]
            records = await store.records(columns.stream, ids)
            found = [each.id for each in records if dict(entries(each)).get(name) == wanted]
            alike[name] += [columns.position[id_] for id_ in found if id_ in columns.position]
            await asyncio.sleep(0)
    return alike
