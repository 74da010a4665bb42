"""The records that recall returned recently: if a model repeats their words, they are not stored again.

Without this check a memory fills with copies of itself: in a memory that stored the recalled text, 97.8 % of the
records were junk after a month (mem0, issue 4573).
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass, replace

from mindstream import caches
from mindstream.clock import MINUTE_S, Moment
from mindstream.log.names import StreamKey
from mindstream.memory.store.record import Record, normalised, same_words

RECORDS = 1_000
"""Maximum number of records remembered for one stream; those returned longest ago are dropped first."""
FOR_S = 10 * MINUTE_S


@dataclass(slots=True)
class _Returned:
    """A record without its vector, when it was last returned, and a hash of its words once these were compared."""

    at: Moment
    record: Record
    words: int | None = None


class RecentTexts:
    """The records that recent recalls of this process returned, each remembered once.

    Their texts are hashed only when a text is to be written.
    """

    def __init__(self, stream: StreamKey) -> None:
        self._stream = stream
        caches.watch(self)
        self._returned: OrderedDict[str, _Returned] = OrderedDict()

    def __len__(self) -> int:
        return len(self._returned)

    def add(self, now: Moment, records: Iterable[Record]) -> None:
        """Add the records that a recall returned."""
        for record in records:
            bare = record if record.vector is None else replace(record, vector=None)
            held = self._returned.pop(record.id, None) or _Returned(now, bare)
            held.at = now
            self._returned[record.id] = held
        self._drop_old(now)

    def forget(self, stream: str) -> None:
        """Drop all records if something was erased in this stream."""
        if stream == self._stream:
            self._returned.clear()

    def same(self, texts: Iterable[str], now: Moment) -> dict[str, Record]:
        """Return recently returned records with the same words as one of these texts, by normalised text."""
        self._drop_old(now)
        wanted = {same_words(text): normalised(text) for text in texts}
        found: dict[str, Record] = {}
        for held in self._returned.values():
            if held.words is None:
                held.words = same_words(held.record.text)
            if held.words in wanted:
                found[wanted[held.words]] = held.record
        return found

    def _drop_old(self, now: Moment) -> None:
        while self._returned:
            oldest = next(iter(self._returned.values()))
            if len(self._returned) <= RECORDS and now - oldest.at <= FOR_S:
                break
            self._returned.popitem(last=False)
