"""The runtime of a server: the data, a store for each tenant, the shared models, and the open minds."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from dataclasses import replace
from datetime import tzinfo
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from mindstream import caches, redaction
from mindstream.clock import Clock, MachineZone, format_iso, read_zone
from mindstream.errors import InputError
from mindstream.identifiers import StreamKey, StreamName, checked_name, is_name, name_of, tenant_of
from mindstream.location import AnyData, Location
from mindstream.log.audit import Deed, Did
from mindstream.log.events import Logged
from mindstream.log.files import private_folder
from mindstream.memory.memory import Memory
from mindstream.memory.opening import clock_of, finish_erasures, open_store
from mindstream.memory.policy import MemoryPolicy, adopt_policy, open_policy
from mindstream.memory.recall.embedding import choose_embedder
from mindstream.memory.recall.rerank import second_stage
from mindstream.memory.store.sql_store import SqlStore, watching
from mindstream.minds.chat_bot import NAME, BotFactory
from mindstream.minds.mind import Mind, Part
from mindstream.minds.responder import ResponderFactory, Timeouts
from mindstream.models.embedders.embedder import Embedder, embedder
from mindstream.models.roles import Models, build_models, open_models
from mindstream.models.wrappers.meter import Metered
from mindstream.service.chat.companion import TalkZone
from mindstream.service.folders import hold_folder, refuse_town
from mindstream.service.memory import policy_given
from mindstream.service.operations.forks import ForkedTowns
from mindstream.service.operations.hub import Hub
from mindstream.service.operations.long_running import (
    OperationChanged,
    RunningOperation,
    RunningOperations,
    StoredOperations,
)
from mindstream.service.operations.offered import Offered, WatchedTowns
from mindstream.service.operations.open_minds import PAYER, Charge, MindKey, OpenMind, OpenMinds
from mindstream.service.operations.operation import LOCAL_PRINCIPAL, NotFound, Principal, operations_of
from mindstream.service.privacy.retention import POLL_S, KeepRules
from mindstream.settings import Settings
from mindstream.together import cancel_all

if TYPE_CHECKING:
    from mindstream.sharing.growth import SizePoint

LOG = logging.getLogger("mindstream.server")
MAX_AT_ONCE = 64
"""Default maximum number of simultaneous calls of each model, for all users together."""
MAX_MEMORIES = 4_000
"""Maximum number of open memories. An open memory is small; the cached columns of its stream are limited separately."""


class TenantStore:
    """A store that can access the data of one tenant only, and the live subscriptions to that tenant's log."""

    def __init__(self, data: Location, tenant_key: str, clock: Clock) -> None:
        self.store = open_store(data, tenant_key)
        self.hub = Hub(self.store, clock)

    async def close(self) -> None:
        """Close the subscriptions and the store."""
        await self.hub.close()
        await self.store.close()


