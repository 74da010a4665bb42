"""What an adapter stores once a model has answered: it is made to fit, and what cannot be stored is logged, not raised.

The agent's result belongs to the caller: a text that is too long, an odd type or a database that is away must not
cost it.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar

from mindstream.errors import InputError
from mindstream.foreign_code import describe
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import RecordDraft
from mindstream.memory.store.validation import MAX_BYTES, fitted_text

T = TypeVar("T")
LOG = logging.getLogger("mindstream.adapters")
LOST = "%s could not be stored in memory, and the run goes on without: %s"
DEEPEST = 30
"""Maximum nesting of a framework's own form of a message; what lies deeper is kept as text."""
PART = MAX_BYTES // 4
"""Maximum characters of a part, each of which has at most four bytes."""
BREAKS = ("\n\n", "\n", " ")


async def keep(what: str, work: Awaitable[T]) -> T | None:
    """Store something after a model has answered; a failure is logged, and None returned."""
    try:
        return await work
    except Exception as error:  # noqa: BLE001 (the outermost edge: the framework's run goes on with its result)
        LOG.warning(LOST, what, describe(error))
        return None


def keep_waiting(what: str, work: Callable[[], T]) -> T | None:
    """Do as `keep` does, in a thread that waits."""
    try:
        return work()
    except Exception as error:  # noqa: BLE001 (see `keep`)
        LOG.warning(LOST, what, describe(error))
        return None


async def retain_each(memory: Memory, drafts: Sequence[RecordDraft]) -> None:
    """Store records in one transaction; where one of them cannot be stored, each by itself, and log which could not."""
    try:
        await memory.retain_all(drafts)
    except InputError:
        for draft in drafts:
            await keep(f"{draft.kind} {draft.text[:40]!r}", memory.retain_all([draft]))


def split_text(text: Any) -> list[str]:
    """Return a text in parts that fit a record each, broken between paragraphs, lines or words; [] for no words."""
    rest, parts = text if isinstance(text, str) else str(text or ""), []
    while len(rest) > PART:
        at = next((found for each in BREAKS if (found := rest.rfind(each, PART // 2, PART)) > 0), PART)
        parts.append(rest[:at])
        rest = rest[at:]
    return [fitted for each in (*parts, rest) if (fitted := fit_text(each))]


def fit_text(text: Any, otherwise: str = "") -> str:
    """Return a text fit for a record, shortened with a mark; `otherwise` where there are no words in it."""
    try:
        return fitted_text(text if isinstance(text, str) else str(text or ""))
    except InputError:
        return otherwise


def storable(value: Any, depth: int = 0) -> Any:
    """Return a framework's form of a message as JSON that can be stored; of another type, its text."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if depth > DEEPEST:
        return storable(str(value))
    if isinstance(value, Mapping):
        return {storable(str(key)): storable(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [storable(each, depth + 1) for each in value]
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    dump = getattr(value, "model_dump", None)
    return storable(dump(mode="json"), depth + 1) if dump else storable(str(value))
