"""Find near-duplicates: notes and thoughts that say the same in nearly the same words.

To merge two different facts would be worse than to keep one fact twice, so the comparison is strict. All words of the
shorter text must occur in the longer one in the same order (FILLERS are ignored). The other words may be at most a
fifth of the longer text, and none may contain a digit or be a negation or another word in QUALIFIERS.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Collection, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from mindstream.clock import LATEST
from mindstream.memory.store.columns import Columns
from mindstream.memory.store.record import Kind, Record, common_data
from mindstream.text.words import plain_words

if TYPE_CHECKING:
    from mindstream.memory.stream import Stream

MERGED: tuple[Kind, ...] = ("note", "thought")
MIN_COSINE = 0.85
"""Minimum cosine similarity for two records to be compared word by word."""
MAX_COMPARED = 30
"""Maximum number of a record's nearest neighbours (by vectors) that are compared with it word by word."""
FILLER_WORDS = "a an the just really so very also that quite"
QUALIFYING_WORDS = """
not no never nor don doesn didn isn wasn aren weren won can cannot t without rarely seldom hardly barely sometimes
often always usually only except unless if but before after until stopped used may might could should would
"""
FILLERS, QUALIFIERS = frozenset(FILLER_WORDS.split()), frozenset(QUALIFYING_WORDS.split())


def alike(one: str, other: str) -> bool:
    """Return whether two texts say the same in nearly the same words.

    All words of the shorter text must occur in the longer text in the same order. At most a fifth of the words of the
    longer text may be additional words. No additional word may contain a digit or be in QUALIFIERS. Words in FILLERS
    are ignored.
    """
    short, long = sorted((_words(one), _words(other)), key=len)
    if short == long:
        return True
    if len(long) - len(short) > len(long) // 5:
        return False
    rest = iter(long)
    if not all(word in rest for word in short):  # `short` is not a subsequence of `long`
        return False
    more = list(long)
    for word in short:
        more.remove(word)
    return not any(word in QUALIFIERS or re.search(r"\d", word) for word in more)


def _words(text: str) -> list[str]:
    return [word for word in plain_words(text) if word not in FILLERS]


async def near(stream: Stream, after: int = 0, most: int = 1000) -> AsyncIterator[list[Record]]:
    """Yield groups of near-duplicate notes or thoughts, each group beginning with the record to keep.

    Of each kind, only the `most` newest records are considered, and of these only the records written after row
    `after` of the log. Each considered record is compared with its nearest neighbours among all records of its kind.
    """
    await stream.columns()
    for kind in MERGED:
        for record in await _newest(stream, kind, after, most):
            columns = await stream.columns()  # read again, because the caller may have merged the previous group
            others = _near(columns, kind, record)
            same = [each for each in await stream.records(others) if alike(record.text, each.text)]
            if same and columns.holds(record.id, LATEST):
                yield sorted([record, *same], key=_length_first)
            await asyncio.sleep(0)


async def groups(stream: Stream, after: int = 0, leaving: Collection[str] = ()) -> list[list[Record]]:
    """Return disjoint groups of near-duplicates, each group beginning with the record to keep.

    Args:
        after: only groups with a record written after this row of the log are found (see `near`).
        leaving: ids of records that are ignored.
    """
    found: list[list[Record]] = []
    group_of: dict[str, list[Record]] = {}
    async for close in near(stream, after):
        free = [each for each in close if each.id not in group_of and each.id not in leaving]
        group = next((group_of[each.id] for each in close if each.id in group_of), free[:1])
        joining = [each for each in free if each not in group and alike(group[0].text, each.text)]
        if not joining:
            continue
        if group[0].id not in group_of:
            found.append(group)
        group.extend(joining)
        group.sort(key=_length_first)
        group_of |= dict.fromkeys((each.id for each in group), group)
    return found


def _length_first(record: Record) -> tuple[int, str]:
    return -len(_words(record.text)), record.id


async def _newest(stream: Stream, kind: Kind, after: int, most: int) -> list[Record]:
    columns = await stream.columns()
    rows = np.flatnonzero(columns.holding([kind], LATEST))[::-1][:most]
    found: list[Record] = []
    for start in range(0, len(rows), 256):
        records = await stream.records([columns.ids[at] for at in rows[start : start + 256]])
        found.extend(record for record in records if record.seq > after)
        if len(found) < start + len(records):
            break
    return found


def _near(columns: Columns, kind: Kind, record: Record) -> list[str]:
    if record.vector is None or record.embedder != columns.embedder or len(record.vector) != columns.width:
        return []
    rows, cosines = columns.vectors.nearest(record.vector.astype(np.float32), columns.holding([kind], LATEST))
    rows, cosines = rows[cosines >= MIN_COSINE], cosines[cosines >= MIN_COSINE]
    nearest = rows[np.argsort(-cosines, kind="stable")[: MAX_COMPARED + 1]]
    return [columns.ids[at] for at in nearest if columns.ids[at] != record.id]


def merged(group: Sequence[Record], id_: str, now: float) -> Record:
    """Return the record that replaces near-duplicates. It has the text of the first one, and the highest strength and
    importance of all."""
    kept = group[0]
    rated = [each.importance for each in group if each.importance is not None]
    return replace(
        kept,
        id=id_,
        accessed=max(each.accessed for each in group),
        importance=max(rated, default=None),
        level=max(each.level for each in group),
        lasting=any(each.lasting for each in group),
        valid_from=now,
        keywords=tuple(dict.fromkeys(word for each in group for word in each.keywords)),
        evidence=tuple(each.id for each in group),
        depth=1 + max(each.depth for each in group),
        data=common_data(group),
        seq=0,
    )
