"""Load packs: shipped packs by name, others by the path of their folder.

A plain name never means a folder of the working directory. Files must be plain YAML of limited size and depth, without
tags, anchors and aliases, because these can make a short file huge or circular.
"""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

import yaml
from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from mindstream import chance
from mindstream.coach.packs.pack import (
    Alarm,
    Fault,
    Field_,
    Lists,
    Pack,
    Phase,
    Resource,
    Step,
    Topic,
    Where,
    choices,
    dangling,
    suggest,
)
from mindstream.errors import InputError, PackError
from mindstream.paths import is_path, read_text
from mindstream.text.words import Language

PARTS: dict[str, type[BaseModel]] = {
    "phases": Phase,
    "fields": Field_,
    "topics": Topic,
    "steps": Step,
    "resources": Resource,
    "alarms": Alarm,
}
"""The Pydantic models of the items in a pack's lists and mappings, by key."""
ADVISED = 50
"""Maximum number of faults for which a similar name is suggested, because comparing names takes time."""
PLAIN = {
    "missing": "is missing",
    "string_type": "should be a text",
    "list_type": "should be a list (lines that start with '- ', or [a, b])",
    "tuple_type": "should be a list (lines that start with '- ', or [a, b])",
    "dict_type": "should be a mapping (name: …)",
    "model_type": "should be a mapping (name: …)",
    "bool_type": "should be true or false",
    "bool_parsing": "should be true or false",
}


def faults(data: Any) -> tuple[Pack | None, list[Fault]]:
    """Create a pack from the data of its files; return the pack and no faults, or None and the faults."""
    try:
        pack = Pack.model_validate(data)
    except ValidationError as error:
        return None, [_told(each, advise=number < ADVISED) for number, each in enumerate(error.errors())]
    unknown = list(dangling(pack))
    return None if unknown else pack, unknown


def _told(error: ErrorDetails, *, advise: bool) -> Fault:
    where = tuple(part for part in error["loc"] if part != "[key]")
    if error["type"] == "extra_forbidden":
        model = PARTS.get(str(where[0]), Pack) if len(where) > 1 else Pack
        return where, "is not known here" + (suggest(str(where[-1]), set(model.model_fields)) if advise else "")
    return where, PLAIN.get(error["type"]) or error["msg"].removeprefix("Value error, ")


SHIPPED = Path(__file__).parent
LISTS = {"topics.yaml": "topics", "steps.yaml": "steps", "resources.yaml": "resources", "safety.yaml": "alarms"}
MAPPINGS = {"phrases.yaml": "phrases"}
DANGERS = SHIPPED / "danger.yaml"
"""File of alarms that a pack can include by id (`shipped: suicide`). Fields of an alarm that the pack sets itself take
precedence over the file."""
HARMLESS = "harmless.txt"
"""Name of a pack's file of common harmless sentences, one per line; lines that begin with # are comments."""
SHOWN = 10
"""Maximum number of faults in an error message."""
MOST_BYTES, MOST_PARTS, DEEPEST = 1_000_000, 20_000, 30
"""Maximum size of a file in bytes, number of its YAML events, and nesting depth."""


@cache
def shipped_packs() -> tuple[str, ...]:
    """Return the names of the shipped packs."""
    return tuple(sorted(path.parent.name for path in SHIPPED.glob("[!_]*/pack.yaml")))


def load(name_or_folder: str | Path) -> Pack:
    """Load a pack.

    Args:
        name_or_folder: the name of a shipped pack, or the path of any pack's folder (a `Path`, or a string with a
            slash).

    Raises:
        PackError: there is no such pack, or the pack is invalid. For an invalid pack, the message names the file, and
            the line if the line is known.
    """
    named = isinstance(name_or_folder, str) and not is_path(name_or_folder)
    folder = SHIPPED / name_or_folder if named else Path(name_or_folder)
    if (named and name_or_folder not in shipped_packs()) or not os.path.lexists(folder / "pack.yaml"):
        raise PackError(_missing(str(name_or_folder), named))
    return _load(folder.resolve(), _stamp(folder))


