"""Towns that come with mindstream, each a folder with a `town.toml`. Shipped towns are found by name, others by
path."""

from __future__ import annotations

from pathlib import Path

from mindstream.errors import InputError
from mindstream.guidance import nearest
from mindstream.paths import is_path, usable
from mindstream_town.formats.town_file import TownFile, load_town
from mindstream_town.profile import Profile
from mindstream_town.setting import Setting
from mindstream_town.source import setting_of

SHIPPED = Path(__file__).parent
FILE = "town.toml"


def shipped_packs() -> list[str]:
    """Return the names of the shipped towns."""
    return sorted(path.parent.name for path in SHIPPED.glob(f"*/{FILE}"))


def find_pack(name_or_path: str | Path) -> TownFile:
    """Read a town file: a shipped one by its name, another by the path of the file or its folder.

    A path is a `Path`, or a text with a slash; a plain name never refers to the working directory.

    Raises:
        InputError: there is no such town, or its file is invalid.
    """
    if isinstance(name_or_path, Path) or is_path(name_or_path):
        path = usable(name_or_path)
        return load_town(path / FILE if path.is_dir() else path)
    names = shipped_packs()
    if name_or_path not in names:
        near = nearest(name_or_path, names)
        raise InputError(
            f"there is no shipped town {name_or_path!r:.99}; shipped towns: {', '.join(names)}"
            + (f" (did you mean {near!r}?)" if near else "")
            + "; name your own town by its path, such as ./town.toml"
        )
    return load_town(SHIPPED / name_or_path / FILE)


def open_setting(name_or_path: str | Path, *, seed: int = 0, profile: Profile | None = None) -> Setting:
    """Return the setting of a new town, found as by `find_pack`.

    Raises:
        InputError: there is no such town, or its file is invalid.
    """
    return setting_of(find_pack(name_or_path), seed=seed, profile=profile)


__all__ = ["find_pack", "open_setting", "shipped_packs"]
