"""Export and import of a whole mind as one file: its memory, and the settings of its last conversation.

The file has a header with the settings, followed by the lines of a memory's export (see transfer). Files of older
versions may contain lines with the parameters of a learned gate, a part that no longer exists; they are skipped.
"""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Iterable
from functools import partial
from typing import Literal

from pydantic import Field

from mindstream.coach.events import Decided
from mindstream.coach.packs.load import shipped_packs
from mindstream.coach.talker import GATES as GATE_NAMES
from mindstream.errors import InputError
from mindstream.frozen import Frozen
from mindstream.identifiers import checked_name
from mindstream.location import Location
from mindstream.log.events import Opened
from mindstream.memory.memory import Memory
from mindstream.service import transfer
from mindstream.service.transfer import Export, Header, read_export
from mindstream.settings import DEFAULT, Settings

MAX_MODELS = 20
"""Maximum number of models (one per role) in a header."""


class Habits(Frozen):
    """The settings of a mind's last conversation.

    `models`: names of models by role; the entry "default" is the model of all roles that have no entry.
    """

    pack: str = ""
    gate: str = ""
    models: dict[str, str] = Field(default_factory=dict)
    session: str = ""


class MindHeader(Header):
    """The first line of a mind's file."""

    mindstream: Literal["memory", "mind"] = "mind"
    settings: Habits = Habits()


async def export(opened: Memory, settings: Settings) -> AsyncIterator[str]:
    """Yield the lines of a mind's file.

    The header has the settings of the last conversation in the log. If there was no conversation, it has `settings`.

    Raises:
        InputError: there are no data of that user.
    """
    async for line in transfer.export(opened, partial(MindHeader, settings=await _habits(opened, settings))):
        yield line


def parse_backup(lines: Iterable[bytes], source: str) -> Export[MindHeader]:
    """Read and check the whole file of a mind; the caller must close the returned export.

    Raises:
        InputError: a line is invalid; the message names it.
        StorageError: the temporary copy of the records cannot be written.
    """

    def is_of_a_gate(data: object) -> bool:
        return isinstance(data, dict) and data.keys() == {"gate", "npz"}

    records = read_export(lines, source, MindHeader, is_of_a_gate)
    try:
        _check_header(records.header, source)
    except InputError:
        records.copy.close()
        raise
    return records


def next_words(habits: Habits, user: str, data: Location | None) -> str:
    """Return the command that continues the conversation with an imported mind, quoted for a shell.

    Models with an address are left out (see `addresses`). The author of the file chose the address, and the
    conversation would be sent to it.

    Args:
        data: the location of the mind; None: the default folder.
    """
    words = ["mindstream", "chat", "--user", user]
    words += ["--pack", habits.pack] if habits.pack in shipped_packs() else []
    words += ["--session", habits.session] if habits.session else []
    words += ["--gate", habits.gate] if habits.gate in GATE_NAMES else []
    words += ["--data", str(data)] if data else []
    for role, name in habits.models.items():
        if name != "rules" and not name.startswith("playback:") and name not in addresses(habits):
            words += ["--model", name] if role == DEFAULT else ["--role", f"{role}={name}"]
    return shlex.join(words)


def addresses(habits: Habits) -> list[str]:
    """Return the names of models in `habits` that contain the address of a server, each once."""
    return list(dict.fromkeys(name for name in habits.models.values() if "://" in name or "@" in name))


def missing_pack(habits: Habits) -> str:
    """Return the pack of the last conversation if it is not one of mindstream's own packs, else ""."""
    return habits.pack if habits.pack not in shipped_packs() else ""


async def _habits(opened: Memory, settings: Settings) -> Habits:
    opening, decided = (
        await opened.store.last(opened.key, Opened.kind),
        await opened.store.last(opened.key, Decided.kind),
    )
    gate = decided.event.gate if decided and isinstance(decided.event, Decided) else settings.gate
    if opening and isinstance(opening.event, Opened):
        return Habits(pack=opening.event.pack, gate=gate, models=opening.event.models, session=opening.event.session)
    return Habits(pack=settings.pack, gate=gate, models=settings.models)


def _check_header(header: MindHeader, source: str) -> None:
    """Raise InputError if a name in the header is not valid, or if it names more than MAX_MODELS models."""
    habits = header.settings
    for name, what in ((header.user, "user"), (habits.session, "settings.session")):
        if name:
            checked_name(name, f"{source}: {what}")
    words = (habits.pack, habits.gate, *habits.models, *habits.models.values())
    if len(habits.models) > MAX_MODELS or not all(word.isprintable() and len(word) <= 500 for word in words):
        raise InputError(
            f"{source}: settings: expected the names of a pack, a gate and at most {MAX_MODELS} models, each of at most"
            " 500 printable characters; nothing was imported"
        )
