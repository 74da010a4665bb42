"""The checks of `mindstream doctor`: settings, data, packs, models, prompts. Each problem found names a remedy."""

from __future__ import annotations

import asyncio
import contextlib
import os
import platform
import shutil
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import mindstream
from mindstream.coach.packs.load import load, shipped_packs
from mindstream.errors import MindstreamError, StorageError
from mindstream.identifiers import id_of, shown_name
from mindstream.location import Location
from mindstream.log.database import FILE
from mindstream.log.files import check_plain
from mindstream.memory.opening import look_at
from mindstream.models.providers.address import KEYS
from mindstream.service.cost import describe_turn
from mindstream.service.doctor.repair import Damage, faults, looking_into, standing
from mindstream.service.probe import SMALL, Found, find_models, probe
from mindstream.settings import DEFAULT, RULES, Chosen, Settings, unknown_variables

if TYPE_CHECKING:
    from mindstream.memory.store.postgres.look import DatabaseLook

MIN_FREE_BYTES = 100_000_000
"""Free space, in bytes, below which the doctor shows a note."""
ANOTHER = "choose another folder with --data"
AWAY = "move the file away, or replace it by a backup"
MEND = "run `mindstream doctor --mend`: it copies the file first, keeps all readable rows and reports the others"


async def examine(chosen: Chosen, window: int | None = None) -> list[Finding]:
    """Run all checks; nothing is written.

    Args:
        window: size of a context window in tokens, for a check whether the prompts fit into it; None: no such check.
    """
    settings = chosen.settings
    findings = [
        Finding(
            "versions",
            "ok",
            f"mindstream {mindstream.__version__}, Python {platform.python_version()}, SQLite {sqlite3.sqlite_version}",
        )
    ]
    findings += [_settings(chosen), *_variables()]
    findings += await asyncio.to_thread(_data, settings.data, settings.named_embedder)
    findings += _pack(settings)
    findings += [_roles(settings)]
    if settings.only_stand_ins:
        found = await find_models()
        findings += map(_found, found)
        if all(each.low_quality for each in found):
            findings.append(_nothing_found(bool(found)))
    for name in dict.fromkeys([*settings.models.values(), settings.fallback or RULES]):
        if name != RULES:
            findings.append(await _model(name))
    findings.append(await _embedder(settings.embedder))
    if settings.prompts is not None:
        findings.append(_prompts(settings.prompts))
    return [*findings, *(_windows(settings, window) if window else ())]


def _settings(chosen: Chosen) -> Finding:
    file = f"file {chosen.file}" if chosen.file else "no settings file"
    origins = ", ".join(f"{name} from {where}" for name, where in sorted(chosen.origins.items()))
    return Finding("settings", "ok", f"{origins or 'all defaults'} ({file})")


def _variables() -> Iterator[Finding]:
    for name, meant in unknown_variables().items():
        advice = f"did you mean {meant}?" if meant else "check its spelling, or unset it"
        yield Finding(
            "settings", "note", f"the environment variable {name} is set, but mindstream does not use it", advice
        )


def _data(where: Location, named: str | None) -> Iterator[Finding]:
    yield from check_database(where) if where.folder is None else _folder(where.folder, named)


