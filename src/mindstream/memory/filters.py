"""Which of a stream's records may be recalled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from mindstream.clock import Moment
from mindstream.memory.columns import KIND_CODES, Columns
from mindstream.memory.record import Kind, Record
from mindstream.memory.store import Store

FIELDS = frozenset({"by", "episode", "slot"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Filters:
    """What a record must be; the defaults let everything pass that still holds, or will, and is not forgotten."""

    kinds: Sequence[Kind] | None = None
    since: Moment | None = None
    until: Moment | None = None
    as_of: Moment | None = None
    where: Mapping[str, JsonValue] = field(default_factory=dict)


def allowed(columns: Columns, filters: Filters, now: Moment) -> NDArray[np.bool_]:
    """Mark the records that pass, as far as the columns know: `matching` looks at the rest."""
    at = now if filters.as_of is None else filters.as_of
    mask: NDArray[np.bool_] = (columns.valid_until.values > at) & (columns.forgotten.values > at)
    if filters.as_of is not None:
        mask &= (columns.created.values <= at) & (columns.valid_from.values <= at)
    if filters.kinds is not None:
        mask &= np.isin(columns.kind.values, [KIND_CODES[kind] for kind in filters.kinds])
    if filters.since is not None:
        mask &= columns.created.values >= filters.since
    if filters.until is not None:
        mask &= columns.created.values <= filters.until
    for name, known, column in (
        ("by", columns.names, columns.by), ("episode", columns.episodes, columns.episode),
    ):  # fmt: skip
        wanted = filters.where.get(name)
        if isinstance(wanted, str):
            mask &= column.values == known.get(wanted, -1 if wanted == "" else -2)
    return mask


def matching(
    store: Store, columns: Columns, filters: Filters, ranked: Iterator[NDArray[np.int64]], wanted: int
) -> NDArray[np.int64]:
    """Return the first positions of a ranking whose records are what `where` asks for; the store is read as needed."""
    rest = {name: value for name, value in filters.where.items() if name not in ("by", "episode")}
    found: list[int] = []
    for some in ranked:
        if rest:
            records = store.records(columns.stream, [columns.ids[at] for at in some])
            found.extend(columns.position[record.id] for record in records if _is(record, rest))
        else:
            found.extend(some.tolist())
        if len(found) >= wanted:
            break
    return np.array(found[:wanted], np.int64)


def _is(record: Record, wanted: Mapping[str, JsonValue]) -> bool:
    return all((record.slot if name == "slot" else record.data.get(name)) == value for name, value in wanted.items())
