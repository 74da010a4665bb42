"""`mindstream memory`: audit, correct, forget, sessions, purge, reembed, evidence, erase."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Annotated

from pydantic import JsonValue
from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from mindstream.cli.shell.flags import AsJson, Id, Yes, command, flag, group, word
from mindstream.cli.shell.output import (
    ask,
    choose,
    clean,
    confirm,
    confirm_name,
    is_answerable,
    print_json,
    progress,
    say,
    short,
    tell,
)
from mindstream.clock import DAY_S, Moment, SystemClock, format_iso, moment_or_none
from mindstream.errors import InputError
from mindstream.log.names import StreamName
from mindstream.memory.curation.curation import Drawn, Session
from mindstream.memory.curation.forgetting import Forgotten, Removal
from mindstream.memory.opening import open_store
from mindstream.memory.store.record import KINDS, Kind, Record
from mindstream.models.embedders.named import width_of
from mindstream.service import erasing
from mindstream.service.memory import open_user_memory, plain
from mindstream.service.operations.principal import tenant_key_of
from mindstream.service.privacy.audit import deed_of, note, note_of
from mindstream.service.privacy.erase import Beside, Gone, erase_person, find_beside, revoke_tokens
from mindstream.settings import Settings
from mindstream.text.words import count_of

app = group()
FEW = 5
"""So many findings of an audit are shown in full."""


@command(app, "data user embedder", "mindstream memory audit --user ann")
async def audit(settings: Settings, json: AsJson = False) -> None:
    """Look for what should not be there: duplicates, junk, echoes.

    Nothing is changed.
    """
    async with open_user_memory(settings, known=True) as opened:
        with progress("looking"):
            found = await opened.memory.audit()
        records = {record.id: record for record in await opened.all()}
        embedder = opened.memory.embedder.name
    if json:
        print_json(asdict(found))
        return
    held = ", ".join(count_of(count, kind) for kind, count in found.held.items())
    gone = f"{found.superseded} superseded, {found.forgotten} forgotten"
    say(f"{count_of(found.records, 'record')}: {held or 'none holds'}; {gone}")

    def words(id_: str) -> str:
        return f"{id_} {short(records[id_].text, 90)}" if id_ in records else id_

    _findings("said twice", [" = ".join(map(words, ids)) for ids in found.exact])
    _findings("nearly the same; the next sleep merges them", [" ~ ".join(map(words, ids)) for ids in found.near])
    _findings("junk", [f"{words(each.id)} ({each.why})" for each in found.junk])
    _findings("echoes of something older", [f"{words(each.id)} (of {words(each.of)})" for each in found.echoes])
    _findings("never recalled", list(map(words, found.never_recalled)))
    if found.foreign:
        say(f"{found.foreign} have no vector of {embedder}: `mindstream memory reembed` gives them one")


@command(app, "data user", "mindstream memory purge --older 365 --yes")
def purge(
    settings: Settings,
    older: Annotated[float | None, flag("DAYS", "Only what was forgotten longer ago than so many days.", min=0)] = None,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Delete what is forgotten, for good.

    Its words go from the log, too, and from dreams and thoughts that were drawn from it. What the user said in a chat
    stays: `memory erase` is for that. Asks first.
    """

    async def count(delete: bool) -> int:
        async with open_user_memory(settings, known=True) as opened:
            before = None if older is None else opened.clock.now() - older * DAY_S
            if delete:
                gone = await opened.memory.purge(before)
                await note_of(opened, "purged", {"records": gone})
                return gone
            return sum(before is None or (each.forgotten or 0) < before for each in await opened.memory.archive())

    found = asyncio.run(count(delete=False))
    what = f"{count_of(found, 'forgotten record')} of {settings.user}"
    if found and not yes and not confirm(f"Delete {what} for good?"):  # asked outside: a loop would hold Ctrl-C back
        say("nothing was deleted", sys.stderr)
        return
    gone = asyncio.run(count(delete=True)) if found else 0
    told = f"{count_of(gone, 'forgotten record')} deleted for good" if gone else "nothing is forgotten"
    tell(json, {"purged": gone}, told)