def _folder(data: Path, named: str | None) -> Iterator[Finding]:
    if not data.exists():
        try:
            home = next(parent for parent in data.absolute().parents if parent.exists())
        except FileNotFoundError:
            yield Finding("data", "broken", f"{data} cannot be created: the current directory was deleted", ANOTHER)
            return
        if os.access(home, os.W_OK | os.X_OK):
            yield Finding("data", "ok", f"{data} does not exist yet; the first conversation creates it")
        else:
            yield Finding("data", "broken", f"{data} cannot be created: {home} is not writable", ANOTHER)
        return
    if not data.is_dir() or not os.access(data, os.R_OK | os.W_OK | os.X_OK):
        what = "can at most be read and exported, because it is not writable" if data.is_dir() else "is not a folder"
        yield Finding("data", "broken", f"{data} {what}", f"chmod u+rwx {data}, or choose another with --data")
        return
    free = shutil.disk_usage(data).free
    if free < MIN_FREE_BYTES:
        yield Finding("data", "note", f"only {size_of(free)} are free on the disk of {data}", "free some space")
    file = data / FILE
    if not os.path.lexists(file):
        yield Finding("data", "ok", f"{data} contains no memory yet; the first conversation creates it")
        return
    try:
        check_plain(file)
        yield from _database(file, named)
    except StorageError as error:
        yield Finding("data", "broken", str(error), ANOTHER)
    except sqlite3.Error as error:
        yield Finding("data", "broken", f"{file} cannot be read: {error}", AWAY)


def _database(file: Path, named: str | None) -> Iterator[Finding]:
    size = sum(path.stat().st_size for path in file.parent.glob(f"{FILE}*"))
    with looking_into(file) as connection:
        match standing(connection):
            case "foreign":
                yield Finding("data", "broken", f"{file} is a database of another program", ANOTHER)
                return
            case "newer":
                yield Finding("data", "broken", f"{file} was written by a newer mindstream", "upgrade mindstream")
                return
        found = list(faults(connection))
        mixed = _mixed_vectors(connection, named)
    yield from _counted(file, found)
    yield from mixed
    if all(fault.harmless for fault in found):
        yield Finding("data", "ok", f"{file.parent}, {size_of(size)}, not damaged")


def _mixed_vectors(connection: sqlite3.Connection, named: str | None) -> list[Finding]:
    """Report memories with vectors of several embedders, or of another embedder than the settings name."""
    sql = (
        "SELECT stream, embedder, count(*) FROM records WHERE embedder <> '' AND forgotten IS NULL"
        " GROUP BY stream, embedder ORDER BY stream, 3 DESC"
    )
    made: dict[str, dict[str, int]] = {}
    with contextlib.suppress(sqlite3.DatabaseError):  # damage is reported by another check
        for stream, embedder, count in connection.execute(sql):
            if user := id_of(stream, "user"):
                made.setdefault(user, {})[embedder] = count
    findings: list[Finding] = []
    for user, counts in made.items():
        kept = next(iter(counts)) if named is None else named
        if len(counts) > 1 or kept not in counts:
            counted = ", ".join(f"{count:,} of {embedder}" for embedder, count in counts.items())
            findings.append(
                Finding(
                    "embedder",
                    "note",
                    f"the vectors in the memory of {shown_name(user)} come from several embedders, or from another one"
                    f" than the settings name: {counted}; vectors of different embedders are not compared",
                    f"mindstream memory reembed --embedder {kept} --user {user}",
                )
            )
    return findings


def _counted(file: Path, found: list[Damage]) -> Iterator[Finding]:
    """Report for each kind of fault the number, the affected users, and the first rows."""
    kinds: dict[tuple[bool, str], list[Damage]] = {}
    for fault in found:
        kinds.setdefault((fault.harmless, fault.what), []).append(fault)
    for (harmless, what), some in kinds.items():
        users = ", ".join(sorted({shown_name(fault.user) for fault in some if fault.user}))
        rows = [fault.row for fault in some if fault.row]
        where = f" ({'of ' + users + '; ' if users else ''}{', '.join(rows[:2])}{', …' if len(rows) > 2 else ''})"
        state: Literal["note", "broken"] = "note" if harmless else "broken"
        yield Finding("data", state, f"{file}: {len(some):,} {what}{where if users or rows else ''}", MEND)


def _pack(settings: Settings) -> Iterator[Finding]:
    for name in sorted({*shipped_packs(), settings.pack}):
        try:
            pack = load(name)
        except MindstreamError as error:
            state: Literal["note", "broken"] = "broken" if name == settings.pack else "note"
            yield Finding("pack", state, str(error), "correct the pack's file, or choose another pack with --pack")
        else:
            used = " (used)" if name == settings.pack else ""
            yield Finding("pack", "ok", f"{name}{used}: {pack.title}; {pack.count_parts()}")


