"""A record: one entry of a stream; how its id is made, and when two texts count as the same."""

from __future__ import annotations

import hashlib
import json
import math
import re
import unicodedata
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from mindstream import chance
from mindstream.clock import EARLIEST, LATEST, Moment, Time, format_iso, out_of_range
from mindstream.errors import InputError
from mindstream.identifiers import StreamKey, normal_name
from mindstream.json_values import JsonObject

if TYPE_CHECKING:
    from pydantic import JsonValue

    from mindstream.memory.store.store import Commit, Entry, Revision

Kind: TypeAlias = Literal[
    "observation", "chat", "note", "thought", "plan", "belief", "feedback", "exemplar", "evidence", "document", "dream"
]
KINDS: tuple[Kind, ...] = get_args(Kind)
FADING: frozenset[Kind] = frozenset({"note", "observation", "thought", "dream"})
"""Kinds of records that strengthen and decay; the strength of other kinds never changes."""
UNIQUE: frozenset[Kind] = frozenset({"note", "thought", "exemplar"})
"""Kinds of records of which a stream stores the same words only once."""
TAINTED = "tainted"
"""Name of the field of `data` that marks a record as tainted: it has untrusted text, or was derived from a tainted
record (see memory/stream)."""
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
        id: by default it begins with the time of creation, so that sorting by id sorts by this time. Export and import
            keep the id.
        by: the name of the speaker, observer or thinker.
        episode: the session or scene. The records before and after this one in the episode are its context.
        accessed: when a recall last returned the record; at first, when it was written.
        importance: 1 to 10; None: not rated yet.
        level, lasting: the record's strength (see memory/forgetting_curve). A `lasting` record is long-term and never
            decays.
        valid_from, valid_until: the period in which the record is true; superseding a record sets `valid_until`.
        superseded_by: the id of the record that replaces this one.
        forgotten: when the record was archived.
        depth: 0, or 1 + the depth of the deepest record from which this one is derived.
        slot, version: set for beliefs and plans; each version of a slot is a record.
        seq: the row of the log that was written with the record.
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
        """Show the text first, then the other fields that are set. Technical fields except the id are left out."""
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
    """Return a record with these values of all its fields, in the order of the class. The values are not checked. (The
    constructor of the class takes twice as long.)"""
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
        depth: depth of the record; None: 1 + the depth of the deepest evidence, or 0 without evidence.
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

    With a seed, this object numbers the records that have the same time, kind and text, so that their ids differ. The
    numbers begin again with each record of another time.
    """

    stream: str
    seed: int | str | None = None
    _made: Counter[tuple[str, str]] = field(default_factory=Counter)
    _at: Moment = -1.0

    def begin_again(self) -> None:
        """Begin again: after this, make the same ids that a new object would make."""
        self._at = -1.0

    def make(self, created: Moment, kind: str, text: str) -> str:
        """Make the id of a new record. With a seed, the same records get the same ids in each run."""
        if self.seed is None:
            return new_id(created)
        if created != self._at:
            self._made, self._at = Counter(), created
        self._made[kind, text] += 1
        nth = self._made[kind, text]
        return new_id(created, chance.keyed_token(CHANCE, self.seed, self.stream, created, kind, text, nth))


def new_id(now: Moment, drawn: str = "") -> str:
    """Make a record's id: 9 characters for the time in milliseconds, then `drawn`.

    If `drawn` is "", 9 random characters are used instead.
    """
    milliseconds, digits = int(now * 1000), []
    for _ in range(9):
        milliseconds, digit = divmod(milliseconds, 32)
        digits.append("0123456789abcdefghjkmnpqrstvwxyz"[digit])
    return "".join(reversed(digits)) + (drawn or chance.token(CHANCE))


def is_tainted(record: Record) -> bool:
    """Return whether a record contains untrusted text, or is derived from untrusted text."""
    return bool(record.data.get(TAINTED))


def common_data(records: Sequence[Record]) -> JsonObject:
    """Return the data for a record that sleep derives from these records.

    The data are the fields that are equal in all the records. Therefore the filter `where` finds a derived record only
    by values that all its sources have. The derived record is tainted if any source is tainted.
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
    """Return the form of a text in which texts are compared.

    The form is NFC, in lower case, without extra spaces, and without full stops or exclamation marks (also Chinese
    ones) at the end.
    """
    return " ".join(nfc(text).casefold().split()).rstrip(".!。！ ")


def same_words(text: str) -> int:
    """Return a signed 64-bit hash of a text's normalised form. Texts that count as the same have the same hash."""
    return _number(normalised(text))


