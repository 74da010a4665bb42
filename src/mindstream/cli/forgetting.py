"""`mindstream memory`: forget, correct, sessions."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import asdict

from pydantic import JsonValue

from mindstream.cli.asking import choose
from mindstream.cli.clean import say, short
from mindstream.cli.json_lines import print_json
from mindstream.clock import Moment, format_iso, parse_iso
from mindstream.errors import InputError
from mindstream.memory.correcting import Correction
from mindstream.memory.forgetting import ForgetRequest, Forgotten, Removal
from mindstream.memory.record import Record
from mindstream.memory.sessions import Session
from mindstream.service.memory import memory, plain
from mindstream.settings import Settings

SHOWN = 20
"""So many records of a sort are shown; the others are counted."""


def parse_request(ids: Sequence[str], about: str, session: str, since: str | None, until: str | None) -> ForgetRequest:
    """Read what is to be forgotten.

    Raises:
        InputError: a time cannot be read.
    """
    return ForgetRequest(
        ids=tuple(ids), about=about, session=session, since=_moment("--since", since),
        until=_moment("--until", until, whole_day=True),
    )  # fmt: skip


def _moment(flag: str, text: str | None, *, whole_day: bool = False) -> Moment | None:
    try:
        return None if text is None else parse_iso(text, whole_day=whole_day)
    except (ValueError, OverflowError):
        raise InputError(f"{flag} takes a date or a time, as 2026-11-20 or 2026-11-20T21:30, not {text!r}") from None


def forget(settings: Settings, request: ForgetRequest, yes: bool, json: bool) -> int:
    """Show what goes, ask, and take it for good."""

    async def find() -> Removal:
        async with memory(settings) as opened:
            stream = (await opened.require_known()).stream
            return await stream.to_forget(
                *request.ids, about=request.about, session=request.session, since=request.since, until=request.until
            )

    async def take(removal: Removal) -> Forgotten:
        async with memory(settings) as opened, opened.stream as stream:
            return await stream.forget(removal)

    removal = asyncio.run(find())
    if not json:
        for line in describe(removal):
            say(line, sys.stderr)
    if removal and not yes and not choose("Forget it for good?"):  # asked outside: a loop would hold Ctrl-C back
        say("nothing was forgotten", sys.stderr)
        return 0
    done = asyncio.run(take(removal))
    if json:
        print_json(_removal(removal) | {"forgotten": asdict(done)})
    else:
        say(describe_done(done))
    return 0


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


def correct(settings: Settings, id_: str, text: str, json: bool) -> int:
    """Correct a record, and say who believed the old words."""

    async def corrected() -> Correction:
        async with memory(settings, own=True) as opened, (await opened.require_known()).stream as stream:
            return await stream.correct(id_, text, by=settings.user)

    done = asyncio.run(corrected())
    if json:
        items: list[JsonValue] = [_item(item.slot, item.field, item.text) for item in done.items]
        drawn: list[JsonValue] = [plain(record) for record in done.drawn]
        print_json({"record": plain(done.record), "superseded": id_, "drawn": drawn, "items": items})
        return 0
    if done.record.id == id_:
        say("it says that already")
        return 0
    say(f"{done.record.id} says now: {short(done.record.text, 200)}")
    for line in _records("drawn from the old words, and still there", done.drawn):
        say(line)
    for item in done.items:
        say(f"believed from the old words: {item.slot}, {item.field}: {short(item.text, 120)}")
    return 0


def sessions(settings: Settings, json: bool) -> int:
    """List the sessions."""

    async def listed() -> list[Session]:
        async with memory(settings) as opened:
            return await (await opened.require_known()).stream.sessions()

    found = asyncio.run(listed())
    for session in found:
        print_json(asdict(session)) if json else say(describe_session(session))
    if not found and not json:
        say("there are no sessions yet", sys.stderr)
    return 0


def describe_session(session: Session) -> str:
    """Say when a session was, how long it is, and how it began, on a line."""
    first, last = (format_iso(at)[:16].replace("T", " ") for at in (session.first, session.last))
    until = f" to {last[11:] if last[:10] == first[:10] else last}" if last != first else ""
    lines = f"{session.lines} line{'s' * (session.lines != 1)}"
    return f"{session.name}: {first}{until}, {lines}: {short(session.opening, 80)}"