class Runtime:
    """The state that REST, MCP and all other interfaces share.

    Open it with `async with`; stores and models are opened on first use.

    Attributes:
        settings: the operator's settings. No request can change them, or name a path, a host or a program.
        responders: additional responders for minds, by name; packs need not be listed here.
        offered: the tools, documents, MCP servers and towns that the operator offers.
        minds: the open minds.
        running: the long-running operations.
        part: which part of each mind runs in this process: answering, reasoning, or both (see Mind.open).
        towns: the cached recordings of towns that clients watch.
        forks: the forks of the offered towns.
        measuring: the lock for measuring growth curves of pools.
        curves: the cached growth curves, by tenant and pool; each with the last row of the log that it includes.
        on_forget: functions that are called with the key of a stream of which words were erased.
        is_ending: the server is shutting down.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        models: Models | None = None,
        clock: Clock | None = None,
        responders: Mapping[str, Callable[[], ResponderFactory]] | None = None,
        offered: Offered | None = None,
        at_once: int = MAX_AT_ONCE,
        part: Part = "whole",
    ) -> None:
        self.settings, self._at_once, self.part = settings, at_once, part
        self.offered = offered or Offered()
        self.clock = clock or clock_of(settings.data)
        self.responders = dict(responders or {})
        self.minds = OpenMinds(self._open_mind, self.clock)
        self.towns, self.forks = WatchedTowns(), ForkedTowns(settings.data)
        stored = StoredOperations(settings.data, self.store_of)
        self.running = RunningOperations(self.clock, self._show_operation, stored, self._stream_of)
        self._models, self._has_own_models = models, models is None
        self._models_of_bots: dict[str, Models] = {}
        self._bots: list[str] = []
        self._embedder: Embedder | None = None
        self._tenants: dict[str, TenantStore] = {}
        self._memories: OrderedDict[tuple[str, str], Memory] = OrderedDict()
        self._closing = AsyncExitStack()
        self._is_opened = self.is_ending = False
        self.measuring = asyncio.Lock()
        self.curves: dict[tuple[str, str], tuple[int, list[SizePoint]]] = {}
        self.on_forget: list[Callable[[StreamKey], Awaitable[None]]] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        caches.watch_end(self)
        caches.watch(self)
        if settings.redact:
            from mindstream.text.personal import open_redactor

            redaction.switch_on(open_redactor(settings.redact))

    async def __aenter__(self) -> Self:
        if not self._is_opened:
            self._is_opened = True
            try:
                await self._open()
            except BaseException:
                await self.close()
                raise
        return self

    async def _open(self) -> None:
        self._loop = asyncio.get_running_loop()
        if (folder := self.settings.data.folder) is not None:
            await asyncio.to_thread(private_folder, folder)
            self._closing.enter_context(hold_folder(folder))
        await refuse_town(self.server_store(), self.settings.data)
        await self.running.restore(alone=folder is not None)
        self._closing.callback(asyncio.ensure_future(self.running.beat()).cancel)
        await self._closing.enter_async_context(watching(self.server_store()))
        self._closing.callback(asyncio.ensure_future(self._apply_retention()).cancel)

    async def _apply_retention(self) -> None:
        """Apply the tenants' retention rules, every POLL_S seconds until this is cancelled."""
        rules = KeepRules(self.store_of, lambda: self.embedder, self.clock, self.settings.data.beside)
        while True:
            try:
                await rules.apply_due()
            except Exception:  # an embedder or other third-party code may raise anything: the next round tries again
                LOG.exception("retention rules could not be applied; the next attempt is in %g seconds", POLL_S)
            await asyncio.sleep(POLL_S)

    def end(self, stream: str, before: int | None = None) -> None:
        """Close the memories and minds of a stream that this or another process erased. `caches` calls this.

        Args:
            before: the number of the erasure. Memories and minds that were opened after the erasure stay open. None:
                close all.
        """
        self._call_here(self._end_now, stream, before)

    def forget(self, stream: str) -> None:
        """Drop results that may contain erased words of a stream. `caches` calls this."""
        self._call_here(self._forget_now, StreamKey(stream))

    def _call_here(self, call: Callable[..., None], *given: object) -> None:
        """Call a function in the event loop of this runtime, because erasures may happen in other threads."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(call, *given)

    def _forget_now(self, key: StreamKey) -> None:
        self.begin(self._check_answers(key))

    async def _check_answers(self, key: StreamKey) -> None:
        await self.running.check(key)
        for check in self.on_forget:
            await check(key)

    def _end_now(self, stream: str, before: int | None) -> None:
        key = StreamKey(stream)
        self._forget_now(key)
        opened = [each.mind.memory for each in self.minds.each()] + list(self._memories.values())
        tenant = self._tenants.get(tenant_of(stream))
        if tenant is not None:
            tenant.hub.show_erased(key)
        if any(each.key == key and (before is None or each.was_opened_before(before)) for each in opened):
            self.begin(self._end(key, before))

    async def _end(self, key: StreamKey, before: int | None) -> None:
        await self.minds.drop(key, before)
        for place, memory in [each for each in self._memories.items() if each[1].key == key]:
            if before is None or memory.was_opened_before(before):
                del self._memories[place]
                await memory.close()

    @staticmethod
    def deed(principal: Principal, did: Did, about: StreamKey | str = "") -> Deed:
        """Return the audit entry for an action of a caller on users' data.

        Args:
            did: the action.
            about: the stream or user that the action is about; "": none.
        """
        return Deed(did, principal.door, principal.key, about, principal.tenant_key, {})

    @classmethod
    @contextlib.asynccontextmanager
    async def open_reader(
        cls, settings: Settings, at_once: int = MAX_AT_ONCE, part: Part = "whole"
    ) -> AsyncIterator[Runtime]:
        """Open a runtime for a process that runs next to the servers of the same data: it reads, or runs reasoners.

        It neither locks the data nor starts the servers' background work. If a server erases a user, this runtime
        closes that user's memories and minds. `at_once`: maximum number of simultaneous calls of each model.
        """
        runtime = cls(settings, at_once=at_once, part=part)
        try:
            runtime._loop = asyncio.get_running_loop()
            async with watching(runtime.server_store()):
                yield runtime
        finally:
            await runtime.close()

    async def check(self) -> None:
        """Raise StorageError if the data cannot be read."""
        await self.tenant(LOCAL_PRINCIPAL).store.version()

    def listeners(self) -> int:
        """Return the number of live subscriptions to events, of all tenants."""
        return sum(len(tenant.hub) for tenant in self._tenants.values())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close everything that was opened."""
        await self.finish_tasks(0.0)
        for tenant in self._tenants.values():
            await tenant.hub.close()
        await self.minds.close()
        for memory in self._memories.values():
            await memory.close()
        await self.running.settle()
        for tenant in self._tenants.values():
            await tenant.close()
        await self._closing.aclose()
        if self._models is not None and self._has_own_models:
            await self._models.aclose()

    def begin(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run a coroutine as a background task until it ends or the runtime is closed. Its error stays in the task."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            LOG.debug("a background task ended with %s", type(error).__name__)

    async def finish_tasks(self, within_s: float) -> None:
        """Wait for background tasks, for at most `within_s` seconds; then cancel those that have not ended."""
        if self._tasks:
            _, late = await asyncio.wait(self._tasks, timeout=within_s)
            await cancel_all(*late)

    async def drain(self, within_s: float) -> None:
        """Wait for background tasks, cancel those that run longer than `within_s` seconds, and end all event
        subscriptions.

        Background reasoning is not waited for; another process or the next start resumes it.
        """
        self.is_ending = True
        await self.finish_tasks(within_s)
        for tenant in self._tenants.values():
            await tenant.hub.close()

    @property
    def models(self) -> Models:
        """The models that the operator has configured, shared by all minds."""
        if self._models is None:
            from mindstream.service.opening import answering

            self._models = answering(self.settings, at_once=self._at_once)
        return self._models

    @property
    def embedder(self) -> Embedder:
        """The embedder of new memories; if the settings name one, the embedder of all memories."""
        if self._embedder is None:
            self._embedder = embedder(self.settings.embedder)
        return self._embedder

    @property
    def named_embedder(self) -> Embedder | None:
        """The embedder that the settings name; None: each memory uses the one it was created with."""
        return self.embedder if self.settings.named_embedder else None

    def tenant(self, principal: Principal) -> TenantStore:
        """Return the store and the subscriptions of a caller's tenant."""
        return self._tenant(principal.tenant_key)

    def server_store(self) -> SqlStore:
        """Return the store of the server's own state."""
        return self.store_of("")

    def store_of(self, tenant_key: str) -> SqlStore:
        """Return the store of a tenant; "": the store of the users on this machine."""
        return self._tenant(tenant_key).store

    def _tenant(self, tenant_key: str) -> TenantStore:
        found = self._tenants.get(tenant_key)
        if found is None:
            found = self._tenants[tenant_key] = TenantStore(self.settings.data, tenant_key, self.clock)
        return found

    def _stream_of(self, tenant_key: str, user: str) -> StreamKey:
        """Return the key of the stream that stores a user's operations; user "": operations about no user."""
        return self.store_of(tenant_key).key(StreamName("user", user)) if user else operations_of(tenant_key)

    def _show_operation(self, one: RunningOperation) -> None:
        tenant = self._tenants.get(one.tenant_key)
        if tenant is not None:
            stream = self._stream_of(one.tenant_key, one.user) if one.user else StreamKey("")
            tenant.hub.show(Logged(0, stream, self.clock.now(), "mindstream", OperationChanged.of(one), system=True))

    def town(self, principal: Principal, name: str) -> Location:
        """Return the location of an offered town or of a fork.

        Raises:
            NotFound: the tenant has no town with this name.
        """
        fork = self.forks.all(principal).get(name)
        return self.offered.town(principal, name) if fork is None else fork.place

    def add_bots(self, bots: Mapping[str, BotFactory]) -> None:
        """Offer chat bots by these names. Unless the settings name a pack, only the bots are listed, and the first one
        answers messages that name no responder.

        Raises:
            InputError: a name is not valid or is taken, or a value is not `ChatBot.using(…)`.
            SettingsError: the model of a bot does not exist, or its key is missing.
        """
        if not isinstance(bots, Mapping):
            raise InputError(
                f'bots= expects bots by name, such as {{"support": ChatBot.using(…)}}, found {type(bots).__name__}'
            )
        taken = {*self.responder_names(), NAME, "life"}
        for name, bot in bots.items():
            if name in taken or not is_name(name) or "/" in name:
                raise InputError(
                    f"a bot cannot be called {name!r}: the name is taken, contains a / or is not valid; choose another"
                )
            if not isinstance(bot, BotFactory):
                raise InputError(f"bots: {name!r} must be ChatBot.using(…), not a {type(bot).__name__}")
            if bot.models is not None:
                build_models(bot.models, self.clock)  # refuses a wrong name or a missing key before the first message
            # The name in `bots` is the author of the answers, unless the bot has a name of its own.
            self.responders[name] = partial(_same, replace(bot, name=name) if bot.name == NAME else bot)
        self._bots += bots

    async def _models_for(self, name: str) -> Models:
        """Return the models of a responder: its own, opened at first use, or else the operator's."""
        own = getattr(self.responders[name](), "models", None) if name in self.responders else None
        if own is None:
            return self.models
        if name not in self._models_of_bots:
            self._models_of_bots[name] = await self._closing.enter_async_context(open_models(own, self.clock))
        return self._models_of_bots[name]

    def models_of(self, principal: Principal, on_call: Callable[[Metered], None]) -> Models:
        """Return the models, charged to the caller's budget; `on_call` is called after each model call."""
        budget = principal.budget
        models = self.models if budget is None else self.models.each(Charge(budget).to)
        return models.with_listener(on_call)

    async def memory(self, principal: Principal) -> Memory:
        """Return a user's memory, opened if needed. If more than MAX_MEMORIES are open, the one unused for the longest
        time is closed.

        Raises:
            InputError: the request is about no user.
            StorageError: the data cannot be read or written.
        """
        place = (principal.tenant_key, principal.user)
        memory = self._memories.get(place)
        if memory is None:
            store = self.tenant(principal).store
            stream = store.key(principal.name)
            await asyncio.to_thread(finish_erasures, self.settings.data, stream)
            vectors, of_another = await choose_embedder(store, stream, self.named_embedder)
            policy = await adopt_policy(store, stream, self.clock.now(), policy_given(self.settings))
            memory = Memory(store, principal.name, vectors, self.clock, strength=policy.laws)
            memory.vectors_of, memory.drawn = of_another, policy.drawn
            memory.second = second_stage(policy.reranker, policy.reranked, self.models if policy.reranker else None)
            memory = self._memories.setdefault(place, memory)
        self._memories.move_to_end(place)
        if len(self._memories) > MAX_MEMORIES:
            await self._memories.popitem(last=False)[1].close()
        return memory

    async def policy(self, principal: Principal) -> MemoryPolicy:
        """Return the policy of a user's memory."""
        store = self.tenant(principal).store
        return await open_policy(store, store.key(principal.name), policy_given(self.settings))

    @contextlib.asynccontextmanager
    async def mind(
        self, principal: Principal, session: str | None = None, responder: str = "", holds: str = ""
    ) -> AsyncIterator[OpenMind]:
        """Yield a user's open mind; `opened.mind.hear(text)` sends it a message.

        Args:
            session: the conversation to continue. None: the user's most recent open conversation with this responder,
                or a new one if none is open.
            responder: the name of a responder or pack; "": the operator's choice.
            holds: the owner of the leases on orphaned work; "": the mind is not opened to resume such work.

        Raises:
            NotFound: no responder has this name.
            MindstreamError: the mind cannot be opened.
        """
        responder = responder or self.default_responder
        stream = self.tenant(principal).store.key(principal.name)
        if session is None:
            recent = [
                each.key for each in self.minds.of(principal.tenant_key, stream) if each.key.responder == responder
            ]
            session = recent[0].session if recent else format_iso(self.clock.now())
        key = MindKey(principal.tenant_key, stream, checked_name(session, "session"), responder, holds)
        async with self.minds.use(key) as opened:
            opened.charge.budget = principal.budget
            await self._store_payer(opened, principal)
            yield opened

    async def _store_payer(self, opened: OpenMind, principal: Principal) -> None:
        """Store the id of the token whose budget pays for reasoning about this message.

        If the token has no budget, remove the stored id. The process that reasons, which may be another one, charges
        the budget.
        """
        payer = principal.key if principal.budget is not None else ""
        if payer != opened.payer and self.part != "thinks":
            opened.payer = payer
            store = self.tenant(principal).store
            await store.keep(opened.key.stream, PAYER, self.clock.now(), lambda _: payer or None)

    def responder(self, name: str, zone: tzinfo | None = None) -> ResponderFactory:
        """Return the factory of the responder with a name.

        Args:
            zone: the user's time zone; None: the operator's default.

        Raises:
            NotFound: no responder has this name. A path is never accepted as a name.
        """
        if name in self.responders:
            return self.responders[name]()
        from mindstream.coach.coach import Coach

        if name not in self.responder_names():
            raise NotFound(f"no responder is called {name!r}; the names are {', '.join(self.listed_names())}")
        pack = self.settings.pack if name == Path(self.settings.pack).name else name
        return Coach.using(pack, self.settings.gate, None, True, zone or self.default_zone())

    def default_zone(self) -> tzinfo:
        """Return the time zone of users who have not set one."""
        return read_zone(self.settings.timezone) if self.settings.timezone else MachineZone()

    def responder_names(self) -> list[str]:
        """Return the sorted names of all responders: the shipped packs, the pack of the settings, and the added
        responders."""
        from mindstream.coach.packs.load import shipped_packs

        return sorted({*shipped_packs(), *self.responders, Path(self.settings.pack).name})

    def listed_names(self) -> list[str]:
        """Return the names of the offered responders.

        If the operator has added bots (`add_bots`) and the settings name no pack, only the bots are offered.
        """
        return list(self._bots) if self._only_bots else self.responder_names()

    @property
    def _only_bots(self) -> bool:
        return bool(self._bots) and "pack" not in self.settings.model_fields_set

    @property
    def default_responder(self) -> str:
        """The name of the responder for messages that name none: the operator's pack.

        If the operator has added bots and the settings name no pack, the default is the first bot. For a pack in a
        folder, the name is the last part of the folder's path.
        """
        return self._bots[0] if self._only_bots else Path(self.settings.pack).name

    async def _open_mind(self, key: MindKey, stack: AsyncExitStack) -> OpenMind:
        tenant = self._tenants[key.tenant_key]
        await asyncio.to_thread(finish_erasures, self.settings.data, key.stream)
        charge, zone = Charge(), TalkZone(self.default_zone())
        mind = await stack.enter_async_context(
            Mind.open(
                tenant.store,
                user=name_of(key.stream),
                session=key.session,
                model=(await self._models_for(key.responder)).each(charge.to),
                responder=self.responder(key.responder, zone),
                embed=self.named_embedder,
                clock=self.clock,
                timeouts=Timeouts(deadline_s=self.settings.deadline_s),
                policy=policy_given(self.settings),
                part=self.part,
                owner=key.holds,
            )
        )
        opened = OpenMind(key, mind, stack.aclose, self.clock.elapsed(), zone=zone, charge=charge)
        stack.enter_context(mind.memory.feed.subscribe(tenant.hub.show_live))
        return opened


def _same(bot: BotFactory) -> ResponderFactory:
    return bot


def runtime_for(
    data: AnyData | Runtime,
    settings: Settings | None = None,
    models: Models | None = None,
    offered: Offered | None = None,
    at_once: int = MAX_AT_ONCE,
    part: Part = "whole",
) -> Runtime:
    """Return a runtime for data; a given runtime is returned as it is.

    Args:
        at_once: maximum number of simultaneous calls of each model.

    Raises:
        InputError: `data` is a runtime, but settings, models or offered tools were passed in addition.
    """
    if isinstance(data, Runtime):
        if settings or models or offered:
            raise InputError("a runtime has its own settings, models and offered tools: pass none in addition to it")
        return data
    chosen = (settings or Settings()).model_copy(update={"data": Location.of(data)})
    return Runtime(chosen, models=models, offered=offered, at_once=at_once, part=part)
