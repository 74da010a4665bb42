"""`mindstream town prepare`: a model writes the keys of a town file that is told in prose."""

from __future__ import annotations

import asyncio
import difflib
import sys
from pathlib import Path
from typing import Annotated

from mindstream.cli import asking
from mindstream.cli.clean import complain, say
from mindstream.cli.flags import AsJson, Yes, command, flag, word
from mindstream.cli.json_lines import print_json, tell
from mindstream.cli.progress import progress
from mindstream.cli.town import RESTED
from mindstream.cli.town_group import MODEL, ROLE, app
from mindstream.errors import InputError, ModelError
from mindstream.paths import read_text
from mindstream.service.opening import answering
from mindstream.service.town import is_free
from mindstream.settings import Settings
from mindstream.text.counting import count_of
from mindstream.town.preparing import Preparing

LARGEST = 16 << 20


@command(
    app, "model roles", "mindstream town prepare ./mine.toml --model openai:gpt-5-mini",
    "mindstream town prepare ./mine.toml --model openai:gpt-5-mini --out ./prepared.toml",
    notes="Exit code: 0; 1 where a model failed, and nothing has changed; 2 a mistake.", model=MODEL, roles=ROLE,
)  # fmt: skip
def prepare(
    settings: Settings,
    file: Annotated[Path, word("FILE.toml", "A town file.")],
    out: Annotated[Path | None, flag("NEW.toml", "Write it there, and leave FILE as it is.")] = None,
    yes: Yes = False,
    json: AsJson = False,
) -> int:
    """Let a model write the keys of a town file that is told in prose.

    Days, beds, appointments and acquaintances of residents, purposes of places, dangers: asked once for each resident
    and once for the places, shown as a difference, then kept in the file. Comments and keys that are there stay.
    """
    if out is not None and out.exists():
        raise InputError(f"{out} is there already: name a new file, or leave --out away")
    text = read_text(file, LARGEST)
    try:
        preparing = Preparing(text, file.parent)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None
    if not preparing.left:
        row = {"file": str(file), "prepared": [], "written": "", "difference": ""}
        tell(json, row, f"{file} is prepared: everybody has a day, and places have their purpose")
        return 0
    if is_free(settings):
        raise InputError("only a model can read prose: name one by --model, as in --model openai:gpt-5-mini")
    try:
        with progress(f"preparing {file.name}", len(preparing.left)) as told:

            async def ask() -> str:
                async with answering(settings) as models:
                    return await preparing.run(models, lambda number, name: told(number, None, f"reading {name}"))

            new = asyncio.run(ask())
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


def _write(file: Path, text: str) -> None:
    """Write it whole or not at all."""
    beside = file.with_name(f"{file.name}.new")
    try:
        beside.write_text(text, "utf-8")
        beside.replace(file)
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror}") from None