@command(app, "data user embedder", "mindstream memory reembed --embedder st:all-MiniLM-L6-v2")
async def reembed(settings: Settings, json: AsJson = False) -> None:
    """Give each record a vector of another embedder, which this memory uses from then on.

    Those that have one are passed over, so it can be broken off and gone on with. A text that the embedder refuses
    keeps its record without such a vector; the log names it.
    """
    async with open_user_memory(settings, known=True) as opened:
        with progress("embedding") as told:
            await width_of(opened.memory.embedder)
            total = (await opened.memory.columns()).foreign
            done = await opened.memory.reembed(tell=lambda done: told(done, total))
            left, name = (await opened.memory.columns()).foreign, opened.memory.embedder.name
    made = f"{count_of(done, 'vector')} of {name} made" if done or left else f"all have one of {name}"
    refused = f"{count_of(left, 'record')} got none: {name} refused the text (`mindstream log` names each)"
    row = {"embedder": name, "embedded": done} | ({"refused": left} if left else {})
    tell(json, row, made, *([refused] if left else ()))


@command(app, "data user", "mindstream memory evidence 1jatk3k2m0x7c5v9qz")
async def evidence(settings: Settings, id_: Id, json: AsJson = False) -> None:
    """Show what a record was drawn from, down to what was seen."""
    async with open_user_memory(settings, known=True) as opened:
        found = await opened.memory.evidence_of(id_)
    if json:
        print_json(_drawn(found))
        return
    tree = Tree(_told(found.record), guide_style="dim")
    _grow(tree, found)
    Console(highlight=False).print(tree, soft_wrap=True)


