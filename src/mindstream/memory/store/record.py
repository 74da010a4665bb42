"""A record: one line of a stream; its ids, and when two texts count as the same."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
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
"""Kinds that strengthen and decay; the others never change."""
UNIQUE: frozenset[Kind] = frozenset({"note", "thought", "exemplar"})
"""Kinds that do not store the same words twice."""
TAINTED = "tainted"
"""The field of data that marks records of untrusted origin, and those derived from them (see memory/stream)."""
SLOTTED: frozenset[Kind] = frozenset({"belief", "plan"})

Vector: TypeAlias = NDArray[np.float16]


class Triple(NamedTuple):
    """The triple of a record: subject, predicate, object."""

    subject: str
    predicate: str
    object: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One line of a stream. Times are seconds since 1970 UTC.

    Attributes:
        id: sortable by time of writing; it stays the same after export and import.
        by: the speaker, observer or thinker.
        episode: the session or scene; its neighbours there are its context.
        accessed: when a recall last returned it.
        importance: 1 to 10; None: not rated yet.
        level, lasting: its strength (see memory/forgetting_curve); `lasting` never decays.
        valid_from, valid_until: the period in which it is true; `valid_until` is set when it is superseded.
        superseded_by: the record that corrects this one.
        forgotten: when it was archived by decay.
        depth: 0, or 1 + the depth of the deepest record it is derived from.
        slot, version: of beliefs and plans; each version of a slot is a record.
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


def without_vectors(records: Iterable[Record]) -> Iterator[Record]:
    """Remove the vectors of records that only the caller holds (a copy takes longer); yield the records."""
    for record in records:
        object.__setattr__(record, "vector", None)  # the class is frozen
        yield record


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDraft:
    """A record to be written; the other fields are filled in then.

    Attributes:
        created: None: now. valid_from, valid_until: the period in which it is true; a date alone is its first moment.
        depth: None: 1 + that of the deepest evidence.
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
"""Number of random characters in an id."""


@dataclass
class Ids:
    """Makes records' ids; with a seed, the same ids for the same records, in whatever order.

    Two records of the same millisecond and text differ by their order.
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
    """Return whether a record is untrusted text, or derived from it."""
    return bool(record.data.get(TAINTED))


def common_data(records: Sequence[Record]) -> dict[str, JsonValue]:
    """Return the fields of data that all records have in common, for a record that sleep derives from them.

    It is tainted if any of them is. So `where` finds derived records only by fields that all their sources have.
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
    """Return a text in Unicode's composed form (NFC), as keyboards and most files write it."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def normalised(text: str) -> str:
    """Return the form in which texts are compared: NFC, without case, extra space and final marks."""
    return " ".join(nfc(text).casefold().split()).rstrip(".!。！ ")


def same_words(text: str) -> int:
    """Return a number that is equal for texts that count as the same: 64 bits, signed."""
    return _number(normalised(text))


def same_words_once(text: str) -> tuple[int, ...]:
    """Return the numbers that such a text may be stored with: earlier versions also stored texts in NFD."""
    words = normalised(text)
    parted = words if words.isascii() else unicodedata.normalize("NFD", words)
    return (_number(words),) if parted == words else (_number(words), _number(parted))


def _number(words: str) -> int:
    return int.from_bytes(hashlib.blake2b(words.encode(), digest_size=8).digest(), signed=True)
