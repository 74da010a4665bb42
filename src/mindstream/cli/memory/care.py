"""`mindstream memory`: audit, purge, reembed, evidence, erase, forget, correct, sessions."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Annotated, Any

from pydantic import JsonValue
from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from mindstream.cli.memory.look import record_line
from mindstream.cli.shell.flags import AsJson, Id, Yes, command, flag, group, word
from mindstream.cli.shell.output import (
    ask,
    choose,
    confirm,
    confirm_name,
    is_answerable,
    list_some,
    print_json,
    progress,
    say,
    say_lines,
    short,
    tell,
)
from mindstream.cli.shell.stopping import run_until_stopped
from mindstream.clock import DAY_S, SystemClock, format_iso
from mindstream.errors import InputError
from mindstream.identifiers import StreamName
from mindstream.json_values import JsonObject
from mindstream.memory.curation.curation import Drawn, Session
from mindstream.memory.curation.forgetting import Forgotten, Removal
from mindstream.memory.opening import open_store
from mindstream.memory.store.record import KINDS, Kind, Record
from mindstream.models.embedders.embedder import width_of
from mindstream.service.calling import calling, open_user_memory
from mindstream.service.memory import plain
from mindstream.service.operations.operation import tenant_key_of
from mindstream.service.privacy import erase as erasing
from mindstream.service.privacy.audit import note, note_of
from mindstream.service.privacy.erase import (
    ErasedCounts,
    OutsideData,
    erase_outside_data,
    erase_person,
    find_outside_data,
)
from mindstream.settings import Settings
from mindstream.text.words import count_of

app = group()
SHOWN_FINDINGS, SHOWN_RECORDS = 5, 20
"""Maximum number of audit findings that are shown, and of records to be forgotten; further ones are only counted."""
WHICH = "Also forget similar records? Type their numbers, or Enter for none"
WITHOUT_MESSAGES: tuple[Kind, ...] = tuple(kind for kind in KINDS if kind != "chat")
"""All kinds of records except messages. `forget` removes only these if messages are to be kept, because a message may
also say other things."""


@command(app, "data user embedder", "mindstream memory audit --user ann")
async def audit(settings: Settings, json: AsJson = False) -> None:
    """Look for duplicates, junk and echoes (records that repeat an older one of another kind) in a memory.

    Also lists records that were never recalled. Nothing is changed.
    """
    async with open_user_memory(settings, known=True) as opened:
        with progress("looking"):
            found = await opened.audit()
        texts = {record.id: record.text for record in (await opened.store.changes(opened.key, 0)).records}
        embedder = opened.embedder.name
    if json:
        print_json(asdict(found))
        return
    held = ", ".join(count_of(count, kind) for kind, count in found.held.items())
    gone = f"{found.superseded} superseded, {found.forgotten} archived"
    say(f"{count_of(found.records, 'record')}: {held or 'none is current'}; {gone}")

    def words(id_: str) -> str:
        return f"{id_} {short(texts.get(id_, ''), 90)}".rstrip()

    for title, lines in {
        "duplicates": [" = ".join(map(words, ids)) for ids in found.exact],
        "near-duplicates; under the policy `decay` a sleep merges groups with a record written since the last sleep": [
            " ~ ".join(map(words, ids)) for ids in found.near
        ],
        "junk": [f"{words(each.id)} ({each.why})" for each in found.junk],
        "echoes of an older record": [f"{words(each.id)} (of {words(each.of)})" for each in found.echoes],
        "never recalled": list(map(words, found.never_recalled)),
    }.items():
        say_lines(_listed(title, lines, SHOWN_FINDINGS))
    if found.foreign:
        say(f"{count_of(found.foreign, 'record')} without a vector of {embedder}: run `mindstream memory reembed`")


@command(app, "data user", "mindstream memory purge --older 365 --yes")
def purge(
    settings: Settings,
    older: Annotated[float | None, flag("DAYS", "Only records archived more than this many days ago.", min=0)] = None,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Permanently delete archived records.

    Their text is also removed from the log, and from dreams and thoughts derived from them. Chat messages stay unless
    they are archived themselves; `memory erase` deletes all chat messages. The command asks first.
    """

    async def count(delete: bool) -> int:
        async with open_user_memory(settings, known=True) as opened:
            before = None if older is None else opened.clock.now() - older * DAY_S
            if delete:
                gone = await opened.purge(before)
                await note_of(opened, "purged", {"records": gone})
                return gone
            return sum(before is None or (each.forgotten or 0) < before for each in await opened.archive())

    found = asyncio.run(count(delete=False))
    what = f"{count_of(found, 'archived record')} of {settings.user}"
    # ask outside the event loop, so that Ctrl-C works at the prompt
    if found and not yes and not confirm(f"Delete {what} permanently?"):
        say("nothing was deleted", sys.stderr)
        return
    gone = asyncio.run(count(delete=True)) if found else 0
    none = (
        "nothing is archived"
        if older is None
        else f"no record was archived more than {older:g} day{'s' * (older != 1)} ago"
    )
    message = f"{count_of(gone, 'archived record')} permanently deleted" if gone else none
    tell(json, {"purged": gone}, message)


