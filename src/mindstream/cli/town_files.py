"""`mindstream town import` and `export`: saved simulations of Park 2023, and journals."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from mindstream.cli import files
from mindstream.cli.clean import complain, say
from mindstream.cli.json_lines import print_json
from mindstream.cli.progress import progress
from mindstream.errors import InputError
from mindstream.log.folder import private
from mindstream.models.embedders.named import embedder
from mindstream.service import town as towns
from mindstream.service.folders import require_room_for_town
from mindstream.settings import Settings
from mindstream.text.counting import count_of
from mindstream.town.exporting import save_of_town
from mindstream.town.formats.maps import find_map, load_map, save_map
from mindstream.town.formats.save_clock import settle_clock
from mindstream.town.formats.saves import read_save, write_save
from mindstream.town.formats.whispers import read_whispers
from mindstream.town.importing import begin_from_save
from mindstream.town.journal_file import write_journal
from mindstream.town.lookup import find_span
from mindstream.town.replay import write_replay
from mindstream.town.time_words import format_time
from mindstream.town.world.tiles import TileWorld


def take_in(
    settings: Settings, folder: Path, map_: Path | None, whispers: Path | None, seed: int, profile: Sequence[str],
    json: bool,
) -> int:  # fmt: skip
    """Begin a town from a saved simulation."""
    notes: dict[str, None] = {}
    save = settle_clock(read_save(folder), notes.setdefault)
    world = load_map(map_ or find_map(folder, save.meta.maze_name))
    constants = towns.read_profile(profile, ()) if profile else None
    told = read_whispers(whispers) if whispers else None

    async def begin() -> None:
        await require_room_for_town(settings.data)
        await begin_from_save(
            private(settings.data), save, world, seed=seed, profile=constants, whispers=told, embed=settings.embedder,
            tell=notes.setdefault,
        )  # fmt: skip

    asyncio.run(begin())
    for note in notes:
        complain(note)
    memories = sum(len(each.memory.nodes) for each in save.personas.values())
    if json:
        who = {"residents": sorted(save.personas), "memories": memories, "step": save.meta.step - 1}
        print_json({"town": world.name, "data": str(settings.data), **who, "notes": list(notes)})
        return 0
    lived = f"it has lived {count_of(save.meta.step, 'step')}"
    say(f"{world.name} lives in {settings.data}: {count_of(len(save.personas), 'resident')}, "
        f"{count_of(memories, 'memory') if memories == 1 else f'{memories:,} memories'}; {lived}")  # fmt: skip
    return 0


def export(
    settings: Settings, out: Path | None, saved: Path | None, journal: Path | None, at: str, json: bool
) -> int:  # fmt: skip
    """Write a town as a saved simulation, or its journal."""
    if out is None and journal is None:
        raise InputError("say what is written: --out FOLDER, a saved simulation, or --journal FILE")
    if out is None and (at or saved):
        raise InputError("a journal is written whole: --at and --save are for --out")
    began = settle_clock(read_save(saved), complain) if saved else None

    async def run() -> dict[str, object]:
        written: dict[str, object] = {}
        async with towns.look_in(settings) as look:
            if journal is not None:
                written |= {"journal": str(journal), "lines": await _write_journal(look, journal)}
            if out is not None:
                step = towns.find_past_step(look.setting, at, look.now) if at else None
                save = await save_of_town(look.store, look.setting, embedder(settings.embedder), upto=step, saved=began)
                write_save(save, out)
                if isinstance(look.setting.world, TileWorld):
                    save_map(look.setting.world, out / save.meta.maze_name)
                written |= {"out": str(out), "residents": len(save.personas), "step": save.meta.step - 1,
                            "time": format_time(look.setting, save.meta.step - 1)}  # fmt: skip
        return written

    with progress(f"writing {out or journal}"):
        written = asyncio.run(run())
    if json:
        print_json(written)
        return 0
    if "lines" in written:
        say(f"{written['lines']} lines are in {journal}")
    if "out" in written:
        say(f"{written['residents']} residents as of {written['time']}, and their map, are in {out}")
    return 0


async def _write_journal(look: towns.Look, file: Path) -> int:
    """Write a journal, to a file that holds no other; return how many lines it has."""
    if files.real_file(file) is None:
        return await files.write_lines(None, look.write_journal())
    return await write_journal(look.store, look.setting, file)


def replay(settings: Settings, out: Path, since: str, until: str, json: bool) -> int:
    """Write a page that plays what happened."""

    async def run() -> dict[str, object]:
        async with towns.look_in(settings) as look:
            first, last = find_span(look.setting, since, until, look.now)
            if since:
                towns.find_past_step(look.setting, since, look.now)
            await write_replay(
                look.store, look.setting, out, since=first if since else None, until=last if until else None
            )
        return {"out": str(out)}

    with progress(f"writing {out}"):
        done = asyncio.run(run())
    written = done | {"bytes": out.stat().st_size}
    if json:
        print_json(written)
    else:
        say(f"{out} plays it: open it in a browser ({written['bytes']} bytes; it needs no network)")
    return 0