def _missing(given: str, named: bool) -> str:
    """Return the message that there is no such pack; `given` is a name or the path of a folder."""
    if named and os.path.lexists(Path(given, "pack.yaml")):
        path = shlex.quote(f"./{given}")
        return f"no pack {given!r} is shipped: did you mean {path}? A pack of your own is named by its path"
    if not named and not os.path.lexists(given):
        return f"no pack {given!r}: there is no folder {given}"
    if not named:
        return f"no pack {given!r}: there is no file {Path(given, 'pack.yaml')}"
    return (
        f"no pack {given!r}: shipped are {', '.join(shipped_packs()) or 'none'};"
        " a pack of your own is a folder with a pack.yaml in it, named by its path, as ./mine"
    )


def _stamp(folder: Path) -> tuple[float, ...]:
    paths = [folder / name for name in ("pack.yaml", *LISTS, *MAPPINGS, HARMLESS)]
    return tuple(path.lstat().st_mtime if os.path.lexists(path) else 0.0 for path in paths)


@cache
def _load(folder: Path, stamp: tuple[float, ...]) -> Pack:  # noqa: ARG001 (a changed stamp reloads the pack)
    files = {"": folder / "pack.yaml"}
    data = _read(files[""])
    if not isinstance(data, dict):
        raise PackError(f"{files['']}:1: expected a mapping (name: …, title: …), found: {_kind(data)}")
    for file, key in (LISTS | MAPPINGS).items():
        path = folder / file
        if os.path.lexists(path):
            if key in data:
                raise PackError(f"{path}:1: {key!r} is in pack.yaml as well; keep one of them")
            part = _read(path)
            wanted = list if file in LISTS else dict
            if not isinstance(part, wanted):
                kind = "list (lines that start with '- ')" if wanted is list else "mapping (name: …)"
                raise PackError(f"{path}:1: expected a {kind}, found: {_kind(part)}")
            data[key], files[key] = part, path
    if os.path.lexists(folder / HARMLESS):
        data.setdefault("harmless", _sentences(folder / HARMLESS))
    if isinstance(data.get("alarms"), list):
        data["alarms"] = [_with_shipped(alarm) for alarm in data["alarms"]]
    pack, wrong = faults(data)
    if pack is None:
        told = [_placed(files, where, message) for where, message in wrong[:SHOWN]]
        more = [f"and {len(wrong) - SHOWN} more"] if len(wrong) > SHOWN else []
        raise PackError("\n".join([*told, *more]))
    return pack


@cache
def shipped_dangers() -> dict[str, dict[str, Any]]:
    """Return the shipped alarms by id."""
    return {alarm["id"]: alarm for alarm in _read(DANGERS)}


def _with_shipped(alarm: Any) -> Any:
    """Return an alarm, completed by the fields of the shipped alarm that it names (`shipped`). An alarm with an unknown
    name is returned unchanged; `faults` reports the name later."""
    named = alarm.get("shipped") if isinstance(alarm, dict) else None
    if not isinstance(named, str) or named not in shipped_dangers():
        return alarm
    return {**shipped_dangers()[named], **{key: held for key, held in alarm.items() if key != "shipped"}}


def _sentences(path: Path) -> list[str]:
    try:
        lines = map(str.strip, read_text(path, MOST_BYTES).splitlines())
    except InputError as error:
        raise PackError(f"{path}: {error}") from None
    return [line for line in lines if line and not line.startswith("#")]


def _placed(files: dict[str, Path], where: Where, message: str) -> str:
    """Return a fault's message with file and line."""
    key = str(where[0]) if where and str(where[0]) in files else ""
    line = _line(files[key], list(where[1:] if key else where))
    named = f"{'.'.join(map(str, where))} " if where else ""  # a fault of the whole pack has no place in it
    return f"{files[key]}:{line}: {named}{message}"


def _kind(value: object) -> str:
    return {dict: "mapping", list: "list", str: "text", type(None): "empty file"}.get(type(value), type(value).__name__)


def _read(path: Path) -> Any:
    try:
        text = read_text(path, MOST_BYTES)
    except InputError as error:
        raise PackError(f"{path}: {error}") from None
    try:
        if not path.is_relative_to(SHIPPED):
            _refuse_tricks(path, text)
        loader = yaml.CSafeLoader(text)
        try:
            return loader.get_single_data()
        except ValueError as error:  # an invalid number or date
            node = next(reversed(loader.recursive_objects), None)  # the node being read
            line = node.start_mark.line + 1 if node else 1
            raise PackError(f"{path}:{line}: not YAML: {error}") from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        end = error.problem_mark.index if error.problem_mark else len(text)
        # if the text before the error is nested too deeply, the message about the depth is more useful
        if sum((each in "[{") - (each in "]}") for each in text[:end]) > DEEPEST:
            raise PackError(f"{path}:{line}: it is nested too deeply") from None
        raise PackError(f"{path}:{line}: not YAML: {error.problem}") from None
    except yaml.YAMLError as error:
        raise PackError(f"{path}:1: not YAML: {str(error).splitlines()[0]}") from None


