"""Store the messages and documents of frameworks; values that do not fit into a record are converted or shortened.

After a model has answered, failures are logged, not raised: the caller must get the agent's result even if a text is
too long, a type is unknown, or the database is unavailable.
"""

from __future__ import annotations

import hashlib
import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from mindstream.adapters.loop import Handle, both
from mindstream.errors import InputError
from mindstream.foreign_code import describe
from mindstream.identifiers import is_name, normal_name
from mindstream.log.events import Corrected
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import MAX_NAME, MAX_TEXT, Record, RecordDraft, fitted_text, session_names
from mindstream.memory.store.store import Entry, Revision

LOG = logging.getLogger("mindstream.adapters")
ALL = 2**31
"""A number of records that no memory exceeds."""
MAX_DEPTH = 30
"""Maximum nesting of a framework's own form of a message; deeper values are stored as text."""
PART = MAX_TEXT // 4
"""Maximum characters of a part: far below the limit of a record, because recall finds shorter parts better."""
DIGEST = re.compile(r"id:[0-9a-f]{32}")
"""The form of a digest that `memory_name` computes. An id of this form is replaced by a digest, too; otherwise it could
name the memory of another id."""
BREAKS = ("\n\n", "\n", " ")


def memory_name(id_: str) -> str:
    """Return the name of the memory of a framework's session or user.

    It is the normal form of the id. If the normal form is not a valid name or looks like a digest, it is a digest of
    the id.
    """
    normal = normal_name(id_)
    if is_name(normal) and not DIGEST.fullmatch(normal):
        return normal
    return f"id:{hashlib.blake2b(id_.encode('utf-8', 'surrogatepass'), digest_size=16).hexdigest()}"


def session_name(id_: str) -> str:
    """Return the name under which a framework's session is stored and found."""
    return session_names(id_)[-1] if 0 < len(id_) <= MAX_NAME else memory_name(id_)


@contextmanager
def failures_logged(what: str) -> Iterator[None]:
    """Store something after a model has answered: an error in the block is logged, not raised."""
    try:
        yield
    except Exception as error:  # noqa: BLE001 (the outermost edge: the framework's run continues with its result)
        LOG.warning("%s could not be stored in memory, and the run continues without: %s", what, describe(error))


async def retain_each(memory: Memory, drafts: Sequence[RecordDraft]) -> None:
    """Store records in one transaction. If a record is invalid, store each record by itself, and log each invalid
    record."""
    try:
        await memory.retain_all(drafts)
    except InputError:
        for draft in drafts:
            with failures_logged(f"{draft.kind} {draft.text[:40]!r}"):
                await memory.retain_all([draft])


async def retain_documents(
    memory: Memory, framework: str, documents: Iterable[tuple[str, Mapping[str, Any], Mapping[str, Any]]]
) -> list[str]:
    """Store documents (text, metadata, other data) unchanged, in one commit; return the ids of their records."""
    drafts = [
        RecordDraft(text=text, kind="document", by=framework, data={**metadata, **other, framework: dict(metadata)})
        for text, metadata, other in documents
    ]
    return [record.id for record in await memory.retain_all(drafts)]


def metadata_of(record: Record, framework: str) -> tuple[dict[str, Any], bool]:
    """Return the metadata of a record, and whether the record is a document that came from the framework.

    The metadata of any other record is its kind, speaker, session, time and data.
    """
    own = record.data.get(framework) if record.kind == "document" else None
    if isinstance(own, dict):
        return dict(own), True
    fields = {"kind": record.kind, "by": record.by, "episode": record.episode, "created": record.created}
    return {**fields, **record.data}, False


def split_text(text: Any) -> list[str]:
    """Return a text in parts that fit a record each, split between paragraphs, lines or words; [] for blank text."""
    rest, parts = text if isinstance(text, str) else str(text or ""), []
    while len(rest) > PART:
        at = next((found for each in BREAKS if (found := rest.rfind(each, PART // 2, PART)) > 0), PART)
        parts.append(rest[:at])
        rest = rest[at:]
    return [fitted for each in (*parts, rest) if (fitted := fit_text(each))]


def fit_text(text: Any, otherwise: str = "") -> str:
    """Return a text that fits a record, shortened with a mark; `otherwise` if it is blank."""
    try:
        return fitted_text(text if isinstance(text, str) else str(text or ""))
    except InputError:
        return otherwise


def storable(value: Any, depth: int = 0) -> Any:
    """Return a framework's form of a message as JSON values; a value of an unknown type becomes text."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if depth > MAX_DEPTH:
        return storable(str(value))
    if isinstance(value, Mapping):
        return {storable(str(key)): storable(each, depth + 1) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [storable(each, depth + 1) for each in value]
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    dump = getattr(value, "model_dump", None)
    return storable(dump(mode="json"), depth + 1) if dump else storable(str(value))


@dataclass(frozen=True, slots=True)
class Message:
    """A message: its author, its text, and its form in the framework."""

    by_user: bool
    role: str
    text: str
    form: Mapping[str, Any]


@dataclass(frozen=True)
class Conversation:
    """A conversation in a memory. Each message is a record of kind `chat`; `data` holds the message in the framework's
    form.

    Attributes:
        framework: the framework whose messages these are; other records of the session are neither read nor changed.
    """

    handle: Handle
    framework: str
    session: str

    def add(self, messages: Sequence[Message]) -> None:
        """Store messages in one commit; a failure is logged, so that the run continues with its answer."""
        with failures_logged("the messages"):
            self.handle.wait(lambda memory: self._write(messages, memory))

    async def _read(self, memory: Memory) -> list[Any]:
        """Return the messages in their framework's form, oldest first."""
        return [record.data[self.framework] for record in await self._records(memory)]

    async def _set(self, messages: Sequence[Message], memory: Memory) -> None:
        """Replace all messages, in one commit; the old ones are archived."""
        await self._write(messages, memory, await self._records(memory))

    read, set = both(_read)[0], both(_set)[0]

    async def _records(self, memory: Memory) -> list[Record]:
        found = await memory.store.latest(memory.key, ["chat"], ALL, now=memory.clock.now(), episode=self.session)
        return [record for record in found if self.framework in record.data]

    async def _write(self, messages: Sequence[Message], memory: Memory, old: Sequence[Record] = ()) -> None:
        records = await memory.build_records(
            [
                RecordDraft(
                    text=fit_text(each.text, f"[{each.role}]"),
                    kind="chat",
                    episode=self.session,
                    by=memory.name if each.by_user else each.role,
                    data={"by_user": each.by_user, self.framework: storable(each.form)},
                )
                for each in messages
            ]
        )
        entries = [Entry.remembered(records, records[0].by)] if records else []
        entries += [Entry(Corrected(old=each.id, new=""), self.framework) for each in old]
        now = memory.clock.now()
        if entries:
            await memory.commit(*entries, revisions=[Revision(id=each.id, forgotten=now) for each in old])
