"""What recall returned lately: its words, coming back from a model, are no news.

Without this guard a memory fills with its own echo: one that kept what was read back to it held 97.8 % junk after a
month (mem0, issue 4573).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from mindstream import caches
from mindstream.clock import MINUTE_S, Moment
from mindstream.log.names import StreamKey
from mindstream.memory.store.record import Record, normalised

RECALLS = 100
FOR_S = 10 * MINUTE_S


class RecentTexts:
    """The records of the last recalls of this process; texts are compared only when something is to be written."""

    def __init__(self, stream: StreamKey) -> None:
        self._stream = stream
        caches.watch(self)
        self._recalls: deque[tuple[Moment, list[Record], dict[str, Record]]] = deque(maxlen=RECALLS)

    def add(self, now: Moment, records: list[Record]) -> None:
        """Take note of what a recall returned."""
        self._recalls.append((now, records, {}))

    def forget(self, stream: str) -> None:
        """Let go of what was returned, where something of this stream was erased."""
        if stream == self._stream:
            self._recalls.clear()

    def same(self, texts: Iterable[str], now: Moment) -> dict[str, Record]:
        """Return what was returned lately and says the same as these texts, by normalised text."""
        while self._recalls and now - self._recalls[0][0] > FOR_S:
            self._recalls.popleft()
        wanted = {normalised(text) for text in texts}
        found: dict[str, Record] = {}
        for _, records, words in self._recalls:
            if not words:
                words.update((normalised(record.text), record) for record in records)
            found.update((text, words[text]) for text in wanted & words.keys())
        return found
