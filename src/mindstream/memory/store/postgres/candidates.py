"""Records that may answer, found by the database: those that have the words, or stand around them, and the nearest."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from mindstream.log.names import StreamKey
from mindstream.memory.store import queries
from mindstream.memory.store.postgres.connection import Rows
from mindstream.memory.store.postgres.segments import EXTENSION, SMALLEST, hashed, written
from mindstream.memory.store.record import Kind, Vector
from mindstream.memory.store.rows import COLUMNS, record_of
from mindstream.memory.store.store import Candidates, Told
from mindstream.text.lexical import GROUP_B, GROUP_K1, K1, B, resisting, saturated, telling_all

Floats = NDArray[np.float32]
Numbers = NDArray[np.int64]
HELD_SEGMENTS = 128
"""Of so many segments, each of at most 65,536 records, it is remembered which records they are: 13 bytes a record."""
AROUND = 2
"""So many records before and after one in its episode come with it: ranking has words count there, too."""
MOST = 300
"""So many by each way of finding: more are read more slowly, and recall finds hardly more."""
NEXT_TO, IN_EPISODE = np.float32(0.3), np.float32(1.25)
"""What counts of a word in the record before and after, and in the whole episode."""
READY = "SELECT id, count, words FROM segments WHERE stream = ? AND ready ORDER BY last"
PLACES = "SELECT id, numbers, kinds, kind, episode, sizes FROM segments WHERE id = ANY(%s)"
POSTINGS = "SELECT segment, term, packed FROM postings WHERE segment = ANY(%s) AND term = ANY(%s)"
UNHELD = (
    "SELECT number FROM records WHERE stream = ? AND number >"
    " (SELECT coalesce(max(last), 9223372036854775807) FROM segments WHERE stream = ? AND ready)"
    " ORDER BY number DESC LIMIT ?"
)
RECORDS = f"SELECT number, {COLUMNS} FROM records WHERE number = ANY(%s) AND kind = ANY(%s) ORDER BY number"
NEAREST = (
    "SELECT number FROM nearness WHERE stream = %s AND width = {width} AND kind = ANY(%s)"
    ' ORDER BY (near::"{schema}".halfvec({width})) OPERATOR("{schema}".<#>) %s::"{schema}".halfvec({width}) LIMIT %s'
)
ALL_COMPARED = (
    "WITH own AS MATERIALIZED (SELECT number, near FROM nearness WHERE stream = %s AND width = {width}"
    " AND kind = ANY(%s)) SELECT number FROM own"
    ' ORDER BY (near::"{schema}".halfvec({width})) OPERATOR("{schema}".<#>) %s::"{schema}".halfvec({width}) LIMIT %s'
)
DEARER = 10
"""So much dearer is a vector that is met in the graph, whosever it is, than one that is compared in a row."""
ALL = "SELECT greatest(reltuples, 0) FROM pg_class WHERE oid = 'nearness'::regclass"


@dataclass(frozen=True)
class Place:
    """A segment's records: their numbers, kinds and episodes (-1: in none), and how long each episode is."""

    numbers: Numbers
    kinds: list[Kind]
    kind: NDArray[np.uint8]
    episode: NDArray[np.int32]
    sizes: Floats

    @cached_property
    def _order(self) -> tuple[Numbers, Numbers]:
        """Return the records episode by episode, and where each stands then."""
        order = np.argsort(self.episode, kind="stable")
        return order, np.argsort(order)

    def find(self, numbers: Numbers) -> Numbers:
        """Return the places of those of some numbers that are here."""
        at = np.searchsorted(self.numbers, numbers)
        at = at[at < len(self.numbers)]
        return at[np.isin(self.numbers[at], numbers)]

    def around(self, at: Numbers) -> Numbers:
        """Return the numbers of records and of those AROUND them in their episodes."""
        order, stands = self._order
        near = stands[at][:, None] + np.arange(-AROUND, AROUND + 1)
        there = order[np.clip(near, 0, len(order) - 1)]
        same = (self.episode[there] == self.episode[at][:, None]) & (self.episode[at][:, None] >= 0)
        found: Numbers = self.numbers[np.unique(np.concatenate([at, there[same]]))]
        return found


class Found(NamedTuple):
    """What a segment has of the terms that are asked for: all postings, and of which term each is."""

    place: Place
    postings: NDArray[np.uint32]
    term: Numbers