def _roles(settings: Settings) -> Finding:
    named = settings.models
    models = {role: named.get(role, named.get(DEFAULT)) for role in ("talker", "reasoner")} | settings.roles
    if missing := [role for role, model in models.items() if model is None]:
        how = f"name one (--role {missing[0]}=MODEL), or a model for all roles (--model MODEL)"
        return Finding("models", "broken", f"no model is named for the role {missing[0]}", how)
    table = ", ".join(f"{role}: {model}" for role, model in models.items())
    if settings.only_stand_ins:
        how = "configure one with `mindstream init`, or name one for a single command with --model NAME"
        return Finding("models", "note", f"{table}; no model is configured, so built-in rules answer", how)
    return Finding("models", "ok", f"{table}; {describe_turn(settings)}")


def _found(model: Found) -> Finding:
    """Report a model that was found on this machine but is not configured, and the command that uses it."""
    quality = "; a small model of low quality, to try things out" if model.low_quality else ""
    first = f"{model.lacks}; then " if model.lacks else ""
    return Finding("model", "ok", f"{model.why}{quality}", f"{first}mindstream chat --model {model.name}")


def _nothing_found(has_small: bool) -> Finding:
    """Report that no model was found for conversations; `has_small`: whether a small one of low quality was found."""
    keys = ", ".join(KEYS[vendor][0] for vendor in SMALL)
    none = f"no {'larger ' * has_small}model was found: no API key ({keys}) is set, and no Ollama is on its port"
    how = "export OPENAI_API_KEY=… or ollama pull qwen3"
    if has_small:
        return Finding("model", "note", none, how)
    return Finding("model", "note", f"{none}, and no model file is installed", f"{how}, or mindstream model get")


async def _model(name: str) -> Finding:
    try:
        return Finding("model", "ok", await probe(name))
    except MindstreamError as error:
        return Finding("model", "broken", str(error))


async def _embedder(name: str) -> Finding:
    from mindstream.models.embedders.embedder import embedder, width_of

    try:
        width = await width_of(embedder(name))
    except MindstreamError as error:
        return Finding("embedder", "broken", str(error), "use --embedder wordllama, which needs no network")
    return Finding("embedder", "ok", f"{name}, vectors of {width} numbers")


def _prompts(folder: Path) -> Finding:
    if not folder.is_dir():
        return Finding("prompts", "broken", f"{folder} is not a folder", "create it, or omit --prompts")
    names = sorted(path.name for path in folder.glob("*.md"))
    if not names:
        return Finding("prompts", "note", f"{folder} contains no templates", "add templates, such as the file talk.md")
    return Finding("prompts", "ok", f"{folder}: {', '.join(names)}")


def _windows(settings: Settings, window: int) -> Iterator[Finding]:
    from mindstream.service.prompts import sizes

    try:
        measured = list(sizes(load(settings.pack), window, settings.prompts))
    except MindstreamError as error:
        yield Finding("window", "broken", str(error))
        return
    for each in measured:
        found = f"{each.name}: about {each.ordinary:,} tokens in an ordinary conversation, {each.full:,} at most"
        room = f"a window of {window:,} has room for {each.room:,} in addition to the reply"
        if each.least > each.room:
            least = f"{each.least:,} of the prompt cannot be cut"
            yield Finding("window", "broken", f"{found}; {room}, but {least}", "use a model with a larger window")
        elif each.full > each.room:
            when = "also in ordinary conversations" if each.ordinary > each.room else "if there is much to show"
            cut = f"the oldest parts are left out {when}"
            yield Finding("window", "note", f"{found}; {room}: {cut}", "use a model with a larger window")
        else:
            yield Finding("window", "ok", found)


