"""Write imported items into memories, in batches, with their original dates.

The id of a record is computed from the item's id in the other program, or from its text. So a second import of the same
file adds nothing, and an import that was killed can simply be run again.
"""

from __future__ import annotations

import asyncio
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice

from mindstream import chance, redaction
from mindstream.clock import Clock, Moment
from mindstream.errors import Conflict, InputError
from mindstream.identifiers import StreamKey, StreamName
from mindstream.log.events import Remembered
from mindstream.memory.recall.embedding import asking, embed_each
from mindstream.memory.store.record import (
    MAX_NAME,
    MAX_TEXT,
    TAINTED,
    UNIQUE,
    Kind,
    Record,
    Triple,
    checked_record,
    new_id,
    nfc,
    normalised,
    shortened,
)
from mindstream.memory.store.store import Commit, Entry, Store
from mindstream.models.embedders.embedder import Embedder
from mindstream.service.importing.items import Item, Tally
from mindstream.service.importing.reading import Form
from mindstream.text.words import count_of

BATCH = 500
"""Number of items that are embedded and written together."""
ID_LETTERS = 16
"""Number of characters of a record's id that are computed from the item (80 bits)."""
MAX_TRIES = 5
"""Maximum number of attempts to write a batch if another process writes the same text at the same time."""
MAX_AHEAD_S = 86_400.0
"""Maximum seconds by which the date of an item may be later than this machine's clock."""


