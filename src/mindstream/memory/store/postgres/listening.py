"""LISTEN: one connection a process is told at once whose rows somebody has written, in whatever process.

Whoever writes tells it in the transaction that it commits (see writer). What is told is a digest: no name is in it.
Where the connection is cut all who heed are told to look, when it is cut and again when it stands.
"""

from __future__ import annotations

import contextlib
import hashlib
import threading
from collections.abc import Callable, Iterator

import psycopg

from mindstream.memory.store.postgres.writer import CHANNEL

LOOK_S, REST_S = 1.0, 0.5
"""How often it is looked whether anybody still heeds, and how long a cut is rested after."""
Told = Callable[[], None]


def digest_of(tenant: str, stream: str = "") -> str:
    """Return by what a tenant's rows, or those of one stream of it, are told."""
    return hashlib.blake2b(f"{tenant}\0{stream}".encode("utf-8", "surrogatepass"), digest_size=12).hexdigest()


class Listening:
    """Hears of one database for all of a process; its thread runs while anybody heeds."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._heeding: dict[str, set[Told]] = {}
        self._thread: threading.Thread | None = None

    @contextlib.contextmanager
    def heeding(self, digest: str, told: Told) -> Iterator[None]:
        """Call `told`, from another thread, when that was written."""
        with self._lock:
            self._heeding.setdefault(digest, set()).add(told)
            if self._thread is None:
                self._thread = threading.Thread(target=self._listen, name="listener of a database", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._lock:
                self._heeding[digest].discard(told)
                if not self._heeding[digest]:
                    del self._heeding[digest]

    def _listen(self) -> None:
        while not self._is_over():
            try:
                with psycopg.connect(self._url, autocommit=True, connect_timeout=10) as connection:
                    connection.execute(f"LISTEN {CHANNEL}".encode())
                    self._tell_all()  # of what came before it stood
                    while not self._is_over():
                        for note in connection.notifies(timeout=LOOK_S):
                            self._tell(note.payload)
            except psycopg.Error:
                self._tell_all()
                threading.Event().wait(REST_S)

    def _is_over(self) -> bool:
        """Tell whether this thread has ended: nobody heeds, or another one was begun when it was about to."""
        with self._lock:
            is_ours = self._thread is threading.current_thread()
            if is_ours and not self._heeding:
                self._thread = None
            return not (is_ours and self._heeding)

    def _tell(self, digest: str) -> None:
        with self._lock:
            told = list(self._heeding.get(digest, ()))
        for each in told:
            each()

    def _tell_all(self) -> None:
        with self._lock:
            told = [each for some in self._heeding.values() for each in some]
        for each in told:
            each()


_open: dict[str, Listening] = {}
_opening = threading.Lock()


def listening_to(url: str) -> Listening:
    """Return who hears of a database in this process."""
    with _opening:
        return _open.setdefault(url, Listening(url))
