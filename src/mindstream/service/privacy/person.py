"""Export all data of a person to one archive: rows as JSON Lines, files as they are, and an HTML page to read.

The archive contains the same tables that log/erasure lists for an erasure, so no table is left out.
"""

from __future__ import annotations

import base64
import contextlib
import html
import io
import json
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from mindstream.clock import Moment, format_iso
from mindstream.errors import InputError, StorageError
from mindstream.identifiers import StreamKey, StreamName, name_of
from mindstream.log.erasure import ROWS
from mindstream.log.files import history
from mindstream.log.sql import Sql
from mindstream.memory.store import elsewhere
from mindstream.memory.store.sql_store import SqlStore
from mindstream.private_files import write_private

Row = dict[str, Any]
ABOUT = {
    "records": "messages, notes, thoughts, beliefs and plans, each with its vector",
    "log": "events, row by row, with requests to models and tools if these are kept",
    "work": "background reasoning that is open or was done, with errors",
    "checkpoints": "states derived from the log",
    "uniques": "names that can exist only once",
    "erased": "ids of records that were erased",
    "streams": "the name, as it is stored",
    "kept": "results of long operations, and state of servers",
    "elsewhere": "data in other streams: pairs and queries in pools, visits to towns, lines in other minds",
    "spending": "model calls for this person and their cost, by day and model",
    "audit": "exports, erasures and imports of these data, by whom and when",
}
"""The content of each file in an archive, as shown on its page."""


@dataclass(slots=True)
class PersonalData:
    """All data of a person.

    Attributes:
        at: when they were collected.
        rows: the rows of each file in the archive.
        files: the content of files next to the database, by their names in the archive.
    """

    person: str
    at: Moment
    rows: dict[str, list[Row]] = field(default_factory=dict)
    files: dict[str, bytes] = field(default_factory=dict)

    def counts(self) -> dict[str, int]:
        """Return the numbers of rows and files, by name."""
        return {name: len(rows) for name, rows in self.rows.items() if rows} | {"files": len(self.files)}


async def collect_personal_data(
    store: SqlStore,
    person: str,
    at: Moment,
    folder: Path | None = None,
    others: Iterable[SqlStore] = (),
    ours: SqlStore | None = None,
) -> PersonalData:
    """Collect all data of a person.

    Args:
        folder: the folder with files next to the database; None: there is none.
        others: other stores that may contain data of the person, such as the store of a town.
        ours: the store of the users on this machine, which alone can read the audit; None: `store`.

    Raises:
        InputError: there are no data of this person.
        StorageError: the data cannot be read.
    """
    key = store.key(StreamName("user", person))
    found = PersonalData(person, at)
    found.rows = await store.read(lambda rows: _rows_of(rows, person, key))
    for other in others:
        there = await other.read(partial(_rows_of, person=person, key=other.key(StreamName("user", person))))
        for name, more in there.items():
            found.rows[name] += more
    found.rows["audit"] = []
    found.rows["spending"] = list(_spending(found.rows["log"]))
    if folder is not None:
        found.files = dict(_files(folder, key))
    if not (any(found.rows.values()) or found.files):
        raise InputError(f"there is no user {person!r} here: no data are stored under this name")
    tenant = store.tenant.name
    for row in await (ours or store).audit(name_of(key).id, tenant):
        if bool(row.tenant) == bool(tenant):  # a user of the same name in another tenant is another person
            found.rows["audit"].append({name: getattr(row, name) for name in row.__slots__})
    return found


def write_archive(found: PersonalData, place: Path) -> None:
    """Write an archive that only its owner can read; an existing file is never overwritten.

    Raises:
        StorageError: the file cannot be written, or already exists.
    """
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("index.html", _page(found))
        for name, rows in found.rows.items():
            lines = (json.dumps(row, ensure_ascii=False, default=str) for row in rows)
            archive.writestr(f"{name}.jsonl", "".join(f"{line}\n" for line in lines).encode("utf-8", "replace"))
        for name, held in found.files.items():
            archive.writestr(name, held)
    if place.exists():
        raise StorageError(f"{place} exists already, and is not overwritten: name another file")
    try:
        write_private(place, content.getvalue())
    except OSError as error:
        raise StorageError(f"{place} cannot be written: {error.strerror}") from None


def _rows_of(rows: Sql, person: str, key: StreamKey) -> dict[str, list[Row]]:
    found = {
        table: [_readable(row) for row in _named(rows, f"SELECT * FROM {table} WHERE {owner} = ?", (key,))]
        for table, (owner, _) in ROWS.items()
    }
    found["elsewhere"] = [row for left in elsewhere.find(rows, person, key) for row in _left(rows, left)]
    return found


