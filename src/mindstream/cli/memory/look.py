"""`mindstream memory`: look into a memory, carry it elsewhere."""

from __future__ import annotations

import asyncio
import sys
from typing import Annotated

import typer
from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from mindstream import intake
from mindstream.cli.memory import foreign
from mindstream.cli.screens.events import describe_patch, plan_told
from mindstream.cli.shell import files
from mindstream.cli.shell.flags import AsJson, Id, Kinds, Limit, Source, Target, command, flag, group, switch, word
from mindstream.cli.shell.output import clean, print_json, progress, short, tell
from mindstream.clock import format_iso
from mindstream.coach.belief.plan import read_coaching_plan
from mindstream.errors import InputError
from mindstream.memory.store.record import Record
from mindstream.service import transfer
from mindstream.service.export_file import Export, Header, read_export
from mindstream.service.memory import open_user_memory, parse_kinds, plain
from mindstream.service.opening import answering
from mindstream.service.privacy.audit import note_of
from mindstream.settings import Settings
from mindstream.text.words import count_of

ABOVE = ("id", "kind", "text", "created")
"""What stands above the other fields of a record that is shown whole."""
MOMENTS = ("accessed", "valid_from", "valid_until", "forgotten")

app = group("Look into a user's memory, care for it, carry it elsewhere.")


@command(
    app,
    "model roles patience_s data user embedder reranker",
    "mindstream memory recall what disturbs the sleep",
    "mindstream memory recall --reranker model --model openai:gpt-5-mini what disturbs the sleep",
    model="Who ranks, with --reranker model.",
)
async def recall(
    settings: Settings,
    words: Annotated[list[str], word("WORDS", "What to look for.")],
    kind: Kinds = None,
    limit: Limit = 10,
    since: Annotated[str | None, flag("TIME", "Written then or later: 2026-11-20, or 2026-11-20T21:30 (UTC).")] = None,
    until: Annotated[str | None, flag("TIME", "Written then or before; a date: its end.")] = None,
    as_of: Annotated[str | None, flag("TIME", "As it stood then: written by then, and held then.", "--as-of")] = None,
    json: AsJson = False,
) -> None:
    """Find what answers best, and why.

    Shows the parts of each score. Where recall is less than 10% certain that anything answers, the best matches are
    shown all the same, marked "low confidence". Nothing is written: looking does not strengthen a memory. With a
    reranker, what recall found is ranked anew by a model, in one call, or by a cross-encoder (`cross:NAME`);
    first_stage says where it stood.
    """
    async with open_user_memory(settings, known=True) as opened:
        kinds = parse_kinds(kind or ())
        async with answering(settings) as models:
            opened.rank_by(models)
            results = await opened.memory.recall(
                " ".join(words), limit, kinds=kinds, touch=False, since=since, until=until, as_of=as_of
            )
    if results.not_reranked:
        print(f"not ranked anew: {short(results.not_reranked, 300)}", file=sys.stderr)
    if results.without_vectors:
        print(short(results.without_vectors, 300), file=sys.stderr)
    if not results and not json:
        print("nothing is found: the memory holds no such records", file=sys.stderr)
    console = Console(highlight=False)
    mark = f"low confidence ({results.certainty:.0%}), " if results.low_confidence else ""
    for each in results:
        if json:
            parts: dict[str, JsonValue] = {name: round(value, 4) for name, value in each.parts.items()}
            sure = {"certainty": round(results.certainty, 4), "low_confidence": results.low_confidence}
            print_json(plain(each.record) | {"score": round(each.score, 4), "parts": parts} | sure)
            continue
        told = ", ".join(f"{name} {value:.2f}" for name, value in each.parts.items() if value not in (0, 1))
        _entry(console, f"{each.score:6.2f}", each.record)
        console.print(Text(f"        {each.record.id}: {mark}{told}", "dim"), soft_wrap=True)


@command(app, "data user embedder redact", 'mindstream memory retain "The spare key hangs behind the door."')
async def retain(
    settings: Settings,
    words: Annotated[list[str], word("WORDS", "What is to be retained, as it stands.")],
    valid_from: Annotated[
        str | None, flag("TIME", "When it begins to hold: 2026-11-20, or 2026-11-20T21:30 (UTC).")
    ] = None,
    valid_until: Annotated[str | None, flag("TIME", "When it no longer holds; a date: its first moment.")] = None,
    json: AsJson = False,
) -> None:
    """Retain something as a note of yours; no model is asked."""
    taken_in = await intake.cleaned(" ".join(words))
    async with open_user_memory(settings, new=True) as opened:
        record = await opened.memory.retain(
            taken_in.text, "note", by=opened.user, valid_from=valid_from, valid_until=valid_until
        )
    taken = [f"taken out before it was kept: {taken_in}"] if taken_in.taken else []
    tell(
        json, plain(record) | ({"redacted": dict(taken_in.taken)} if taken else {}), f"retained as {record.id}", *taken
    )


@command(app, "data user", "mindstream memory list --kind note -n 20", name="list")
async def list_records(settings: Settings, kind: Kinds = None, limit: Limit = 5, json: AsJson = False) -> None:
    """List belief, plan, and the newest records of each kind."""
    async with open_user_memory(settings, known=True) as opened:
        held = [] if kind else await opened.beliefs_and_plans()
        wanted = [each for each in parse_kinds(kind or ()) if kind or each not in ("belief", "plan")]
        recent = await opened.recent(limit, wanted)
    if json:
        print_json(*map(plain, (*held, *(record for records in recent.values() for record in records))))
        return
    if not held and not recent:
        print("nothing is remembered", file=sys.stderr)
    console = Console(highlight=False)
    for record in held:
        _title(console, f"{record.kind} {record.slot}, v{record.version}, {format_iso(record.created)}, {record.id}")
        console.print(Text(_held(record)), soft_wrap=True)
    for each, records in recent.items():
        _title(console, f"{each}, the newest last")
        for record in records:
            _entry(console, "", record)


