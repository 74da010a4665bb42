"""`mindstream memory import --from` and `export --as`: memories of other programs."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TypeVar

from mindstream.cli.shell import files
from mindstream.cli.shell.output import clean, progress, tell
from mindstream.clock import SystemClock
from mindstream.errors import InputError
from mindstream.memory.opening import is_begun
from mindstream.service.calling import open_user_memory
from mindstream.service.importing import giving, writing
from mindstream.service.importing.items import shown
from mindstream.service.importing.reading import FORMS, Source, reader
from mindstream.settings import Settings
from mindstream.text.words import count_of

Name = TypeVar("Name", bound=str)
SHOWN = 20
"""Maximum number of fields without a counterpart in this memory that are shown; the others are only counted."""


@dataclass(frozen=True, slots=True)
class How:
    """The options of an import."""

    each_user: bool
    trust: bool
    dry_run: bool


def import_from(settings: Settings, form: str, file: Path | None, how: How, json: bool) -> None:
    """Import a file of another program, and report which fields were kept and which were not."""
    named = _known(form, FORMS)
    run = writing.Import(named, None, None, SystemClock(), settings.user, how.each_user, how.trust)
    with files.open_bytes(file) as opened:
        try:
            asyncio.run(_run(run, settings, Source(files.source(file), opened), how))
        except InputError as error:
            if json:
                tell(json, {**_counts(run, how), "error": str(error)})
            raise
    done, lost, read = run.done, run.tally.lost, [*run.tally.kept, *run.tally.lost]
    if read and not (done.written or done.known or done.same):
        why = next((f"; {clean(name)}: {each.why}" for name, each in lost.items()), "")
        raise InputError(
            f"{files.source(file)}: no record could be imported from this as an export of {named}; is it another"
            f" program's? It contains {clean(shown(', '.join(read)))}{why}"
        )
    tell(json, _counts(run, how), *_lines(run, how))


def _counts(run: writing.Import, how: How) -> dict[str, object]:
    done, lost = run.done, run.tally.lost
    return {
        "from": run.form,
        "written": done.written,
        "known": done.known,
        "same": done.same,
        "left_out": done.left_out,
        "users": dict(done.users),
        "kept": dict(run.tally.kept),
        "lost": {name: asdict(each) for name, each in lost.items()},
        "dry_run": how.dry_run,
    }


async def _run(run: writing.Import, settings: Settings, source: Source, how: How) -> None:
    """Read a file into memories; a dry run writes nothing, not even a folder."""
    items = reader(run.form)(source, run.tally)
    with progress(f"importing from {run.form}") as report:
        if how.dry_run and not is_begun(settings.data):
            await run.run(items, report)
            return
        async with open_user_memory(settings, new=not how.dry_run) as opened:
            run.store = opened.store
            if not how.dry_run:
                opened.require_own_vectors()
                run.embedder = opened.embedder
            await run.run(items, report)


def _lines(run: writing.Import, how: How) -> Iterable[str]:
    done, lost = run.done, run.tally.lost
    left = f", {done.left_out} could not be kept" if done.left_out else ""
    same = f", {done.same} with the same text as a known one" if done.same else ""
    yield f"{count_of(done.written, 'record')} {'would be ' * how.dry_run}imported, {done.known} were known{same}{left}"
    if len(done.users) > 1:
        yield f"into the memories of {len(done.users)} users"
    if run.tally.kept:
        yield "kept: " + ", ".join(f"{clean(name)} ({count})" for name, count in run.tally.kept.most_common())
    for name, each in list(lost.items())[:SHOWN]:
        yield f"not kept: {clean(name)} ({each.count}): {each.why}; the first: {clean(each.example)}"
    if len(lost) > SHOWN:
        yield f"… and {len(lost) - SHOWN} fields more; --json has them all"


async def export_as(settings: Settings, form: str, file: Path | None) -> None:
    """Write a memory in the format of another program."""
    write = giving.WRITERS[_known(form, giving.WRITERS)]
    given = giving.Given()
    async with open_user_memory(settings) as opened:
        await files.write_lines(file, write(opened, given))
    where = files.real_file(file) or "standard output"
    left = f"; {given.left_out} left out: beliefs, plans, and records that are not current" if given.left_out else ""
    print(f"{count_of(given.records, 'record')} of {settings.user} in {where}{left}", file=sys.stderr)


def _known(form: str, forms: Iterable[Name]) -> Name:
    for each in forms:
        if each == form:
            return each
    raise InputError(f"there is no format {form!r}; the formats are {', '.join(forms)}")