@dataclass(slots=True)
class Imported:
    """The result of an import.

    Attributes:
        written: number of new records.
        known: number of records whose id exists already: from an earlier import, or from an earlier item of the file.
        same: number of items whose text the memory already contains.
        left_out: number of items that could not be stored.
        users: number of new records, by user.
    """

    written: int = 0
    known: int = 0
    same: int = 0
    left_out: int = 0
    users: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Import:
    """An import into a data folder.

    Args:
        form: the format of the file.
        store: the store to write to; None: there is no data folder yet, and nothing is written (a dry run).
        embedder: makes the vectors of the records; None: nothing is written (a dry run).
        owner: the user into whose memory items are imported.
        each_user: whether an item is imported into the memory of the user that the file names for it, if any.
        trusted: whether texts of other authors are trusted. False: they are marked as untrusted.
    """

    form: Form
    store: Store | None
    embedder: Embedder | None
    clock: Clock
    owner: str
    each_user: bool = False
    trusted: bool = False
    tally: Tally = field(default_factory=Tally)
    done: Imported = field(default_factory=Imported)
    _keys: dict[str, StreamKey] = field(default_factory=dict)
    _seen: set[str] = field(default_factory=set)

    async def run(self, items: Iterator[Item], progress: Callable[[int], None]) -> Imported:
        """Write the items that do not exist yet; `progress` is called with the number of items that are done.

        Raises:
            InputError: the file is invalid. The items before the error are written; the message says how many.
            Conflict: other processes write the same texts again and again.
            StorageError: the data cannot be written.
        """
        read, broken = 0, None
        while broken is None:
            batch, broken = await asyncio.to_thread(self._batch, items)
            if not batch:
                break
            records: dict[str, Record] = {}
            for record in chain.from_iterable(batch):
                first = records.setdefault(record.id, record)
                self.done.known += first is not record
                if first.text != record.text:
                    self.tally.lose("items", record.text, "another item of the file has the same id and another text")
            await self._write(list(records.values()))
            read += len(batch)
            progress(read)
        if broken is not None:
            raise InputError(f"{broken}; {self._so_far()}") from broken
        return self.done

    def _batch(self, items: Iterator[Item]) -> tuple[list[list[Record]], InputError | None]:
        """Return the records of the next items, and the error that ended reading, if any."""
        batch = list[list[Record]]()
        try:
            for item in islice(items, BATCH):
                batch.append(self._records(item))
        except InputError as error:
            return batch, error
        return batch, None

    def _so_far(self) -> str:
        """Return a description of how many records were written before the error."""
        done = self.done
        if not done.written + done.known + done.same:
            return "nothing was imported"
        more = [f"{done.known} existed" * bool(done.known), f"{done.same} had a known text" * bool(done.same)]
        known = "".join(f", {each}" for each in more if each)
        if self.embedder is None:
            return f"{count_of(done.written, 'record')} before it would be imported{known}"
        again = "correct the file and import it again: nothing is written twice"
        were = "was" if done.written == 1 else "were"
        return f"{count_of(done.written, 'record')} before it {were} imported{known}; {again}"

    def _records(self, item: Item) -> list[Record]:
        """Return the records of an item: several if its text is too long for one record.

        If a field cannot be stored, the records have the text alone, without keywords and other data. If the text
        cannot be stored either, return []. Both losses are counted.
        """
        user = item.user if self.each_user and item.user else self.owner
        try:
            return [checked_record(record) for record in self._drafts(item, user)]
        except InputError as error:
            try:  # again with the text alone, without keywords and other data
                bare = replace(item, data={}, keywords=(), about=None)
                found = [checked_record(record) for record in self._drafts(bare, user)]
                self.tally.lose("fields of an item", dict(item.data), str(error))
            except InputError:
                self.tally.lose("items", item.text, str(error))
                self.done.left_out += 1
                return []
            return found

    def _drafts(self, item: Item, user: str) -> Iterator[Record]:
        key, now, created = self._key(user), self.clock.now(), item.created
        if created is None:
            self.tally.lose("missing dates", item.text, "the time of the import is used")
        elif not 0 <= created <= now + MAX_AHEAD_S:
            self.tally.lose("dates", created, "before 1970 or in the future; the time of the import is used")
            created = None
        begins = item.valid_from
        if begins is not None and item.valid_until is not None and item.valid_until <= begins:
            self.tally.lose("valid_from", begins, "it is not before valid_until; only valid_until is kept")
            begins = None
        named = item.source_id or (item.created, item.by, item.episode, item.text)
        data = redaction.clean_within({"source": self.form, "source_id": item.source_id[:MAX_NAME], **item.data})
        if item.by and item.by != user and not self.trusted:
            data[TAINTED] = True
        parts = list(pieces(redaction.clean(item.text).text)) or [""]
        for number, text in enumerate(parts):
            drawn = chance.keyed_token(ID_LETTERS, "import", self.form, key, item.kind, named, number)
            yield Record(
                id=new_id(created or 0.0, drawn),
                stream=key,
                kind=item.kind,
                text=text,
                created=now if created is None else created,
                accessed=now,
                by=shortened(item.by or user, MAX_NAME),
                episode=shortened(item.episode, MAX_NAME),
                valid_from=begins,
                valid_until=item.valid_until,
                about=item.about and Triple(*map(redaction.clean_within, item.about)),
                keywords=tuple(shortened(redaction.clean(each).text, MAX_NAME) for each in item.keywords),
                data=data if len(parts) == 1 else {**data, "part": number + 1},
            )

    def _key(self, user: str) -> StreamKey:
        key = self._keys.get(user)
        if key is None:
            name = StreamName("user", user)
            key = self._keys[user] = self.store.key(name) if self.store else name.key
        return key

    async def _write(self, records: Sequence[Record]) -> None:
        """Write the records that do not exist yet, in one transaction, and count them in `done`.

        Raises:
            Conflict: in each of MAX_TRIES attempts, another process wrote one of the texts first.
        """
        fresh = await self._unknown(records)
        for _ in range(MAX_TRIES):
            new = await self._unsaid(fresh)
            try:
                await self._commit(new)
                break
            except Conflict:  # another process wrote the same text at the same time
                fresh = await self._unknown(fresh)
        else:
            raise Conflict("other processes are writing the same texts: import the file again when they have ended")
        self.done.same += len(fresh) - len(new)
        self.done.written += len(new)
        names = {key: user for user, key in self._keys.items()}
        self.done.users.update(names[record.stream] for record in new)

    async def _unknown(self, records: Sequence[Record]) -> list[Record]:
        """Return the records that no earlier import has written; count the others."""
        ids = [record.id for record in records]
        there = await self.store.owners(ids) if self.store else {}
        known = there.keys() if self.embedder else there.keys() | (self._seen & set(ids))
        # without an embedder this is a dry run, which writes nothing, so the ids are remembered here
        self._seen.update(() if self.embedder else ids)
        self.done.known += len(known)
        for record in await self._changed([record for record in records if record.id in there]):
            self.tally.lose("changed texts", record.text, "the text of an earlier import differs, and is kept")
        return [record for record in records if record.id not in known]

    async def _changed(self, records: Sequence[Record]) -> list[Record]:
        """Return those of the given records whose id is already in the store, with a different text."""
        found: dict[str, str] = {}
        for key in {record.stream for record in records}:
            ids = [record.id for record in records if record.stream == key]
            found |= {each.id: each.text for each in await self.store.records(key, ids)} if self.store else {}
        return [record for record in records if found.get(record.id, record.text) != record.text]

    async def _unsaid(self, records: Sequence[Record]) -> list[Record]:
        """Return the records without repetitions.

        A record is a repetition if its text may exist only once (`_is_once`), and the memory or an earlier one of these
        records already has the text.
        """
        now, said = self.clock.now(), set[tuple[StreamKey, str, str]]()
        asked = defaultdict[tuple[StreamKey, Kind], list[str]](list)
        for each in records:
            if _is_once(each, now):
                asked[each.stream, each.kind].append(each.text)
        for (key, kind), texts in asked.items():
            there = await self.store.find_same(key, kind, texts, now=now) if self.store else {}
            said.update((key, kind, text) for text in there)
        new = []
        for record in records:
            words = (record.stream, record.kind, normalised(record.text))
            if not _is_once(record, now) or words not in said:
                new.append(record)
                said.update((words,) if _is_once(record, now) else ())
            else:
                self.tally.lose("items", record.text, "the memory already contains the same text")
        return new

    async def _commit(self, records: Sequence[Record]) -> None:
        if not records or self.embedder is None or self.store is None:
            return
        vectors = await embed_each(asking(self.embedder), [record.text for record in records])
        name, now = self.embedder.name, self.clock.now()
        streams: dict[StreamKey, list[Record]] = {}
        for record, vector in zip(records, vectors, strict=True):
            made = record if isinstance(vector, str) else replace(record, embedder=name, vector=vector)
            streams.setdefault(record.stream, []).append(made)
        await self.store.commit(
            *(Commit(mind=key, at=now, entries=_entries(some, now)) for key, some in streams.items())
        )


def _is_once(record: Record, now: Moment) -> bool:
    """Return whether a record's text may exist only once in a memory: its kind is unique, and the record is valid."""
    return record.kind in UNIQUE and (record.valid_until is None or record.valid_until > now)


def _entries(records: Sequence[Record], now: Moment) -> tuple[Entry, ...]:
    """Return one log entry for records that must not repeat a stored text, and one for the others.

    `_is_once` decides. An entry without records is left out.
    """
    parts = [[each for each in records if _is_once(each, now) == once] for once in (True, False)]
    return tuple(
        Entry(
            Remembered(count=len(some), kinds=dict(Counter(each.kind for each in some))),
            "import",
            tuple(some),
            distinct=distinct,
            system=True,
        )
        for some, distinct in zip(parts, (True, False), strict=True)
        if some
    )


def pieces(text: str) -> Iterator[str]:
    """Yield the parts of a text that each fit into a record, cut between words if possible."""
    text, start = nfc(text), 0
    while len(text) - start > MAX_TEXT:
        half, end = start + MAX_TEXT // 2, start + MAX_TEXT
        cut = text.rfind(" ", half, end) + 1 or end
        yield text[start:cut]
        start = cut
    if (rest := text[start:]).strip():
        yield rest
