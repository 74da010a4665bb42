"""Lookups in a stream's columns: rows by id and by values of data, and how much each speaker says."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from operator import index
from typing import Any, SupportsIndex, overload

import numpy as np
from numpy.typing import NDArray
from pydantic import JsonValue

from mindstream.memory.store.record import Record
from mindstream.text.lexical import Postings, without_rows

Array = NDArray[Any]
LONGEST = 100
"""Maximum length of a text in these lookups. Longer texts and nested values are compared with the stored records."""
IS, IS_SOMETHING, IS_LARGE = "\0=", "\0+", "\0#"
TAKES_PART = 0.1
"""Minimum share of the messages for a speaker to count as taking part; only these determine the tersest speaker."""
MAX_FOUND = 2_048
"""Maximum number of ids whose row is remembered after a lookup."""
DOUBTED = 5
"""Weight of the average message length in the estimate of a speaker's usual length, as a number of messages."""


class RecordIds:
    """The ids of a stream's records, in the order of writing: an array from a file, then a list of the later ones.

    Attributes:
        position: finds the row of an id; erased ids are unknown.
    """

    def __init__(self) -> None:
        self._kept: NDArray[np.bytes_] = np.empty(0, "S1")
        self._new: list[str] = []
        self.position = Positions()

    def __len__(self) -> int:
        return len(self._kept) + len(self._new)

    @overload
    def __getitem__(self, at: SupportsIndex) -> str: ...
    @overload
    def __getitem__(self, at: slice) -> list[str]: ...
    def __getitem__(self, at: SupportsIndex | slice) -> str | list[str]:
        if isinstance(at, slice):
            return [self[each] for each in range(*at.indices(len(self)))]
        row, kept = index(at), len(self._kept)
        row += len(self) if row < 0 else 0
        return self._new[row - kept] if row >= kept else bytes(self._kept[row]).decode()

    def __iter__(self) -> Iterator[str]:
        yield from (bytes(id_).decode() for id_ in self._kept)
        yield from self._new

    def append(self, id_: str) -> int:
        """Add an id; return its row."""
        at = self.position.new[id_] = len(self)
        self._new.append(id_)
        return at

    def among(self, ids: Sequence[str]) -> NDArray[np.bool_]:
        """Mark the records that have one of these ids."""
        mask = np.zeros(len(self), np.bool_)
        mask[[at for id_ in ids if (at := self.position.get(id_)) is not None]] = True
        return mask

    def without(self, rows: NDArray[np.int64]) -> RecordIds:
        """Return a copy without some rows; `rows` must be sorted."""
        fresh, count = RecordIds(), len(self._kept)
        kept_rows, gone = rows[rows < count], set((rows[rows >= count] - count).tolist())
        fresh._kept = fresh.position.kept = without_rows(self._kept, kept_rows.tolist())
        order = self.position.order[~np.isin(self.position.order, kept_rows)]
        fresh.position.order = (order - np.searchsorted(kept_rows, order)).astype(np.int32)
        fresh._new = [id_ for at, id_ in enumerate(self._new) if at not in gone]
        fresh.position.new = {id_: at for at, id_ in enumerate(fresh._new, len(fresh._kept))}
        return fresh

    def copying(self, count: int, found: dict[str, Array]) -> Callable[[], None]:
        """Return a function that puts the first `count` ids as arrays into `found`; it may be called in any thread."""
        kept, new = self._kept[:count], self._new[: max(0, count - len(self._kept))]

        def gather() -> None:
            ids = np.concatenate((kept, np.array([id_.encode() for id_ in new], "S"))) if new else kept
            found["ids"], found["order"] = ids, np.argsort(ids, kind="stable").astype(np.int32)

        return gather

    def adopt(self, arrays: Mapping[str, Array]) -> None:
        """Start with the arrays that `copying` returned; there must be no ids yet."""
        self._kept = self.position.kept = arrays["ids"]
        self.position.order = arrays["order"]


class Positions:
    """Rows of records by id."""

    def __init__(self) -> None:
        self.new: dict[str, int] = {}
        self.kept: NDArray[np.bytes_] = np.empty(0, "S1")
        self.order: NDArray[np.int32] = np.empty(0, np.int32)
        self._erased: set[str] = set()
        self._found: dict[str, int] = {}
        """Rows found in `kept` before, because a recall and its effects look up the same ids."""

    def get(self, id_: str) -> int | None:
        """Return the row of a record; None: it is unknown or erased."""
        at = self.new.get(id_, self._found.get(id_))
        if at is not None or not len(self.kept):
            return at
        wanted, kept, order = id_.encode("utf-8", "surrogatepass"), self.kept, self.order
        place = bisect_left(range(len(order)), wanted, key=lambda each: bytes(kept[order[each]]))
        if place == len(order) or kept[row := int(order[place])] != wanted or id_ in self._erased:
            return None
        if len(self._found) >= MAX_FOUND:
            self._found.clear()
        self._found[id_] = row
        return row

    def __contains__(self, id_: str) -> bool:
        return self.get(id_) is not None

    def __getitem__(self, id_: str) -> int:
        at = self.get(id_)
        if at is None:
            raise KeyError(id_)
        return at

    def erase(self, id_: str) -> int | None:
        """Remove a record; return its row."""
        at = self.get(id_)
        self._found.pop(id_, None)
        if self.new.pop(id_, None) is None:
            self._erased.add(id_)
        return at


