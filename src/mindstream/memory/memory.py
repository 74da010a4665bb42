"""A memory: a stream of records with sleep, corrections and forgetting."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Mapping, Sequence
from itertools import chain
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, Self, TypeAlias

from pydantic import JsonValue

from mindstream.clock import Clock, Time, period
from mindstream.errors import InputError, SettingsError
from mindstream.guidance import SYNC, awaited, checked_id, explain_attribute, explained, opens
from mindstream.location import AnyData
from mindstream.memory.curation import audit as auditing
from mindstream.memory.curation import curation, forgetting
from mindstream.memory.curation.forgetting import ForgetRequest, Forgotten, Removal
from mindstream.memory.facts import extract_facts
from mindstream.memory.forgetting_curve import KEEP, Strength
from mindstream.memory.lifecycle import proposal
from mindstream.memory.lifecycle import sleep as sleeping
from mindstream.memory.lifecycle import undo_sleep as undoing
from mindstream.memory.store.record import Kind, Record, RecordDraft, checked_fields, checked_kinds, session_names
from mindstream.memory.store.store import Fence
from mindstream.memory.stream import Stream
from mindstream.models.roles import AnyModels, Models, open_models

if TYPE_CHECKING:
    from mindstream.identifiers import StreamName
    from mindstream.log.events import Feed
    from mindstream.memory.opening import AnyStore
    from mindstream.memory.policy import AnyPolicy
    from mindstream.memory.recall.rerank import SecondStage
    from mindstream.models.embedders.embedder import Embedder, EmbedderChoice
    from mindstream.models.model import Model

__all__ = ["Memory"]
Records: TypeAlias = list[Record]


def _message_text(message: object) -> str:
    """Return the text of a message of a chat API; "" if the message has no text, such as a tool call.

    Raises:
        InputError: `message` has another form.
    """
    if isinstance(message, Mapping) and isinstance(message.get("role"), str):
        match message.get("content", None if "tool_calls" in message else ...):
            case str(text):
                return text
            case None:
                return ""
            case list(parts):
                texts = (each.get("text") if isinstance(each, Mapping) else each for each in parts)
                return "\n".join(text for text in texts if isinstance(text, str))
    raise InputError(f'a message needs the form {{"role": "user" or "assistant", "content": text}}, found {message!r}')


class Memory(Stream):
    """The memory of one user. It needs neither a language model nor a service.

        async with Memory("data", "ann") as memory:  # the data folder, and the user's name
            note = await memory.retain("Anna is allergic to peanuts.")
            for hit in await memory.recall("what must Anna not eat?", limit=3):
                print(hit.text, hit.created, hit.confidence, hit.id)
            await memory.correct(note.id, "Anna is allergic to peanuts and cashews.")
            print(await memory.history(note.id))  # both wordings
            await memory.forget(about="cashews")  # permanent; find_removal(…) shows it in advance

    - *Write*: `retain`, `retain_all`, `retain_messages` (with `extract=True` a model extracts facts from them).
    - *Read*: `recall` ranks by a question, `list` and `find` filter, `get` and `records` read by id, `history`
      returns all wordings of a record.
    - *Change*: `correct`, `supersede`, `replace`; the old wording stays in the history.
    - *Remove*: `forget` deletes records permanently, with all records derived only from them.
    - *Consolidate*: `sleep`, `propose_sleep`, `undo_sleep`, `audit`; `archive` lists archived records.

    `Memory.open(…)` takes the same arguments. For programs without asyncio there is `mindstream.sync.Memory`.

    Times are datetimes, dates, ISO 8601 texts or seconds since 1970, in UTC unless they name a time zone.

    Raises (from every method): StorageError; InputError for invalid arguments.
    """

    models: Models | None = None
    """Models that extract facts from messages; see `open(model=…)`."""

    @explained
    def __init__(
        self,
        data: AnyStore,
        name: StreamName | str,
        embedder: Embedder | None = None,
        clock: Clock | None = None,
        feed: Feed | None = None,
        *,
        embed: EmbedderChoice = None,
        seed: int | str | None = None,
        policy: AnyPolicy = MappingProxyType({}),
        model: AnyModels | None = None,
        strength: Strength | None = KEEP,
        second: SecondStage | None = None,
    ) -> None:
        """Describe a memory that `async with` opens; the arguments are those of `open`.

        With a store, an `embedder` and a `clock`, no `async with` is needed to open it. `feed`, `strength` and `second`
        apply only in this case (see Stream).
        """
        if embedder is None:
            opening = Memory.open(data, name, embed=embed, clock=clock, seed=seed, policy=policy, model=model)
            self._opening: contextlib.AbstractAsyncContextManager[Memory] | None = opening
            return
        self._opening = None
        if isinstance(data, AnyData) or clock is None:
            raise InputError(
                f"Memory({data!r}, …, embedder=) needs an open store and a clock; to name an embedder, pass embed="
                " instead"
            )
        super().__init__(data, name, embedder, clock, feed, strength=strength, second=second, seed=seed)

    async def __aenter__(self) -> Self:
        if self._opening is not None:
            opening, opened = self._opening, await self._opening.__aenter__()
            self.__dict__ = opened.__dict__  # from here on, both objects share their state
            self._opening = opening
        return self

    async def __aexit__(self, *error: Any) -> None:
        # None, because the object that `opening` made shares this state, and its `__aexit__` must not come here again
        opening, self._opening = self._opening, None
        try:
            await (super().__aexit__(*error) if opening is None else opening.__aexit__(*error))
        finally:
            self._opening = opening  # so that `async with` can open the memory again

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            if name.startswith("__") or name.endswith("_") or "store" in self.__dict__:
                explain_attribute(self, name)
            self.__enter__()

        def __enter__(self) -> NoReturn:
            raise InputError(f"open the memory with `async with Memory(…) as memory:`; {SYNC}")

        def __exit__(self, *_: object) -> None: ...

    @classmethod
    @opens
    async def open(
        cls,
        data: AnyStore,
        name: StreamName | str,
        *,
        embed: EmbedderChoice = None,
        clock: Clock | None = None,
        seed: int | str | None = None,
        policy: AnyPolicy = MappingProxyType({}),
        model: AnyModels | None = None,
    ) -> AsyncIterator[Self]:
        """Open the memory of a user in a folder (created if missing), a database or a store.

        A store that is opened here is closed when the block ends.

        Args:
            embed: an embedder or its name. None: the embedder that made the memory's vectors, or wordllama for a new
                memory. With a different embedder, recall and writing are refused until `reembed()` was called.
            policy: `keep` (nothing is archived) or `decay` (unused records are archived), which is recorded for this
                memory. Or values by name (memory/policy), which apply while the memory is open. Empty: the recorded
                policy, or `keep` for a new memory.
            model: extracts facts in `retain_messages(…, extract=True)`: a name such as `openai:gpt-5-mini`, a model, or
                a table of these by role (`facts`). None: no model.

        Raises:
            InputError: there is no such policy.
            SettingsError: there is no such embedder or model.
        """
        async with contextlib.AsyncExitStack() as stack:
            models = None if model is None else await stack.enter_async_context(open_models(model, clock))
            opened = super().open(data, name, embed=embed, clock=clock, seed=seed, policy=policy)
            memory = await stack.enter_async_context(opened)
            memory.models = models
            yield memory

    @awaited
    async def retain_messages(
        self, messages: Sequence[Mapping[str, Any]], session: str = "", *, extract: bool = False
    ) -> Records:
        """Write the messages of a conversation, one record each, in one transaction; return the records.

        Args:
            messages: the messages, oldest first, with `role` (`user`, or the name of another speaker) and `content`, as
                in chat APIs, and optionally `created` (ISO 8601). If `content` is a list of parts, only the texts are
                written. Messages without a text, such as tool calls and pictures, are left out.
            session: the session that the messages belong to.
            extract: let the memory's model extract lasting facts about the user, and write them as notes. A new note
                supersedes notes that it makes untrue. The new notes are returned after the messages.

        Raises:
            SettingsError: `extract` is set and the memory was opened without a model; nothing is written.
            ModelError: the model failed; the messages are stored.
        """
        said = [(message, text) for message in messages if (text := _message_text(message)).strip()]
        if extract and self.models is None:
            raise SettingsError(
                'extract=True needs a model: open the memory with one, such as model="openai:gpt-5-mini"'
            )
        session = session_names(session)[0]
        records = await self.retain_all(
            [
                RecordDraft(
                    text=text,
                    kind="chat",
                    episode=session,
                    data={"by_user": message["role"] == "user"},
                    by=self.name if message["role"] == "user" else message["role"],
                    created=message.get("created"),
                )
                for message, text in said
            ]
        )
        if not extract or self.models is None or not records:
            return records
        return [*records, *await extract_facts(self, self.models.of("facts"), records)]

    @awaited
    async def get(self, id_: str) -> Record | None:
        """Return a record by its id, even if it is archived or superseded; None if it was erased or never existed."""
        return next(iter(await self.records([checked_id(id_)])), None)

    @awaited
    async def history(self, id_: str) -> Records:
        """Return all wordings of a record, from the first to the current one; `id_` may be any of them.

        Raises:
            InputError: there is no such record.
        """
        return await curation.read_history(self, checked_id(id_))

    @awaited
    async def list(
        self,
        limit: int | None = 100,
        *,
        kinds: Sequence[Kind] | None = None,
        session: str | None = None,
        since: Time | None = None,
        until: Time | None = None,
        where: Mapping[str, JsonValue] | None = None,
    ) -> Records:
        """Return current records (not superseded, expired or archived), newest first. They are not ranked, and their
        strength does not change.

        Args:
            limit: maximum number of records; None: all.
            kinds: only records of these kinds.
            session: only records of this session.
            since, until, where: as in `recall`.
        """
        names = () if session is None else session_names(session)
        fields = checked_fields(where, "where")
        chosen = [{**fields, "episode": name} for name in names] or [fields]
        found = [await self.find(limit, kinds=kinds, since=since, until=until, where=each) for each in chosen]
        return found[0] if len(found) == 1 else sorted(chain(*found), key=lambda each: -each.created)[:limit]

    @awaited
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

        Records that are only similar to the subject `about` are kept and returned as `similar`; they can be forgotten
        by id. To check first which records will be deleted, call `find_removal(…)`, and pass its result to `remove`.
        """
        return await self.remove(
            await self.find_removal(*ids, about=about, session=session, since=since, until=until, kinds=kinds)
        )

    @awaited
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

        The records with these ids are selected, and those that meet all other criteria that are given. `about`: only
        records that mention the subject (memory/curation/mentions). `kinds`: only records of these kinds.
        """
        first, last = period(since, until)
        request = ForgetRequest(
            ids=tuple(map(checked_id, ids)),
            about=about,
            session=session,
            since=first,
            until=last,
            kinds=checked_kinds(kinds),
        )
        return await forgetting.find_removal(self, request)

    @awaited
    async def sleep(
        self,
        model: AnyModels | None = None,
        n: int | None = None,
        *,
        rater: Model | None = None,
        cause: int = 0,
        fence: Fence | None = None,
        compose: sleeping.Compose | None = None,
    ) -> str:
        """Consolidate the memory: rate importance and compact the store.

        Under the policy `decay`, also do the following:

        - Draw n random records, and weaken or archive the unused ones among them.
        - Make a dream (summary) of the archived records.
        - Merge near-duplicates, and archive expired records.

        Args:
            model: makes the dream (role reasoner); None: rules.
            n: None: the number in the policy.
            rater: rates importance; None: `model` (role importance).
            cause: a row of the log. If a sleep for this row was interrupted, it is continued.
            fence: work whose lease this process must hold at each step.
            compose: makes the dream in place of `model`.

        Returns:
            The text of the dream; "" if no record was archived, or if the model failed.
        """
        await self.settle()
        async with open_models(model or "rules", self.clock) as models:
            rater = rater or models.of("importance", "reasoner")
            return await sleeping.sleep(
                self, models.of("reasoner"), n, rater, cause=cause, fence=fence, compose=compose
            )

    # These methods are functions of other modules with the memory as first argument.
    propose_sleep, accept, undo_sleep = proposal.propose, proposal.accept, undoing.undo_sleep
    supersede, replace, correct = curation.supersede, curation.replace, awaited(curation.correct)
    evidence_of = curation.evidence_of
    archive, purge, reembed = curation.archive, curation.purge, curation.reembed
    remove, audit, sessions = forgetting.remove, auditing.audit, curation.list_sessions
