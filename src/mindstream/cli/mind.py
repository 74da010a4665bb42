"""`mindstream mind`: export and import of a mind as one file."""

from __future__ import annotations

import asyncio
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

from mindstream.cli.memory.look import describe_import, import_into_memory
from mindstream.cli.shell import files
from mindstream.cli.shell.flags import AsJson, command, flag, group, word
from mindstream.cli.shell.output import clean, tell
from mindstream.service import backup
from mindstream.service.calling import open_user_memory
from mindstream.service.privacy.audit import note_of
from mindstream.settings import Settings

app = group("Export and import a whole mind, as one file.")


@command(app, "data user", "mindstream mind export ann.mind --user ann")
async def export(
    settings: Settings, file: Annotated[Path, word("FILE", "The file to write; - is standard output.")]
) -> None:
    """Write a whole mind as one file.

    The file holds JSON Lines as `memory export` writes them, with superseded and archived records. The header of the
    file holds the settings of the last conversation: pack, gate (what decides whether the talker waits for the
    reasoner), models and session. The log is not included.
    """
    async with open_user_memory(settings) as opened:
        count = await files.write_lines(file, backup.export(opened, settings)) - 1
        await note_of(opened, "exported", {"records": count})
    if written := files.real_file(file):
        print(f"the mind of {settings.user} is in {written}; import it with", file=sys.stderr)
        print(f"  {shlex.join(['mindstream', 'mind', 'import', str(written), '--data'])} DIR", file=sys.stderr)


@command(app, "data user embedder redact", "mindstream mind import ann.mind --data elsewhere", name="import")
def import_file(
    settings: Settings,
    file: Annotated[Path, word("FILE", "The file to read; - is standard input.")],
    user: Annotated[
        str | None, flag("NAME", "The user who gets the imported mind [the user in the file].", "--user")
    ] = None,
    data: Annotated[
        str | None, flag("DIR", "Data folder, or postgresql://user@host:port/db [~/.local/share/mindstream].", "--data")
    ] = None,
    json: AsJson = False,
) -> None:
    """Import a mind, and print how to continue with it.

    The whole file is checked before anything is written, and importing twice changes nothing. Texts are embedded again.
    """
    packed = backup.parse_backup(files.read_lines(file), files.source(file))
    settings = settings.model_copy(update={"user": user or packed.header.user or settings.user})
    with packed:
        done = asyncio.run(import_into_memory(settings, packed))
    habits = packed.header.settings
    go_on, pack = backup.next_words(habits, settings.user, settings.data if data else None), backup.missing_pack(habits)
    bring = [f"its pack {pack!r} does not come with mindstream: copy its folder and add --pack FOLDER"]
    named = backup.addresses(habits)
    lines = [f"{settings.user}: {describe_import(done, 'mind')}", *(bring if pack else ())]
    lines += [
        f"the file names the model {clean(each)}: your messages would be sent there, so the command below omits it;"
        " choose your own with --model, or this one if you trust it"
        for each in named
    ]
    row = {"user": settings.user, **asdict(done), "go_on": go_on, "left_out": named}
    tell(json, row, *lines, f"continue with it:\n  {go_on}")
