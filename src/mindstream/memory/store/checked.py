"""Commits fit to be written: what could not be read again, or is another stream's, is refused before anything is."""

from __future__ import annotations

from dataclasses import replace
from operator import is_

from mindstream.errors import InputError
from mindstream.memory.store.store import Commit, Entry, Revision
from mindstream.memory.store.validation import (
    EARLIEST,
    MAX_LEVEL,
    check_vector,
    check_whole,
    checked_importance,
    checked_moment,
    checked_record,
)


def checked_commit(commit: Commit) -> Commit:
    """Return a commit fit to be written; every store asks before it writes.

    Raises:
        InputError: something in it could not be read again, or belongs to another stream.
    """
    checked_moment(commit.at, "at")
    if commit.fence and not commit.fence.work:
        raise InputError("a fence names the work that must still be its owner's, and this one names none")
    if commit.unique and not commit.entries:
        raise InputError(f"{commit.unique!r} is taken by an event, and this commit has none")
    for revision in commit.revisions:
        _check_revision(revision)
    entries = tuple(map(_checked_entry, commit.entries, [commit.mind] * len(commit.entries)))
    return commit if all(map(is_, entries, commit.entries)) else replace(commit, entries=entries)


def _checked_entry(entry: Entry, mind: str) -> Entry:
    for record in entry.records:
        if record.stream != mind:
            raise InputError(f"a record of the stream {record.stream!r} cannot be written by the mind {mind!r}")
    records = tuple(map(checked_record, entry.records))
    return entry if all(map(is_, records, entry.records)) else replace(entry, records=records)


def _check_revision(revision: Revision) -> None:
    checked_importance(revision.importance)
    if odd := set(revision.emptied) - {"forgotten", "valid_until", "superseded_by"}:
        raise InputError(f"forgotten, valid_until and superseded_by can be emptied, and not {sorted(odd)}")
    if revision.level is not None:
        check_whole(revision.level, "level", -1, MAX_LEVEL + 1)  # one more than comes in: it may have been returned
    for name, earliest in (("accessed", 0.0), ("forgotten", 0.0), ("valid_until", EARLIEST)):
        if (at := getattr(revision, name)) is not None:
            checked_moment(at, name, earliest)
    if revision.vector is not None:
        check_vector(revision.vector)
