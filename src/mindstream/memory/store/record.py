"""A record: one line of a stream."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from mindstream import chance
from mindstream.clock import Moment, Time
from mindstream.log.names import StreamKey

Kind: TypeAlias = Literal[
    "observation", "chat", "note", "thought", "plan", "belief", "feedback", "exemplar", "evidence", "document", "dream"
]
KINDS: tuple[Kind, ...] = get_args(Kind)
FADING: frozenset[Kind] = frozenset({"note", "observation", "thought", "dream"})
"""Kinds that strengthen and fade; the others never do."""
UNIQUE: frozenset[Kind] = frozenset({"note", "thought", "exemplar"})
"""Kinds in which the same words are not kept twice."""
TAINTED = "tainted"
"""The field of data that is true where strangers wrote a record, or what it was drawn from (see memory/stream)."""
SLOTTED: frozenset[Kind] = frozenset({"belief", "plan"})

Vector: TypeAlias = NDArray[np.float16]


class Triple(NamedTuple):
    """What a record is about: subject, predicate, object."""

    subject: str
    predicate: str
    object: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One line of a stream. Times are seconds since 1970 UTC.

    Attributes:
        id: sortable by time of writing, the same after export and import.
        by: who said, saw or thought it.
        episode: the session or scene it belongs to; its neighbours there are its context.
        accessed: when it last was returned by a recall.
        importance: 1 to 10; None: not rated yet.
        level, lasting: how well it is held (see memory/fading); `lasting` never fades.
        valid_from, valid_until: when what it says holds; `valid_until` is set when it is superseded.
        superseded_by: the record that corrects this one.
        forgotten: when it faded into the archive.
        depth: 0, or 1 + the deepest record it was drawn from.
        slot, version: for beliefs and plans; each version of a slot is a record.
        seq: the row of the log that it came from.
    """

    id: str
    stream: StreamKey
    kind: Kind
    text: str
    created: Moment
    accessed: Moment
    by: str = ""
    episode: str = ""
    importance: float | None = None
    level: int = 0
    lasting: bool = False
    valid_from: Moment | None = None
    valid_until: Moment | None = None
    superseded_by: str | None = None
    forgotten: Moment | None = None
    about: Triple | None = None
    keywords: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    depth: int = 0
    slot: str | None = None
    version: int | None = None
    data: Mapping[str, JsonValue] = field(default_factory=dict)
    seq: int = 0
    embedder: str = ""
    vector: Vector | None = field(default=None, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDraft:
    """What is to be remembered; the rest of a record is filled in when it is written.

    Attributes:
        created: None: now. valid_from, valid_until: from when until when it holds; a date alone is its first moment.
        depth: None: 1 + the deepest of the evidence.
    """

    text: str
    kind: Kind = "observation"
    by: str = ""
    episode: str = ""
    importance: float | None = None
    about: Triple | None = None
    keywords: tuple[str, ...] = ()
    evidence: tuple[str, ...] = ()
    depth: int | None = None
    created: Time | None = None
    valid_from: Time | None = None
    valid_until: Time | None = None
    slot: str | None = None
    version: int | None = None
    data: Mapping[str, JsonValue] = field(default_factory=dict)


CHANCE = 9
"""So many characters of an id are chance."""


@dataclass
class Ids:
    """Makes records' ids; with a seed the same ones for the same records, whoever makes which first.

    Two records of one millisecond that say the same are told apart by their order.
    """

    stream: str
    seed: int | str | None = None
    _made: Counter[tuple[str, str]] = field(default_factory=Counter)
    _at: Moment = -1.0

    def make(self, created: Moment, kind: str, text: str) -> str:
        """Make the id of a record."""
        if self.seed is None:
            return new_id(created)
        if created != self._at:
            self._made, self._at = Counter(), created
        self._made[kind, text] += 1
        nth = self._made[kind, text]
        return new_id(created, chance.keyed_token(CHANCE, self.seed, self.stream, created, kind, text, nth))


def new_id(now: Moment, drawn: str = "") -> str:
    """Make a record's id: 9 characters of time in milliseconds, 9 of chance."""
    milliseconds, digits = int(now * 1000), []
    for _ in range(9):
        milliseconds, digit = divmod(milliseconds, 32)
        digits.append("0123456789abcdefghjkmnpqrstvwxyz"[digit])
    return "".join(reversed(digits)) + (drawn or chance.token(CHANCE))


def is_tainted(record: Record) -> bool:
    """Tell whether strangers wrote a record, or anything that it was drawn from."""
    return bool(record.data.get(TAINTED))


def common_data(records: Sequence[Record]) -> dict[str, JsonValue]:
    """Return the entries of data that all of them have alike; tainted where any is: what sleep makes of them has these.

    So `where` finds what was written with an entry and what sleep made of it alone, and nothing that was mixed.
    """
    first, *others = records
    common = {
        name: value
        for name, value in first.data.items()
        if all(name in each.data and _is_same(each.data[name], value) for each in others)
    }
    return common | ({TAINTED: True} if any(map(is_tainted, records)) else {})


def _is_same(one: JsonValue, other: JsonValue) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)  # 1 and true are equal, and not alike


def nfc(text: str) -> str:
    """Return a text in Unicode's composed form: "é" as one character, as keyboards and most files write it."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def normalised(text: str) -> str:
    """Return the form in which texts are compared for equality: NFC, without case, extra space and final marks."""
    return " ".join(nfc(text).casefold().split()).rstrip(".!。！ ")


def same_words(text: str) -> int:
    """Return a number that is the same for texts that count as the same: 64 bits, signed."""
    return _number(normalised(text))


def same_words_once(text: str) -> tuple[int, ...]:
    """Return the numbers under which such a text may be stored: earlier versions kept texts in NFD as they came."""
    words = normalised(text)
    parted = words if words.isascii() else unicodedata.normalize("NFD", words)
    return (_number(words),) if parted == words else (_number(words), _number(parted))


def _number(words: str) -> int:
    return int.from_bytes(hashlib.blake2b(words.encode(), digest_size=8).digest(), signed=True)
