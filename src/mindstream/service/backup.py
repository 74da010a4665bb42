"""A whole mind as one file: its memory, how it was talked to last, and what the learned gate made of its outcomes.

The lines are those of a memory's export (see transfer) under a header that says more; after the records comes a line
for each pack whose gate learned something from this mind. The gate of a data folder learns from all minds in it, so its
own file never leaves: what goes along is learned anew, from this mind's log alone.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import os
import shlex
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from mindstream.clock import format_iso
from mindstream.coach.events import Decided
from mindstream.coach.gates.learned import learned_from, without_log
from mindstream.coach.gates.named import GATES as GATE_NAMES
from mindstream.coach.gates.weights import OtherVersion
from mindstream.coach.packs.load import load, shipped_packs
from mindstream.errors import InputError, StorageError
from mindstream.log.events import Opened
from mindstream.log.folder import gates_in
from mindstream.memory.door import checked_name
from mindstream.service import transfer
from mindstream.service.export_file import Export, Header, read_export, validate_as
from mindstream.service.memory import Memory
from mindstream.service.transfer import Imported
from mindstream.settings import DEFAULT, Settings

FEW = 20
"""So many states of gates, and models by role, a mind may bring along."""


class Habits(BaseModel):
    """How a mind was talked to last. `models`: names by role, "default" first."""

    model_config = ConfigDict(frozen=True)

    pack: str = ""
    gate: str = ""
    models: dict[str, str] = Field(default_factory=dict)
    session: str = ""


class MindHeader(Header):
    """The first line; `gates`: how many states of gates come after the records."""

    mindstream: Literal["memory", "mind"] = "mind"
    settings: Habits = Habits()
    gates: int = Field(0, ge=0)


class GateLine(BaseModel):
    """What the learned gate of a pack has learned: the name of its file, and the file in base64."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gate: str = Field(pattern=r"^gate-[a-z0-9_]{1,100}\.npz$")
    npz: str


@dataclass(frozen=True, slots=True)
class Packed:
    """A mind, read from a file and checked; to be closed.

    Attributes:
        gates: the contents of files, by name.
        outdated: states of gates that were left out: another version of mindstream learned them.
    """

    records: Export[MindHeader]
    gates: dict[str, bytes] = field(default_factory=dict)
    outdated: list[str] = field(default_factory=list)

    @property
    def header(self) -> MindHeader:
        return self.records.header


@dataclass(frozen=True, slots=True)
class Moved:
    """What came of taking a mind in.

    Attributes:
        gates: the states of gates that were taken in; the folder's own stay as they are.
    """

    records: Imported
    gates: list[str]


async def export(memory: Memory, folder: Path, settings: Settings) -> AsyncIterator[str]:
    """Yield the lines of a mind; `settings` say what its log does not.

    Raises:
        InputError: nothing is known of that user.
    """
    gates = await _gates(await memory.require_known(), gates_in(folder))
    async with memory.store.walk(memory.user) as (count, records):
        header = MindHeader(
            user=memory.user, exported=format_iso(memory.clock.now()), records=count,
            settings=await _habits(memory, settings), gates=len(gates),
        )  # fmt: skip
        yield header.model_dump_json()
        async for record in records:
            yield transfer.line(record)
    for line in gates:
        yield line.model_dump_json()


def parse_backup(lines: Iterable[bytes], source: str) -> Packed:
    """Check a mind, all of it before anything is written; close what is returned.

    Raises:
        InputError: naming the line that is wrong.
        StorageError: it cannot be put aside.
    """
    gates: dict[str, bytes] = {}
    outdated: list[str] = []

    def taken(data: object) -> bool:
        if not (isinstance(data, dict) and "gate" in data):
            return False
        line = validate_as(GateLine, data)
        if line.gate in gates or line.gate in outdated or len(gates) + len(outdated) == FEW:
            raise InputError(f"gate: at most {FEW} are wanted, each once")
        try:
            gates[line.gate] = without_log(_decoded(line))
        except OtherVersion:
            outdated.append(line.gate)
        except InputError as error:
            raise InputError(f"{line.gate}: {error}") from None
        return True

    records = read_export(lines, source, MindHeader, "", taken)
    try:
        _check_header(records.header, source, len(gates) + len(outdated))
    except InputError:
        records.copy.close()
        raise
    return Packed(records, gates, outdated)