class Finder:
    """Finds candidates in a database."""

    def __init__(self) -> None:
        self._places: OrderedDict[int, Place] = OrderedDict()

    def find(
        self, rows: Rows, stream: StreamKey, vector: Vector | None, words: Sequence[str], n: int, kinds: Sequence[Kind]
    ) -> Candidates:
        """Return the candidates of a stream (see store.CandidateStore), and what the stream tells of them."""
        n, words = min(n, MOST), list(dict.fromkeys(words))
        held = rows.execute(READY, (stream,)).fetchall()
        found = self._found(rows, [row[0] for row in held], {hashed(word): at for at, word in enumerate(words)})
        best = np.empty(0, np.int64)
        scoring, count = None, 0
        if held:
            _, count, terms = (int(each) for each in np.sum([(0, *row[1:]) for row in held], axis=0))
            scoring = _Scoring(found, len(words), count, terms / count)
            best = _by_words(found, scoring, n, kinds)
        if vector is not None and np.any(vector):
            best = np.append(best, _nearest(rows, stream, count, vector, n, kinds))
        around = [self._places[row[0]].around(self._places[row[0]].find(best)) for row in held]
        more = [row[0] for row in rows.execute(UNHELD, (stream, stream, 2 * SMALLEST))]
        more += queries.number_newest_and_best_held(rows, stream, n, kinds)
        asked = [*np.concatenate([best, *around]).tolist(), *more]
        read = [(row[0], record_of(row[1:])) for row in _binary(rows, RECORDS, (asked, list(kinds)))]
        if scoring is None:
            return Candidates(record for _, record in read)
        episodes = scoring.tell(np.array([number for number, _ in read], np.int64), [each.episode for _, each in read])
        told = Told(count, terms, dict(zip(words, scoring.holds.tolist(), strict=True)), episodes)
        return Candidates((record for _, record in read), told)

    def _found(self, rows: Rows, segments: list[int], asked: dict[int, int]) -> list[Found]:
        """Look terms up in segments."""
        self._hold(rows, segments)
        there: dict[int, list[tuple[int, NDArray[np.uint32]]]] = {}
        for segment, term, packed in _binary(rows, POSTINGS, (segments, list(asked))):
            there.setdefault(segment, []).append((asked[term], np.frombuffer(packed, np.uint32)))
        return [
            Found(
                self._places[segment],
                np.concatenate([postings for _, postings in some]),
                np.repeat([term for term, _ in some], [len(postings) for _, postings in some]),
            )
            for segment, some in there.items()
        ]

    def _hold(self, rows: Rows, segments: list[int]) -> None:
        """Remember which records are in segments; no word tells anything of them."""
        if missing := [each for each in segments if each not in self._places]:
            for id_, numbers, kinds, kind, episode, sizes in _binary(rows, PLACES, (missing,)):
                self._places[id_] = Place(
                    np.frombuffer(numbers, np.int64), kinds, np.frombuffer(kind, np.uint8),
                    np.frombuffer(episode, np.int32), np.frombuffer(sizes, np.float32),
                )  # fmt: skip
        for each in segments:
            self._places.move_to_end(each)
        while len(self._places) > max(HELD_SEGMENTS, len(segments)):
            self._places.popitem(last=False)


def _by_words(found: Sequence[Found], scoring: _Scoring, n: int, kinds: Sequence[Kind]) -> Numbers:
    """Return the numbers of the records that have most of the words, or stand where they are."""
    numbers, scores = np.empty(0, np.int64), np.empty(0, np.float32)
    for at, each in enumerate(found):
        here, place = scoring.score(at), each.place
        if not set(place.kinds) <= set(kinds):
            here[~np.isin(place.kind, [code for code, kind in enumerate(place.kinds) if kind in kinds])] = 0
        better = np.flatnonzero(here > (scores.min() if len(scores) >= n else 0))
        numbers, scores = np.append(numbers, place.numbers[better]), np.append(scores, here[better])
        if len(scores) > n:
            kept = np.argpartition(-scores, n - 1)[:n]
            numbers, scores = numbers[kept], scores[kept]
    return numbers