OLDEST = 14
"""The oldest major version of PostgreSQL that mindstream is tested with; the newest is 18."""
BACKUP = "back up with pg_dump -Fc and pg_restore, or with `mindstream data copy` into a folder"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a check.

    Attributes:
        topic: the checked part.
        state: `ok`; `note`: it works, but the user should know; `broken`: a conversation would fail.
        found: what the check found.
        mend: how to solve the problem; "": no action is needed.
    """

    topic: str
    state: Literal["ok", "note", "broken"]
    found: str
    mend: str = ""


def check_database(where: Location) -> Iterator[Finding]:
    """Check a database; nothing is written."""
    try:
        found = look_at(where)
    except StorageError as error:
        yield Finding("data", "broken", str(error))
        return
    is_old = int(found.version.partition(".")[0]) < OLDEST
    old = f"mindstream is not tested with servers before {OLDEST}: upgrade the server"
    yield Finding("data", "note" if is_old else "ok", f"{where}, PostgreSQL {found.version}", old if is_old else "")
    if found.encoding != "UTF8":
        wrong = f"the database has the encoding {found.encoding}, and UTF8 is needed"
        yield Finding("data", "broken", wrong, "create another database with ENCODING 'UTF8'")
    yield from _role(found)
    yield _tables(found)
    yield _vectors(found)
    used = f"{found.connections} of {found.most_connections} connections are used"
    much = found.connections > 0.8 * found.most_connections
    yield Finding("data", "note" if much else "ok", used, "raise max_connections" if much else "")


def _role(found: DatabaseLook) -> Iterator[Finding]:
    if found.passes_walls:
        how = "CREATE ROLE mind LOGIN; ALTER DATABASE … OWNER TO mind; and connect as mind"
        message = f"the role {found.role!r} is SUPERUSER or BYPASSRLS, so tenants would not be isolated from each other"
        yield Finding("data", "broken", message, how)
    elif not found.schema or (found.seen != found.known and not found.may_create):
        where = f"the schema {found.schema!r}" if found.schema else "any schema"
        how = f"ALTER DATABASE … OWNER TO {found.role}, or GRANT USAGE, CREATE ON SCHEMA … TO {found.role}"
        yield Finding("data", "broken", f"the role {found.role!r} cannot create tables in {where}", how)
    else:
        yield Finding("data", "ok", f"the role {found.role!r} is suitable: tenants are isolated from each other")


def _tables(found: DatabaseLook) -> Finding:
    if found.seen is None:
        return Finding("data", "ok", "no memory yet; the first write creates the tables")
    if found.seen > found.known:
        return Finding("data", "broken", "the tables were written by a newer mindstream", "upgrade mindstream")
    if found.seen < found.known:
        steps = f"the tables have {found.seen} of {found.known} migrations"
        return Finding(
            "data", "note", steps, f"the next process that opens the data applies the others; before that, {BACKUP}"
        )
    sizes = ", ".join(
        f"{table} {size_of(size)}" for table, size in sorted(found.sizes.items(), key=lambda e: -e[1])[:4]
    )
    whole = size_of(sum(found.sizes.values()))
    return Finding(
        "data", "ok", f"all {found.known} migrations of the tables; {whole} with indexes ({sizes}); {BACKUP}"
    )


def _vectors(found: DatabaseLook) -> Finding:
    if found.vector:
        return Finding("data", "ok", f"pgvector {found.vector}")
    if found.vector_there:
        how = "CREATE EXTENSION vector, as a superuser"
        why = "pgvector is installed but not created in this database; recall compares vectors in this process"
        return Finding("data", "ok", why, how)
    return Finding("data", "ok", "pgvector is not installed; recall compares vectors in this process")


def size_of(count: float) -> str:
    """Return a number of bytes as text."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            break
        count /= 1000
    return f"{count:.0f} {unit}" if unit == "bytes" else f"{count:.1f} {unit}"