async def take_in(memory: Memory, folder: Path, mind: Packed, progress: Callable[[int], None]) -> Moved:
    """Write what is not known yet; twice is as good as once.

    Raises:
        InputError: a record belongs to another user of this data folder.
        StorageError: it cannot be written.
    """
    records = await transfer.take_in(memory, mind.records, progress)
    return Moved(records, [name for name, content in mind.gates.items() if _written(folder / name, content)])


def next_words(habits: Habits, user: str, data: Path | None) -> str:
    """Return the command that goes on with a mind, quoted for a shell; `data` None: in the usual folder."""
    words = ["mindstream", "chat", "--user", user]
    words += ["--pack", habits.pack] if habits.pack in shipped_packs() else []
    words += ["--session", habits.session] if habits.session else []
    words += ["--gate", habits.gate] if habits.gate in GATE_NAMES else []
    words += ["--data", str(data)] if data else []
    for role, name in habits.models.items():
        if name != "rules" and not name.startswith("playback:"):
            words += ["--model", name] if role == DEFAULT else ["--role", f"{role}={name}"]
    return shlex.join(words)


def missing_pack(habits: Habits) -> str:
    """Name the pack that a mind was talked to with and that does not come with mindstream, or ""."""
    return habits.pack if habits.pack not in shipped_packs() else ""


async def _habits(memory: Memory, settings: Settings) -> Habits:
    opened, decided = (
        await memory.store.last(memory.user, Opened.kind),
        await memory.store.last(memory.user, Decided.kind),
    )
    gate = decided.event.gate if decided and isinstance(decided.event, Decided) else settings.gate
    gate = gate.partition("+")[0]  # what stands behind it is the model that it asks
    if opened and isinstance(opened.event, Opened):
        return Habits(pack=opened.event.pack, gate=gate, models=opened.event.models, session=opened.event.session)
    return Habits(pack=settings.pack, gate=gate, models=settings.models)


def _check_header(header: MindHeader, source: str, gates: int) -> None:
    """Raise InputError where the header says what no mind is called, or promises more gates than there are."""
    habits = header.settings
    for name, what in ((header.user, "user"), (habits.session, "settings.session")):
        if name:
            checked_name(name, f"{source}: {what}")
    words = (habits.pack, habits.gate, *habits.models, *habits.models.values())
    if len(habits.models) > FEW or not all(word.isprintable() and len(word) <= 500 for word in words):
        raise InputError(f"{source}: settings: names of a pack, a gate and models are wanted; nothing was imported")
    if header.gates != gates:
        raise InputError(
            f"{source} is cut off: its first line promises {header.gates} states of gates, {gates} are there;"
            " nothing was imported"
        )


async def _gates(memory: Memory, files: Sequence[Path]) -> list[GateLine]:
    """Learn anew what this mind's own outcomes teach, for each pack that has a gate here and comes with mindstream."""
    lines = []
    for path in files:
        pack = path.stem.removeprefix("gate-")
        gate = await learned_from(load(pack), memory.store, memory.user) if pack in shipped_packs() else None
        if gate and gate.outcomes:
            lines.append(GateLine(gate=path.name, npz=base64.b64encode(without_log(gate.state())).decode()))
    return lines


def _decoded(line: GateLine) -> bytes:
    try:
        return base64.b64decode(line.npz, validate=True)
    except (ValueError, binascii.Error) as error:
        raise InputError(f"not base64 ({error})") from None


def _written(path: Path, content: bytes) -> bool:
    """Write a file that is not there yet; return whether it was written."""
    try:
        with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(content)
    except FileExistsError:
        return False
    except OSError as error:
        with contextlib.suppress(OSError):
            path.unlink()
        raise StorageError(f"{path} cannot be written: {error.strerror}") from None
    return True
