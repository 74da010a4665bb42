"""Records and commits that the promises of a store are tried with."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from mindstream.log.events import Remembered
from mindstream.log.names import StreamName
from mindstream.memory.store.record import Kind, Record, Triple, new_id
from mindstream.memory.store.store import Commit, Entry

ANN, BOB = StreamName("user", "ann").key, StreamName("user", "bob").key
THEN, LATER, NOW = 1e9, 2e9, 3e9


def build_record(text: str, kind: Kind = "note") -> Record:
    return Record(
        id=new_id(THEN),
        stream=ANN,
        kind=kind,
        text=text,
        created=THEN,
        accessed=THEN,
        importance=5.0,
        by=ANN,
        about=Triple(ANN, "drinks", "tea"),
        keywords=("tea",),
        evidence=("x",),
        data={"a": [1, "二"]},
        embedder="e",
        vector=np.arange(4, dtype=np.float16),
    )


def build_version(number: int) -> Record:
    return replace(build_record(f"plan {number}", "plan"), slot="plan", version=number)


def build_event() -> Remembered:
    return Remembered(count=1, kinds={"note": 1})


def build_writing(*records: Record, at: float = THEN) -> Commit:
    return Commit(mind=records[0].stream, at=at, entries=(Entry(build_event(), ANN, records),))
