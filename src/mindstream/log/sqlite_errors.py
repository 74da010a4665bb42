"""SQLite's errors in words that say what to do."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from pathlib import Path

from mindstream.errors import MindstreamError, StorageError

BUSY_S = 10.0
"""How long another program's lock is waited for."""
MEND = "`mindstream doctor --mend` saves what can be read"


def is_busy(error: sqlite3.Error) -> bool:
    """Tell whether somebody else holds the file."""
    return (getattr(error, "sqlite_errorname", "") or "").startswith(("SQLITE_BUSY", "SQLITE_LOCKED"))


@contextlib.contextmanager
def explain_errors(path: Path) -> Iterator[None]:
    """Turn SQLite's errors into ones that say what to do."""
    try:
        yield
    except MindstreamError:
        raise
    except OverflowError as error:  # what is counted here has reached the highest number that SQLite can hold
        raise StorageError(f"{path}: a number in it is beyond all that can be counted; {MEND}") from error
    except UnicodeDecodeError as error:  # in SQLite's own words about the damage
        raise StorageError(f"{path}: the file is damaged; {MEND}, or put a copy back in its place") from error
    except sqlite3.Error as error:
        code = (error.sqlite_errorname if hasattr(error, "sqlite_errorname") else "") or ""
        text = "".join(each if each.isprintable() else "?" for each in str(error))  # it may repeat what is damaged
        if is_busy(error):
            advice = f"another program has held it for over {BUSY_S:.0f} seconds; close that program and try again"
        elif code.startswith("SQLITE_NOTADB"):
            advice = "the file is damaged or is no database; move it away, or put a copy back in its place"
        elif code.startswith("SQLITE_CORRUPT"):
            advice = f"the file is damaged; {MEND}, or put a copy back in its place"
        elif code.startswith("SQLITE_FULL") or (code.startswith("SQLITE_IOERR") and "full" in text):
            advice = f"the disk is full; make room and say it again (where there is room: {MEND})"
        elif code.startswith(("SQLITE_READONLY", "SQLITE_CANTOPEN", "SQLITE_PERM")):
            advice = (
                "it cannot be opened for writing, which is needed even to read it; check the folder's permissions, copy"
                " the folder to a place where you can write, or choose another with --data"
            )
        elif code.startswith("SQLITE_ERROR") and text.startswith(("no such ", "table ", "duplicate column")):
            advice = f"its tables are not as they should be; {MEND}"
        else:
            raise StorageError(f"{path}: {text}") from error
        raise StorageError(f"{path}: {advice} ({text})") from error
