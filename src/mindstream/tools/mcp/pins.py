"""Stores the tool definitions of MCP servers that a person has accepted. They are untrusted text; the person is asked
about each one once, and again if it changes."""

from __future__ import annotations

import difflib
import hashlib
import json
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

from pydantic import TypeAdapter, ValidationError

from mindstream.chance import token
from mindstream.errors import InputError, StorageError, UserError
from mindstream.file_locks import locked_folder
from mindstream.models.model import JsonSchema
from mindstream.paths import read_text
from mindstream.private_files import make_private_folder, write_private

MAX_BYTES = 50_000_000
MAX_LINES = 500
"""Maximum number of lines of each of the two definitions that are compared to show a person the changes."""


@dataclass(frozen=True)
class Definition:
    """A tool as its server describes it.

    Attributes:
        hints: the tool's MCP annotations, which are not verified.
    """

    name: str
    description: str
    parameters: JsonSchema
    hints: dict[str, Any]

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the whole definition."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()

    @property
    def only_reads(self) -> bool:
        """Whether the server says that the tool changes nothing."""
        return self.hints.get("readOnlyHint") is True

    def lines(self) -> list[str]:
        """Return lines that describe the tool to a person. Text of the server cannot be hidden in them, or look like
        text of this program."""
        hints = [f"{name}: {value}" for name, value in sorted(self.hints.items())]
        takes = json.dumps(self.parameters, indent=1, ensure_ascii=False, sort_keys=True)
        return [
            f"  {show(self.name)}",
            *(f"    | {show(line)}" for line in self.description.split("\n")),
            *(f"    hint: {show(hint)}" for hint in hints),
            *(f"    takes {show(line)}" for line in takes.split("\n")),
        ]


def show(text: str) -> str:
    """Return a text on one line, with every invisible character spelt out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape", "replace").decode() for c in text)


@dataclass(frozen=True)
class Changes:
    """The tools of a server about which a person is asked. `new`: tools that have not been accepted yet. `changed`:
    pairs of the accepted definition and the current definition of a tool."""

    server: str
    address: str
    new: tuple[Definition, ...] = ()
    changed: tuple[tuple[Definition, Definition], ...] = ()

    def __bool__(self) -> bool:
        return bool(self.new or self.changed)

    def __str__(self) -> str:
        """Describe the changes for a terminal."""
        lines, who = list[str](), f"{self.server} ({show(self.address)})"
        if self.new:
            lines.append(f"{who} offers tools that have not been accepted yet:")
        for tool in self.new:
            lines += tool.lines()
            lines += ["    the server says that it only reads"] * tool.only_reads
        if self.changed:
            lines.append(f"{who} has changed tools since they were accepted:")
        for before, now in self.changed:
            lines += [f"  {show(now.name)}", *difference(before, now)]
            if now.only_reads and not before.only_reads:
                lines.append("    the server now says that it only reads; you are still asked before each call")
        unasked = [tool.name for tool in self.new if tool.only_reads]
        unasked += [now.name for before, now in self.changed if before.only_reads and now.only_reads]
        names = ", ".join(map(show, unasked))
        then = f"these tools run without asking you, as they only read: {names}. All others ask first."
        always = "you are still asked before each call of these tools."
        return "\n".join([*lines, f"If you accept, {then if unasked else always}"])


def difference(before: Definition, now: Definition) -> list[str]:
    """Return the lines in which two different definitions of a tool differ, as a diff. If the first MAX_LINES lines are
    equal, return one line that says so."""
    old, new = before.lines(), now.lines()
    found = list(difflib.unified_diff(old[:MAX_LINES], new[:MAX_LINES], n=0, lineterm=""))[2:]
    lines = [line for line in found if not line.startswith("@@")]
    return lines or [f"  (the change is after the first {MAX_LINES} lines)"]


Approve: TypeAlias = Callable[[Changes], bool | Awaitable[bool]]
"""A function that asks a person whether tools may be used with their current descriptions."""


@dataclass(frozen=True)
class _Pin:
    """An accepted definition.

    Attributes:
        reads: whether the server's hint that the tool only reads counts. None (in files of older versions): it counts.
    """

    hash: str
    definition: Definition
    reads: bool | None = None

    @property
    def may_read(self) -> bool:
        return self.definition.only_reads and self.reads is not False


@dataclass(frozen=True)
class _File:
    servers: dict[str, dict[str, _Pin]]


_FILE = TypeAdapter(_File)


class Pins:
    """The definitions that were accepted, by server: a JSON file that only its owner can read."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def accepted(self, server: str) -> Mapping[str, Definition]:
        """Return the accepted definitions of a server (its `McpServer.identity`), by the tools' names.

        Raises:
            UserError: the file cannot be read.
        """
        pins = self._read().servers.get(server, {})
        return {name: pin.definition for name, pin in pins.items() if pin.hash == pin.definition.fingerprint}

    def unasked(self, server: str) -> frozenset[str]:
        """Return the names of a server's tools that are called without asking a person.

        These are tools that only read, according to the server. This hint counts only if every accepted definition of
        the tool, including earlier definitions, had the hint.
        """
        return frozenset(name for name, pin in self._read().servers.get(server, {}).items() if pin.may_read)

    def accept(self, server: str, definitions: Iterable[Definition]) -> None:
        """Store that definitions are accepted; they replace others of the same name.

        Raises:
            UserError: the file cannot be read.
            StorageError: the file cannot be written.
        """
        draft = self.path.with_name(f"{self.path.name}.{token()}")
        try:
            make_private_folder(self.path.parent)
            with locked_folder(self.path.parent):
                servers = self._read().servers
                held = dict(servers.get(server, {}))
                for each in definitions:
                    before = held.get(each.name)
                    reads = each.only_reads and (before is None or before.may_read)
                    held[each.name] = _Pin(each.fingerprint, each, reads)
                write_private(draft, _FILE.dump_json(_File({**servers, server: held}), indent=1))
                os.replace(draft, self.path)  # noqa: PTH105
        except OSError as error:
            draft.unlink(missing_ok=True)
            raise StorageError(f"{self.path} cannot be written: {error.strerror}") from None

    def _read(self) -> _File:
        if not self.path.exists():
            return _File({})
        where = f"{self.path}, the file of accepted tools,"
        try:
            return _FILE.validate_json(read_text(self.path, MAX_BYTES))
        except InputError as error:
            raise UserError(f"{where} {error}") from None
        except ValidationError:
            raise UserError(f"{where} is damaged: delete it, and you are asked again to accept each tool") from None
