"""Changes that this process has committed itself since it last read the changes of a stream.

The columns in memory are updated with these, so a process does not read back what it has just written.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from mindstream import caches
from mindstream.log.events import Logged
from mindstream.log.names import StreamKey
from mindstream.memory.store.record import Record, copied
from mindstream.memory.store.store import Commit, Revision

MOST = 128
"""Maximum number of changes of a stream that wait to be taken; if there are more, they are read from the database."""
STREAMS = 1_000
"""Maximum number of streams whose changes are remembered; when it is reached, all are forgotten."""
Change = Record | Revision
REAL = ("created", "accessed", "importance", "valid_from", "valid_until", "forgotten")
"""Fields of a record that the database stores as floating-point numbers."""
PLAIN = frozenset({str, int, float, bool, type(None)})
"""Types of values that JSON returns unchanged."""


class OwnChanges:
    """The changes by this process. They are complete only if no other process has committed in between: the commits of
    one call have the next number of a counter that all processes share, so a missing number shows a commit of another.
    """

    def __init__(self) -> None:
        self._first, self._last = 0, -1  # all commits with these and the numbers between them are by this process
        self._read: dict[StreamKey, tuple[int, int]] = {}
        """For each stream, the last change that was read, and the number of the last commit at that time."""
        self._made: dict[StreamKey, list[tuple[int, Change]]] = {}
        caches.watch(self)

    def forget(self, stream: str) -> None:
        """Drop the changes of a stream in which something was erased."""
        self._made.pop(StreamKey(stream), None)
        self._read.pop(StreamKey(stream), None)

    def note_read(self, stream: StreamKey, upto: int, number: int) -> None:
        """Remember that the changes of a stream have been read up to `upto`, when `number` was the last commit.

        If this process has committed since (while a thread was reading), nothing is remembered, so that the stream's
        changes are read again.
        """
        if len(self._read) >= STREAMS:
            self._read.clear()
            self._made.clear()
        self._made.pop(stream, None)
        if number < self._last:
            self._read.pop(stream, None)
            return
        self._read[stream] = upto, number

    def add(self, number: int, commit: Commit, logged: Sequence[Logged]) -> None:
        """Add a commit of this process, once it is durable."""
        stream = commit.mind
        if number not in (self._last, self._last + 1):
            self._first = number
        self._last = number
        if stream not in self._read or not (commit.entries or commit.revisions):
            return
        made = self._made.setdefault(stream, [])
        made += ((number, change) for change in _changes_of(commit, logged))
        if len(made) > MOST or not _is_simple(commit):
            self.forget(stream)

    def take(self, stream: StreamKey, since: int, number: int) -> tuple[list[Change], int] | None:
        """Return the changes of a stream after `since`, each once, and the number to pass as `since` next time. None:
        not all of these changes are known.

        Args:
            number: the number of the last commit of any process, as read before this call; negative: it is not known.
        """
        upto, before = self._read.get(stream, (-1, -1))
        if upto != since or number < 0:
            return None
        if not (self._first <= before + 1 and self._last >= number):  # another process has committed after `before`
            return ([], upto) if number == before else None
        made = [(at, change) for at, change in self._made.pop(stream, ()) if at > before]
        upto = made[-1][0] if made else upto
        self._read[stream] = upto, self._last
        return [change for _, change in made], upto


def _is_simple(commit: Commit) -> bool:
    """Return whether columns can take over a commit's changes from the commit alone. They cannot if it writes a version
    of a slot, because that also ends the version before, or if it changes a vector or empties a field.
    """
    return not (
        any(record.slot is not None for entry in commit.entries for record in entry.records)
        or any(each.vector is not None or each.embedder is not None or each.emptied for each in commit.revisions)
    )


def _changes_of(commit: Commit, logged: Sequence[Logged]) -> Iterator[Change]:
    for entry, row in zip(commit.entries, logged, strict=True):
        for record in entry.records:
            yield _as_stored(record, row.seq)
    yield from commit.revisions


def _as_stored(record: Record, seq: int) -> Record:
    """Return a record as the database returns it."""
    stored = copied(record)
    for name in REAL:
        if type(value := getattr(record, name)) is int:
            object.__setattr__(stored, name, float(value))
    plain = all(type(value) in PLAIN for value in record.data.values())
    object.__setattr__(stored, "data", dict(record.data) if plain else json.loads(json.dumps(dict(record.data))))
    object.__setattr__(stored, "seq", seq)
    return stored