@command(app, "data user", "mindstream memory get 1jatk3k2m0x7c5v9qz")
async def get(settings: Settings, id_: Id, json: AsJson = False) -> None:
    """Show a record whole, whatever has become of it."""
    async with open_user_memory(settings, known=True) as opened:
        record = await opened.memory.get(id_)
    if record is None:
        raise InputError(f"there is no record {id_!r} in the memory of {settings.user!r}")
    if json:
        print_json(plain(record))
        return
    console = Console(highlight=False)
    _title(console, f"{record.kind}, {format_iso(record.created)}, {record.id}")
    console.print(Text(_held(record)), soft_wrap=True)
    for name, value in plain(record).items():
        if value not in (None, "", [], {}) and name not in ABOVE:
            told = format_iso(value) if name in MOMENTS and isinstance(value, float) else str(value)
            console.print(Text(f"  {name}: {clean(told)}", "dim"), soft_wrap=True)


@command(app, "data user", "mindstream memory history 1jatk3k2m0x7c5v9qz")
async def history(settings: Settings, id_: Id, json: AsJson = False) -> None:
    """Show the wordings of a record, from the first to the one that holds, whichever of them is named."""
    async with open_user_memory(settings, known=True) as opened:
        wordings = await opened.memory.history(id_)
    if json:
        print_json(*map(plain, wordings))
        return
    console = Console(highlight=False)
    for record in wordings:
        _entry(console, record.id, record)


@command(
    app, "data user", "mindstream memory export ann.jsonl --user ann", "mindstream memory export --as mem0 ann.json"
)
async def export(
    settings: Settings,
    file: Target = None,
    form: Annotated[str, flag("FORM", "Another program's: mem0, langmem, jsonl (docs/importing.md).", "--as")] = "",
    json: Annotated[bool, typer.Option("--json", hidden=True)] = False,  # noqa: ARG001 (it is JSON anyway)
) -> None:
    """Write a memory as JSON Lines.

    The first line is a header with the format's version, then come all records, without vectors. The file can be read
    by its owner only; links and devices are not written over. --as writes what holds, but for beliefs and plans, in a
    form that other programs read.
    """
    if form:
        await foreign.export_as(settings, form, file)
        return
    async with open_user_memory(settings) as opened:
        count = await files.write_lines(file, transfer.export(opened)) - 1
        await note_of(opened, "exported", {"records": count})
    if written_to := files.real_file(file):
        print(f"{count_of(count, 'record')} of {settings.user} in {written_to}", file=sys.stderr)


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
        str, flag("FORM", "Another program's: mem0, letta, zep, langmem, chatgpt, claude, jsonl.", "--from")
    ] = "",
    each_user: Annotated[bool, switch("--each-user", "With --from: to each user what is theirs in the file.")] = False,
    trust: Annotated[bool, switch("--trust", "With --from: do not mark as strangers' words what others said.")] = False,
    dry_run: Annotated[bool, switch("--dry-run", "With --from: only say what would be kept and what not.")] = False,
    json: AsJson = False,
) -> None:
    """Take in what export wrote, or the export of another program.

    All of it is checked before anything is written, and a line that is wrong is named. Records that are known are left
    out, so twice is as good as once; so are beliefs and plans of which this memory has its own versions. Texts are
    embedded anew.

    --from reads what another program wrote, dated as it was, and says which fields are kept and which are not
    (docs/importing.md). It is written as it is read; a second import adds nothing, and one that was broken off goes on.
    """
    if form:
        foreign.import_from(settings, form, file, foreign.How(each_user, trust, dry_run), json)
        return
    if each_user or trust or dry_run:
        raise InputError("--each-user, --trust and --dry-run go with --from, which names another program")
    with read_export(files.read_lines(file), files.source(file), Header) as records:
        done = asyncio.run(take_in(settings, records))
    row = {"written": done.written, "known": done.known, "own": done.own}
    tell(json, row, describe_import(done, "memory"))


async def take_in(settings: Settings, records: Export[Header]) -> transfer.Imported:
    """Take records in, and show how far it is."""
    async with open_user_memory(settings, new=True) as opened:
        with progress("taking in", len(records)) as told:
            done = await transfer.take_in(opened, records, told)
            await note_of(opened, "imported", {"records": done.written})
            return done


def describe_import(done: transfer.Imported, what: str) -> str:
    """Say what came of it."""
    own = f", {done.own} belief or plan versions left out, as this {what} has its own" if done.own else ""
    return f"{count_of(done.written, 'record')} taken in, {done.known} were known{own}"


def _entry(console: Console, before: str, record: Record) -> None:
    who = f" {clean(record.by)}" if record.by else ""
    line = Text(f"{before}  ")
    line.append(f"{format_iso(record.created)[:16].replace('T', ' ')} {record.kind}{who}: ", "dim")
    line.append(short(record.text, 300))
    console.print(line, soft_wrap=True)


def _held(record: Record) -> str:
    """Write a belief or a plan out."""
    value, plan = record.data.get("value"), record.data.get("plan")
    if isinstance(value, dict):
        known = {name: held for name, held in value.items() if held not in (None, [], "")}
        return clean("\n".join(f"  {describe_patch({name: held})}" for name, held in known.items()))
    if isinstance(plan, dict):
        lines = plan_told(read_coaching_plan(plan)) or "no steps"
        return clean("\n".join(f"  {line}" for line in lines.splitlines()))
    return f"  {clean(record.text)}"


def _title(console: Console, text: str) -> None:
    console.print(Text(clean(text), "bold"), soft_wrap=True)
