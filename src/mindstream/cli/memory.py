"""`mindstream memory`: look into a memory, carry it elsewhere."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import JsonValue
from rich.console import Console
from rich.text import Text

from mindstream.cli import files
from mindstream.cli.asides import describe_patch as told_of
from mindstream.cli.clean import clean, say, short
from mindstream.cli.commands import plan_told
from mindstream.cli.json_lines import print_json
from mindstream.cli.progress import progress
from mindstream.clock import format_iso
from mindstream.coach.belief.plan import read_plan
from mindstream.memory.recall import Recalled
from mindstream.memory.record import Record
from mindstream.service.memory import memory, parse_kinds, plain
from mindstream.service.transfer import Imported, parse_export, take_in
from mindstream.service.transfer import export as exported
from mindstream.settings import Settings
from mindstream.text.counting import count_of


def search(settings: Settings, words: str, kinds: Sequence[str], k: int, json: bool) -> int:
    """Print what answers best."""

    async def found() -> list[Recalled]:
        async with memory(settings) as opened:
            return await (await opened.require_known()).search(words, k, parse_kinds(kinds))

    results = asyncio.run(found())
    if json:
        for each in results:
            parts: dict[str, JsonValue] = {name: round(value, 4) for name, value in each.parts.items()}
            print_json(plain(each.record) | {"score": round(each.score, 4), "parts": parts})
        return 0
    if not results:
        print("nothing is found", file=sys.stderr)
    console = Console(highlight=False)
    for each in results:
        parts_told = ", ".join(f"{name} {value:.2f}" for name, value in each.parts.items() if value not in (0, 1))
        _entry(console, f"{each.score:6.2f}", each.record)
        console.print(Text(f"        {each.record.id}: {parts_told}", "dim"), soft_wrap=True)
    return 0


def keep(settings: Settings, words: str, json: bool) -> int:
    """Remember words as they stand, and print the record's id."""

    async def kept() -> Record:
        async with memory(settings, new=True) as opened:
            return await opened.stream.remember(words, "note", by=opened.user)

    record = asyncio.run(kept())
    if json:
        print_json(plain(record))
    else:
        say(f"kept as {record.id}")
    return 0


def show(settings: Settings, kinds: Sequence[str], n: int, json: bool) -> int:
    """Print belief, plan, and the newest records of each kind."""

    async def looked() -> tuple[list[Record], list[Record]]:
        async with memory(settings) as opened:
            await opened.require_known()
            held = [] if kinds else await opened.beliefs_and_plans()
            wanted = [kind for kind in parse_kinds(kinds) if kinds or kind not in ("belief", "plan")]
            recent = [record for records in (await opened.recent(n, wanted)).values() for record in records]
            return held, recent

    held, recent = asyncio.run(looked())
    if json:
        for record in (*held, *recent):
            print_json(plain(record))
        return 0
    if not held and not recent:
        print("nothing is remembered", file=sys.stderr)
    console = Console(highlight=False)
    for record in held:
        _title(console, f"{record.kind} {record.slot}, v{record.version}, {format_iso(record.created)}, {record.id}")
        console.print(Text(_held(record)), soft_wrap=True)
    for kind in dict.fromkeys(record.kind for record in recent):
        _title(console, f"{kind}, the newest last")
        for record in recent:
            if record.kind == kind:
                _entry(console, "", record)
    return 0


def export(settings: Settings, file: Path | None) -> int:
    """Write a memory as JSON Lines."""

    async def write() -> int:
        async with memory(settings) as opened:
            return await files.write_lines(file, exported(opened))

    count = asyncio.run(write()) - 1
    if written_to := files.real_file(file):
        print(f"{count_of(count, 'record')} of {settings.user} in {written_to}", file=sys.stderr)
    return 0


def import_memory(settings: Settings, file: Path | None, json: bool) -> int:
    """Take in an export."""

    async def take() -> Imported:
        async with memory(settings, new=True) as opened:
            with progress("taking in", len(records)) as told:
                return await take_in(opened, records, told)

    with parse_export(files.read_lines(file), files.source(file), settings.user) as records:
        done = asyncio.run(take())
    if json:
        print_json({"written": done.written, "known": done.known, "own": done.own})
        return 0
    own = f", {done.own} belief or plan versions left out, as this memory has its own" if done.own else ""
    print(f"{count_of(done.written, 'record')} taken in, {done.known} were known{own}")
    return 0


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
        return clean("\n".join(f"  {told_of({name: held})}" for name, held in known.items()))
    if isinstance(plan, dict):
        lines = plan_told(read_plan(plan)) or "no steps"
        return clean("\n".join(f"  {line}" for line in lines.splitlines()))
    return f"  {clean(record.text)}"


def _title(console: Console, text: str) -> None:
    console.print(Text(clean(text), "bold"), soft_wrap=True)
