"""Items of beliefs and plans: which version added each item, and the content of a slot without some of its versions.

A version of a belief or plan contains the whole state, but its evidence is only that of its changes. So the evidence of
an item is the evidence of the version that added the item. The state without a version is computed by replaying the
changes that all other versions made.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from mindstream.json_values import texts_in
from mindstream.memory.store.record import Record
from mindstream.memory.store.redaction import MARK, ErasedWords, rewrite_texts
from mindstream.memory.store.store import erases_no_name
from mindstream.memory.stream import render_fields

BODIES = ("value", "plan")
"""The field of a version's data that contains the state: `value` for a belief, `plan` for a plan."""
NAMED_BY = "title"
"""The field that identifies an item that is itself an object with fields."""
MIN_TEXT = 4
"""If a text of at least this many characters is removed from a plan, the plan's paragraphs that contain the text are
removed, too."""

Fields = dict[str, Any]


@dataclass(frozen=True, slots=True)
class SlotItem:
    """A current item of a belief or plan.

    Attributes:
        field: the field of the belief or plan that contains the item.
        evidence: ids of the evidence of the version that added the item.
    """

    slot: str
    field: str
    text: str
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Without:
    """The records and words that are removed from a slot (a belief or a plan).

    Attributes:
        gone: ids of deleted records. If versions of the slot are among them, their changes are left out.
        words: the words of the deleted records. They are removed from the changes of versions whose evidence contains
            deleted records.
        is_meant: returns whether a text must be removed from the changes of every version.
    """

    gone: frozenset[str] = frozenset()
    words: ErasedWords = field(default_factory=lambda: ErasedWords(()))
    is_meant: Callable[[str], bool] = erases_no_name


def body_name(record: Record) -> str:
    """Return the field of a version's data that contains the state of the belief or plan; "" if no such field is
    readable."""
    return next((name for name in BODIES if isinstance(record.data.get(name), dict)), "")


def body(record: Record) -> Fields:
    """Return the fields of a version of a belief or plan; {} if they are not readable."""
    held = record.data.get(body_name(record))
    return dict(held) if isinstance(held, dict) else {}


def find_items(versions: Sequence[Record]) -> list[SlotItem]:
    """Return the items of a slot's last version, each with its evidence; `versions`: all versions, oldest first."""
    brought: dict[tuple[str, str], tuple[str, ...]] = {}
    for record, before in zip(versions, [{}, *map(body, versions)], strict=False):
        old = {(name, key): each for name, key, each in _each(before)}
        for name, key, each in _each(body(record)):
            if old.get((name, key)) != each:
                brought[name, key] = record.evidence or brought.get((name, key), ())
    last = versions[-1]
    return [SlotItem(last.slot or "", name, words(each), brought[name, key]) for name, key, each in _each(body(last))]


def lost_items(versions: Sequence[Record], without: Without) -> list[SlotItem]:
    """Return the items of the newest version that would be missing if the records and words in `without` had never been
    written."""
    left = {(name, words(each)) for name, _, each in _each(replay(versions, without)[-1])}
    return [item for item in find_items(versions) if (item.field, item.text) not in left]


def replay(versions: Sequence[Record], without: Without) -> list[Fields]:
    """Return the state after each version of a slot, oldest first. Compute the states as if the deleted versions and
    the removed words had never been written."""
    held: Fields = {}
    states = []
    for record, before in zip(versions, [{}, *map(body, versions)], strict=False):
        if record.id not in without.gone:
            rests = any(each in without.gone for each in record.evidence)
            held = _changed(held, before, body(record), partial(_clean, rests=rests, without=without))
        states.append(held)
    return states