def _left(rows: Sql, left: elsewhere.Left) -> Iterator[Row]:
    """Yield a person's data in another stream, such as a pool; the field `in` of each row names the stream."""
    place = name_of(left.stream)
    where = {"in": f"{place.kind} {place.id}"}
    if left.whole:
        for row in _named(rows, "SELECT * FROM records WHERE stream = ?", (left.stream,)):
            yield where | _readable(row)
    for seq in sorted(left.rows):
        for row in _named(rows, "SELECT seq, at, by, kind, payload FROM log WHERE seq = ?", (seq,)):
            yield where | _readable(row)
    for id_ in sorted(left.ids):
        for row in _named(rows, "SELECT * FROM records WHERE id = ? AND stream = ?", (id_, left.stream)):
            yield where | _readable(row)


def _named(rows: Sql, sql: str, values: tuple[Any, ...]) -> Iterator[Row]:
    cursor = rows.execute(sql, values)
    names = [column[0] for column in cursor.description]
    for row in cursor.fetchall():
        yield dict(zip(names, row, strict=True))


def _readable(row: Mapping[str, Any]) -> Row:
    """Return a row for the archive, with parsed JSON, bytes as text, and its time also in readable form."""
    shown: Row = {}
    for name, value in row.items():
        if isinstance(value, bytes | memoryview):
            shown[name] = _of_bytes(bytes(value))
        elif isinstance(value, str) and value.startswith(("{", "[")):
            shown[name] = _of_json(value)
        elif value is not None:
            shown[name] = value
        if name in ("at", "created") and isinstance(value, int | float):
            with contextlib.suppress(ValueError, OverflowError):
                shown["time"] = format_iso(value)
    return shown


def _of_bytes(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        return "base64:" + base64.b64encode(content).decode()


def _of_json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _spending(log: Iterable[Row]) -> Iterator[Row]:
    """Yield the numbers of model calls and their cost, by day and model."""
    sums: dict[tuple[str, str], Row] = {}
    for row in log:
        held = row.get("payload")
        if row.get("kind") == "model_called" and isinstance(held, dict):
            place = (str(row.get("time", ""))[:10], str(held.get("model", "")))
            one = sums.setdefault(place, {"day": place[0], "model": place[1], "calls": 0, "tokens": 0, "usd": 0.0})
            one["calls"] += 1
            one["tokens"] += int(held.get("input_tokens") or 0) + int(held.get("output_tokens") or 0)
            one["usd"] += float(held.get("cost_usd") or 0.0)
    yield from (sums[place] for place in sorted(sums))


def _files(folder: Path, key: StreamKey) -> Iterator[tuple[str, bytes]]:
    typed = history(folder, key)
    with contextlib.suppress(OSError):
        yield "typed.txt", typed.read_bytes()


def _page(found: PersonalData) -> str:
    """Return an HTML page with three parts: a list of the files, the person's records, texts of the person in other
    streams."""
    person, when = html.escape(found.person), html.escape(format_iso(found.at)[:16].replace("T", " "))
    files = "".join(
        f"<li><a href='{name}.jsonl'>{name}.jsonl</a> ({len(rows)}): {html.escape(ABOUT.get(name, ''))}</li>"
        for name, rows in found.rows.items()
    ) + "".join(f"<li><a href='{html.escape(name)}'>{html.escape(name)}</a></li>" for name in found.files)
    lines = "".join(
        f"<tr><td>{html.escape(str(row.get('time', ''))[:16].replace('T', ' '))}</td>"
        f"<td>{html.escape(str(row.get('kind', '')))}</td><td>{html.escape(str(row.get('by', '')))}</td>"
        f"<td>{html.escape(str(row.get('text', '')))}</td></tr>"
        for row in [*found.rows["records"], *(each for each in found.rows["elsewhere"] if "text" in each)]
    )
    return (
        f"<!doctype html><meta charset='utf-8'><title>All data of {person}</title>"
        "<style>body{font:16px sans-serif;margin:2em}td{padding:.2em .8em .2em 0;vertical-align:top}</style>"
        f"<h1>All data of {person}</h1><p>As of {when} UTC.</p>"
        "<p>Each line of a .jsonl file is a row as JSON; the numbers in fields such as at and created are seconds"
        " since 1970 UTC.</p>"
        f"<ul>{files}</ul><h2>Messages, notes, thoughts and plans</h2><table>{lines}</table>\n"
    )