class Fields:
    """Finds rows by values: for each value of each field of data, and for each slot, the rows that have it."""

    def __init__(self, postings: Postings | None = None) -> None:
        self.postings = postings or Postings()

    def add(self, at: int, record: Record) -> None:
        """Add a record."""
        for key in field_keys(record):
            self.postings.add(key, at)

    def having(self, name: str, value: JsonValue, count: int) -> NDArray[np.bool_]:
        """Mark which of the first `count` records have a plain value in a field; value None: no value, or null."""
        mask = np.zeros(count, np.bool_)
        mask[self.postings.of(name + IS_SOMETHING if value is None else _key(name, value))] = True
        return ~mask if value is None else mask

    def rows(self, name: str, value: str) -> list[int] | None:
        """Return the rows that have this text in a field; None: the text is too long for these lookups."""
        return self.postings.of(_key(name, value)).tolist() if is_plain(value) else None

    def large(self, name: str) -> list[int]:
        """Return the rows whose value in a field is large, so that it must be compared in the store."""
        return [int(at) for at in self.postings.of(name + IS_LARGE)]


def field_keys(record: Record) -> Iterator[str]:
    """Yield the lookup keys of a record."""
    if record.data or record.slot is not None:
        for name, value in entries(record):
            if value is not None:
                yield _key(name, value) if is_plain(value) else name + IS_LARGE
                yield name + IS_SOMETHING


def entries(record: Record) -> Iterator[tuple[str, JsonValue]]:
    """Yield the fields that the filter `where` can name, except `by` and `episode`."""
    if record.slot is not None:
        yield "slot", record.slot
    for name, value in record.data.items():
        if name != "slot":
            yield name, value


def is_plain(value: JsonValue) -> bool:
    """Return whether a value is small enough to be in these lookups: no list, no object, no long text."""
    return len(value) <= LONGEST if isinstance(value, str) else not isinstance(value, list | dict)


def _key(name: str, value: JsonValue) -> str:
    """Return the key of a plain value; equal values (1, 1.0 and true) have the same key."""
    if isinstance(value, str):
        return f"{name}{IS}s{value}"
    whole = int(value) if isinstance(value, int | float) and value == value // 1 else value
    return f"{name}{IS}{whole}"


class Speakers:
    """The speakers of a stream's conversations, by their numbers in the column `by`, and who is the user and the agent.

    Recall compares the length of a message with its speaker's usual length, and that of a verbose speaker with the
    tersest.
    """

    def __init__(self) -> None:
        self._messages: list[int] = []
        self._words: list[int] = []
        self._users: set[int] = set()
        self._agents: set[int] = set()
        self._usual: NDArray[np.float64] | None = None

    def add(self, by: int, words: int, by_user: object) -> None:
        """Count a message and its words; `by_user`: the field of that name in its data, which may be missing."""
        missing = by + 1 - len(self._messages)
        self._messages += [0] * missing
        self._words += [0] * missing
        self._messages[by] += 1
        self._words[by] += words
        if isinstance(by_user, bool):
            (self._users if by_user else self._agents).add(by)
        self._usual = None

    def without(self, said: Iterable[tuple[int, int, int]]) -> Speakers:
        """Return a copy with changed counts; `said`: for speakers, the changes of the numbers of messages and words."""
        fresh = Speakers()
        fresh.begin_with([list(each) for each in self.state()])
        for by, messages, words in said:
            fresh._messages[by] += messages
            fresh._words[by] += words
        return fresh

    def state(self) -> list[list[int]]:
        """Return all data, for `begin_with`."""
        return [self._messages, self._words, sorted(self._users), sorted(self._agents)]

    def begin_with(self, state: list[list[int]]) -> None:
        """Start with data that `state` returned."""
        self._messages, self._words, users, agents = state
        self._users, self._agents, self._usual = set(users), set(agents), None

    @property
    def user(self) -> int:
        """The number of the only speaker that messages mark as the user; -1: none, or several."""
        return _only(self._users)

    @property
    def agent(self) -> int:
        """The number of the only speaker who talks to the user; -1: none, or several."""
        return _only(self._agents)

    def usual_lengths(self) -> NDArray[np.float64]:
        """Return each speaker's usual number of words per message: a weighted geometric mean with the average of all
        messages.

        A speaker without messages gets the average of all messages.
        """
        if self._usual is None:
            messages, words = np.array(self._messages, np.float64), np.array(self._words, np.float64)
            everybody = np.log(max(1.0, words.sum() / max(1.0, messages.sum())))
            own = np.log(np.maximum(1, words / np.maximum(1, messages)))
            self._usual = np.exp((messages * own + DOUBTED * everybody) / (messages + DOUBTED))
        return self._usual

    def taking_part(self) -> list[int]:
        """Return the numbers of the speakers who take part in the conversation."""
        least = TAKES_PART * sum(self._messages)
        return [by for by, messages in enumerate(self._messages) if messages > least]

    def tersest(self) -> float:
        """Return the smallest usual length of the speakers who take part; 0 if there are none."""
        usual = self.usual_lengths()
        return min((float(usual[by]) for by in self.taking_part()), default=0.0)


def _only(numbers: set[int]) -> int:
    return next(iter(numbers)) if len(numbers) == 1 else -1
