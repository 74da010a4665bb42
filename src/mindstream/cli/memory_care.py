"""`mindstream memory`: audit, purge, reembed, evidence, erase."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Sequence
from dataclasses import asdict

from pydantic import JsonValue
from rich.console import Console
from rich.text import Text
from rich.tree import Tree

from mindstream.cli.asking import confirm, confirm_name
from mindstream.cli.clean import clean, say, short
from mindstream.cli.json_lines import print_json
from mindstream.cli.progress import progress
from mindstream.clock import format_iso
from mindstream.memory.audit import Audit
from mindstream.memory.curation import Drawn
from mindstream.memory.record import Record
from mindstream.service import erasing, upkeep
from mindstream.service.memory import memory, plain
from mindstream.settings import Settings
from mindstream.text.counting import count_of

FEW = 5
"""So many findings of an audit are shown in full."""


def audit(settings: Settings, json: bool) -> int:
    """Print what a memory holds that it should not."""

    async def audited() -> tuple[Audit, dict[str, Record]]:
        async with memory(settings) as opened:
            with progress("looking"):
                found = await (await opened.require_known()).stream.audit()
            return found, {record.id: record for record in await opened.all()}

    found, records = asyncio.run(audited())
    if json:
        print_json(asdict(found))
        return 0
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
    return 0


def purge(settings: Settings, older: float | None, yes: bool, json: bool) -> int:
    """Delete what is forgotten, for good."""

    async def counted() -> int:
        async with memory(settings) as opened:
            return len(await upkeep.list_forgotten(opened, older))

    async def purged() -> int:
        async with memory(settings) as opened:
            return await upkeep.purge(opened, older)

    found = asyncio.run(counted())
    what = f"{found} forgotten record{'s' * (found != 1)} of {settings.user}"
    if found and not yes and not confirm(f"Delete {what} for good?"):  # asked outside: a loop would hold Ctrl-C back
        say("nothing was deleted", sys.stderr)
        return 0
    gone = asyncio.run(purged()) if found else 0
    if json:
        print_json({"purged": gone})
    else:
        say(f"{gone} forgotten record{'s' * (gone != 1)} deleted for good" if gone else "nothing is forgotten")
    return 0


def reembed(settings: Settings, json: bool) -> int:
    """Give each record a vector of the embedder."""

    async def reembedded() -> int:
        async with memory(settings) as opened:
            with progress("embedding") as told:
                return await upkeep.reembed(opened, told)

    done = asyncio.run(reembedded())
    if json:
        print_json({"embedder": settings.embedder, "embedded": done})
        return 0
    say(f"{count_of(done, 'vector')} of {settings.embedder} made" if done else f"all have one of {settings.embedder}")
    if settings.embedder != "wordllama":
        say(f"so that it is used: --embedder {settings.embedder}, or embedder = … in the settings file")
    return 0


def evidence(settings: Settings, id_: str, json: bool) -> int:
    """Print a record with what it was drawn from."""

    async def drawn() -> Drawn:
        async with memory(settings) as opened:
            return await (await opened.require_known()).stream.evidence_of(id_)

    found = asyncio.run(drawn())
    if json:
        print_json(_drawn(found))
        return 0
    tree = Tree(_told(found.record), guide_style="dim")
    _grow(tree, found)
    Console(highlight=False).print(tree, soft_wrap=True)
    return 0


def erase(settings: Settings, yes: bool, json: bool) -> int:
    """Erase a user for good."""

    finished = erasing.finish(settings.data, settings.user)  # what was broken off before

    async def looked() -> erasing.Kept | None:
        async with memory(settings) as opened:
            return erasing.list_kept(opened, settings.data) if await opened.is_known() or not finished else None

    async def erased() -> erasing.Kept:
        async with memory(settings) as opened:
            kept = erasing.list_kept(opened, settings.data)
            with progress("looking for what is left", len(kept.words)) as told:
                await erasing.erase(opened, settings.data, kept, told)
            return kept

    if (finished or not yes) and asyncio.run(looked()) is None:  # a name that nobody has is refused before any question
        told = f"{settings.user} is erased: it was broken off before, and is finished now"
        print_json({"user": settings.user, "finished": True}) if json else print(told)
        return 0
    if not yes:
        confirm_name(f"All that is kept of {settings.user} in {settings.data} will be gone.", settings.user)
    done = asyncio.run(erased())
    files = [str(path.relative_to(settings.data)) for path in done.files]
    rows = {name: done.rows[name] for name in ("records", "log", "work")}
    if json:
        print_json({"user": settings.user, **rows, "files": files, "looked_for": len(done.words)})
        return 0
    told = f"{count_of(rows['records'], 'record')}, {count_of(rows['log'], 'row')} of the log, {rows['work']} of work"
    say(f"{settings.user} is erased: {', '.join([told, *files])}")
    say(f"looked for {count_of(len(done.words), 'text')} in the bytes of mindstream.db and its -wal: none is left")
    return 0


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
