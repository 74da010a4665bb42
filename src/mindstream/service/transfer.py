"""Export and import a memory as JSON Lines, with few records in memory at a time.

The first line is a header (`Header`). Each other line is a record without its vector, which the import computes again.

An import first checks all lines, then writes them in batches from a temporary copy. A single transaction would hold the
write lock while texts are embedded, and block all other minds.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from graphlib import CycleError, TopologicalSorter
from typing import IO, Any, Generic, Literal, NoReturn, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mindstream import redaction
from mindstream.clock import Moment, format_iso
from mindstream.coach.belief.plan import CoachingPlan
from mindstream.errors import InputError, StorageError
from mindstream.identifiers import StreamKey
from mindstream.json_values import JsonObject
from mindstream.log.events import Remembered
from mindstream.memory.memory import Memory
from mindstream.memory.recall.embedding import asking, embed_each
from mindstream.memory.store.record import Kind, Record, Triple, checked_record
from mindstream.memory.store.store import Entry
from mindstream.service.calling import require_known
from mindstream.service.memory import plain, read_slots
from mindstream.text.words import count_of

FORMAT = 1
"""The version of the export format."""
MAX_LINE, MAX_RECORDS, MAX_EXPORT = 1 << 20, 1_000_000, 4 << 30
"""Maximum bytes of a record's line, number of records, and bytes of an export."""
BATCH, BATCH_BYTES = 128, 32_000
"""Records are embedded and written in batches (about 30 ms each). A batch is complete with BATCH records, or as soon as
its lines have BATCH_BYTES bytes."""
MAX_CHAIN = 500
"""Maximum length of a chain of evidence (a record derived from a record, and so on); real chains are short."""
MAX_VERSION = 1 << 31
"""Maximum version number of a slot, so that later versions can get higher numbers."""
IN_MEMORY = 8 << 20
"""Size in bytes above which the temporary copy is stored on disk."""
NO_STREAM = StreamKey("")
"""Placeholder for the stream of imported records until they are written."""
M = TypeVar("M", bound=BaseModel)
H = TypeVar("H", bound="Header", covariant=True)


class Header(BaseModel):
    """The first line of an export."""

    model_config = ConfigDict(frozen=True)

    mindstream: Literal["memory", "mind"] = "memory"
    format: int = FORMAT
    user: str = Field("", max_length=100)
    exported: str = Field("", max_length=100)
    records: int | None = Field(None, ge=0)


class ExportLine(BaseModel, frozen=True, extra="forbid"):
    """A record in an export; times are seconds since 1970 UTC. The fields are described in memory/store/record."""

    id: str
    kind: Kind
    text: str
    created: Moment
    accessed: Moment | None = None
    by: str = ""
    episode: str = ""
    importance: float | None = None
    level: int = 0
    lasting: bool = False
    valid_from: Moment | None = None
    valid_until: Moment | None = None
    superseded_by: str | None = None
    forgotten: Moment | None = None
    about: tuple[str, str, str] | None = None
    keywords: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    depth: int = 0
    slot: str | None = None
    version: int | None = Field(None, le=MAX_VERSION)
    data: JsonObject = Field(default_factory=dict)

    def record(self) -> Record:
        """Return the record of the line, without a vector.

        Raises:
            InputError: the record is not valid.
        """
        if self.slot and (self.kind == "plan") != self.slot.endswith(".plan"):
            raise InputError(
                f"slot: the slot of a plan must end in .plan, and other slots must not; this is the slot {self.slot!r}"
                f" of a {self.kind}"
            )
        if self.slot and self.kind == "belief" and not isinstance(self.data.get("value"), dict):
            raise InputError("data.value: expected an object, because the record is a belief")
        if self.slot and self.kind == "plan":
            validate_as(CoachingPlan, self.data.get("plan"), "data.plan.")
        held: dict[str, Any] = {name: getattr(self, name) for name in ExportLine.model_fields}
        held["about"] = Triple(*self.about) if self.about else None
        held["accessed"] = self.created if self.accessed is None else self.accessed
        return checked_record(Record(stream=NO_STREAM, **held))


@dataclass(frozen=True)
class Export(Generic[H]):
    """A checked export, with a temporary copy of its records' lines.

    Attributes:
        source: the name of the file, for messages.
        lines: the line number of each record, by the record's id, in the order of the file.
        copy: the temporary copy.
    """

    header: H
    source: str
    lines: dict[str, int]
    copy: IO[bytes]

    def __len__(self) -> int:
        return len(self.lines)

    def __enter__(self) -> Export[H]:
        return self

    def __exit__(self, *_: object) -> None:
        self.copy.close()

    def batches(self) -> Iterator[list[Record]]:
        """Yield the records in batches, in the order of the file."""
        self.copy.seek(0)
        batch: list[Record] = []
        size = 0
        for text in self.copy:
            batch.append(ExportLine.model_validate(_json(text)).record())
            size += len(text)
            if len(batch) == BATCH or size >= BATCH_BYTES:
                yield batch
                batch, size = [], 0
        if batch:
            yield batch


