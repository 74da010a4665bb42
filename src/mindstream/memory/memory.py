"""A memory: a stream with sleep, corrections and forgetting."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from mindstream.clock import Time, moment_or_none
from mindstream.errors import InputError
from mindstream.identifiers import normal_name
from mindstream.memory.curation import audit as auditing
from mindstream.memory.curation import curation, forgetting
from mindstream.memory.curation.forgetting import ForgetRequest, Forgotten, Removal
from mindstream.memory.lifecycle import proposal
from mindstream.memory.lifecycle import sleep as sleeping
from mindstream.memory.lifecycle import undo_sleep as undoing
from mindstream.memory.store.record import Kind, Record, RecordDraft
from mindstream.memory.store.store import Fence
from mindstream.memory.stream import Stream

if TYPE_CHECKING:
    from mindstream.models.model import Model

__all__ = ["Memory"]


class Memory(Stream):
    """All that is remembered under one name: `retain`, `recall`, `get`, `correct`, `forget`, `history`, and sleep.

    It needs neither a mind nor a language model: `async with Memory.open("data", "ann") as memory: …`

    Raises (from every method): StorageError; InputError for invalid arguments.
    """

    async def retain_messages(self, messages: Sequence[Mapping[str, str]], session: str = "") -> list[Record]:
        """Write the messages of a conversation, one record each, in one transaction. No language model is called.

        Args:
            messages: `role` (`user`, or the name of another speaker) and `content`, as in chat APIs; oldest first.
            session: the session that they are part of.
        """
        for message in messages:
            if not (isinstance(message.get("role"), str) and isinstance(message.get("content"), str)):
                raise InputError(f'a message is {{"role": "user" or "assistant", "content": text}}, not {message!r}')
        session = normal_name(session)
        return await self.retain_all(
            [
                RecordDraft(
                    text=message["content"],
                    kind="chat",
                    episode=session,
                    data={"by_user": message["role"] == "user"},
                    by=self.name if message["role"] == "user" else message["role"],
                )
                for message in messages
            ]
        )

    async def get(self, id_: str) -> Record | None:
        """Return a record by its id, archived and superseded ones too; None if it was erased or never existed."""
        return next(iter(await self.store.records(self.key, [id_])), None)

    async def history(self, id_: str) -> list[Record]:
        """Return all wordings of a record, from the first to the current one; `id_` may be any of them.

        Raises:
            InputError: there is no such record.
        """
        return await curation.read_history(self, id_)

    async def forget(
        self,
        *ids: str,
        about: str = "",
        session: str = "",
        since: Time | None = None,
        until: Time | None = None,
        kinds: Sequence[Kind] = (),
    ) -> Forgotten:
        """Permanently delete records, by id or by the other criteria, with all records derived only from these.

        Records that are only similar to the subject `about` are kept and returned as `similar`; they can be
        forgotten by id. To look first: `remove(await find_removal(…))`.
        """
        return await self.remove(
            await self.find_removal(*ids, about=about, session=session, since=since, until=until, kinds=kinds)
        )

    async def find_removal(
        self,
        *ids: str,
        about: str = "",
        session: str = "",
        since: Time | None = None,
        until: Time | None = None,
        kinds: Sequence[Kind] = (),
    ) -> Removal:
        """Return what `forget` would delete; nothing is changed.

        `about` selects only records that mention the subject (memory/curation/mentions). `kinds`: only records of
        these kinds.
        """
        first, last = moment_or_none(since, "since"), moment_or_none(until, "until", whole_day=True)
        request = ForgetRequest(ids=ids, about=about, session=session, since=first, until=last, kinds=tuple(kinds))
        return await forgetting.find_removal(self, request)

    async def sleep(
        self,
        model: Model | None = None,
        n: int = sleeping.DRAWN,
        *,
        rater: Model | None = None,
        cause: int = 0,
        fence: Fence | None = None,
        compose: sleeping.Compose | None = None,
    ) -> str:
        """Consolidate memory: let n random records decay, and make a dream of those that are archived
        (lifecycle/sleep).

        Returns the dream, or "". `model` (M1) makes it, `rater` rates importance; None: rules, or the same model.
        `cause`: a row of the log; an interrupted sleep that was started for that row is continued. `compose`: makes the
        dream in place of `model`.
        """
        await self.settle()
        return await sleeping.sleep(self, model, n, rater, cause=cause, fence=fence, compose=compose)

    # Defined in their own modules; the memory is the first argument.
    propose_sleep, accept, undo_sleep = proposal.propose, proposal.accept, undoing.undo_sleep
    supersede, replace, correct = curation.supersede, curation.replace, curation.correct
    evidence_of = curation.evidence_of
    archive, purge, reembed = curation.archive, curation.purge, curation.reembed
    remove, audit, sessions = forgetting.remove, auditing.audit, curation.list_sessions
