"""`mindstream memory`: recall, retain, list, get, history, export, import.

`import` also reads the exports of other programs.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from mindstream.cli.screens.events import describe_patch, plan_told
from mindstream.cli.shell import files
from mindstream.cli.shell.flags import AsJson, Id, Kinds, Limit, Source, Target, command, flag, group, switch, word
from mindstream.cli.shell.output import clean, print_json, progress, say, short, tell
from mindstream.cli.shell.stopping import run_until_stopped
from mindstream.clock import SystemClock, format_iso
from mindstream.coach.belief.plan import read_coaching_plan
from mindstream.errors import InputError
from mindstream.memory.opening import is_begun
from mindstream.memory.store.record import Record
from mindstream.service import transfer
from mindstream.service.calling import calling, open_user_memory
from mindstream.service.importing import giving, writing
from mindstream.service.importing.items import shown
from mindstream.service.importing.reading import FORMS, reader
from mindstream.service.importing.reading import Source as ImportSource
from mindstream.service.memory import parse_kinds, plain
from mindstream.service.privacy.audit import note_of
from mindstream.service.transfer import Export, Header, read_export
from mindstream.settings import Settings
from mindstream.text.words import count_of

Name = TypeVar("Name", bound=str)
SHOWN = 20
"""Maximum number of fields without a counterpart in this memory that are shown; further ones are only counted."""


@dataclass(frozen=True, slots=True)
class How:
    """The options of an import.

    Attributes:
        each_user: items go into the memories of the users that the file names.
        trust: texts of other authors are not marked as untrusted.
        dry_run: nothing is written.
    """

    each_user: bool
    trust: bool
    dry_run: bool


def import_from(settings: Settings, form: str, file: Path | None, how: How, json: bool) -> int:
    """Import a file of another program, and report which fields were kept and which were not; return the exit code.

    Raises:
        InputError: the format is unknown, or the file cannot be read or contains no record that can be imported.
    """
    named = _known(form, FORMS)
    run = writing.Import(named, None, None, SystemClock(), settings.user, how.each_user, how.trust)
    with files.open_bytes(file) as opened:
        try:
            running = _run(run, settings, ImportSource(files.source(file), opened), how)
            if code := run_until_stopped(running, lambda: f"stopped; {_stored(run)}"):
                return code
        except InputError as error:
            if json:
                tell(json, {**_counts(run, how), "error": str(error)})
            raise
    done, lost, read = run.done, run.tally.lost, [*run.tally.kept, *run.tally.lost]
    if read and not (done.written or done.known or done.same):
        why = next((f"; {clean(name)}: {each.why}" for name, each in lost.items()), "")
        raise InputError(
            f"{files.source(file)}: as an export of {named}, this contains no record that can be imported; did"
            f" another program write it? It contains {clean(shown(', '.join(read)))}{why}"
        )
    tell(json, _counts(run, how), *_lines(run, how))
    return 0


def _stored(run: writing.Import) -> str:
    return f"{count_of(run.done.written, 'record')} imported so far, and the same command continues"


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


async def _run(run: writing.Import, settings: Settings, source: ImportSource, how: How) -> int:
    """Read a file into memories, and return 0; a dry run writes nothing, not even a folder."""
    items = reader(run.form)(source, run.tally)
    with progress(f"importing from {run.form}") as report:
        if how.dry_run and not is_begun(settings.data):
            await run.run(items, report)
            return 0
        async with open_user_memory(settings, new=not how.dry_run) as opened:
            run.store = opened.store
            if not how.dry_run:
                opened.require_own_vectors()
                run.embedder = opened.embedder
            await run.run(items, report)
    return 0


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
        yield f"… and {count_of(len(lost) - SHOWN, 'more field')}; --json has them all"


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


FIRST = ("id", "kind", "text", "created")
"""Fields that `get` shows before all other fields."""
MOMENTS = ("accessed", "valid_from", "valid_until", "forgotten")

app = group("Look into a user's memory, maintain it, export and import it.")


def record_line(record: Record, width: int = 300) -> str:
    """Return a record on one line, its text cut at `width` characters."""
    by = f" {clean(record.by)}" if record.by else ""
    when = format_iso(record.created)[:16].replace("T", " ")
    return f"{when} {record.kind}{by} {record.id}: {short(record.text, width)}"


@command(
    app,
    "model roles patience_s data user embedder reranker",
    "mindstream memory recall what disturbs the sleep",
    "mindstream memory recall --reranker model --model openai:gpt-5-mini what disturbs the sleep",
    model="The model that reranks, with --reranker model.",
)
async def recall(
    settings: Settings,
    words: Annotated[list[str], word("WORDS", "The query, in words.")],
    kind: Kinds = None,
    limit: Limit = 10,
    since: Annotated[
        str | None,
        flag("TIME", "Only records written at this time or later: 2026-11-20, or 2026-11-20T21:30 (UTC)."),
    ] = None,
    until: Annotated[
        str | None, flag("TIME", "Only records written at this time or earlier; a date means the end of that day.")
    ] = None,
    as_of: Annotated[
        str | None,
        flag("TIME", "Search the memory as of this time: records written by then and valid then.", "--as-of"),
    ] = None,
    json: AsJson = False,
) -> None:
    """Find the records that best answer a query, and show the confidence in each (0 to 1) and the parts of its score.

    Trust a record from a confidence of 0.5 on; a record below 0.3 is a guess. Scores only rank the records of one
    query. If recall is less than 10% certain that any record answers the query, and no confidence reaches 0.3, the best
    matches are still shown, marked "low confidence". Nothing is written: this recall does not strengthen the records
    that it finds.

    With --reranker, a model (in one call) or a cross-encoder (`cross:NAME`) ranks the results again. The part
    `first_stage` of a score is then the rank before the reranker.
    """
    kinds = parse_kinds(kind) if kind else None
    async with calling(settings, known=True) as call:
        found = await call(
            "memory.recall",
            query=" ".join(words),
            k=limit,
            kinds=kinds,
            touch=False,
            since=since,
            until=until,
            as_of=as_of,
        )
    if found.not_reranked:
        say(f"not reranked: {short(found.not_reranked, 300)}", sys.stderr)
    if found.without_vectors:
        say(short(found.without_vectors, 300), sys.stderr)
    if not found.memories and not json:
        say("nothing was found: no record of this memory meets these conditions", sys.stderr)
    mark = f"low confidence ({found.certainty:.0%}), " if found.low_confidence else ""
    sure = {"certainty": round(found.certainty, 4), "low_confidence": found.low_confidence}
    for each in found.local:
        parts = {name: round(value, 4) for name, value in each.parts.items()}
        shown = ", ".join(f"{name} {value:.2f}" for name, value in each.parts.items() if value not in (0, 1))
        row = {**plain(each.record), "score": round(each.score, 4), "parts": parts, **sure}
        row["confidence"] = round(each.confidence, 4)
        head = f"confidence {each.confidence:.2f}  {record_line(each.record)}"
        tell(json, row, head, f"                 {mark}score {each.score:.2f}: {shown}")


@command(app, "data user embedder redact", 'mindstream memory retain "The spare key hangs behind the door."')
async def retain(
    settings: Settings,
    words: Annotated[list[str], word("WORDS", "The text to retain.")],
    valid_from: Annotated[
        str | None, flag("TIME", "The text is valid from this time on: 2026-11-20, or 2026-11-20T21:30 (UTC).")
    ] = None,
    valid_until: Annotated[
        str | None, flag("TIME", "The text is valid until this time; a date means its first moment.")
    ] = None,
    json: AsJson = False,
) -> None:
    """Store a text in memory as a note of yours; no model is called."""
    async with calling(settings, new=True) as call:
        done = await call(
            "memory.retain", text=" ".join(words), by=settings.user, valid_from=valid_from, valid_until=valid_until
        )
    row = plain(done.local) | ({"redacted": done.redacted} if done.redacted else {})
    redacted = ", ".join(f"{count} {kind}" for kind, count in sorted(done.redacted.items()))
    tell(json, row, f"retained as {done.id}", *([f"redacted before it was stored: {redacted}"] if redacted else ()))


@command(app, "data user", "mindstream memory list --kind note -n 20", name="list")
async def list_records(
    settings: Settings,
    kind: Kinds = None,
    limit: Annotated[int, flag("N", "Maximum number of records of each kind.", "--limit", "-n", min=1, max=1_000)] = 5,
    json: AsJson = False,
) -> None:
    """List the current beliefs and plans, and the newest records of each kind."""
    async with calling(settings, known=True) as call:
        found = await call("memory.list", kinds=kind, limit=limit, by_kind=True)
    if not found.memories and not json:
        say(f"there is no current record{' of these kinds' if kind else ''}", sys.stderr)
    title = ""
    for record in (each.local for each in found.memories):
        if json:
            print_json(plain(record))
        elif not kind and record.slot:
            say(f"{record.kind} {record.slot}, v{record.version}, {format_iso(record.created)}, {record.id}")
            say(_content(record))
        else:
            if title != record.kind:
                title = record.kind
                say(f"{title}, the newest last")
            say(f"  {record_line(record)}")


@command(app, "data user", "mindstream memory get 1jatk3k2m0x7c5v9qz")
async def get(settings: Settings, id_: Id, json: AsJson = False) -> None:
    """Show a record with all its fields, even if it is superseded or archived."""
    async with calling(settings, known=True) as call:
        record = (await call("memory.get", id=id_)).local
    lines = [f"{record.kind}, {format_iso(record.created)}, {record.id}", _content(record)]
    for name, value in plain(record).items():
        if value not in (None, "", [], {}) and name not in FIRST:
            shown = format_iso(value) if name in MOMENTS and isinstance(value, float) else value
            lines.append(f"  {name}: {shown}")
    tell(json, plain(record), *lines)


@command(app, "data user", "mindstream memory history 1jatk3k2m0x7c5v9qz")
async def history(settings: Settings, id_: Id, json: AsJson = False) -> None:
    """Show all versions of a record, from the first to the current one; ID may be the id of any version."""
    async with calling(settings, known=True) as call:
        found = await call("memory.history", id=id_)
    for each in found.memories:
        tell(json, plain(each.local), record_line(each.local))


@command(
    app, "data user", "mindstream memory export ann.jsonl --user ann", "mindstream memory export --as mem0 ann.json"
)
async def export(
    settings: Settings,
    file: Target = None,
    form: Annotated[
        str, flag("FORM", "The format of another program: mem0, langmem, jsonl (docs/importing.md).", "--as")
    ] = "",
    json: Annotated[bool, typer.Option("--json", hidden=True)] = False,  # noqa: ARG001 (it is JSON anyway)
) -> None:
    """Write a memory as JSON Lines.

    The first line is a header with the format's version; all records follow, without vectors. Only the owner can read
    the file; links and devices are not overwritten. --as writes the current records, without beliefs and plans, in a
    format that other programs read.
    """
    if form:
        await export_as(settings, form, file)
        return
    async with open_user_memory(settings) as opened:
        count = await files.write_lines(file, transfer.export(opened)) - 1
        await note_of(opened, "exported", {"records": count})
    if written_to := files.real_file(file):
        say(f"{count_of(count, 'record')} of {settings.user} in {written_to}", sys.stderr)


@command(
    app,
    "data user embedder redact",
    "mindstream memory import ann.jsonl --user ann --data elsewhere",
    "mindstream memory import --from chatgpt export.zip --user ann",
    name="import",
)
def import_file(
    settings: Settings,
    file: Source = None,
    form: Annotated[
        str,
        flag(
            "FORM",
            "The format of another program: mem0, letta, zep, langmem, chatgpt, claude, jsonl, csv, whatsapp.",
            "--from",
        ),
    ] = "",
    each_user: Annotated[
        bool, switch("--each-user", "With --from: import the data of each user in FILE into that user's memory.")
    ] = False,
    trust: Annotated[bool, switch("--trust", "With --from: do not mark text by other people as untrusted.")] = False,
    dry_run: Annotated[
        bool, switch("--dry-run", "With --from: only report which fields would be kept and which not.")
    ] = False,
    json: AsJson = False,
) -> int:
    """Import a file that export wrote, or the export of another program.

    Without --from: the whole file is checked before anything is written; an error names the line. Known records are
    skipped: importing a file twice changes nothing. Beliefs and plans are skipped if this memory has its own versions
    of them. Texts are embedded again.

    With --from: the export of another program is read, with the dates in it. Records are written while the file is
    read. A second import adds nothing. After an interruption the same command continues. The output says which fields
    are kept and which are not (docs/importing.md).
    """
    if form:
        return import_from(settings, form, file, How(each_user, trust, dry_run), json)
    if each_user or trust or dry_run:
        raise InputError("--each-user, --trust and --dry-run apply only with --from, which names another program")
    with read_export(files.read_lines(file), files.source(file), Header) as records:
        done = asyncio.run(import_into_memory(settings, records))
    row = {"written": done.written, "known": done.known, "own": done.own}
    tell(json, row, describe_import(done, "memory"))
    return 0


async def import_into_memory(settings: Settings, records: Export[Header]) -> transfer.Imported:
    """Import records, and show the progress."""
    async with open_user_memory(settings, new=True) as opened:
        with progress("importing", len(records)) as report:
            done = await transfer.import_records(opened, records, report)
            await note_of(opened, "imported", {"records": done.written})
            return done


def describe_import(done: transfer.Imported, what: str) -> str:
    """Return the result of an import, as text for the terminal."""
    own = f", {done.own} belief or plan versions left out, because this {what} has its own" if done.own else ""
    return f"{count_of(done.written, 'record')} imported, {done.known} were known{own}"


def _content(record: Record) -> str:
    """Return the content of a record on indented lines: the fields of a belief, the steps of a plan, or the text."""
    value, plan = record.data.get("value"), record.data.get("plan")
    lines = record.text.splitlines()
    if isinstance(value, dict):
        lines = [describe_patch({name: held}) for name, held in value.items() if held not in (None, [], "")]
    elif isinstance(plan, dict):
        lines = (plan_told(read_coaching_plan(plan)) or "no steps").splitlines()
    return "\n".join(f"  {line}" for line in lines)