def same_words_once(text: str) -> tuple[int, ...]:
    """Return the hashes (see `same_words`) under which an equal text may be stored.

    The first is the hash of the text's NFC form. The hash of the NFD form, which earlier versions stored, follows if it
    differs.
    """
    words = normalised(text)
    parted = words if words.isascii() else unicodedata.normalize("NFD", words)
    return (_number(words),) if parted == words else (_number(words), _number(parted))


def _number(words: str) -> int:
    return int.from_bytes(hashlib.blake2b(words.encode(), digest_size=8).digest(), signed=True)


MAX_TEXT, MAX_UTTERANCE = 100_000, 32_000
"""MAX_TEXT: maximum length of a record's text, in characters. MAX_UTTERANCE: maximum length of one message to a mind, a
life or a town, in characters.

Characters are Unicode code points, like in Python and JSON Schema. The REST and MCP schemas use these values as
`maxLength`.
"""
MAX_COUNT = 2**63 - 1
"""Maximum number of records that a call can request."""
MAX_NAME, MAX_KEYWORDS, MAX_EVIDENCE = 500, 1_000, 100_000
"""MAX_NAME: maximum length of a name, a keyword or a part of a triple, in characters. MAX_KEYWORDS, MAX_EVIDENCE:
maximum number of a record's keywords, and of its ids of evidence."""
MAX_VALUES, MAX_NESTING = 20_000, 40
"""Maximum number of values, and of nesting levels, in a record's data."""
MAX_LEVEL, MAX_DEPTH, MAX_VERSION = 32_000, 1_000_000, 2**53

CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
_ID = re.compile(r"[\w-]{6,64}")


def checked_text(text: str, longest: int = MAX_TEXT) -> str:
    """Return a text in the form in which it is stored: NFC, trimmed, no control characters except tab and line break.

    Raises:
        InputError: `text` is not a text, nothing is left of it, or it has more than `longest` characters.
    """
    _require(isinstance(text, str), "text", "a text", text)
    clean = _clean(text)
    if not clean:
        raise InputError("the text has nothing to read: it is empty or has only spaces and control characters")
    size = max(len(text), len(clean))  # JSON Schema limits the length before cleaning
    if size > longest:
        raise InputError(
            f"the text is too long: {size:,} characters, and at most {longest:,} are accepted;"
            " shorten it or send it in parts"
        )
    return clean


def _clean(text: str) -> str:
    text = text if text.isprintable() else CONTROL.sub("", text.replace("\r\n", "\n"))
    return nfc(text).strip()


def shortened(text: str, longest: int) -> str:
    """Return at most `longest` characters of a text; if it is cut, it ends with an ellipsis."""
    return text if len(text) <= longest else f"{text[: longest - 2].rstrip()} …"


def fitted_text(text: str) -> str:
    """Clean a text that a model wrote, as `checked_text` does. A text that is too long is shortened, not refused.

    Raises:
        InputError: nothing is left.
    """
    return checked_text(shortened(_clean(text), MAX_TEXT) if len(text) > MAX_TEXT else text)


def checked_kinds(kinds: Collection[Kind]) -> tuple[Kind, ...]:
    """Return the kinds of records as a tuple.

    Raises:
        InputError: `kinds` is not a list of kinds, or one of them does not exist.
    """
    _require(
        isinstance(kinds, Collection) and not isinstance(kinds, str | bytes), "kinds", 'a list such as ["note"]', kinds
    )
    for kind in kinds:
        _require(kind in KINDS, "kinds", f"some of {', '.join(KINDS)}", kind)
    return tuple(kinds)


def checked_fields(fields: Mapping[str, JsonValue] | None, name: str) -> dict[str, JsonValue]:
    """Return a copy of the mapping `fields`; {} for None.

    Raises:
        InputError: `fields` is not a mapping.
    """
    _require(fields is None or isinstance(fields, Mapping), name, 'a mapping such as {"city": "Ulm"}', fields)
    return dict(fields or {})


def checked_words(text: str, name: str) -> str:
    """Return a text unchanged, after checking only its type. The text is not stored, such as a question.

    Raises:
        InputError: `text` is not a text.
    """
    _require(isinstance(text, str), name, "a text", text)
    return text


def checked_importance(importance: float | None) -> float | None:
    """Return an importance between 1 and 10, or None; otherwise raise InputError."""
    if importance is not None and not (_is_number(importance) and 1 <= importance <= 10):
        raise InputError(f"importance must be a number from 1 to 10, not {_shown(importance)}")
    return importance