@command(app, "data user embedder", "mindstream memory reembed --embedder st:all-MiniLM-L6-v2")
def reembed(settings: Settings, json: AsJson = False) -> int:
    """Compute the vectors of all records with another embedder, which this memory uses from then on.

    Records that already have such a vector are skipped, so an interrupted run can be repeated. A record whose text the
    embedder refuses stays without a vector; the log names it.
    """
    return run_until_stopped(
        _reembed(settings, json), lambda: "stopped; the vectors so far are stored, and the same command continues"
    )


async def _reembed(settings: Settings, json: bool) -> int:
    async with open_user_memory(settings, known=True) as opened:
        with progress("embedding") as report:
            await width_of(opened.embedder)
            total = (await opened.columns()).foreign
            done = await opened.reembed(tell=lambda done: report(done, total))
            left, name = (await opened.columns()).foreign, opened.embedder.name
    made = f"{count_of(done, 'vector')} of {name} computed" if done or left else f"all records have a vector of {name}"
    refused = (
        f"{count_of(left, 'record')} got no vector. Either {name} refused the text; `mindstream log` names each such"
        " record. Or another process with another embedder has just written the record: end that process, then repeat"
        " this command"
    )
    row = {"embedder": name, "embedded": done} | ({"refused": left} if left else {})
    tell(json, row, made, *([refused] if left else ()))
    return 0


@command(app, "data user", "mindstream memory evidence 1jatk3k2m0x7c5v9qz")
async def evidence(settings: Settings, id_: Id, json: AsJson = False) -> None:
    """Show the tree of records that a record was derived from."""
    async with calling(settings, known=True) as call:
        found: Drawn = (await call("memory.lineage", id=id_)).local
    if json:
        print_json(_drawn(found))
        return
    tree = Tree(Text(record_line(found.record, 200)), guide_style="dim")
    _grow(tree, found)
    Console(highlight=False).print(tree, soft_wrap=True)


def _drawn(drawn: Drawn) -> JsonObject:
    below: list[JsonValue] = [_drawn(each) for each in drawn.evidence]
    return plain(drawn.record) | {"drawn_from": below, "missing": [*drawn.missing], "cut": drawn.cut}


def _grow(tree: Tree, drawn: Drawn) -> None:
    for each in drawn.evidence:
        _grow(tree.add(Text(record_line(each.record, 200))), each)
    for id_ in drawn.missing:
        tree.add(Text(f"{id_} does not exist any more", "dim"))
    if drawn.cut:
        tree.add(Text(f"… its own evidence: mindstream memory evidence {drawn.record.id}", "dim"))