@dataclass
class _Index:
    """The ids, versions and evidence of the lines read so far, against which later lines are checked."""

    lines: dict[str, int] = field(default_factory=dict)
    versions: dict[tuple[str, int | None], int] = field(default_factory=dict)
    evidence: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def add(self, record: Record, number: int) -> None:
        """Add a record.

        Raises:
            InputError: there are too many records, or an earlier line has the same id or the same version of a slot.
        """
        if len(self.lines) == MAX_RECORDS:
            raise InputError(f"an export may have at most {MAX_RECORDS:,} records: import this one in parts")
        first = self.lines.setdefault(record.id, number)
        if first != number:
            raise InputError(f"id: line {first} already contains the record {record.id}")
        if record.slot:
            first = self.versions.setdefault((record.slot, record.version), number)
            if first != number:
                raise InputError(f"version: line {first} already contains version {record.version} of {record.slot!r}")
        if record.evidence:
            self.evidence[record.id] = record.evidence

    def check_evidence(self, source: str) -> None:
        """Raise InputError if chains of evidence are circular or too long."""
        left, length = set(self.evidence), 0
        order = TopologicalSorter({id_: left.intersection(ids) for id_, ids in self.evidence.items()})
        with suppress(CycleError):  # the records outside the circle are ordered nevertheless
            order.prepare()
        while length < MAX_CHAIN and (ready := order.get_ready()):  # first records whose evidence needs no check
            left.difference_update(ready)
            order.done(*ready)
            length += 1
        if left:
            line = min(self.lines[id_] for id_ in left)
            raise InputError(
                f"{source}:{line}: evidence: the derivation of this record is circular, or has over {MAX_CHAIN} levels;"
                " nothing was imported"
            )


def read_export(
    lines: Iterable[bytes],
    source: str,
    shape: type[H],
    skips: Callable[[object], bool] = lambda _: False,
) -> Export[H]:
    """Read an export and check its header and all records.

    Args:
        source: the name of the file, for messages.
        shape: the model of the header.
        skips: a function that returns whether to skip a line, because the line is not a record.

    Raises:
        InputError: a line is invalid (the message names it), or the file is empty, incomplete or too large.
        StorageError: the temporary copy cannot be written.
    """
    header: H | None = None
    index, size = _Index(), 0
    copy: IO[bytes] = tempfile.SpooledTemporaryFile(IN_MEMORY)  # noqa: SIM115 (the export closes it)
    try:
        for number, text in enumerate(lines, 1):
            size += len(text)
            if not text.strip():
                continue
            try:
                if size > MAX_EXPORT:
                    raise InputError(f"the export is larger than {MAX_EXPORT >> 30} GB: import it in parts")
                data = _json(text)
                if header is None:
                    header = _header(data, shape)
                elif not skips(data):
                    _check_size(text)
                    index.add(validate_as(ExportLine, data).record(), number)
                    _copy_line(copy, text)
            except InputError as error:
                raise InputError(f"{source}:{number}: {error}; nothing was imported") from None
        if header is None:
            raise InputError(f"{source} is empty, but an export begins with a header line")
        _check_whole(header, len(index.lines), source)
        index.check_evidence(source)
    except BaseException:
        copy.close()
        raise
    return Export(header, source, index.lines, copy)


def _check_size(text: bytes) -> None:
    if len(text) > MAX_LINE:
        raise InputError(f"a record's line may have at most {MAX_LINE:,} bytes, and this one has {len(text):,}")


def _check_whole(header: Header, found: int, source: str) -> None:
    if header.records is not None and header.records != found:
        raise InputError(
            f"{source} is incomplete or was changed: its header names {count_of(header.records, 'record')}, but it has"
            f" {found}; nothing was imported"
        )


def _copy_line(copy: IO[bytes], text: bytes) -> None:
    try:
        copy.write(text.strip() + b"\n")
    except OSError as error:
        raise StorageError(
            f"an import is first copied to {tempfile.gettempdir()}, which cannot be written: {error.strerror}; set"
            " TMPDIR to another folder"
        ) from None