def checked_record(record: Record) -> Record:
    """Check a record that is to be written, and return it without control characters.

    Raises:
        InputError: a field is invalid or does not fit the others; the message names the field.
    """
    is_id = isinstance(record.id, str) and _ID.fullmatch(record.id)
    _require(is_id, "id", "6 to 64 letters, digits, _ and -", record.id)
    if record.kind not in KINDS:
        raise InputError(f"kind: expected one of {', '.join(KINDS)}, not {_shown(record.kind)}")
    _check_times(record, created=0.0, accessed=0.0, forgotten=0.0, valid_from=EARLIEST, valid_until=EARLIEST)
    checked_importance(record.importance)
    check_whole(record.level, "level", -1, MAX_LEVEL)
    check_whole(record.depth, "depth", 0, MAX_DEPTH)
    _require(isinstance(record.lasting, bool), "lasting", "true or false", record.lasting)
    if (record.slot is None) != (record.version is None):
        raise InputError("slot and version must be given together: only one of them is set")
    if record.slot is not None:
        check_whole(record.version, "version", 1, MAX_VERSION)
        if record.kind not in SLOTTED:
            raise InputError(f"slot: only beliefs and plans have one, not a {record.kind}")
        _require(record.slot and _name(record.slot, "slot") == record.slot, "slot", "a name", record.slot)
    _check_links(record)
    _check_data(record)
    check_vector(record.vector)
    return legible_record(record)


def legible_record(record: Record) -> Record:
    """Return a record whose text, keywords and triple are in NFC, and whose names have no control characters.

    Raises:
        InputError: one of these is invalid; the message names it.
    """
    text, by, episode = checked_text(record.text), _name(record.by, "by"), _name(record.episode, "episode")
    keywords = tuple(nfc(_name(each, "keywords")) for each in record.keywords) if record.keywords else record.keywords
    about = record.about
    if about:
        _require(isinstance(about, Triple), "about", "subject, predicate and object", about)
        about = Triple(*(nfc(_name(each, "about")) for each in about))
    if (text, by, episode, keywords, about) == (record.text, record.by, record.episode, record.keywords, record.about):
        return record
    return replace(record, text=text, by=by, episode=episode, keywords=keywords, about=about)


def checked_moment(at: Moment, what: str, earliest: Moment = 0.0) -> Moment:
    """Return a time unchanged; raise InputError if it is before `earliest` or later than a calendar can express."""
    if not (_is_number(at) and earliest <= at <= LATEST):
        raise InputError(f"{what}: {out_of_range(at, 1970 if earliest >= 0 else 1)}")
    return at


def check_interval(begins: Moment | None, ends: Moment | None) -> None:
    """Raise InputError unless `valid_until` (`ends`, the first moment after the validity) is after `valid_from`."""
    if begins is not None and ends is not None and ends <= begins:
        raise InputError(
            f"valid_until: expected a time after valid_from ({format_iso(begins)}), not {format_iso(ends)}; the end is"
            " not included, and a date without a time means its first moment"
        )


def _check_times(holder: Record | Revision, **earliest: Moment) -> None:
    """Check the times in the named fields, if they are set; the value of each argument is the earliest allowed time."""
    for name, first in earliest.items():
        if (at := getattr(holder, name)) is not None:
            checked_moment(at, name, first)


def _check_links(record: Record) -> None:
    for name, most in (("keywords", MAX_KEYWORDS), ("evidence", MAX_EVIDENCE)):
        found = getattr(record, name)
        if not isinstance(found, tuple) or len(found) > most:
            raise InputError(f"{name}: expected a tuple of at most {most:,} values, not {_shown(found)}")
    others = record.evidence if record.superseded_by is None else (*record.evidence, record.superseded_by)
    for other in others:
        is_id = isinstance(other, str) and 0 < len(other) <= 64 and other.isprintable()
        _require(is_id, "evidence, superseded_by", "ids of records", other)
        if other == record.id:
            raise InputError(f"the record {record.id} cannot be derived from itself, nor superseded by itself")


def _check_data(record: Record) -> None:
    """Raise InputError if the data is not JSON, or has too many values or levels."""
    _require(isinstance(record.data, dict | Mapping), "data", "fields by name", record.data)
    level, values = list[object]([record.data]), 0
    for _ in range(MAX_NESTING):
        below: list[object] = []
        for value in level:
            if isinstance(value, dict | Mapping):  # the check for dict is faster
                for key in value:
                    _check_text(key)
                below += value.values()
            elif isinstance(value, list | tuple):
                below += value
            elif isinstance(value, str):
                _check_text(value)
            else:
                _require(value is None or isinstance(value, bool) or _is_number(value), "data", "JSON", value)
        level, values = below, values + len(below)
        if values > MAX_VALUES:
            raise InputError(f"data: expected at most {MAX_VALUES:,} values; store large data elsewhere")
        if not level:
            return
    raise InputError(f"data: values are nested more than {MAX_NESTING} levels deep")


