"""`mindstream town prepare`: a model writes the keys of a town file that is told in prose."""

from __future__ import annotations

import asyncio
import difflib
import sys
from collections.abc import Callable
from pathlib import Path

from mindstream.cli import asking
from mindstream.cli.clean import complain, say
from mindstream.cli.json_lines import print_json
from mindstream.cli.progress import progress
from mindstream.cli.town import RESTED
from mindstream.errors import InputError, ModelError
from mindstream.paths import read_text
from mindstream.service import town as towns
from mindstream.settings import Settings
from mindstream.text.counting import count_of
from mindstream.town.preparing import Preparing

LARGEST = 16 << 20


def prepare(settings: Settings, file: Path, out: Path | None, yes: bool, json: bool) -> int:
    """Ask for the keys, show the difference, write it where that is wanted; return the exit code.

    Raises:
        InputError: the file is no town, what was said makes none, or there is no model to ask.
    """
    if out is not None and out.exists():
        raise InputError(f"{out} is there already: name a new file, or leave --out away")
    text = read_text(file, LARGEST)
    try:
        preparing = Preparing(text, file.parent)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    if not preparing.left:
        return _nothing_left(file, json)
    if towns.is_free(settings):
        raise InputError("only a model can read prose: name one by --model, as in --model openai:gpt-5-mini")
    try:
        with progress(f"preparing {file.name}", len(preparing.left)) as told:
            new = asyncio.run(_ask(settings, preparing, lambda number, name: told(number, None, f"reading {name}")))
    except ModelError as error:
        complain(f"{error}; nothing was changed")
        return RESTED
    before, after = text.splitlines(keepends=True), new.splitlines(keepends=True)
    difference = "".join(difflib.unified_diff(before, after, str(file), str(out or file)))
    if not json:
        say(difference)
    is_wanted = yes or out is not None or (asking.is_answerable() and asking.confirm(f"Write it to {file}?"))
    if is_wanted:
        _write(out or file, new)
    if json:
        target = str(out or file) if is_wanted else ""
        print_json({"file": str(file), "prepared": preparing.prepared, "written": target, "difference": difference})
    elif is_wanted:
        say(f"{out or file} has the keys of {count_of(len(preparing.prepared), 'description')}", sys.stderr)
    else:
        complain("nothing was written: say --yes, or --out NEW.toml")
    return 0


def _nothing_left(file: Path, json: bool) -> int:
    if json:
        print_json({"file": str(file), "prepared": [], "written": "", "difference": ""})
    else:
        say(f"{file} is prepared: everybody has a day, and places have their purpose")
    return 0


async def _ask(settings: Settings, preparing: Preparing, on_done: Callable[[int, str], None]) -> str:
    async with towns.open_answerer(settings) as models:
        return await preparing.run(models, on_done)


def _write(file: Path, text: str) -> None:
    """Write it whole or not at all."""
    beside = file.with_name(f"{file.name}.new")
    try:
        beside.write_text(text, "utf-8")
        beside.replace(file)
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}") from None
