"""`mindstream memory`: forget, correct, sessions."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

from pydantic import JsonValue

from mindstream.cli.asking import choose
from mindstream.cli.clean import say, short
from mindstream.cli.flags import AsJson, Yes, command, flag, word
from mindstream.cli.json_lines import tell
from mindstream.cli.memory import app
from mindstream.cli.memory_care import Id
from mindstream.clock import Moment, format_iso, parse_iso
from mindstream.errors import InputError
from mindstream.memory.curation.curation import Session
from mindstream.memory.curation.forgetting import Forgotten, Removal
from mindstream.memory.store.record import Record
from mindstream.service.memory import memory, plain
from mindstream.settings import Settings

SHOWN = 20
"""So many records of a sort are shown; the others are counted."""


@command(app, "data user", 'mindstream memory forget --about "the red bicycle"')
def forget(
    settings: Settings,
    ids: Annotated[list[str] | None, word("ID", "Records, as `memory search` shows their ids.")] = None,
    about: Annotated[str, flag("WORDS", "What mentions this subject.")] = "",
    session: Annotated[str, flag("NAME", "Of this session; `memory sessions` lists them.")] = "",
    since: Annotated[str | None, flag("TIME", "Written then or later: 2026-11-20, or 2026-11-20T21:30 (UTC).")] = None,
    until: Annotated[str | None, flag("TIME", "Written then or before; a date: its end.")] = None,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Forget for good: records, a subject, a session, a span of time.

    Shows what goes and asks. With it goes what was drawn from it alone: answers, notes, thoughts, dreams, what is
    believed and planned. What was drawn from other things too stays without the words; what others said stays. --about,
    --session, --since and --until together mean what meets all of them. No byte of it is left in the data folder;
    exports and recordings that lie elsewhere are yours to delete.
    """
    first, last = _moment("--since", since), _moment("--until", until, whole_day=True)

    async def find() -> Removal:
        async with memory(settings, known=True) as opened:
            return await opened.stream.to_forget(*ids or (), about=about, session=session, since=first, until=last)

    async def take(removal: Removal) -> Forgotten:
        async with memory(settings) as opened, opened.stream as stream:
            return await stream.forget(removal)

    removal = asyncio.run(find())
    if not json:
        for line in describe(removal):
            say(line, sys.stderr)
    if removal and not yes and not choose("Forget it for good?"):  # asked outside: a loop would hold Ctrl-C back
        say("nothing was forgotten", sys.stderr)
        return
    done = asyncio.run(take(removal))
    tell(json, _removal(removal) | {"forgotten": asdict(done)}, describe_done(done))


def _moment(flag: str, text: str | None, *, whole_day: bool = False) -> Moment | None:
    try:
        return None if text is None else parse_iso(text, whole_day=whole_day)
    except (ValueError, OverflowError):
        raise InputError(f"{flag} takes a date or a time, as 2026-11-20 or 2026-11-20T21:30, not {text!r}") from None


def describe(removal: Removal) -> list[str]:
    """Say what would go, and what would stay changed, a line each."""
    free = [record for record in removal.drawn if record.slot is None]
    lines = _records("goes", removal.asked) + _records("goes with it, as it was drawn from that alone", free)
    if versions := len(removal.drawn) - len(free):
        lines.append(
            f"goes, as they rested on it alone: {versions} version{'s' * (versions != 1)} of beliefs and plans"
        )
    if removal.items:
        lines.append(f"goes from beliefs and plans: {len(removal.items)}")
        lines += [f"  {item.slot}, {item.field}: {short(item.text, 120)}" for item in removal.items[:SHOWN]]
    lines += _records("stays without those words", removal.changed)
    if removal.asked:
        lines += _records("stays, though it was drawn from this; name its ID too if it is to go", removal.sources)
    return lines + _records("stays, and may be about it too; name its ID if it is to go", removal.near)


def describe_done(done: Forgotten) -> str:
    """Say what was done."""
    if done == Forgotten():
        return "nothing of that is remembered"
    items = f", {done.items} item{'s' * (done.items != 1)} of beliefs and plans" if done.items else ""
    changed = f"; {done.changed} without those words stay" if done.changed else ""
    return f"{done.records} record{'s' * (done.records != 1)}{items} forgotten for good{changed}"


def _records(title: str, records: Sequence[Record]) -> list[str]:
    if not records:
        return []
    more = [f"  … and {len(records) - SHOWN} more; --json has them all"] if len(records) > SHOWN else []
    return [f"{title}: {len(records)}", *map(_line, records[:SHOWN]), *more]


def _line(record: Record) -> str:
    when, by = format_iso(record.created)[:16].replace("T", " "), f" {record.by}" if record.by else ""
    return f"  {when} {record.kind}{by} {record.id}: {short(record.text, 120)}"


def _removal(removal: Removal) -> dict[str, JsonValue]:
    sorts = ("asked", "drawn", "changed", "sources", "near")
    found: dict[str, JsonValue] = {name: [plain(record) for record in getattr(removal, name)] for name in sorts}
    return found | {"items": [_item(item.slot, item.field, item.text) for item in removal.items]}


def _item(slot: str, field: str, text: str) -> JsonValue:
    return {"slot": slot, "field": field, "text": text}


@command(app, "data user", 'mindstream memory correct 1jatk3k2m0x7c5v9qz "Goes to bed at ten"')
async def correct(
    settings: Settings,
    id_: Id,
    words: Annotated[str, word("WORDS", "What is true instead.")],
    json: AsJson = False,
) -> None:
    """Put new words in a record's place.

    The old ones are history; the log says `corrected`. Shows what was drawn from them and is still believed.
    """
    async with memory(settings, own=True, known=True) as opened, opened.stream as stream:
        done = await stream.correct(id_, words, by=settings.user)
    items: list[JsonValue] = [_item(item.slot, item.field, item.text) for item in done.items]
    drawn: list[JsonValue] = [plain(record) for record in done.drawn]
    if done.record.id == id_:
        told = ["it says that already"]
    else:
        told = [f"{done.record.id} says now: {short(done.record.text, 200)}"]
        told += _records("drawn from the old words, and still there", done.drawn)
        told += [
            f"believed from the old words: {each.slot}, {each.field}: {short(each.text, 120)}" for each in done.items
        ]
    tell(json, {"record": plain(done.record), "superseded": id_, "drawn": drawn, "items": items}, *told)


@command(app, "data user", "mindstream memory sessions --user ann")
async def sessions(settings: Settings, json: AsJson = False) -> None:
    """List the sessions: when, how long, how they began."""
    async with memory(settings, known=True) as opened:
        found = await opened.stream.sessions()
    for session in found:
        tell(json, asdict(session), describe_session(session))
    if not found and not json:
        say("there are no sessions yet", sys.stderr)


def describe_session(session: Session) -> str:
    """Say when a session was, how long it is, and how it began, on a line."""
    first, last = (format_iso(at)[:16].replace("T", " ") for at in (session.first, session.last))
    until = f" to {last[11:] if last[:10] == first[:10] else last}" if last != first else ""
    lines = f"{session.lines} line{'s' * (session.lines != 1)}"
    return f"{session.name}: {first}{until}, {lines}: {short(session.opening, 80)}"
