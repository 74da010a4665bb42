"""A memory as JSON Lines: out of one data folder, into another.

The first line is a header (`Header`), each other line a record without its vector: whoever takes it in embeds anew.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from mindstream.clock import Moment, written
from mindstream.errors import InputError
from mindstream.log.events import Remembered
from mindstream.memory.record import Kind, Record, Triple, checked_text
from mindstream.memory.store import Entry
from mindstream.reasoners.belief.plan import Plan
from mindstream.service.memory import Memory, plain

FORMAT = 1
BATCH = 256
M = TypeVar("M", bound=BaseModel)
H = TypeVar("H", bound="Header")
When = Annotated[Moment, Field(ge=-1e11, le=1e11, allow_inf_nan=False)]


class Header(BaseModel):
    """The first line."""

    model_config = ConfigDict(frozen=True)

    mindstream: Literal["memory", "mind"] = "memory"
    format: int = FORMAT
    user: str = ""
    exported: str = ""
    records: int | None = None


class Line(BaseModel):
    """A record as it is written down; times are seconds since 1970 UTC."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str = Field(pattern=r"^[\w-]{6,64}$")
    kind: Kind
    text: str
    created: When
    accessed: When | None = None
    by: str = ""
    episode: str = ""
    importance: float | None = Field(None, ge=1, le=10, allow_inf_nan=False)
    level: int = Field(0, ge=-1)
    lasting: bool = False
    valid_from: When | None = None
    valid_until: When | None = None
    superseded_by: str | None = None
    forgotten: When | None = None
    about: tuple[str, str, str] | None = None
    keywords: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    depth: int = Field(0, ge=0)
    slot: str | None = None
    version: int | None = Field(None, ge=1)
    data: dict[str, JsonValue] = Field(default_factory=dict)

    def record(self, stream: str) -> Record:
        """Return the record, not yet embedded.

        Raises:
            InputError: what it says cannot be kept.
        """
        if (self.slot is None) != (self.version is None):
            raise InputError("slot and version go together")
        if self.slot and self.kind == "belief" and not isinstance(self.data.get("value"), dict):
            raise InputError("data.value: a belief has its value there")
        if self.slot and self.kind == "plan":
            fitted(Plan, self.data.get("plan"), "data.plan.")
        held: dict[str, Any] = {name: getattr(self, name) for name in Line.model_fields}
        held["text"] = checked_text(self.text)
        held["about"] = Triple(*self.about) if self.about else None
        held["accessed"] = self.created if self.accessed is None else self.accessed
        return Record(stream=stream, **held)


@dataclass(frozen=True, slots=True)
class Imported:
    """What an import came to.

    Attributes:
        known: records that were there already.
        own: versions of beliefs and plans that were left out because this memory has its own of them.
    """

    written: int
    known: int
    own: int


def export(memory: Memory) -> Iterator[str]:
    """Yield the lines of a memory."""
    records = memory.all()
    yield Header(user=memory.user, exported=written(memory.clock.now()), records=len(records)).model_dump_json()
    yield from map(line, records)


def line(record: Record) -> str:
    """Return a record's line."""
    return json.dumps(plain(record), ensure_ascii=False)


def parsed(lines: Iterable[bytes], source: str, stream: str) -> list[Record]:
    """Read an export, all of it before anything is written.

    Raises:
        InputError: naming the line that is wrong.
    """
    return read(lines, source, Header, stream)[1]


def read(
    lines: Iterable[bytes],
    source: str,
    shape: type[H],
    stream: str,
    taken: Callable[[object], bool] = lambda _: False,
) -> tuple[H, list[Record]]:
    """Read the header and the records of an export; `taken` may take a line that is no record.

    Raises:
        InputError: naming the line that is wrong.
    """
    header: H | None = None
    records: dict[str, Record] = {}
    for number, text in enumerate(lines, 1):
        if not text.strip():
            continue
        try:
            data = _json(text)
            if header is None:
                header = _header(data, shape)
            elif not taken(data):
                record = fitted(Line, data).record(stream)
                records[record.id] = record
        except InputError as error:
            raise InputError(f"{source}:{number}: {error}; nothing was imported") from None
    if header is None:
        raise InputError(f"there is nothing in {source}; an export begins with a line that says so")
    if header.records is not None and header.records != len(records):
        raise InputError(
            f"{source} is cut off: its first line promises {header.records} records, {len(records)} are there;"
            " nothing was imported"
        )
    return header, list(records.values())


async def take_in(memory: Memory, records: Sequence[Record], progress: Callable[[int], None]) -> Imported:
    """Write the records that are not known yet, embedded anew, in batches; `progress` is told how many are done.

    Raises:
        InputError: a record belongs to another user of this data folder.
        StorageError: they cannot be written.
    """
    store, ids = memory.store, [record.id for record in records]
    for other in memory.others():
        if theirs := store.records(other, ids):
            raise InputError(
                f"record {theirs[0].id} belongs to the user {other!r} of this data folder already; use another --data"
            )
    known = {record.id for record in store.records(memory.user, ids)}
    foreign = _own_slots(memory, set(ids))
    fresh = [record for record in records if record.id not in known and record.slot not in foreign]
    for start in range(0, len(fresh), BATCH):
        some = fresh[start : start + BATCH]
        vectors = (await memory.stream.embedder.embed([record.text for record in some])).astype(np.float16)
        name = memory.stream.embedder.name
        made = [
            replace(record, stream=memory.user, embedder=name, vector=vector)
            for record, vector in zip(some, vectors, strict=True)
        ]
        event = Remembered(count=len(made), kinds=dict(Counter(record.kind for record in made)))
        await memory.stream.commit(Entry(event, "import", tuple(made)))
        progress(start + len(some))
    return Imported(len(fresh), len(known), len(records) - len(fresh) - len(known))


def _own_slots(memory: Memory, ids: set[str]) -> set[str | None]:
    """Name the slots of which this memory holds versions that the import does not know: two histories do not mix."""
    return {record.slot for record in memory.all() if record.slot is not None and record.id not in ids}


def _json(line: bytes) -> object:
    try:
        return json.loads(line.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InputError("not UTF-8 text") from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON ({getattr(error, 'msg', error)})") from None


def _header(data: object, shape: type[H]) -> H:
    wanted, found = shape.model_fields["mindstream"].default, data.get("mindstream") if isinstance(data, dict) else None
    if found != wanted and found in ("memory", "mind"):
        raise InputError(f"this is the export of a {found}: `mindstream {found} import` takes it in")
    if found != wanted:
        raise InputError(
            f'not an export of a {wanted}, which begins with {{"mindstream": "{wanted}", "format": {FORMAT}, …}}'
        )
    header = fitted(shape, data)
    if header.format != FORMAT:
        raise InputError(f"it has the format {header.format}, and this mindstream reads {FORMAT}; upgrade mindstream")
    return header


def fitted(shape: type[M], data: object, within: str = "") -> M:
    """Return data in a shape.

    Raises:
        InputError: it does not fit; naming the place.
    """
    try:
        return shape.model_validate(data)
    except ValidationError as error:
        found = error.errors()[0]
        place = within + ".".join(map(str, found["loc"]))
        raise InputError(f"{place + ': ' if place else ''}{found['msg'].lower()}") from None
