"""`mindstream mind`: a whole mind as one file."""

from __future__ import annotations

import asyncio
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from mindstream.cli.memory.look import describe_import, take_in
from mindstream.cli.shell import files
from mindstream.cli.shell.flags import AsJson, command, flag, group, word
from mindstream.cli.shell.output import clean, tell
from mindstream.service import backup
from mindstream.service.memory import open_user_memory
from mindstream.service.privacy.audit import note_of
from mindstream.settings import Settings

app = group("Carry a whole mind elsewhere, as one file.")


@command(app, "data user", "mindstream mind export ann.mind --user ann")
async def export(settings: Settings, file: Annotated[Path, word("FILE", "Where to; - is standard output.")]) -> None:
    """Write a whole mind as one file.

    JSON Lines as `memory export` writes them, superseded and forgotten records too, under a header with the pack, gate,
    models and session of the last conversation. The log stays.
    """
    async with open_user_memory(settings) as opened:
        count = await files.write_lines(file, backup.export(opened, settings)) - 1
        await note_of(opened, "exported", {"records": count})
    if written := files.real_file(file):
        print(f"the mind of {settings.user} is in {written}; another folder takes it in by", file=sys.stderr)
        print(f"  {shlex.join(['mindstream', 'mind', 'import', str(written), '--data'])} DIR", file=sys.stderr)


@command(app, "data user embedder redact", "mindstream mind import ann.mind --data elsewhere", name="import")
def import_file(
    settings: Settings,
    file: Annotated[Path, word("FILE", "Where from; - is standard input.")],
    user: Annotated[str | None, flag("NAME", "Whose mind it will be [as in the file].", "--user")] = None,
    data: Annotated[
        str | None, flag("DIR", "Data folder, or postgresql://user@host:port/db [~/.local/share/mindstream].", "--data")
    ] = None,
    json: AsJson = False,
) -> None:
    """Take in a mind, and say how to go on with it.

    All of it is checked before anything is written, and twice is as good as once. Texts are embedded
    anew.
    """
    packed = backup.parse_backup(files.read_lines(file), files.source(file))
    settings = settings.model_copy(update={"user": user or packed.header.user or settings.user})
    with packed:
        done = asyncio.run(take_in(settings, packed))
    habits = packed.header.settings
    go_on, pack = backup.next_words(habits, settings.user, settings.data if data else None), backup.missing_pack(habits)
    bring = [f"its pack {pack!r} does not come with mindstream: bring its folder along and add --pack FOLDER"]
    named = backup.addresses(habits)
    told = [f"{settings.user}: {describe_import(done, 'mind')}", *(bring if pack else ())]
    told += [
        f"the file names the model {clean(each)}: what you say would be sent there, so the command below leaves it out;"
        " choose your own with --model, or this one if you trust it"
        for each in named
    ]
    row = {"user": settings.user, **asdict(done), "go_on": go_on, "left_out": named}
    tell(json, row, *told, f"continue with it:\n  {go_on}")
