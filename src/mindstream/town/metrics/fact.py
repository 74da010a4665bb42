"""A fact is a first memory of somebody's; whoever measures says in a few words which one is meant.

From there on nothing is read: who knows it follows from what was passed on (metrics/diffusion).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mindstream.errors import InputError
from mindstream.memory.store.record import Record
from mindstream.text.words import terms
from mindstream.town.inspect.history import History

ENOUGH = 0.5
"""So much of what somebody types must stand in a memory for that one to be meant."""
Key = tuple[str, str]
"""A resident and the id of one of its records."""


@dataclass(frozen=True)
class Fact:
    """A fact: what was typed of it, the first memories that it is, and what those say."""

    text: str
    records: frozenset[Key]
    says: str


def is_first(record: Record) -> bool:
    """Tell whether a memory was there before its resident heard or thought anything: it goes back to no other."""
    return record.kind == "note" and not record.evidence and "plan" not in record.keywords


def find_fact(text: str, history: History) -> Fact:
    """Return the first memory that shares most words with a text; whoever else was given the same words is meant, too.

    Raises:
        InputError: nobody began with a memory that has half of these words.
    """
    words = frozenset(terms(text))
    share, said = max(
        ((len(words & {*terms(said)}) / max(1, len(words)), said) for said in _said(history)), default=(0.0, "")
    )
    if share < ENOUGH:
        raise InputError(f"nobody began with a memory like {text.strip()!r:.99}: name it by words that stand in it")
    held = {(name, each.id) for name in history.names for each in history.records[name] if each.text == said}
    return Fact(text.strip(), frozenset(key for key in held if is_first(history.by_id[key[0]][key[1]])), said)


def _said(history: History) -> Iterator[str]:
    yield from (each.text for name in history.names for each in history.records[name] if is_first(each))
