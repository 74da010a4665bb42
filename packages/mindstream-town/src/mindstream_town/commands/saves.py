"""`mindstream town open`, `fork`, `import`, `export`, `replay`: recorded worlds, forks, saves, journals, pages."""

from __future__ import annotations

import asyncio
import shlex
from pathlib import Path
from typing import Annotated

from mindstream.cli.shell import files
from mindstream.cli.shell.flags import AsJson, command, flag, group, word
from mindstream.cli.shell.output import complain, progress, tell
from mindstream.errors import InputError
from mindstream.location import Location
from mindstream.models.embedders.embedder import embedder
from mindstream.service.folders import require_room_for_town
from mindstream.settings import Settings
from mindstream.text.words import count_of
from mindstream_town import forking
from mindstream_town import opened as towns
from mindstream_town.commands.group import ProfileOf, Seed
from mindstream_town.formats.files import whole_folder
from mindstream_town.formats.maps import find_map, load_map, save_map
from mindstream_town.formats.saves import read_save, read_whispers, settle_clock, write_save
from mindstream_town.inspect.lookup import find_span, format_time
from mindstream_town.journal import write_journal
from mindstream_town.saves.exporting import save_of_town
from mindstream_town.saves.importing import WORLDS, begin_from_save, unpack_world
from mindstream_town.world.tiles import TileWorld

app = group()


@command(app, "town", "mindstream town open recorded --data ./hamlet", name="open")
def open_(
    settings: Settings,
    name: Annotated[str, word("WORLD", "The name of a recorded world.")] = "recorded",
    json: AsJson = False,
) -> None:
    """Open a recorded world: days of residents recorded with a language model, to explore without a model."""
    unpack_world(name, settings.data.as_folder())
    data = shlex.quote(str(settings.data))
    tell(
        json,
        {"world": name, "about": WORLDS[name], "data": str(settings.data)},
        f"{WORLDS[name]}; it is stored in {settings.data}. Explore it:",
        f"  mindstream town replay --out {name}.html --data {data}     watch it in a browser",
        f"  mindstream town status --data {data}                     where each resident is",
        f"  mindstream town timeline NAME --data {data}              a resident's day",
        f"  mindstream town why NAME --at TIME --data {data}         why a resident did something",
    )


@command(app, "town", 'mindstream town fork ./other --at "Feb 13 10:00" --data ./ville')
def fork(
    settings: Settings,
    folder: Annotated[Path, word("DIR", "The new folder, for the copy.")],
    at: Annotated[str, flag("TIME", "The past time in the town from which the fork continues [now].")] = "",
    json: AsJson = False,
) -> None:
    """Copy a town as of a time; the copy has the same past and seed, and continues independently."""

    async def make() -> tuple[int, str]:
        async with towns.look_in(settings) as look:
            step = towns.find_past_step(look.setting, at, look.now) if at else look.now
            setting = look.setting
        await require_room_for_town(Location(folder))
        await forking.fork(settings.data, folder, max(step, 0))
        return (
            step,
            f"{folder} continues {setting.name} from {format_time(setting, step)}; the original is unchanged",
        )

    step, said = asyncio.run(make())
    tell(json, {"folder": str(folder), "step": step}, said)


@command(
    app, "town embedder", "mindstream town import ./base_the_ville_n25 --data ./theirs --map ./the_ville", name="import"
)
def import_(
    settings: Settings,
    folder: Annotated[Path, word("DIR", "The folder of a saved simulation in the format of Park 2023.")],
    map_: Annotated[
        Path | None,
        flag(
            "PATH",
            "The map of the simulation: a folder in Park 2023's matrix format, or a Tiled file"
            " [the folder named like the simulation's map, in DIR or its parents].",
            "--map",
        ),
    ] = None,
    whispers: Annotated[
        Path | None, flag("FILE", "Memories that residents have at the beginning (agent_history….csv).")
    ] = None,
    seed: Seed = 0,
    profile: ProfileOf = None,
    json: AsJson = False,
) -> None:
    """Create a town that continues a saved simulation."""
    notes: dict[str, None] = {}
    save = settle_clock(read_save(folder), notes.setdefault)
    world = load_map(map_ or find_map(folder, save.meta.maze_name))
    constants = towns.read_profile(profile, ()) if profile else None
    hints = read_whispers(whispers) if whispers else None

    async def begin() -> None:
        await require_room_for_town(settings.data)
        await begin_from_save(
            settings.data,
            save,
            world,
            seed=seed,
            profile=constants,
            whispers=hints,
            embed=settings.embedder,
            tell=notes.setdefault,
        )

    asyncio.run(begin())
    for note in notes:
        complain(note)
    memories = sum(len(each.memory.nodes) for each in save.personas.values())
    who = {"residents": sorted(save.personas), "memories": memories, "step": save.meta.step - 1}
    held = "1 memory" if memories == 1 else f"{memories:,} memories"
    told = f"{count_of(len(save.personas), 'resident')}, {held}, {count_of(save.meta.step, 'step')} simulated before"
    row = {"town": world.name, "data": str(settings.data), **who, "notes": list(notes)}
    tell(json, row, f"{world.name} is stored in {settings.data}: {told}")


