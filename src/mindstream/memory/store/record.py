"""A record: one entry of a stream; how its id is made, and when two texts count as the same."""

from __future__ import annotations

import hashlib
import json
import unicodedata
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from mindstream import chance
from mindstream.clock import Moment, Time, format_iso
from mindstream.json_values import JsonObject
from mindstream.log.names import StreamKey

Kind: TypeAlias = Literal[
    "observation", "chat", "note", "thought", "plan", "belief", "feedback", "exemplar", "evidence", "document", "dream"
]
KINDS: tuple[Kind, ...] = get_args(Kind)
FADING: frozenset[Kind] = frozenset({"note", "observation", "thought", "dream"})
"""Kinds of records that strengthen and decay; the strength of other kinds never changes."""
UNIQUE: frozenset[Kind] = frozenset({"note", "thought", "exemplar"})
"""Kinds of records of which a stream stores the same words only once."""
TAINTED = "tainted"
"""Name of the field of `data` that marks records with untrusted text, and records derived from them (see
memory/stream)."""
SLOTTED: frozenset[Kind] = frozenset({"belief", "plan"})

Vector: TypeAlias = NDArray[np.float16]


class Triple(NamedTuple):
    """The content of a record as subject, predicate and object, such as ("user", "bedtime", "22:15")."""

    subject: str
    predicate: str
    object: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One entry of a stream. Times are seconds since 1970 UTC.

    Attributes:
        id: begins with the time of creation, so that ids can be sorted by it; export and import keep the id.
        by: the name of the speaker, observer or thinker.
        episode: the session or scene. The records before and after this one in the episode are its context.
        accessed: when a recall last returned the record; at first, when it was written.
        importance: 1 to 10; None: not rated yet.
        level, lasting: its strength (see memory/forgetting_curve); a `lasting` record is long-term and never decays.
        valid_from, valid_until: the period in which the record is true; superseding a record sets `valid_until`.
        superseded_by: the id of the record that replaces it.
        forgotten: when it was archived.
        depth: 0, or 1 + the depth of the deepest record that it is derived from.
        slot, version: set for beliefs and plans; each version of a slot is a record.
        seq: the row of the log with which it was written.
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

    def __repr__(self) -> str:
        """Show the text first, and then only the fields that are set, without the technical ones."""
        shown = {
            name: getattr(self, name) for name in ("kind", "by", "episode", "slot", "keywords", "evidence", "data")
        }
        ended = {"superseded_by": self.superseded_by, "archived": self.forgotten and format_iso(self.forgotten)}
        told = {**shown, "created": format_iso(self.created), **ended, "id": self.id}
        fields = "".join(f", {name}={value!r}" for name, value in told.items() if value)
        return f"Record({self.text!r}{fields})"


def copied(record: Record) -> Record:
    """Return a copy of a record; `dataclasses.replace` takes three times as long."""
    return filled_record(_VALUES(record))


def filled_record(values: Iterable[object]) -> Record:
    """Return a record with the values of all fields, in the order of the class, which are not checked; the constructor
    of the class takes twice as long."""
    record = object.__new__(Record)
    for assign, value in zip(_ASSIGN, values, strict=True):
        assign(record, value)
    return record


_ASSIGN = [getattr(Record, name).__set__ for name in Record.__slots__]
_VALUES = attrgetter(*Record.__slots__)


def without_vectors(records: Iterable[Record]) -> Iterator[Record]:
    """Yield records without their vectors.

    This changes the records in place, because copies take longer: no other code may use them.
    """
    for record in records:
        object.__setattr__(record, "vector", None)  # the class is frozen
        yield record


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordDraft:
    """A record to be written; the store sets the other fields of `Record`.

    Attributes:
        created: when the statement or observation was made; None: now.
        valid_from, valid_until: the period in which the record is true; a date without a time means 00:00 of that day.
        depth: if None, 1 + the depth of the deepest evidence, or 0 without evidence.
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
    """Makes ids of records. With a seed, the same records get the same ids in each run, in any order of writing.

    Records with the same millisecond, kind and text get different ids, in the order in which they are made.
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
    """Make a record's id: 9 characters for the time in milliseconds, then `drawn` or, if that is "", 9 random
    characters."""
    milliseconds, digits = int(now * 1000), []
    for _ in range(9):
        milliseconds, digit = divmod(milliseconds, 32)
        digits.append("0123456789abcdefghjkmnpqrstvwxyz"[digit])
    return "".join(reversed(digits)) + (drawn or chance.token(CHANCE))


def is_tainted(record: Record) -> bool:
    """Return whether a record contains untrusted text, or is derived from untrusted text."""
    return bool(record.data.get(TAINTED))


def common_data(records: Sequence[Record]) -> JsonObject:
    """Return the data for a record that sleep derives from these records: the fields that are equal in all of them.

    So the filter `where` finds a derived record only by values that all its sources have. The derived record is tainted
    if any of its sources is.
    """
    first, *others = records
    common = {
        name: value
        for name, value in first.data.items()
        if all(name in each.data and _is_same(each.data[name], value) for each in others)
    }
    return common | ({TAINTED: True} if any(map(is_tainted, records)) else {})


def _is_same(one: JsonValue, other: JsonValue) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)  # == would treat 1 and true as equal


def nfc(text: str) -> str:
    """Return a text in Unicode's composed form (NFC), as keyboards and most files write it."""
    return text if text.isascii() else unicodedata.normalize("NFC", text)


def normalised(text: str) -> str:
    """Return a text in the form in which two texts are compared: NFC, lower case, no extra spaces, no `.` or `!`
    at the end."""
    return " ".join(nfc(text).casefold().split()).rstrip(".!。！ ")


def same_words(text: str) -> int:
    """Return a signed 64-bit hash of a text's normalised form: texts that count as the same have the same hash."""
    return _number(normalised(text))


def same_words_once(text: str) -> tuple[int, ...]:
    """Return the hashes (see `same_words`) under which an equal text may be stored: that of its NFC form and, if it
    differs, that of its NFD form, which earlier versions stored."""
    words = normalised(text)
    parted = words if words.isascii() else unicodedata.normalize("NFD", words)
    return (_number(words),) if parted == words else (_number(words), _number(parted))


def _number(words: str) -> int:
    return int.from_bytes(hashlib.blake2b(words.encode(), digest_size=8).digest(), signed=True)