@command(app, "data", "mindstream memory erase --user ann")
def erase(
    settings: Settings,
    user: Annotated[str, flag("NAME", "Who; there is no default.", "--user")],
    tenant: Annotated[str, flag("NAME", "Behind whose wall [this machine's own people].")] = "",
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Erase all that is kept of a user, for good.

    Records, vectors, log, work and typed history; what the user wrote into pools, or asked there, with the name;
    passages of documents that nobody else searches. Asks for the name again. Then the file is written anew and
    searched, byte by byte, for what the user said. If it is broken off, it is finished when the folder is opened
    next. Close other programs on that mind first. Exports and recordings that lie elsewhere are yours to delete.
    """
    if tenant_key_of(tenant):
        _erase_behind(settings, user, tenant, yes=yes, json=json)
        return
    settings = settings.model_copy(update={"user": user})
    finished = erasing.is_pending(settings.data, StreamName("user", user).key)  # where it is opened, it is finished

    async def look() -> erasing.Kept | None:
        async with open_user_memory(settings) as opened:
            return await erasing.list_kept(opened, settings.data) if await opened.is_known() or not finished else None

    async def erased() -> erasing.Kept:
        async with open_user_memory(settings) as opened:
            kept = await erasing.list_kept(opened, settings.data)
            with progress("looking for what is left", len(kept.words)) as told:
                await erasing.erase(opened, settings.data, kept, told)
            await note_of(
                opened,
                "erased",
                {name: n for name, n in kept.rows.items() if n} | {"elsewhere": sum(kept.elsewhere.values())},
            )
            return kept

    if (finished or not yes) and asyncio.run(look()) is None:  # a name that nobody has is refused before any question
        told = f"{user} is erased: it was broken off before, and is finished now"
        tell(json, {"user": user, "finished": True}, told)
        return
    if not yes:
        confirm_name(f"All that is kept of {user} in {settings.data} will be gone.", user)
    done = asyncio.run(erased())
    files = [str(path.relative_to(settings.data.beside)) for path in done.files]
    rows = {name: done.rows[name] for name in ("records", "log", "work")}
    told = f"{count_of(rows['records'], 'record')}, {count_of(rows['log'], 'row')} of the log, {rows['work']} of work"
    texts = f"{count_of(len(done.words), 'text')} in the bytes of mindstream.db and its -wal"
    looked = texts if settings.data.folder else "the name in all tables, which were written anew"
    tell(
        json,
        {
            "user": user,
            **rows,
            "files": files,
            "elsewhere": {**done.elsewhere},
            "stays": [*done.stays],
            "tokens": [*done.beside.tokens.values()],
            "looked_for": len(done.words),
        },
        f"{user} is erased: {', '.join([told, *files])}",
        *(f"in {stream}: {count_of(count, 'row')} and records of {user}" for stream, count in done.elsewhere.items()),
        *done.beside.told(),
        f"looked for {looked}: none is left",
        *(f"not erased: {each}" for each in done.stays),
    )


def _erase_behind(settings: Settings, user: str, tenant: str, *, yes: bool, json: bool) -> None:
    """Erase a user of a tenant's; the bytes are written anew, and not searched."""
    if not yes:
        confirm_name(f"All that is kept of {user}, of {tenant}, will be gone.", user)

    async def erased() -> tuple[Gone, Beside]:
        clock = SystemClock()
        beside = await find_beside(settings.data, tenant, user)
        await revoke_tokens(settings.data, tenant, beside, clock)  # first: nobody comes in any more
        async with open_store(settings.data, tenant) as store:
            gone = await erase_person(store, user, clock, settings.data.beside, known=bool(beside.tokens))
            await note(store, "erased", gone.counts(), user, tenant)
            return gone, beside

    gone, beside = asyncio.run(erased())
    counts: dict[str, JsonValue] = {**gone.counts()}
    told = ", ".join(f"{count} {name}" for name, count in counts.items()) or "nothing else was kept"
    more: dict[str, JsonValue] = {
        "tokens": [*beside.tokens.values()],
        "forks": [*beside.forks],
        "stays": [*beside.stays()],
    }
    tell(
        json,
        {"user": user, "tenant": tenant} | counts | more,
        f"{user} of {tenant} is erased: {told}",
        *beside.told(),
        *(f"not erased: {each}" for each in beside.stays()),
    )


def _findings(title: str, found: Sequence[str]) -> None:
    if not found:
        return
    say(f"{title}: {len(found)}")
    for line in found[:FEW]:
        say(f"  {line}")
    if len(found) > FEW:
        say(f"  … and {len(found) - FEW} more; --json has them all")


def _drawn(drawn: Drawn) -> dict[str, JsonValue]:
    below: list[JsonValue] = [_drawn(each) for each in drawn.evidence]
    return plain(drawn.record) | {"drawn_from": below, "missing": [*drawn.missing], "cut": drawn.cut}


def _grow(tree: Tree, drawn: Drawn) -> None:
    for each in drawn.evidence:
        _grow(tree.add(_told(each.record)), each)
    for id_ in drawn.missing:
        tree.add(Text(f"{id_} is not there any more", "dim"))
    if drawn.cut:
        tree.add(Text(f"… what it was drawn from: mindstream memory evidence {drawn.record.id}", "dim"))


def _told(record: Record) -> Text:
    who = f" {clean(record.by)}" if record.by else ""
    line = Text(f"{format_iso(record.created)[:16].replace('T', ' ')} {record.kind}{who} {record.id}: ", "dim")
    line.append(short(record.text, 200), "default")
    return line


SHOWN = 20
"""So many records of a sort are shown; the others are counted."""
WHICH = "Forget similar ones, too? Numbers, or Enter for none"
BESIDE_TALK: tuple[Kind, ...] = tuple(kind for kind in KINDS if kind != "chat")
"""All kinds but messages: what is forgotten where a message that also says other things is to stay."""


@command(app, "data user", 'mindstream memory forget --about "the red bicycle"')
def forget(
    settings: Settings,
    ids: Annotated[list[str] | None, word("ID", "Records, as `memory recall` shows their ids.")] = None,
    about: Annotated[str, flag("WORDS", "What mentions this subject.")] = "",
    session: Annotated[str, flag("NAME", "Of this session; `memory sessions` lists them.")] = "",
    since: Annotated[str | None, flag("TIME", "Written then or later: 2026-11-20, or 2026-11-20T21:30 (UTC).")] = None,
    until: Annotated[str | None, flag("TIME", "Written then or before; a date: its end.")] = None,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Forget for good: records, a subject, a session, a span of time.

    Shows what is deleted and asks. What is derived from it alone is deleted with it: answers, notes, thoughts, dreams,
    beliefs and plans. What is also derived from other records stays without the words; what others said stays. --about
    deletes only what mentions the subject; similar records are listed, and deleted only if you name them. --about,
    --session, --since and --until together mean what meets all of them. No byte of it is left in the data folder;
    exports and recordings in other places are yours to delete.
    """
    first, last = _moment("--since", since), _moment("--until", until, whole_day=True)

    async def find() -> Removal:
        async with open_user_memory(settings, known=True) as opened:
            return await opened.memory.find_removal(
                *named, about=about, session=session, since=first, until=last, kinds=kinds
            )

    async def take(removal: Removal) -> Forgotten:
        async with open_user_memory(settings) as opened, opened.memory as stream:
            return await stream.remove(removal, deed=deed_of(opened, "forgot"))

    named, kinds = list(ids or ()), tuple[Kind, ...]()
    removal = asyncio.run(find())
    if not json:
        for line in describe(removal):
            say(line, sys.stderr)
    if not yes:  # asked outside of the loop, which would hold Ctrl-C back
        if removal.similar and is_answerable():
            named += picked(removal, ask(WHICH, default=""))
            removal = asyncio.run(find())
        answer = choose("Forget it for good?", part=bool(removal.apart)) if removal else "y"
        if answer == "n":
            say("nothing was forgotten", sys.stderr)
            return
        if answer == "p":
            kinds = BESIDE_TALK
            removal = asyncio.run(find())
    done = asyncio.run(take(removal))
    tell(json, _removal(removal) | {"forgotten": done.counts()}, describe_done(done))


def _moment(flag: str, text: str | None, *, whole_day: bool = False) -> Moment | None:
    return moment_or_none(text, flag, whole_day=whole_day)


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
    lines += _records("goes too, and does not mention it: the message says other things as well", removal.apart)
    left = [replace(record, text=text) for record, text in zip(removal.changed, removal.left, strict=True)]
    lines += _records("stays without those words", left)
    if removal.asked:
        lines += _records("stays, though it was drawn from this; name its ID too if it is to go", removal.sources)
    title = "stays, as it is only similar; name its ID if it is to go"
    numbered = [f"{number:2}{_line(each)[1:]}" for number, each in enumerate(removal.similar, 1)]
    return [*lines, f"{title}: {len(numbered)}", *numbered] if numbered else lines


def picked(removal: Removal, answer: str) -> list[str]:
    """Return the ids of the similar records whose numbers were typed.

    Raises:
        InputError: something else was typed.
    """
    numbers = answer.replace(",", " ").split()
    if not all(each.isdecimal() and 1 <= int(each) <= len(removal.similar) for each in numbers):
        most = len(removal.similar)
        raise InputError(f"numbers from 1 to {most} were expected, not {answer!r}; nothing was forgotten")
    return [removal.similar[int(each) - 1].id for each in numbers]


def describe_done(done: Forgotten) -> str:
    """Say what was done."""
    if not (done.records or done.items):
        kept = f"; {len(done.similar)} similar, kept" if done.similar else ""
        return f"nothing of that is remembered{kept}"
    items = f", {done.items} item{'s' * (done.items != 1)} of beliefs and plans" if done.items else ""
    changed = f"; {done.changed} without those words stay" if done.changed else ""
    pending = f"; {done.pending}" if done.pending else ""
    return f"{done.records} record{'s' * (done.records != 1)}{items} forgotten for good{changed}{pending}"


def _records(title: str, records: Sequence[Record]) -> list[str]:
    if not records:
        return []
    more = [f"  … and {len(records) - SHOWN} more; --json has them all"] if len(records) > SHOWN else []
    return [f"{title}: {len(records)}", *map(_line, records[:SHOWN]), *more]


def _line(record: Record) -> str:
    when, by = format_iso(record.created)[:16].replace("T", " "), f" {record.by}" if record.by else ""
    return f"  {when} {record.kind}{by} {record.id}: {short(record.text, 120)}"


def _removal(removal: Removal) -> dict[str, JsonValue]:
    sorts = ("asked", "drawn", "changed", "sources", "similar")
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
    async with open_user_memory(settings, own=True, known=True) as opened, opened.memory as stream:
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
    async with open_user_memory(settings, known=True) as opened:
        found = await opened.memory.sessions()
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
