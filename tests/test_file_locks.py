"""Locks between processes, and what the package needs of the operating system."""

from __future__ import annotations

import errno
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from mindstream import file_locks
from mindstream.errors import HeldElsewhere, StorageError
from mindstream.service.folders import hold_folder

ROOT = Path(__file__).parents[1]
HOLDER = """
import os, sys
from pathlib import Path
from mindstream import file_locks
file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT)
folder = file_locks.open_folder(Path(sys.argv[2]))
file_locks.lock(file); file_locks.lock(folder)
print("held", flush=True)
sys.stdin.read()
"""


def test_a_lock_is_held_until_its_process_ends(tmp_path: Path) -> None:
    command = [sys.executable, "-c", HOLDER, str(tmp_path / "file"), str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout and holder.stdout.readline() == "held\n"
        for descriptor in (os.open(tmp_path / "file", os.O_RDWR), file_locks.open_folder(tmp_path)):
            with pytest.raises(BlockingIOError):
                file_locks.lock(descriptor, wait=False)
            os.close(descriptor)
        holder.kill()
        holder.wait()
        for descriptor in (os.open(tmp_path / "file", os.O_RDWR), file_locks.open_folder(tmp_path)):
            file_locks.lock(descriptor)
            os.close(descriptor)


def not_locked(*_: object, **__: object) -> None:
    raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))


def read_only(path: Path, flags: int, *_: object) -> int:
    raise OSError(errno.EROFS, os.strerror(errno.EROFS), str(path))


def full(path: Path, flags: int, *_: object) -> int:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(path))


@pytest.mark.parametrize(
    ("where", "what", "words"),
    [(os, read_only, "Read-only"), (os, full, "No space left"), (file_locks, not_locked, "No locks available")],
)
def test_a_folder_that_cannot_be_locked_is_not_said_to_be_in_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: ModuleType, what: Callable[..., object], words: str
) -> None:
    with hold_folder(tmp_path), pytest.raises(HeldElsewhere, match="another server uses"), hold_folder(tmp_path):
        pass
    with monkeypatch.context() as patch, pytest.raises(StorageError, match=f"server.lock cannot be locked: {words}"):
        patch.setattr(where, "lock" if where is file_locks else "open", what)
        with hold_folder(tmp_path):
            pass
    with hold_folder(tmp_path):
        pass


def test_no_module_needs_a_module_that_only_posix_has_when_it_is_imported() -> None:
    """In `file_locks` and in functions they may be imported, behind a check of the platform."""
    only_posix = re.compile(r"^(?:import|from) (?:fcntl|resource|termios|pty|pwd|grp)\b", re.MULTILINE)
    folders = [ROOT / "src", *ROOT.glob("packages/*/src")]
    assert [str(path) for each in folders for path in each.rglob("*.py") if only_posix.search(path.read_text())] == []
