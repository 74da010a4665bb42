"""A whole mind as one file: its memory, how it was talked to last, and what the learned gate knows.

The lines are those of a memory's export (see transfer) under a header that says more; after the records comes a line
for each state of the learned gate that the data folder keeps.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import io
import shlex
import zipfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.lib.npyio import NpzFile
from pydantic import BaseModel, ConfigDict, Field

from mindstream.clock import written
from mindstream.errors import InputError, StorageError
from mindstream.log.events import Decided, Opened
from mindstream.memory.record import Record, checked_name
from mindstream.packs.load import shipped
from mindstream.service import transfer
from mindstream.service.memory import Memory
from mindstream.service.transfer import Header, Imported, fitted
from mindstream.settings import DEFAULT, Settings

GATES = "gate-*.npz"
"""The files of a data folder in which the learned gate keeps what it learned, one a pack (see minds/gates/learned)."""


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
    gates: int = 0


class GateLine(BaseModel):
    """What the learned gate of a pack has learned: the name of its file, and the file in base64."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    gate: str = Field(pattern=r"^gate-[a-z0-9_]{1,100}\.npz$")
    npz: str


@dataclass(frozen=True, slots=True)
class Packed:
    """A mind, read from a file and checked; `gates`: the contents of files, by name."""

    header: MindHeader
    records: list[Record]
    gates: dict[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Moved:
    """What came of taking a mind in.

    Attributes:
        gates: the states of gates that were taken in; the folder's own stay as they are.
    """

    records: Imported
    gates: list[str]


def export(memory: Memory, folder: Path, settings: Settings) -> Iterator[str]:
    """Yield the lines of a mind; `settings` say what its log does not.

    Raises:
        InputError: nothing is known of that user.
    """
    records = memory.known().all()
    gates = sorted(folder.glob(GATES))
    header = MindHeader(
        user=memory.user, exported=written(memory.clock.now()), records=len(records),
        settings=_habits(memory, settings), gates=len(gates),
    )  # fmt: skip
    yield header.model_dump_json()
    yield from map(transfer.line, records)
    for path in gates:
        yield GateLine(gate=path.name, npz=base64.b64encode(_bytes(path)).decode()).model_dump_json()


def parsed(lines: Iterable[bytes], source: str) -> Packed:
    """Read a mind, all of it before anything is written.

    Raises:
        InputError: naming the line that is wrong.
    """
    gates: dict[str, bytes] = {}

    def taken(data: object) -> bool:
        if not (isinstance(data, dict) and "gate" in data):
            return False
        line = fitted(GateLine, data)
        gates[line.gate] = _unnumbered(line)
        return True

    header, records = transfer.read(lines, source, MindHeader, "", taken)
    if header.user:
        checked_name(header.user, f"{source}: user")
    if header.gates != len(gates):
        raise InputError(
            f"{source} is cut off: its first line promises {header.gates} states of gates, {len(gates)} are there;"
            " nothing was imported"
        )
    return Packed(header, records, gates)


async def take_in(memory: Memory, folder: Path, mind: Packed, progress: Callable[[int], None]) -> Moved:
    """Write what is not known yet; twice is as good as once.

    Raises:
        InputError: a record belongs to another user of this data folder.
        StorageError: it cannot be written.
    """
    records = await transfer.take_in(memory, mind.records, progress)
    return Moved(records, [name for name, content in mind.gates.items() if _written(folder / name, content)])


def next_words(habits: Habits, user: str, data: Path | None) -> str:
    """Return the command that goes on with a mind; `data` None: in the usual folder."""
    words = ["mindstream", "chat", "--user", user]
    words += ["--pack", habits.pack] if habits.pack in shipped() else []
    words += ["--session", habits.session] if habits.session else []
    words += ["--gate", habits.gate] if habits.gate else []
    words += ["--data", str(data)] if data else []
    for role, name in habits.models.items():
        if name != "rules" and not name.startswith("playback:"):
            words += ["--model", name] if role == DEFAULT else ["--role", f"{role}={name}"]
    return shlex.join(words)


def missing_pack(habits: Habits) -> str:
    """Name the pack that a mind was talked to with and that does not come with mindstream, or ""."""
    return habits.pack if habits.pack not in shipped() else ""


def _habits(memory: Memory, settings: Settings) -> Habits:
    opened, decided = memory.store.last(memory.user, Opened.kind), memory.store.last(memory.user, Decided.kind)
    gate = decided.event.gate if decided and isinstance(decided.event, Decided) else settings.gate
    gate = gate.partition("+")[0]  # what stands behind it is the model that it asks
    if opened and isinstance(opened.event, Opened):
        return Habits(pack=opened.event.pack, gate=gate, models=opened.event.models, session=opened.event.session)
    return Habits(pack=settings.pack, gate=gate, models=settings.models)


def _unnumbered(line: GateLine) -> bytes:
    """Return a state, checked, that has read nothing of the log yet: the numbers of another log mean nothing here."""
    try:
        with np.load(io.BytesIO(base64.b64decode(line.npz, validate=True)), allow_pickle=False) as kept:
            if not isinstance(kept, NpzFile) or not {"version", "upto"} <= set(kept):
                raise InputError(f"{line.gate}: not the state of a gate")
            state: dict[str, Any] = {name: kept[name] for name in kept}
    except (ValueError, OSError, EOFError, binascii.Error, zipfile.BadZipFile) as error:
        raise InputError(f"{line.gate}: not the state of a gate ({error})") from None
    new = io.BytesIO()
    np.savez(new, **{**state, "upto": np.array(0)})
    return new.getvalue()


def _written(path: Path, content: bytes) -> bool:
    """Write a file that is not there yet; return whether it was written."""
    try:
        with path.open("xb") as file:
            path.chmod(0o600)
            file.write(content)
    except FileExistsError:
        return False
    except OSError as error:
        with contextlib.suppress(OSError):
            path.unlink()
        raise StorageError(f"{path} cannot be written: {error.strerror}") from None
    return True


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise StorageError(f"{path} cannot be read: {error.strerror}") from None
