"""A whole mind as one file: its memory, and how it was talked to last.

The lines are those of a memory's export (see transfer) under a header that says more. A file of an older version may
have lines of what a gate had learned, too: they are left out.
"""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Iterable
from functools import partial
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from mindstream.coach.events import Decided
from mindstream.coach.gates.gate import GATES as GATE_NAMES
from mindstream.coach.packs.load import shipped_packs
from mindstream.errors import InputError
from mindstream.location import Location
from mindstream.log.events import Opened
from mindstream.log.names import checked_name
from mindstream.memory.memory import Memory
from mindstream.service import transfer
from mindstream.service.export_file import Export, Header, read_export
from mindstream.settings import DEFAULT, Settings

FEW = 20
"""So many models by role a mind may bring along."""


class Habits(BaseModel):
    """How a mind was talked to last. `models`: names by role, "default" first."""

    model_config = ConfigDict(frozen=True)

    pack: str = ""
    gate: str = ""
    models: dict[str, str] = Field(default_factory=dict)
    session: str = ""


class MindHeader(Header):
    """The first line."""

    mindstream: Literal["memory", "mind"] = "mind"
    settings: Habits = Habits()


async def export(opened: Memory, settings: Settings) -> AsyncIterator[str]:
    """Yield the lines of a mind; `settings` say what its log does not.

    Raises:
        InputError: nothing is known of that user.
    """
    async for line in transfer.export(opened, partial(MindHeader, settings=await _habits(opened, settings))):
        yield line


def parse_backup(lines: Iterable[bytes], source: str) -> Export[MindHeader]:
    """Check a mind, all of it before anything is written; close what is returned.

    Raises:
        InputError: naming the line that is wrong.
        StorageError: it cannot be put aside.
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
    """Return the command that continues with a mind, quoted for a shell; `data` None: in the usual folder.

    A model at an address is left out: the file's author chose it, and the conversation would be sent there (see
    `addresses`).
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
    """Return the models that the file names by an address, each once."""
    return list(dict.fromkeys(name for name in habits.models.values() if "://" in name or "@" in name))


def missing_pack(habits: Habits) -> str:
    """Name the pack that a mind was talked to with and that does not come with mindstream, or ""."""
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
    """Raise InputError where the header says what no mind is called."""
    habits = header.settings
    for name, what in ((header.user, "user"), (habits.session, "settings.session")):
        if name:
            checked_name(name, f"{source}: {what}")
    words = (habits.pack, habits.gate, *habits.models, *habits.models.values())
    if len(habits.models) > FEW or not all(word.isprintable() and len(word) <= 500 for word in words):
        raise InputError(f"{source}: settings: names of a pack, a gate and models are wanted; nothing was imported")