@command(app, "data", "mindstream memory erase --user ann")
def erase(
    settings: Settings,
    user: Annotated[str, flag("NAME", "The user whose data is erased; there is no default.", "--user")],
    tenant: Annotated[str, flag("NAME", "The user's tenant [none: a user of this machine].")] = "",
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Permanently erase all data of a user.

    First close other programs that use this memory. The command asks for the name again.

    It erases records, vectors, the log, background work and the terminal's input history. In pools, it erases the
    user's pairs, queries and name. It also erases passages of documents that no other user searches, and forks of towns
    that the user visited.

    The database file is then rewritten and searched, byte by byte, for the user's text. With --tenant, the file is only
    rewritten. In PostgreSQL, the tables are rewritten and searched for the user's name. An interrupted erasure is
    finished when the folder is opened next. Exports and recordings in other places are not erased: delete them
    yourself.
    """
    if tenant_key_of(tenant):
        _erase_of_tenant(settings, user, tenant, yes=yes, json=json)
        return
    settings = settings.model_copy(update={"user": user})
    finished = erasing.is_pending(settings.data, StreamName("user", user).key)  # opening the data finishes the erasure

    async def look() -> erasing.UserData | None:
        async with open_user_memory(settings) as opened:
            is_erased = finished and not await opened.store.events(opened.key, limit=1)
            return None if is_erased else await erasing.find_user_data(opened, settings.data)

    async def erased() -> erasing.UserData:
        async with open_user_memory(settings) as opened:
            kept = await erasing.find_user_data(opened, settings.data)
            with progress("searching for remains", len(kept.words)) as report:
                await erasing.erase(opened, settings.data, kept, report)
            counts = {name: n for name, n in kept.rows.items() if n} | {"elsewhere": sum(kept.elsewhere.values())}
            await note_of(opened, "erased", counts)
            return kept

    if (finished or not yes) and asyncio.run(look()) is None:  # raises an error for an unknown name
        message = f"{user} is erased: an interrupted erasure is finished now"
        tell(json, {"user": user, "finished": True}, message)
        return
    if not yes:
        confirm_name(f"This permanently erases all data of {user} in {settings.data}.", user)
    done = asyncio.run(erased())
    files = [str(path.relative_to(settings.data.beside)) for path in done.files]
    rows = {name: done.rows[name] for name in ("records", "log", "work")}
    counted = (
        f"{count_of(rows['records'], 'record')}, {count_of(rows['log'], 'row')} of the log, {rows['work']} of work"
    )
    looked = f"{count_of(len(done.words), 'text')} in the bytes of mindstream.db and its -wal"
    if not settings.data.folder:
        looked = "the name in all tables, which were rewritten"
    row = {"user": user, **rows, "files": files, "elsewhere": {**done.elsewhere}, "stays": [*done.stays]}
    tell(
        json,
        {
            **row,
            "tokens": [*done.outside.tokens.values()],
            "forks": [*done.outside.visited],
            "looked_for": len(done.words),
        },
        f"{user} is erased: {', '.join([counted, *files])}",
        *(f"in {stream}: {count_of(count, 'row')} and records of {user}" for stream, count in done.elsewhere.items()),
        *done.outside.describe_erased(),
        f"searched for {looked}: none is left",
        *(f"not erased: {each}" for each in done.stays),
    )


def _erase_of_tenant(settings: Settings, user: str, tenant: str, *, yes: bool, json: bool) -> None:
    """Erase all data of a tenant's user.

    The database file is rewritten, but not searched for leftover copies of the erased text.
    """
    if not yes:
        confirm_name(f"This permanently erases all data of {user}, of {tenant}.", user)

    async def erased() -> tuple[ErasedCounts, OutsideData]:
        clock = SystemClock()
        outside = await find_outside_data(settings.data, tenant, user)
        await erase_outside_data(settings.data, tenant, outside, clock)  # first, because it revokes the user's tokens
        async with open_store(settings.data, tenant) as store:
            gone = await erase_person(store, user, clock, settings.data.beside, known=bool(outside))
            await note(store, "erased", gone.counts(), user, tenant)
            return gone, outside

    gone, outside = asyncio.run(erased())
    counts: JsonObject = {**gone.counts()}
    counted = gone.describe() or "there was no other data"
    more: JsonObject = {
        "tokens": [*outside.tokens.values()],
        "forks": [*outside.visited],
        "stays": [*outside.describe_kept()],
    }
    tell(
        json,
        {"user": user, "tenant": tenant} | counts | more,
        f"{user} of {tenant} is erased: {counted}",
        *outside.describe_erased(),
        *(f"not erased: {each}" for each in outside.describe_kept()),
    )


@command(app, "data user", 'mindstream memory forget --about "the red bicycle"')
def forget(
    settings: Settings,
    ids: Annotated[list[str] | None, word("ID", "Ids of records, as `memory recall` shows them.")] = None,
    about: Annotated[str, flag("WORDS", "Forget the records that mention this subject.")] = "",
    session: Annotated[str, flag("NAME", "Forget the records of this session; `memory sessions` lists sessions.")] = "",
    since: Annotated[
        str | None,
        flag("TIME", "Forget the records written at this time or later: 2026-11-20, or 2026-11-20T21:30 (UTC)."),
    ] = None,
    until: Annotated[
        str | None,
        flag("TIME", "Forget the records written at this time or earlier; a date means the end of that day."),
    ] = None,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Permanently forget records, a subject, a session, or a span of time.

    The command lists the records and asks. Records derived from them alone are deleted too: answers, notes, thoughts,
    dreams, beliefs and plans. A record that is also derived from other records stays, without the forgotten words;
    messages of other users stay.
    --about deletes only records that mention the subject. Similar records are listed; to delete one, name its ID.
    --about, --session, --since and --until together select the records that meet all these conditions; records named by
    ID are forgotten in addition. No byte of what is forgotten is left in the data folder. Exports and
    recordings in other places are not changed: delete them yourself.
    """

    def run(*, dry_run: bool) -> Any:
        async def call_it() -> Any:
            async with calling(settings, known=dry_run) as call:
                return await call("memory.forget_about", **named, dry_run=dry_run)

        return asyncio.run(call_it()).local

    named: dict[str, Any] = {"ids": [*(ids or ())], "about": about, "session": session, "since": since, "until": until}
    removal, _ = run(dry_run=True)
    if not json:
        say("\n".join(describe(removal)), sys.stderr)
    # ask outside the event loop, so that Ctrl-C works at the prompt
    if not yes:
        if removal.similar and is_answerable():
            named["ids"] += picked(removal, ask(WHICH, default=""))
            removal, _ = run(dry_run=True)
        answer = choose("Forget it permanently?", part=bool(removal.apart)) if removal else "y"
        if answer == "n":
            say("nothing was forgotten", sys.stderr)
            return
        if answer == "p":
            named["kinds"] = WITHOUT_MESSAGES
    removal, done = run(dry_run=False)
    sorts = ("asked", "drawn", "changed", "sources", "similar")
    row: JsonObject = {name: [plain(record) for record in getattr(removal, name)] for name in sorts}
    tell(json, {**row, "items": [*map(asdict, removal.items)], "forgotten": done.counts()}, describe_done(done))


def describe(removal: Removal) -> list[str]:
    """Return lines about what would be deleted or changed."""
    versions = sum(record.slot is not None for record in removal.drawn)
    left = [replace(record, text=text) for record, text in zip(removal.changed, removal.left, strict=True)]
    items = [f"{item.slot}, {item.field}: {short(item.text, 120)}" for item in removal.items]
    similar = [f"{number}. {record_line(each, 120)}" for number, each in enumerate(removal.similar, 1)]
    return [
        *_records("to be deleted", removal.asked),
        *_records(
            "to be deleted, because derived only from these records",
            [each for each in removal.drawn if each.slot is None],
        ),
        *(
            [
                "to be deleted, because based only on these records:"
                f" {count_of(versions, 'version of beliefs and plans')}"
            ]
            if versions
            else ()
        ),
        *_listed("to be removed from beliefs and plans", items, SHOWN_RECORDS),
        *_records("to be deleted with the message they come from, although they say other things", removal.apart),
        *_records("to be kept, without the forgotten words", left),
        *_records(
            "kept, although sources of a deleted record; name the id to delete one",
            removal.sources if removal.asked else (),
        ),
        *_listed("kept, because only similar; name the id to delete one", similar, len(similar)),
    ]


def picked(removal: Removal, answer: str) -> list[str]:
    """Return the ids of the similar records whose numbers the user typed.

    Raises:
        InputError: the answer is not a list of such numbers.
    """
    numbers, most = answer.replace(",", " ").split(), len(removal.similar)
    if not all(each.isdecimal() and 1 <= int(each) <= most for each in numbers):
        raise InputError(f"numbers from 1 to {most} were expected, not {answer!r}; nothing was forgotten")
    return [removal.similar[int(each) - 1].id for each in numbers]


def describe_done(done: Forgotten) -> str:
    """Return the result of forgetting as one line for the user."""
    if not (done.records or done.items):
        return "no record matches" + (
            f"; kept: {count_of(len(done.similar), 'similar record')}" if done.similar else ""
        )
    items = f", {count_of(done.items, 'item of beliefs and plans')}" if done.items else ""
    changed = f"; {done.changed} kept without the forgotten words" if done.changed else ""
    pending = f"; {done.pending}" if done.pending else ""
    return f"{count_of(done.records, 'record')}{items} permanently forgotten{changed}{pending}"


def _records(title: str, records: Sequence[Record]) -> list[str]:
    return _listed(title, [record_line(each, 120) for each in records], SHOWN_RECORDS)


def _listed(title: str, lines: Sequence[str], most: int) -> list[str]:
    return list_some(f"{title}: {len(lines)}", lines, most)


@command(app, "data user", 'mindstream memory correct 1jatk3k2m0x7c5v9qz "Goes to bed at ten"')
async def correct(
    settings: Settings,
    id_: Id,
    words: Annotated[str, word("WORDS", "The correct text.")],
    json: AsJson = False,
) -> None:
    """Replace the text of a record; the old text becomes its history.

    The log gets a `corrected` event. The command lists the records, and the items of beliefs and plans, that are based
    on the old text. They are not changed.
    """
    async with calling(settings, own=True, known=True) as call:
        done = (await call("memory.correct", id=id_, text=words)).local
    lines = ["the record has this text already"]
    if done.record.id != id_:
        lines = [
            f"{done.record.id} now has the text: {short(done.record.text, 200)}",
            *_records("derived from the old text, and not changed", done.drawn),
            *(
                f"based on the old text, and not changed: {each.slot}, {each.field}: {short(each.text, 120)}"
                for each in done.items
            ),
        ]
    row = {"record": plain(done.record), "superseded": id_, "drawn": [*map(plain, done.drawn)]}
    tell(json, {**row, "items": [*map(asdict, done.items)]}, *lines)


@command(app, "data user", "mindstream memory sessions --user ann")
async def sessions(settings: Settings, json: AsJson = False) -> None:
    """List the sessions with their times, lengths and first lines."""
    async with calling(settings, known=True) as call:
        found = await (await call.memory()).sessions()
    for session in found:
        tell(json, asdict(session), describe_session(session))
    if not found and not json:
        say("there are no sessions yet", sys.stderr)


def describe_session(session: Session) -> str:
    """Return the time of a session, its length and its first line, on one line."""
    first, last = (format_iso(at)[:16].replace("T", " ") for at in (session.first, session.last))
    until = f" to {last[11:] if last[:10] == first[:10] else last}" if last != first else ""
    return f"{session.name}: {first}{until}, {count_of(session.lines, 'line')}: {short(session.opening, 80)}"
