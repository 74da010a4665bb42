"""Beliefs: typed objects in named slots, stored as versions. Concurrent writers that change different fields keep each
other's changes."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from pydantic import BaseModel, JsonValue, ValidationError

from mindstream import tracing
from mindstream.errors import Conflict, InputError, LeaseLost
from mindstream.json_values import JsonObject
from mindstream.log.events import BeliefChanged
from mindstream.memory.store.record import TAINTED, Record, RecordDraft, is_tainted, shortened
from mindstream.memory.store.store import Entry
from mindstream.tracing import tell_believed, traced

if TYPE_CHECKING:
    from mindstream.memory.stream import Stream

Shape = TypeVar("Shape", bound=BaseModel)
MOST, LONGEST = 40, 500
"""MOST: maximum number of items of a list; the newest are kept. Items that a new version drops remain in the older
versions, which are records that a recall with `as_of` finds. LONGEST: maximum number of characters of a text or of an
item of a list; the rest of a longer one is not stored."""
Patch: TypeAlias = Mapping[str, JsonValue]
"""A change of a belief, by field. A value replaces the old value; null restores the field's default. In a field that is
a list, a value or a list is added, and {"add": […], "remove": […]} adds and removes items."""


@dataclass(frozen=True, slots=True)
class Belief(Generic[Shape]):
    """One version of a belief.

    Attributes:
        version: its number; 0: no version has been written yet, and the value is empty.
        evidence: ids of the records that this version was derived from.
    """

    slot: str
    version: int
    value: Shape
    evidence: tuple[str, ...] = ()

    def _repr_html_(self) -> str:
        from mindstream.html_tables import table

        fields = self.value.model_dump(mode="json").items()
        rows = [(name.replace("_", " "), _in_words(held)) for name, held in fields if held not in (None, [], {}, "")]
        return table(self.slot, ("believed", ""), rows, f"version {self.version}")


def _in_words(held: object) -> str:
    return "\n".join(map(str, held)) if isinstance(held, list) else str(held)


def read_belief(slot: str, record: Record | None, shape: type[Shape]) -> Belief[Shape]:
    """Read a belief from the record of its latest version; return an empty belief if `record` is None.

    Stored fields that the shape no longer has, or whose values no longer fit, are ignored. So a belief stays readable
    when its shape changes.

    Raises:
        InputError: the shape requires a field that is not stored, or whose stored value is ignored.
    """
    if record is None:
        return Belief(slot, 0, shape())
    value = record.data.get("value")
    kept = {k: v for k, v in value.items() if k in shape.model_fields} if isinstance(value, dict) else {}
    while True:
        try:
            return Belief(slot, record.version or 0, shape.model_validate(kept), record.evidence)
        except ValidationError as error:
            misfits = {str(found["loc"][0]) for found in error.errors() if found["loc"]} & kept.keys()
            if not misfits:
                raise InputError(f"the belief {slot!r} does not fit {shape.__name__}: {error}") from None
            kept = {k: v for k, v in kept.items() if k not in misfits}


def render_belief(slot: str, value: BaseModel) -> str:
    """Return a belief as the text of its record, which recall searches."""
    return render_fields(slot, value.model_dump(mode="json"))


def render_fields(slot: str, fields: Mapping[str, JsonValue]) -> str:
    """Return the fields of a belief as text, without empty ones."""
    lines = []
    for name, held in fields.items():
        if held not in (None, [], ""):
            lines.append(f"{name.replace('_', ' ')}: {', '.join(map(str, held)) if isinstance(held, list) else held}")
    return f"{slot}: " + "; ".join(lines)


def merged(belief: Belief[Shape], patch: Patch) -> tuple[Shape, JsonObject]:
    """Apply a patch to a belief, without writing it.

    Returns:
        The new value, with lists and texts cut to their limits; and the new values of the fields that changed (for the
        first version of a belief: of all fields in the patch).

    Raises:
        InputError: a field is unknown, or its value does not fit.
    """
    old = belief.value.model_dump(mode="json")
    new: dict[str, Any] = dict(old)
    for name, value in patch.items():
        if name not in old:
            raise InputError(f"the belief {belief.slot!r} has no field {name!r}; it has {', '.join(old)}")
        new[name] = _changed(old[name], value)
    empty = type(belief.value)().model_dump(mode="json")
    new = {name: empty[name] if value is None else value for name, value in new.items()}
    try:
        after = belief.value.model_validate(new)
    except ValidationError as error:
        found = error.errors()[0]
        raise InputError(f"the belief {belief.slot!r}: {'.'.join(map(str, found['loc']))}: {found['msg']}") from None
    now = after.model_dump(mode="json")
    first = set(patch) if belief.version == 0 else set()
    return after, {name: now[name] for name in now if now[name] != old[name] or name in first}


def _changed(old: Any, new: JsonValue) -> Any:
    if not isinstance(old, list) or new is None:
        return _short(new)
    add = _items(new.get("add") if isinstance(new, dict) else new)
    gone = {_folded(item) for item in _items(new.get("remove") if isinstance(new, dict) else None)}
    kept: dict[str, Any] = {}
    for item in [*_items(old), *add]:
        if _folded(item) not in gone:
            kept.setdefault(_folded(item), item)
    return list(kept.values())[-MOST:]


def _items(value: JsonValue) -> list[JsonValue]:
    if value is None:
        return []
    return [_short(item) for item in value] if isinstance(value, list) else [_short(value)]


def _short(value: JsonValue) -> JsonValue:
    return shortened(value, LONGEST) if isinstance(value, str) else value


def _folded(item: object) -> str:
    return str(item).strip().casefold()


# Writing a new version.


@traced(tracing.UPSERT_MEMORY, "slot", tell_believed)
async def believe(
    stream: Stream, slot: str, patch: Patch, shape: type[Shape], *, evidence: Sequence[str] = (), by: str = "reasoner"
) -> Belief[Shape]:
    """Merge a patch into a belief, write the new version, and return it. If the patch changes nothing, nothing is
    written. If another writer was first, merge the patch into that writer's version and try again."""
    while True:
        entry = await revision(stream, slot, patch, shape, evidence=evidence, by=by)
        if entry is None:
            return await stream.belief(slot, shape)
        try:
            await stream.commit(entry)
        except LeaseLost:
            raise
        except Conflict:
            await asyncio.sleep(0)  # another writer was first: merge into its version
            continue
        return await stream.belief(slot, shape)


async def revision(
    stream: Stream, slot: str, patch: Patch, shape: type[Shape], *, evidence: Sequence[str] = (), by: str = "reasoner"
) -> Entry | None:
    """Build the entry that writes a belief's next version; None if the patch changes nothing."""
    belief = await stream.belief(slot, shape)
    value, changed = merged(belief, patch)
    if not changed:
        return None
    event = BeliefChanged(slot=slot, version=belief.version + 1, patch=changed)
    before = stream.last_version(slot)
    taint = {TAINTED: True} if before and is_tainted(before) else {}  # the new version contains the old one's text, too
    new = RecordDraft(
        text=render_belief(slot, value),
        kind="belief",
        by=by,
        evidence=tuple(evidence),
        slot=slot,
        version=event.version,
        data={"value": value.model_dump(mode="json"), "patch": changed, **taint},
    )
    return Entry(event, by, tuple(await stream.build_records([new])))
