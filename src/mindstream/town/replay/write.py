"""Write a replay: the town's map, what its log tells, and the page that plays it, in one file."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import zlib
from collections.abc import Iterable
from functools import cache
from html import escape
from pathlib import Path

from mindstream.memory.store.store import Store
from mindstream.town.formats.files import write_text
from mindstream.town.inspect.drawing import STYLE, draw_map
from mindstream.town.replay.place_map import PlaceMap
from mindstream.town.replay.recording import record
from mindstream.town.setting import Setting
from mindstream.town.world.graph import PlaceWorld
from mindstream.town.world.tiles import TileWorld

FOLDER = Path(__file__).parent
SCRIPTS = ("recording.js", "moment.js", "stage.js", "panels.js", "resident.js", "player.js")
"""In this order they are one script."""
LINE = 20_000
"""So many characters of the recording stand on a line: editors choke on longer ones."""


async def write_replay(
    store: Store, setting: Setting, out: Path, *, since: int | None = None, until: int | None = None
) -> Path:
    """Write what a town's log holds as an HTML file that plays it, and return the file; an older replay is replaced.

    The same log gives the same bytes.

    Args:
        since, until: the steps between which it plays; None: all. What residents remember from before is in it too.

    Raises:
        InputError: the steps are none of its own, or the file cannot be written or is another one.
        StorageError: the log cannot be read.
    """
    _write_page(out, build_page(setting, await record(store, setting, since, until)))
    return out


def _write_page(out: Path, page: str) -> None:
    if _is_replay(out):
        out.unlink()
    write_text(out, page)


def _is_replay(file: Path) -> bool:
    """Tell whether a file was written by `write_replay`."""
    if file.is_symlink() or not file.is_file():
        return False
    head = _read("replay.html").partition("{{")[0].encode()
    with file.open("rb") as there:
        return there.read(len(head)) == head


def build_page(setting: Setting, data: dict[str, object]) -> str:
    """Return the page: what residents or models wrote is in the packed recording alone, so that it cannot be markup."""
    picture, ground = _draw(setting)
    style, script = _read("replay.css"), "\n".join(map(_read, SCRIPTS))
    said = json.dumps(data | ground, ensure_ascii=False, separators=(",", ":"))
    packed = base64.b64encode(zlib.compress(said.encode("utf-8", "replace"), 9)).decode()
    parts = {
        "title": escape(setting.name), "style": style, "script": f'"use strict";\n(() => {{\n{script}\n}})();\n',
        "map": picture, "recording": "\n".join(packed[at : at + LINE] for at in range(0, len(packed), LINE)),
    }  # fmt: skip
    parts["style_sources"] = " ".join(map(_source, (style, STYLE.read_text("utf-8"))))
    parts["script_source"] = _source(parts["script"])
    return re.sub(r"\{\{(\w+)\}\}", lambda gap: parts[gap[1]], _read("replay.html"))


def _draw(setting: Setting) -> tuple[str, dict[str, object]]:
    """Return the map as SVG, and what the page must know of the ground to put residents on it."""
    world = setting.world
    if isinstance(world, TileWorld):
        return draw_map(world), {"size": [world.width, world.height], "tiles": _runs(world.here)}
    assert isinstance(world, PlaceWorld)
    place_map = PlaceMap(world)
    return place_map.draw(), {"size": place_map.size, "boxes": place_map.boxes(), "roads": place_map.roads()}


def _runs(cells: Iterable[int]) -> list[int]:
    """Write numbers as pairs of number and how often it follows itself."""
    runs: list[int] = []
    for cell in cells:
        if runs and runs[-2] == cell:
            runs[-1] += 1
        else:
            runs += [cell, 1]
    return runs


def _source(text: str) -> str:
    """Name a script or style as a Content-Security-Policy does."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _read(name: str) -> str:
    return (FOLDER / name).read_text("utf-8")