def rewrite(versions: Sequence[Record], without: Without) -> tuple[list[Record], Record | None]:
    """Return the changes that a removal makes in a slot.

    The first result has the remaining versions whose state changes, each with its new state. The second result is a new
    last version; None: no new version is needed, because the last version stays unchanged or no version remains.

    Args:
        versions: all versions of the slot, the oldest first.
        without: the records and words that are removed.
    """
    as_they_are, states = replay(versions, Without()), replay(versions, without)
    rewritten, before = [], Fields()
    for record, was, state in zip(versions, as_they_are, states, strict=True):
        if record.id not in without.gone:
            if state != was and body_name(record):
                rewritten.append(_with_body(record, state, before))
            before = state
    last, stay = versions[-1], [each for each in versions if each.id not in without.gone]
    if not stay or (stay[-1] is last and (states[-1] == as_they_are[-1] or not body_name(last))):
        return rewritten, None
    if not body_name(last):
        # the last version is deleted and had no readable state: the new one repeats the last remaining version
        return rewritten, stay[-1]
    return rewritten, _with_body(last, states[-1], as_they_are[-1])


def _with_body(record: Record, state: Fields, before: Fields) -> Record:
    """Return a version with another state, and with a text that fits this state.

    Args:
        before: the state of the previous version.
    """
    data = {**record.data, body_name(record): state}
    if "patch" in record.data:
        data["patch"] = {name: state.get(name) for name in {**before, **state} if before.get(name) != state.get(name)}
    if body_name(record) == "value":
        return replace(record, text=render_fields(record.slot or "", state), data=data, vector=None)
    kept = set(texts_in(state))
    lost = {text for text in texts_in(body(record)) if text not in kept and len(text) >= MIN_TEXT}
    paragraphs = record.text.replace("\n- ", "\n\0- ").split("\n\0")
    text = "\n".join(part for part in paragraphs if not any(each in part for each in lost))
    return replace(record, text=text or "no steps", data=data, vector=None)


def _changed(held: Fields, before: Fields, after: Fields, clean: Callable[[Any], Any]) -> Fields:
    """Apply the changes that a version made (from `before` to `after`) to another state (`held`)."""
    new = dict(held)
    for name in {**before, **after}:
        old, now = before.get(name), after.get(name)
        if old == now and (name in before) == (name in after):
            continue
        if isinstance(old, list) or isinstance(now, list):
            new[name] = _changed_list(new.get(name), _list(old), _list(now), clean)
        elif name in after:
            new[name] = clean(now)
        else:
            new.pop(name, None)
    return new


def _changed_list(held: Any, before: list[Any], after: list[Any], clean: Callable[[Any], Any]) -> list[Any]:
    items = {_key(each): each for each in _list(held)}
    old, now = {_key(each): each for each in before}, {_key(each): each for each in after}
    for key in old.keys() - now.keys():
        items.pop(key, None)
    for key, each in now.items():
        if old.get(key) != each:
            cleaned = clean(each)
            if cleaned is None:
                items.pop(key, None)
            else:
                items[key] = cleaned
    first = [items.pop(key) for key in now if key in items]  # the version's own items first, in its order
    return [*first, *items.values()]


def _clean(value: Any, *, rests: bool, without: Without) -> Any:
    """Return the part of a value that may stay; None if nothing may stay. `rests`: the evidence of the value contains
    deleted records."""
    if any(map(without.is_meant, texts_in(value))):
        return None
    redacted = rewrite_texts(value, without.words.redact) if rests else value
    return None if MARK in (redacted, redacted.get(NAMED_BY) if isinstance(redacted, dict) else "") else redacted


def _each(fields: Mapping[str, Any]) -> Iterator[tuple[str, str, Any]]:
    """Yield (field, key, item) for each item of a state; empty fields have no items. The key identifies an item of a
    list; it is "" for a field that is not a list."""
    for name, held in fields.items():
        if held not in (None, [], ""):
            yield from ((name, _key(each), each) for each in held) if isinstance(held, list) else ((name, "", held),)


def _key(item: Any) -> str:
    named = item.get(NAMED_BY) if isinstance(item, dict) else item
    return str(named).strip().casefold() if named else json.dumps(item, sort_keys=True)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def words(item: Any) -> str:
    """Return an item as users see it: its title, or its texts."""
    return str(item.get(NAMED_BY) or "; ".join(texts_in(item))) if isinstance(item, dict) else str(item)
