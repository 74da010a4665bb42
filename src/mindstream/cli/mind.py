"""`mindstream mind`: a whole mind as one file."""

from __future__ import annotations

import asyncio
import shlex
import sys
from dataclasses import asdict
from pathlib import Path

from mindstream.cli import files
from mindstream.cli.clean import say
from mindstream.cli.json_lines import print_json
from mindstream.cli.progress import progress
from mindstream.service import backup
from mindstream.service.memory import memory
from mindstream.service.transfer import Imported, take_in
from mindstream.settings import Settings
from mindstream.text.counting import count_of


def export(settings: Settings, file: Path | None) -> int:
    """Write a mind to a file."""

    async def write() -> None:
        async with memory(settings) as opened:
            await files.write_lines(file, backup.export(opened, settings))

    asyncio.run(write())
    if written := files.real_file(file):
        print(f"the mind of {settings.user} is in {written}; another folder takes it in by", file=sys.stderr)
        print(f"  {shlex.join(['mindstream', 'mind', 'import', str(written), '--data'])} DIR", file=sys.stderr)
    return 0


def import_mind(settings: Settings, file: Path | None, user: str | None, data: Path | None, json: bool) -> int:
    """Take a mind in, under its own name or another."""
    packed = backup.parse_backup(files.read_lines(file), files.source(file))
    settings = settings.model_copy(update={"user": user or packed.header.user or settings.user})

    async def take() -> Imported:
        async with memory(settings, new=True) as opened:
            with progress("taking in", len(packed)) as told:
                return await take_in(opened, packed, told)

    with packed:
        done = asyncio.run(take())
    habits = packed.header.settings
    go_on, pack = backup.next_words(habits, settings.user, data), backup.missing_pack(habits)
    if json:
        print_json({"user": settings.user, **asdict(done), "go_on": go_on})
        return 0
    own = f", {done.own} belief or plan versions left out, as this mind has its own" if done.own else ""
    print(f"{settings.user}: {count_of(done.written, 'record')} taken in, {done.known} were known{own}")
    if pack:
        print(f"its pack {pack!r} does not come with mindstream: bring its folder along and add --pack FOLDER")
    say(f"go on with it:\n  {go_on}")
    return 0
