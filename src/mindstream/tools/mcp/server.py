"""An MCP server's settings: a command of this machine or a URL, its environment and limits."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from urllib.parse import urlsplit

from mindstream.errors import SettingsError, ToolError
from mindstream.models.providers.address import NO_KEY, remember
from mindstream.paths import home
from mindstream.tools.addresses import is_allowed

MAX_BYTES = 8_000_000
"""Maximum length of a message from the server, in bytes."""
SECONDS, MEGABYTES = 10, 700
"""Limits of the child process, which reads the server's messages. SECONDS: CPU time from one request to the next.
MEGABYTES: memory."""
OUT_OF_MEMORY = 77
"""Exit code of a child process in which Python ran out of memory. If another library runs out of memory, a signal ends
the process."""
VARIABLE = re.compile(r"\$(\w+)|\$\{(\w+)\}")
RUNNERS = ("python", "node", "npx", "uvx", "uv", "bash", "sh")
HARMLESS = (
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "TEMP", "TMP",
    "SYSTEMROOT", "SYSTEMDRIVE", "USERPROFILE", "APPDATA", "LOCALAPPDATA", "PATHEXT", "COMSPEC",
)  # fmt: skip
"""Environment variables of this process that the command of every MCP server gets, if they are set."""
ODD = re.compile(r"[^A-Za-z0-9_-]+")


@dataclass(frozen=True)
class McpServer:
    """The settings of an MCP server, which offers tools.

    Attributes:
        address: a command line, or a URL (http, https).
        name: the name of the server in mindstream; the name that the server reports is not used. "": derived from the
            address.
        env: environment variables that the command gets in addition to the harmless ones (PATH, HOME, LANG, …).
        headers: sent with every request to a URL; `$NAME` is replaced by the environment variable.
        reads: the names of tools that you know to change nothing. They are called without approval, whatever the
            server's hints say.
        folder: the working directory of the command; None: your home.
        timeout_s: maximum duration of one call, in seconds.
        start_s: maximum duration of the server's start, in seconds.
    """

    address: str = field(repr=False)
    name: str = ""
    env: tuple[str, ...] = ()
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    reads: frozenset[str] = frozenset()
    folder: Path | None = None
    timeout_s: float = 30.0
    start_s: float = 60.0

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", self._short_name())
        if ODD.search(self.name) or len(self.name) > 30:
            raise SettingsError(
                f"the name of an MCP server may have up to 30 letters, digits, _ and -, not {self.name[:80]!r}"
            )

    @cached_property
    def command(self) -> tuple[str, ...]:
        """The words of the command; () for a URL.

        Raises:
            SettingsError: the command cannot be split into words, is empty, or contains a null character.
        """
        if self.address.lower().startswith(("http://", "https://")):
            return ()
        try:
            words = tuple(shlex.split(self.address, posix=os.name != "nt"))
        except ValueError as error:
            raise SettingsError(f"{self.address[:200]!r} is not a command line: {error}") from None
        if not words or any("\0" in word for word in words):
            raise SettingsError(
                f"a server is a command line (without null characters) or a URL, not {self.address[:200]!r}"
            )
        return words

    @cached_property
    def identity(self) -> str:
        """The key under which the server's accepted tools are stored.

        The key is the server's name, and a hash of the command or the URL. These are hashed because they may contain
        secrets.
        """
        meant = "\0".join(self.command) or self.address
        return f"{self.name}:{hashlib.sha256(meant.encode('utf-8', 'replace')).hexdigest()[:32]}"

    @property
    def shown(self) -> str:
        """The address for a person to read, without a URL's query, which may hold a key."""
        return self.address if self.command else self.address.partition("?")[0]

    def expanded_headers(self) -> dict[str, str]:
        """Return the headers with the values of environment variables.

        Raises:
            SettingsError: a variable is not set.
        """
        return {name: VARIABLE.sub(self._value, text) for name, text in self.headers.items()}

    def check(self, allow: Collection[str]) -> None:
        """Check the settings of a server with a URL before it is opened. A server with a command is not checked.

        Raises:
            SettingsError: the URL is invalid or contains a password; the URL is not encrypted, and its host is not in
                `allow`; or a variable of a header is not set.
        """
        if self.command:
            return
        from mindstream.tools.web import checked_url  # a command needs no HTTP client

        try:
            parts = urlsplit(checked_url(self.address))
        except ToolError as error:
            raise SettingsError(f"{error} (if the server needs a password, send it in a header)") from None
        if parts.scheme == "http" and not is_allowed(parts.hostname or "", allow):
            raise SettingsError(f"use https for {parts.hostname}, or name the host in `allow`")
        self.expanded_headers()

    def opening(self, allow: Collection[str]) -> dict[str, object]:
        """Return the data that the child process needs to open the server (see `child.py`)."""
        for name in self.env:
            remember(os.environ.get(name, NO_KEY))
        return {
            "command": self.command,
            "environment": {name: os.environ[name] for name in (*HARMLESS, *self.env) if name in os.environ},
            "folder": str(self._folder),
            "url": self.address,
            "headers": self.expanded_headers(),
            "allow": list(allow),
            "start_s": self.start_s,
            "timeout_s": self.timeout_s,
        }

    def misplaced(self) -> str:
        """Return advice if words of the command name files that the command would not find; otherwise "".

        Such files exist in the working directory of this process, but not in the working directory of the command.
        """
        folder, here = self._folder, Path.cwd()
        lost = [word for word in self.command if _is_file(here / word) and not _is_file(folder / word)]
        paths = ", ".join(str(here / word) for word in lost)
        return f"the command runs in {folder}, not in {here}; give the file's whole path: {paths}" if lost else ""

    @property
    def _folder(self) -> Path:
        return self.folder or home() or Path("/")

    def _value(self, found: re.Match[str]) -> str:
        variable = found[1] or found[2]
        if not (value := os.environ.get(variable, "")):
            raise SettingsError(
                f"{self.name}: a header needs the environment variable {variable}, which is not set, or is empty"
            )
        remember(value)
        return value

    def _short_name(self) -> str:
        """Derive the name of the server from its address.

        - For a URL: the first part of the host that is not `www`, `mcp` or `api`.
        - For a command such as `python -m x`: `x`.
        - For another command: the name of the program or script that the command runs.
        """
        if not self.command:
            host = urlsplit(self.address).hostname or "server"
            parts = [part for part in host.split(".") if part not in ("www", "mcp", "api")]
            word = host if host.replace(".", "").isdigit() else (parts or [host])[0]
        elif "-m" in self.command[1:-1]:
            word = self.command[self.command.index("-m") + 1]
        else:
            words = [word for word in self.command[1:] if not word.startswith("-")]
            runs = Path(self.command[0]).stem.rstrip("0123456789.") in RUNNERS
            word = Path(words[0] if runs and words else self.command[0]).stem
        return ODD.sub("_", word).strip("_")[:30] or "server"


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except OSError:  # the word cannot be a path
        return False