def _json(line: bytes) -> object:
    try:
        return json.loads(line.decode("utf-8-sig"), parse_constant=_no_number)
    except UnicodeDecodeError:
        raise InputError(
            "not UTF-8 text, so not an export of mindstream; `memory import --from` reads files of other programs"
        ) from None
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON ({getattr(error, 'msg', error)})") from None


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _header(data: object, shape: type[H]) -> H:
    wanted, found = shape.model_fields["mindstream"].default, data.get("mindstream") if isinstance(data, dict) else None
    if found != wanted and found in ("memory", "mind"):
        raise InputError(f"this is the export of a {found}: use `mindstream {found} import`")
    if found != wanted:
        raise InputError(
            f'not an export of a {wanted}, which begins with {{"mindstream": "{wanted}", "format": {FORMAT}, …}}'
        )
    header = validate_as(shape, data)
    if header.format != FORMAT:
        raise InputError(
            f"the file has the format version {header.format}, and this mindstream reads version {FORMAT}: upgrade"
            " mindstream"
        )
    return header


def validate_as(shape: type[M], data: object, within: str = "") -> M:
    """Return data validated as a model.

    Args:
        within: a prefix of the names of fields in messages.

    Raises:
        InputError: the data are invalid; the message names the field.
    """
    try:
        return shape.model_validate(data)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)[0]
        place = within + ".".join(map(str, found["loc"]))
        # the name comes from the file, so it may contain anything
        place = "".join(each if each.isprintable() else "�" for each in place[:80])
        raise InputError(f"{place + ': ' if place else ''}{found['msg'].lower()}") from None


@dataclass(frozen=True, slots=True)
class Imported:
    """The result of an import.

    Attributes:
        written: number of new records.
        known: number of records that already existed.
        own: number of versions of beliefs and plans that were skipped, because this memory has its own versions.
    """

    written: int
    known: int
    own: int


async def export(opened: Memory, header: Callable[..., Header] = Header) -> AsyncIterator[str]:
    """Yield the lines of a memory's export, as of the moment when the first line is requested.

    Raises:
        InputError: there are no data of that user.
    """
    await require_known(opened)
    async with opened.store.walk(opened.key) as (count, records):
        yield header(user=opened.name, exported=format_iso(opened.clock.now()), records=count).model_dump_json()
        async for record in records:
            yield json.dumps(plain(record), ensure_ascii=False)


async def import_records(opened: Memory, export: Export[Header], progress: Callable[[int], None]) -> Imported:
    """Embed and write the records that do not exist yet, in batches; `progress` is called with the number done.

    The versions of a belief or plan are skipped if this memory has a current version that is not in the export.

    Raises:
        InputError: a record belongs to another user of this data folder; nothing is written.
        StorageError: the records cannot be written.
    """
    await _check_owners(opened, export)
    foreign = await _own_slots(opened, export)
    done = wrote = known = 0
    batches = export.batches()
    while batch := await asyncio.to_thread(next, batches, None):
        there = await opened.store.owners([record.id for record in batch])
        fresh = [record for record in batch if record.id not in there and record.slot not in foreign]
        if fresh:
            await _write(opened, fresh)
        done, wrote, known = done + len(batch), wrote + len(fresh), known + len(there)
        progress(done)
    return Imported(wrote, known, done - wrote - known)


async def _write(opened: Memory, records: list[Record]) -> None:
    opened.require_own_vectors()
    embedder = opened.embedder
    if redaction.is_on():
        records = await asyncio.to_thread(lambda: [_cleaned(record) for record in records])
    vectors = await embed_each(asking(embedder), [record.text for record in records])
    whole = [
        replace(
            record,
            stream=opened.key,
            embedder="" if isinstance(vector, str) else embedder.name,
            vector=None if isinstance(vector, str) else vector,
        )
        for record, vector in zip(records, vectors, strict=True)
    ]
    event = Remembered(count=len(whole), kinds=dict(Counter(record.kind for record in whole)))
    await opened.commit(Entry(event, "import", tuple(whole), system=True))


def _cleaned(record: Record) -> Record:
    return replace(
        record,
        text=redaction.clean(record.text).text,
        data=redaction.clean_within(dict(record.data)),
        keywords=tuple(redaction.clean_within([*record.keywords])),
        about=record.about and Triple(*redaction.clean_within([*record.about])),
    )


async def _check_owners(opened: Memory, export: Export[Header]) -> None:
    """Raise InputError if a record belongs to another user; the message does not name that user, for privacy."""
    for id_, owner in (await opened.store.owners(list(export.lines))).items():
        if owner != opened.key:
            raise InputError(
                f"{export.source}:{export.lines[id_]}: the record {id_} belongs to another user of this data folder:"
                " choose another folder with --data; nothing was imported"
            )


async def _own_slots(opened: Memory, export: Export[Header]) -> set[str | None]:
    """Return the slots whose latest version in this memory is not in the import.

    The import leaves these slots out, so that two histories of a slot are not mixed.
    """
    current = await read_slots(opened.store, opened.key, opened.clock.now())
    return {record.slot for record in current if record.id not in export.lines}