@command(
    app,
    "town embedder",
    'mindstream town export --data ./ville --out ./saved --at "Feb 14 12:00"',
    "mindstream town export --data ./ville --journal journal.jsonl",
)
def export(
    settings: Settings,
    out: Annotated[Path | None, flag("FOLDER", "Write a saved simulation into this new folder.")] = None,
    save: Annotated[
        Path | None,
        flag(
            "DIR",
            "With --out: the folder that the town was imported from; what a town does not store is copied from there.",
        ),
    ] = None,
    journal: Annotated[
        Path | None, flag("FILE", "Write all events to this file as JSON Lines, always in the same order.")
    ] = None,
    at: Annotated[str, flag("TIME", "With --out: export the town as of this time [now].")] = "",
    json: AsJson = False,
) -> None:
    """Write a town as a saved simulation (--out), or its journal (--journal: the list of all events), or both.

    The published code of Park 2023 and `town import` can read the saved simulation. The map is included if the town
    has a map of tiles.
    """
    if out is None and journal is None:
        raise InputError("name an output: --out FOLDER for a saved simulation, or --journal FILE")
    if out is None and (at or save):
        raise InputError("--journal exports all events: --at and --save are only for --out")
    with progress(f"writing {out or journal}"):
        row, told = asyncio.run(_export(settings, out, save, journal, at))
    tell(json, row, *told)


async def _export(
    settings: Settings, out: Path | None, saved: Path | None, journal: Path | None, at: str
) -> tuple[dict[str, object], list[str]]:
    """Write the files; return the result as JSON fields and as lines of text."""
    began = settle_clock(read_save(saved), complain) if saved else None
    row, told = dict[str, object](), list[str]()
    async with towns.look_in(settings) as look:
        if journal is not None:
            lines = await _write_journal(look, journal)
            row |= {"journal": str(journal), "lines": lines}
            told.append(f"{journal} has {count_of(lines, 'line')}")
        if out is not None:
            step = towns.find_past_step(look.setting, at, look.now) if at else None
            save = await save_of_town(look.store, look.setting, embedder(settings.embedder), upto=step, saved=began)
            with whole_folder(out) as beside:
                write_save(save, beside)
                if isinstance(look.setting.world, TileWorld):
                    save_map(look.setting.world, beside / save.meta.maze_name)
            who, time = len(save.personas), format_time(look.setting, save.meta.step - 1)
            row |= {"out": str(out), "residents": who, "step": save.meta.step - 1, "time": time}
            mapped = ", and their map," if isinstance(look.setting.world, TileWorld) else ""
            told.append(f"{count_of(who, 'resident')} as of {time}{mapped} {'is' if who == 1 else 'are'} in {out}")
    return row, told


async def _write_journal(look: towns.Look, file: Path) -> int:
    """Write a journal to a file or stream and return its number of lines."""
    if files.real_file(file) is None:
        return await files.write_lines(None, look.write_journal())
    return await write_journal(look.store, look.setting, file)


@command(
    app,
    "town",
    "mindstream town replay --data ./ville",
    'mindstream town replay --data ./ville --from "Feb 14 16:00" --to "Feb 14 20:00" --out party.html',
)
def replay(
    settings: Settings,
    out: Annotated[Path, flag("FILE", "The HTML file to write; an earlier saved page is replaced.")] = Path(
        "replay.html"
    ),
    since: Annotated[
        str, flag("TIME", "The time in the town at which the replay starts [its beginning].", "--from")
    ] = "",
    until: Annotated[
        str, flag("TIME", "The time in the town at which the replay ends [as far as the town has run].", "--to")
    ] = "",
    json: AsJson = False,
) -> None:
    """Write a web page that replays the town.

    The page is one HTML file with the map, the residents and their memories; it needs no network and no API key.
    """
    write_page(settings, out, since, until, json)


def write_page(settings: Settings, out: Path, since: str = "", until: str = "", json: bool = False) -> None:
    """Write a web page that replays the town.

    Raises:
        InputError: a time is not valid, or the package mindstream-studio is not installed, which renders pages.
    """
    try:
        from mindstream_studio.recorded import write_replay
    except ModuleNotFoundError:
        raise InputError("replay pages need the package mindstream-studio: pip install mindstream-studio") from None

    async def run() -> None:
        async with towns.look_in(settings) as look:
            first, last = find_span(look.setting, since, until, look.now)
            if since:
                towns.find_past_step(look.setting, since, look.now)
            await write_replay(
                look.store, look.setting, out, since=first if since else None, until=last if until else None
            )

    with progress(f"writing {out}"):
        asyncio.run(run())
    size = out.stat().st_size
    told = f"{out}: open it in a browser to replay the town ({size} bytes; it needs no network)"
    tell(json, {"out": str(out), "bytes": size}, told)