class _Scoring:
    """BM25 of records and of their episodes, for terms of which it is known how many of a stream's have them."""

    def __init__(self, found: Sequence[Found], terms: int, count: int, mean_length: float) -> None:
        self._found, self._terms = found, terms
        self.holds = sum((np.bincount(each.term, minlength=terms) for each in found), np.zeros(terms, np.int64))
        self._weights = telling_all(self.holds, count)[:, None] * _saturation(max(1.0, mean_length))
        times = [self._in_episodes(each) for each in found]
        episodes = max(1, sum(len(each.place.sizes) for each in found))
        idf = telling_all(sum((np.count_nonzero(t, axis=1) for t in times), np.zeros(terms, np.int64)), episodes)
        mean = max(1.0, sum(float(each.place.sizes.sum()) for each in found) / episodes)
        self._episodes = [
            saturated(some, resisting(each.place.sizes, mean, GROUP_K1, GROUP_B), idf[:, None], GROUP_K1)
            for each, some in zip(found, times, strict=True)
        ]

    def score(self, segment: int) -> Floats:
        """Score the records of a segment that was found."""
        found = self._found[segment]
        own = np.bincount(
            found.postings >> 8, self._weights[found.term, found.postings & 0xFF], len(found.place.numbers)
        )
        scores, episode = own.astype(np.float32), found.place.episode
        lent = NEXT_TO * scores
        together = (episode[1:] == episode[:-1]) & (episode[1:] >= 0)
        scores[1:] += lent[:-1] * together
        scores[:-1] += lent[1:] * together
        whole = np.append(IN_EPISODE * self._episodes[segment].sum(axis=0), np.float32(0))  # the last: in none
        scores += whole[episode]
        return scores

    def tell(self, numbers: Numbers, names: Sequence[str]) -> dict[str, Floats]:
        """Return for each episode of some records what each term counts in it; of what no segment holds, nothing."""
        told: dict[str, Floats] = {}
        named = dict(zip(numbers.tolist(), names, strict=True))
        for each, parts in zip(self._found, self._episodes, strict=True):
            at = each.place.find(numbers)
            for number, episode in zip(each.place.numbers[at].tolist(), each.place.episode[at].tolist(), strict=True):
                if episode >= 0:
                    name = named[number]
                    told[name] = np.maximum(told.get(name, parts[:, episode]), parts[:, episode])
        return told

    def _in_episodes(self, found: Found) -> Floats:
        """Count how often each episode has each term."""
        of, count = found.place.episode[found.postings >> 8], len(found.place.sizes)
        inside = of >= 0
        cells, times = found.term[inside] * count + of[inside], found.postings[inside] & 0xF
        return np.bincount(cells, times, self._terms * count).reshape(self._terms, count).astype(np.float32)


def _saturation(mean: float) -> Floats:
    """Return what a posting counts, for each length and number of times that it may tell of."""
    lengths = (2 ** (np.arange(16) / 2) - 1).repeat(16).astype(np.float32)
    times = np.tile(np.arange(16), 16).astype(np.float32)
    return saturated(times, resisting(lengths, mean, K1, B), np.ones(1, np.float32), K1)


def _nearest(rows: Rows, stream: StreamKey, count: int, vector: Vector, n: int, kinds: Sequence[Kind]) -> Numbers:
    """Return the numbers of the records that are nearest to a vector; none, where the server has no pgvector.

    Where the graph would meet too many of other streams on its way, each of the stream's `count` vectors is compared.
    The planner does not know: it gathers nothing of names (tables.WORDS).
    """
    row = rows.execute(f"{EXTENSION} AND EXISTS (SELECT 1 FROM nearness)").fetchone()
    if row is None:
        return np.empty(0, np.int64)
    (all_,) = rows.execute(ALL).fetchone() or (0,)
    by_graph = DEARER * n * all_ <= count * count
    if by_graph:
        rows.execute(
            "SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', ?, true),"
            " set_config('enable_sort', 'off', true)", (str(min(1000, max(200, 2 * n))),),
        )  # fmt: skip
    sql = (NEAREST if by_graph else ALL_COMPARED).format(schema=row[0], width=len(vector))
    found = rows.connection.execute(sql.encode(), (stream, list(kinds), written(vector), n)).fetchall()
    rows.execute("SELECT set_config('enable_sort', 'on', true)")
    return np.array([number for (number,) in found], np.int64)


def _binary(rows: Rows, sql: str, values: tuple[Any, ...]) -> Any:
    return rows.connection.cursor(binary=True).execute(sql.encode(), values)
