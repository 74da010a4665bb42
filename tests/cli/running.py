"""Run the real command as a process with pipes or in a pseudo-terminal."""

from __future__ import annotations

import contextlib
import fcntl
import io
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import tempfile
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mindstream.cli import edge

COMMAND = [sys.executable, "-m", "mindstream.cli"]
TAKES_THE_TERMINAL = "import os, sys; os.close(os.open(os.ttyname(0), os.O_RDWR)); os.execv(sys.argv[1], sys.argv[1:])"
"""Whoever leads a session and opens a terminal gets it for its own, so that Ctrl-C is a signal to it."""
PATIENCE_S = 60
"""How long a test waits for what must come, before it fails."""
_SEQUENCE = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|\x1b[=>78]|[\x00\x07\x08\x0f]")


@dataclass(frozen=True)
class Done:
    """The result of a command."""

    code: int
    out: str
    err: str

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]

    def events(self, *kinds: str) -> list[dict[str, Any]]:
        return [row for row in self.rows if row["event"] in kinds]


def run_process(*arguments: str | Path, said: str | bytes = "", **variables: str) -> Done:
    """Run a command to its end in a separate process; `said` is its standard input."""
    done = subprocess.run(
        [*COMMAND, *map(str, arguments)],
        input=said.encode() if isinstance(said, str) else said,
        capture_output=True,
        env={**os.environ, **variables},
        timeout=PATIENCE_S,
    )
    return Done(done.returncode, done.stdout.decode(), done.stderr.decode())


def run(*arguments: str | Path, said: str | bytes = "", **variables: str) -> Done:
    """Run a command to its end in this process, which is faster."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        with _says(said), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = edge.run([*map(str, arguments)])
    finally:
        os.environ.clear()  # --settings sets a variable
        os.environ.update(before)
    return Done(code, *(stream.buffer.getvalue().decode() for stream in (out, err)))


run_here = run


@contextmanager
def _says(said: str | bytes) -> Iterator[None]:
    """Set the standard input of this process."""
    before, stdin = os.dup(0), sys.stdin
    with tempfile.TemporaryFile() as file:
        file.write(said.encode() if isinstance(said, str) else said)
        file.seek(0)
        os.dup2(file.fileno(), 0)
        try:
            with open(0, closefd=False) as sys.stdin:
                yield
        finally:
            sys.stdin = stdin
            os.dup2(before, 0)
            os.close(before)


def mistaken(done: Done) -> str:
    """Return the single error sentence of a command."""
    assert done.code == 2, (done.code, done.err)
    assert done.out == ""
    assert len(done.err.splitlines()) == 1, done.err
    assert "Traceback" not in done.err
    return done.err.strip()


def interruptible() -> None:
    """Reset signal handlers: a background job ignores some signals, and its children would inherit that."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)


class Terminal:
    """A pseudo-terminal that runs a command; text is read without control sequences."""

    def __init__(self, process: subprocess.Popen[bytes], master: int) -> None:
        self.process = process
        self._master = master
        self.raw = b""
        """All that has come, as it came."""
        self._text = ""
        self._seen = 0

    def type(self, text: str) -> None:
        os.write(self._master, text.encode())

    def until(self, wanted: str) -> str:
        """Read until `wanted` arrives, and return the text since the last call."""
        while (at := self._text.find(wanted, self._seen)) < 0:
            assert self._read(), f"{wanted!r} did not appear; the output is: {self._text[self._seen :]!r}"
        before = self._text[self._seen : at]
        self._seen = at + len(wanted)
        return before

    def ended(self) -> int:
        """Read to the end and return the exit code."""
        while self._read():
            pass
        return self.process.wait(PATIENCE_S)

    def leave(self) -> None:
        """End a conversation at its next prompt."""
        self.until("you: ")
        self.type("\x04")
        assert self.ended() == 0

    def hang_up(self) -> None:
        """Close the terminal, as if its window was closed."""
        if self._master >= 0:
            os.close(self._master)
            self._master = -1

    @property
    def rest(self) -> str:
        """The output since the last `until`."""
        return self._text[self._seen :]

    def _read(self) -> bool:
        ready, _, _ = select.select([self._master], [], [], PATIENCE_S)
        try:
            data = os.read(self._master, 1 << 16) if ready else b""
        except OSError:  # the command has ended
            data = b""
        self.raw += data
        self._text = _SEQUENCE.sub("", self.raw.decode(errors="replace")).replace("\r", "")
        return bool(data)


@contextmanager
def terminal(*arguments: str | Path, **variables: str) -> Iterator[Terminal]:
    """Run a command in a terminal of 100 x 40 characters; it ends with the block."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 100, 0, 0))
    settings: Mapping[str, str] = {"TERM": "xterm", "PROMPT_TOOLKIT_NO_CPR": "1", **variables}
    process = subprocess.Popen(
        [sys.executable, "-c", TAKES_THE_TERMINAL, *COMMAND, *map(str, arguments)],
        stdin=slave, stdout=slave, stderr=slave, env={**os.environ, **settings}, start_new_session=True,
        preexec_fn=interruptible,
    )  # fmt: skip
    os.close(slave)
    screen = Terminal(process, master)
    try:
        yield screen
    finally:
        process.kill()
        process.wait()
        screen.hang_up()
