"""`mindstream memory`: audit, purge, reembed, evidence, erase."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import asdict
from typing import Annotated

from pydantic import JsonValue
from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from mindstream.cli.asking import confirm, confirm_name
from mindstream.cli.clean import clean, say, short
from mindstream.cli.flags import AsJson, Yes, command, flag, word
from mindstream.cli.json_lines import print_json, tell
from mindstream.cli.memory import app
from mindstream.cli.progress import progress
from mindstream.clock import DAY_S, format_iso
from mindstream.log.names import StreamName
from mindstream.memory.curation.curation import Drawn
from mindstream.memory.store.record import Record
from mindstream.models.embedders.named import width_of
from mindstream.service import erasing
from mindstream.service.memory import memory, plain
from mindstream.settings import Settings
from mindstream.text.counting import count_of

FEW = 5
"""So many findings of an audit are shown in full."""
Id = Annotated[str, word("ID", "A record's id, as `memory search` shows it.")]


@command(app, "data user embedder", "mindstream memory audit --user ann")
async def audit(settings: Settings, json: AsJson = False) -> None:
    """Look for what should not be there: duplicates, junk, echoes.

    Nothing is changed.
    """
    async with memory(settings, known=True) as opened:
        with progress("looking"):
            found = await opened.stream.audit()
        records = {record.id: record for record in await opened.all()}
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
        say(f"{found.foreign} have no vector of {settings.embedder}: `mindstream memory reembed` gives them one")


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
        async with memory(settings, known=True) as opened:
            before = None if older is None else opened.clock.now() - older * DAY_S
            if delete:
                return await opened.stream.purge(before)
            return sum(before is None or (each.forgotten or 0) < before for each in await opened.stream.archive())

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
    """Give each record a vector of another embedder.

    Those that have one are passed over, so it can be broken off and gone on with.
    """
    async with memory(settings, known=True) as opened:
        with progress("embedding") as told:
            await width_of(opened.stream.embedder)
            total = (await opened.stream.columns()).foreign
            done = await opened.stream.reembed(tell=lambda done: told(done, total))
    made = f"{count_of(done, 'vector')} of {settings.embedder} made" if done else f"all have one of {settings.embedder}"
    use = f"so that it is used: --embedder {settings.embedder}, or embedder = … in the settings file"
    row = {"embedder": settings.embedder, "embedded": done}
    tell(json, row, made, *([use] if settings.embedder != "wordllama" else ()))


@command(app, "data user", "mindstream memory evidence 1jatk3k2m0x7c5v9qz")
async def evidence(settings: Settings, id_: Id, json: AsJson = False) -> None:
    """Show what a record was drawn from, down to what was seen."""
    async with memory(settings, known=True) as opened:
        found = await opened.stream.evidence_of(id_)
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
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Erase all that is kept of a user, for good.

    Records, vectors, log, work and typed history; asks for the name again. Then the file is written anew and searched,
    byte by byte, for what the user said. If it is broken off, it is finished when the folder is opened next. Close
    other programs on that mind first. Exports and recordings that lie elsewhere are yours to delete.
    """
    settings = settings.model_copy(update={"user": user})
    finished = erasing.finish(settings.data, StreamName("user", user).key)  # what was broken off before

    async def look() -> erasing.Kept | None:
        async with memory(settings) as opened:
            return erasing.list_kept(opened, settings.data) if await opened.is_known() or not finished else None

    async def erased() -> erasing.Kept:
        async with memory(settings) as opened:
            kept = erasing.list_kept(opened, settings.data)
            with progress("looking for what is left", len(kept.words)) as told:
                await erasing.erase(opened, settings.data, kept, told)
            return kept

    if (finished or not yes) and asyncio.run(look()) is None:  # a name that nobody has is refused before any question
        told = f"{user} is erased: it was broken off before, and is finished now"
        tell(json, {"user": user, "finished": True}, told)
        return
    if not yes:
        confirm_name(f"All that is kept of {user} in {settings.data} will be gone.", user)
    done = asyncio.run(erased())
    files = [str(path.relative_to(settings.data)) for path in done.files]
    rows = {name: done.rows[name] for name in ("records", "log", "work")}
    told = f"{count_of(rows['records'], 'record')}, {count_of(rows['log'], 'row')} of the log, {rows['work']} of work"
    tell(
        json, {"user": user, **rows, "files": files, "looked_for": len(done.words)},
        f"{user} is erased: {', '.join([told, *files])}",
        f"looked for {count_of(len(done.words), 'text')} in the bytes of mindstream.db and its -wal: none is left",
    )  # fmt: skip


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