def _check_text(text: object) -> None:
    is_text = isinstance(text, str) and (text.isprintable() or not re.search(r"[\ud800-\udfff]", text))
    _require(is_text, "data", "texts without unpaired surrogates", text)


def check_vector(row: Vector | None) -> None:
    """Raise InputError if a vector is not a one-dimensional array of finite float16 numbers."""
    if row is not None and not (row.dtype == np.float16 and row.ndim == 1 and len(row) and is_finite(row)):
        raise InputError("vector: expected one row of finite float16 numbers")


def is_finite(row: Vector) -> bool:
    """Return whether the length of a vector, and so each of its numbers, is finite in 32 bits."""
    numbers = row.astype(np.float32)
    return math.isfinite(numbers.dot(numbers))


def check_whole(number: object, what: str, least: int, most: int) -> None:
    """Raise InputError unless a number is a whole one in this range, both ends included."""
    if not (isinstance(number, int) and not isinstance(number, bool) and least <= number <= most):
        raise InputError(f"{what}: expected a whole number from {least} to {most:,}, not {_shown(number)}")


def _is_number(value: object) -> bool:
    return isinstance(value, float | int) and not isinstance(value, bool) and abs(value) < 1e300


def _name(name: str, what: str) -> str:
    """Return a name without control characters; raise InputError if it is not a text, or is too long."""
    _require(isinstance(name, str), what, "a text", name)
    if len(name) > MAX_NAME:
        raise InputError(f"{what}: expected at most {MAX_NAME} characters, not {len(name):,}")
    return name if name.isprintable() else " ".join(CONTROL.sub("", name).split())


def session_names(session: str) -> tuple[str, ...]:
    """Return the names under which a session may be stored: the normal form of its name, and the name as typed if it
    differs.

    Records of earlier versions may have the name as typed.

    Raises:
        InputError: the name is not a text, or is too long.
    """
    plain = _name(session, "session")
    return tuple(dict.fromkeys((normal_name(plain), plain)))


def _require(is_valid: object, what: str, expected: str, found: object) -> None:
    if not is_valid:
        raise InputError(f"{what}: expected {expected}, not {_shown(found)}")


def _shown(value: object) -> str:
    """Return a value as text for an error message, shortened."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):  # a number of thousands of digits, or deeply nested lists
        text = f"something of the type {type(value).__name__}"
    return text if len(text) <= 80 else f"{text[:77]}…"


def checked_commit(commit: Commit) -> Commit:
    """Check a commit and return it with cleaned records; every store calls this before it writes.

    Raises:
        InputError: a value is invalid or contradicts another value, or a record belongs to another stream.
    """
    checked_moment(commit.at, "at")
    if commit.fence and not commit.fence.work:
        raise InputError(
            "a fence makes the commit depend on a lease, so it must name the leased work; this one names none"
        )
    if commit.unique and not commit.entries:
        raise InputError(f"the unique name {commit.unique!r} needs an event that uses it, and this commit has no event")
    for revision in commit.revisions:
        checked_importance(revision.importance)
        if odd := set(revision.emptied) - {"forgotten", "valid_until", "superseded_by"}:
            raise InputError(f"only forgotten, valid_until and superseded_by can be emptied, not {sorted(odd)}")
        if revision.level is not None:
            # recall may raise a record one level above MAX_LEVEL
            check_whole(revision.level, "level", -1, MAX_LEVEL + 1)
        _check_times(revision, accessed=0.0, forgotten=0.0, valid_until=EARLIEST)
        check_vector(revision.vector)
    entries = tuple(_checked_entry(entry, commit.mind) for entry in commit.entries)
    return commit if all(map(is_, entries, commit.entries)) else replace(commit, entries=entries)


def _checked_entry(entry: Entry, mind: str) -> Entry:
    for record in entry.records:
        if record.stream != mind:
            raise InputError(f"a record of the stream {record.stream!r} cannot be written by the mind {mind!r}")
    records = tuple(map(checked_record, entry.records))
    return entry if all(map(is_, records, entry.records)) else replace(entry, records=records)
