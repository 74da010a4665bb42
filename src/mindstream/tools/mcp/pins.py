"""What was accepted of a server's tools: a stranger's words, shown to a person once, and again when they change."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import TypeAdapter, ValidationError

from mindstream.chance import token
from mindstream.errors import InputError, StorageError, UserError
from mindstream.models.model import JsonSchema
from mindstream.paths import read_text
from mindstream.private_files import make_private_folder, write_private

if sys.platform != "win32":
    import fcntl

MOST_BYTES = 50_000_000
LINES = 500
"""So many lines of a definition are compared."""


@dataclass(frozen=True)
class Definition:
    """A tool as its server describes it; `hints` are its annotations: nobody has checked them."""

    name: str
    description: str
    parameters: JsonSchema
    hints: dict[str, Any]

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of everything that a server says of the tool."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    @property
    def only_reads(self) -> bool:
        """Tell whether the server says that it changes nothing."""
        return self.hints.get("readOnlyHint") is True

    def lines(self) -> list[str]:
        """Describe the tool to a person; nothing in it can look like ours, or hide."""
        hints = [f"{name}: {value}" for name, value in sorted(self.hints.items())]
        takes = json.dumps(self.parameters, indent=1, ensure_ascii=False, sort_keys=True)
        return [
            f"  {show(self.name)}",
            *(f"    | {show(line)}" for line in self.description.split("\n")),
            *(f"    hint: {show(hint)}" for hint in hints),
            *(f"    takes {show(line)}" for line in takes.split("\n")),
        ]


def show(text: str) -> str:
    """Return a text on one line, with everything that cannot be seen spelt out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in text)


@dataclass(frozen=True)
class Changes:
    """What a person is asked about: tools of a server that are new, or (before, now) that have changed."""

    server: str
    address: str
    new: tuple[Definition, ...] = ()
    changed: tuple[tuple[Definition, Definition], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.new or self.changed)

    def __str__(self) -> str:
        """Say it in words for a terminal."""
        lines = []
        if self.new:
            lines.append(f"{self.server} ({show(self.address)}) offers tools that nobody has accepted yet:")
        for tool in self.new:
            lines += tool.lines()
            if tool.only_reads:
                lines.append("    it says that it only reads")
        if self.changed:
            lines.append(f"{self.server} ({show(self.address)}) has changed tools since they were accepted:")
        for before, now in self.changed:
            lines += [f"  {show(now.name)}", *difference(before, now)]
            if now.only_reads and not before.only_reads:
                lines.append("    it says since then that it only reads: you are asked before each call all the same")
        unasked = [tool.name for tool in self.new if tool.only_reads]
        unasked += [now.name for before, now in self.changed if before.only_reads and now.only_reads]
        if unasked:
            names = ", ".join(map(show, unasked))
            then = (
                f"If you accept, these tools run without asking you, as they only read: {names}. All others ask first."
            )
        else:
            then = "If you accept, you are still asked before each call of these tools."
        return "\n".join([*lines, then])


def difference(before: Definition, now: Definition) -> list[str]:
    """Say line by line what has changed in a tool."""
    old, new = before.lines(), now.lines()
    found = list(difflib.unified_diff(old[:LINES], new[:LINES], n=0, lineterm=""))[2:]
    lines = [line for line in found if not line.startswith("@@")]
    return lines or [f"  (the change stands after the first {LINES} lines)"]


Approve: TypeAlias = Callable[[Changes], bool | Awaitable[bool]]
"""Asks a person whether tools may be used as they are now described."""


@dataclass(frozen=True)
class _Pin:
    """An accepted definition; `reads`: its hint to read only counts. None (written before there was this): it does."""

    hash: str
    definition: Definition
    reads: bool | None = None


@dataclass(frozen=True)
class _File:
    servers: dict[str, dict[str, _Pin]]


_FILE = TypeAdapter(_File)


class Pins:
    """The definitions that were accepted, by server: a JSON file that its owner alone can read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def accepted(self, server: str) -> Mapping[str, Definition]:
        """Return what was accepted of a server, by the tools' names.

        Raises:
            UserError: the file cannot be read.
        """
        pins = self._read().servers.get(server, {})
        return {name: pin.definition for name, pin in pins.items() if pin.hash == pin.definition.fingerprint}

    def unasked(self, server: str) -> frozenset[str]:
        """Return the tools of a server that are called without a question, as they said that they only read.

        A hint counts where it stood there when the tool was first accepted: one that came later does not, whoever
        accepted the change.
        """
        return frozenset(
            name for name, pin in self._read().servers.get(server, {}).items() if _reads(pin, pin.definition)
        )

    def accept(self, server: str, definitions: Iterable[Definition]) -> None:
        """Write down that definitions are accepted, in place of others of the same name.

        Raises:
            UserError: the file cannot be read.
            StorageError: it cannot be written.
        """
        beside = self.path.with_name(f"{self.path.name}.{token()}")
        try:
            make_private_folder(self.path.parent)
            with _alone_in(self.path.parent):
                found = self._read()
                held = found.servers.get(server, {})
                pins = {
                    each.name: _Pin(each.fingerprint, each, _reads(held.get(each.name), each)) for each in definitions
                }
                servers = {**found.servers, server: {**held, **pins}}
                write_private(beside, _FILE.dump_json(_File(servers), indent=1))
                os.replace(beside, self.path)  # noqa: PTH105
        except OSError as error:
            beside.unlink(missing_ok=True)
            raise StorageError(f"{self.path} cannot be written: {error.strerror}") from None

    def _read(self) -> _File:
        if not self.path.exists():
            return _File({})
        try:
            return _FILE.validate_json(read_text(self.path, MOST_BYTES))
        except InputError as error:
            raise UserError(f"{self.path}, where accepted tools are kept, {error}") from None
        except ValidationError:
            raise UserError(
                f"{self.path}, where accepted tools are kept, is damaged: delete it, and you are asked again"
            ) from None


def _reads(before: _Pin | None, now: Definition) -> bool:
    """Tell whether a hint to read only counts: it was always there."""
    return now.only_reads and (before is None or (before.definition.only_reads and before.reads is not False))


@contextmanager
def _alone_in(folder: Path) -> Iterator[None]:
    """Hold others that write here up: what two accept at once is kept of both."""
    if sys.platform == "win32":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
