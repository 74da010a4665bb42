"""Reading packs: by name from those that are shipped, or from a folder of one's own."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import yaml

from mindstream.errors import PackError
from mindstream.packs.dangling import Where
from mindstream.packs.faults import faults
from mindstream.packs.pack import Pack

SHIPPED = Path(__file__).parent
LISTS = {"topics.yaml": "topics", "steps.yaml": "steps", "resources.yaml": "resources", "safety.yaml": "alarms"}
MAPPINGS = {"phrases.yaml": "phrases"}
SHOWN = 10
"""How many faults of a pack are told at once."""


def shipped() -> list[str]:
    """Name the packs that come with mindstream."""
    return sorted(path.parent.name for path in SHIPPED.glob("[!_]*/pack.yaml"))


def load(name_or_folder: str | Path) -> Pack:
    """Read a pack.

    Raises:
        PackError: there is no such pack, or it is broken; the message names file and line.
    """
    folder = Path(name_or_folder)
    if folder.name == str(name_or_folder) and not folder.is_dir():
        folder = SHIPPED / folder.name
    if not (folder / "pack.yaml").is_file():
        raise PackError(
            f"no pack {str(name_or_folder)!r}: shipped are {', '.join(shipped()) or 'none'};"
            " a pack of your own is a folder with a pack.yaml in it"
        )
    return _load(folder.resolve(), _stamp(folder))


def _stamp(folder: Path) -> tuple[float, ...]:
    return tuple(path.stat().st_mtime for path in sorted(folder.glob("*.yaml")))


@cache
def _load(folder: Path, stamp: tuple[float, ...]) -> Pack:  # noqa: ARG001 (the stamp makes a changed pack a new one)
    files = {"": folder / "pack.yaml"}
    data = _read(files[""])
    if not isinstance(data, dict):
        raise PackError(f"{files['']}:1: a pack.yaml is a mapping (name: …, title: …), not a {_kind(data)}")
    for file, key in (LISTS | MAPPINGS).items():
        path = folder / file
        if path.is_file():
            if key in data:
                raise PackError(f"{path}:1: {key!r} stands in pack.yaml too; keep one of them")
            part = _read(path)
            wanted = list if file in LISTS else dict
            if not isinstance(part, wanted):
                kind = "list (lines that start with '- ')" if wanted is list else "mapping (name: …)"
                raise PackError(f"{path}:1: {file} is a {kind}, not a {_kind(part)}")
            data[key], files[key] = part, path
    pack, wrong = faults(data)
    if pack is None:
        told = [_placed(files, where, message) for where, message in wrong]
        more = [f"and {len(told) - SHOWN} more"] if len(told) > SHOWN else []
        raise PackError("\n".join([*told[:SHOWN], *more]))
    return pack


def _placed(files: dict[str, Path], where: Where, message: str) -> str:
    """Put file and line before what is wrong there."""
    key = str(where[0]) if where and str(where[0]) in files else ""
    line = _line(files[key], list(where[1:] if key else where))
    return f"{files[key]}:{line}: {'.'.join(map(str, where)) or 'pack'} {message}"


def _kind(value: object) -> str:
    return {dict: "mapping", list: "list", str: "text", type(None): "empty file"}.get(type(value), type(value).__name__)


def _read(path: Path) -> Any:
    try:
        return yaml.load(path.read_text("utf-8"), Loader=yaml.CSafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise PackError(f"{path}:{line}: not YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise PackError(f"{path}:1: not YAML: {str(error).splitlines()[0]}") from None
    except UnicodeDecodeError:
        raise PackError(f"{path}:1: not UTF-8 text") from None
    except OSError as error:
        raise PackError(f"{path}: cannot be read: {error.strerror}") from None


def _line(path: Path, where: list[Any]) -> int:
    """Find the line of the deepest part of `where` that the file has."""
    node = yaml.compose(path.read_text("utf-8"), Loader=yaml.CSafeLoader)
    for part in where:
        if isinstance(node, yaml.MappingNode):
            inner = next((value for key, value in node.value if key.value == str(part)), None)
        elif isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            inner = node.value[part]
        else:
            inner = None
        if inner is None:
            break
        node = inner
    return node.start_mark.line + 1 if node else 1