def _refuse_tricks(path: Path, text: str) -> None:
    """Raise PackError for YAML features that packs may not use, before any value is built."""
    depth = 0
    # for each open mapping: its keys, and whether a key comes next
    open_ = list[tuple[set[str], list[bool]] | None]()
    for number, event in enumerate(yaml.parse(text, Loader=yaml.CSafeLoader)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        what = "it is nested too deeply" if depth > DEEPEST else "it has too many parts" if number > MOST_PARTS else ""
        if isinstance(event, yaml.NodeEvent) and event.anchor is not None:
            what = "anchors and aliases (&, *) are not read: write it out"
        if (tag := getattr(event, "tag", None)) is not None:
            what = f"the tag {tag!r} is not read: write the value plainly, a text in quotes"
        if isinstance(event, yaml.NodeEvent) and open_ and (within := open_[-1]) is not None:
            keys, turn = within
            if turn[0] and isinstance(event, yaml.ScalarEvent):
                if event.value in keys:
                    what = f"the key {event.value!r} is there twice: keep one"
                keys.add(event.value)
            turn[0] = not turn[0]
        if isinstance(event, yaml.CollectionStartEvent):
            open_.append((set(), [True]) if isinstance(event, yaml.MappingStartEvent) else None)
        elif isinstance(event, yaml.CollectionEndEvent):
            open_.pop()
        if what:
            line = event.start_mark.line + 1 if event.start_mark else 1
            raise PackError(f"{path}:{line}: {what}")


def _line(path: Path, where: list[Any]) -> int:
    """Return the line of a place in a file. If the file lacks the place, return the line of the nearest parent."""
    node = yaml.compose(read_text(path, MOST_BYTES), Loader=yaml.CSafeLoader)
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


@lru_cache(1)
def _own() -> dict[str, Lists]:
    raw: dict[str, Lists] = yaml.load(
        Path(__file__).with_name("phrases.yaml").read_text("utf-8"), Loader=yaml.CSafeLoader
    )
    return raw


def phrase_names() -> list[str]:
    """Return the names of the shipped phrases."""
    return list(_own())


def phrases(pack: Pack, name: str, language: Language) -> list[str]:
    """Return the phrases with a name; empty: there are none.

    The result is the first of these that exists:
    - the pack's own phrases in this language,
    - the shipped phrases in this language,
    - the shipped phrases in their first language.
    """
    own = pack.phrases.get(name)
    if isinstance(own, dict):
        own = own.get(language)
    return list(own) if own else choices(_own().get(name, []), language)


def say(pack: Pack, name: str, language: Language, said: Sequence[str] = (), **filled: str) -> str:
    """Choose a phrase, if possible one that does not occur in `said`. Replace placeholders in braces by the values in
    `filled`."""
    words = fresh(phrases(pack, name, language), said, name, len(said))
    for brace, text in filled.items():
        words = words.replace(f"{{{brace}}}", text)
    return words


def fresh(options: Sequence[str], said: Sequence[str], *key: object) -> str:
    """Choose an option that does not occur in `said`. If all occur, choose the one said longest ago. "" if there are no
    options.

    `key`: makes the choice reproducible: equal arguments give the same choice.
    """
    if not options:
        return ""
    lately = {option: _last_said(option, said) for option in options}
    new = [option for option in options if lately[option] < 0]
    return chance.pick(new, "fresh", *key) if new else min(options, key=lambda option: lately[option])


def _last_said(option: str, said: Sequence[str]) -> int:
    """Return the index of the last text that contains the longest part of an option between placeholders; -1: none."""
    parts = option.replace("{", "\0{").replace("}", "}\0").split("\0")
    fixed = max(parts, key=lambda part: 0 if "{" in part else len(part)).strip()
    return max((n for n, text in enumerate(said) if fixed in text), default=-1) if fixed else -1


def list_in(language: Language, items: Sequence[object]) -> str:
    """Return items as a list in a language's style."""
    texts = [str(item) for item in items]
    if language == "zh":
        return "、".join(texts)
    return ", ".join(texts[:-1]) + " and " + texts[-1] if len(texts) > 1 else "".join(texts)
