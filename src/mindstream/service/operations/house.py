"""The house behind the doors: data, a store for each tenant, shared models, and the minds that are open."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import OrderedDict
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from contextlib import AsyncExitStack
from datetime import tzinfo
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from mindstream import caches, intake
from mindstream.clock import Clock, MachineZone, format_iso, read_zone
from mindstream.errors import InputError
from mindstream.location import AnyData, Location
from mindstream.log.audit import Deed, Did
from mindstream.log.events import Logged
from mindstream.log.files import private_folder
from mindstream.log.names import StreamKey, StreamName, checked_name, name_of, tenant_of
from mindstream.memory.memory import Memory
from mindstream.memory.opening import clock_of, finish_erasures, open_store
from mindstream.memory.policy import MemoryPolicy, adopt_policy, open_policy
from mindstream.memory.privacy_watch import watching
from mindstream.memory.recall.embedding import choose_embedder
from mindstream.memory.recall.rerank import second_stage
from mindstream.memory.store.sql_store import SqlStore
from mindstream.minds.mind import Mind, Part
from mindstream.minds.responder import ResponderFactory, Timeouts
from mindstream.models.embedders.embedder import Embedder
from mindstream.models.embedders.named import embedder
from mindstream.models.roles import Models
from mindstream.models.wrappers.meter import Metered
from mindstream.service.chat.companion import TalkZone
from mindstream.service.folders import hold_folder, refuse_town
from mindstream.service.memory import policy_given
from mindstream.service.operations.forks import ForkedTowns
from mindstream.service.operations.hub import Hub
from mindstream.service.operations.lasting import KeptOperations, OperationChanged, Running, RunningOperations
from mindstream.service.operations.offered import Offered, WatchedTowns
from mindstream.service.operations.open_minds import PAYER, MindKey, OpenMind, OpenMinds
from mindstream.service.operations.own import operations_of
from mindstream.service.operations.spending import SpentOf, charged
from mindstream.service.operations.who import LOCAL_PEOPLE, NotFound, Who
from mindstream.service.privacy.retention import LOOK_S, KeepRules
from mindstream.settings import Settings

if TYPE_CHECKING:
    from mindstream.sharing.growth import SizePoint

LOG = logging.getLogger("mindstream.server")
AT_ONCE = 64
"""So many calls of each model go on at a time, for all users together."""
MOST_MEMORIES = 4_000
"""So many memories are held open; they are small beside what the columns of their streams take."""


class Ground:
    """What one tenant has in the data: a store that sees nothing else, and what is heard of its log."""

    def __init__(self, data: Location, wall: str, clock: Clock) -> None:
        self.store = open_store(data, wall)
        self.hub = Hub(self.store, clock)

    async def close(self) -> None:
        """Let go of the file."""
        await self.hub.close()
        await self.store.close()


class House:
    """What all doors share. Open it with `async with`; everything is opened on its first use.

    Attributes:
        settings: the operator's: no request changes them, nor names a path, a host or a program.
        speakers: who can answer for a mind, by name: the packs that come with mindstream, the operator's own.
        offered: what the operator offers: tools, documents, towns.
        running: what takes its time.
        part: what of its minds lives here (see Mind.open).
        towns: what was read of those that are looked at.
        forks: towns that were forked from those that are offered.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        models: Models | None = None,
        clock: Clock | None = None,
        speakers: Mapping[str, Callable[[], ResponderFactory]] | None = None,
        offered: Offered | None = None,
        at_once: int = AT_ONCE,
        part: Part = "whole",
    ) -> None:
        self.settings, self._at_once, self.part = settings, at_once, part
        self.offered = offered or Offered()
        self.clock = clock or clock_of(settings.data)
        self.speakers = dict(speakers or {})
        self.minds = OpenMinds(self._open_mind, self.clock)
        self.towns, self.forks = WatchedTowns(), ForkedTowns(settings.data)
        kept = KeptOperations(settings.data, lambda wall: self._ground(wall).store)
        self.running = RunningOperations(self.clock, self._show_running, kept, self._stream_of)
        self._models, self._own_models = models, models is None
        self._embedder: Embedder | None = None
        self._grounds: dict[str, Ground] = {}
        self._memories: OrderedDict[tuple[str, str], Memory] = OrderedDict()
        self._closing = AsyncExitStack()
        self._opened = self.is_ending = False
        self.measuring = asyncio.Lock()
        self.curves: dict[tuple[str, str], tuple[int, list[SizePoint]]] = {}
        """How pools (of a tenant, by name) learned as they grew, as of a row of their logs: seconds to measure."""
        self.on_forget: list[Callable[[StreamKey], Awaitable[None]]] = []
        """Called with the stream of which words were erased."""
        self.errands: set[asyncio.Task[None]] = set()
        """What goes on though whoever asked for it waits no longer; it ends before the house is closed."""
        self._loop: asyncio.AbstractEventLoop | None = None
        caches.watch_end(self)
        caches.watch(self)
        if settings.redact:
            from mindstream.text.personal import open_redactor

            intake.switch_on(open_redactor(settings.redact))

    async def __aenter__(self) -> House:
        if not self._opened:
            self._opened = True
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
        await refuse_town(self.own_store(), self.settings.data)
        await self.running.restore(alone=folder is not None)
        self._closing.callback(asyncio.ensure_future(self.running.beat()).cancel)
        await self._closing.enter_async_context(watching(self.own_store()))
        self._closing.callback(asyncio.ensure_future(self._keep_rules()).cancel)

    async def _keep_rules(self) -> None:
        """Let tenants' words go when their time has come."""
        rules = KeepRules(self.store_of, lambda: self.embedder, self.clock, self.settings.data.beside)
        while True:
            try:
                await rules.apply_due()
            except Exception:  # foreign code, as an embedder: the next look is made whatever ended this one
                LOG.exception("rules of retention could not be applied, and are looked at again")
            await asyncio.sleep(LOOK_S)

    def end(self, stream: str, before: int | None = None) -> None:
        """Close what is open of a stream, by whatever process all of it was erased; what was opened since stays."""
        self._here(self._end_now, stream, before)

    def forget(self, stream: str) -> None:
        """Let go of what was answered of a stream, by whatever process words of it were erased."""
        self._here(self._forget_now, StreamKey(stream))

    def _here(self, call: Callable[..., None], *given: object) -> None:
        """Call a function in the loop that the house was opened in: another thread may erase something, too."""
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
        self.begin(self._check_answers(key))
        opened = [each.mind.memory for each in self.minds.each()] + list(self._memories.values())
        known = any(each.key == key and (before is None or each.was_opened_before(before)) for each in opened)
        ground = self._grounds.get(tenant_of(stream))
        if ground is not None:
            ground.hub.show_erased(key)
        if known:
            self.begin(self._end(key, before))

    async def _end(self, key: StreamKey, before: int | None) -> None:
        await self.minds.drop(key, before)
        for place, memory in [each for each in self._memories.items() if each[0][1] == key]:
            if before is None or memory.was_opened_before(before):
                del self._memories[place]
                await memory.close()

    async def note(self, who: Who, did: Did, counts: Mapping[str, int | str], about: StreamKey | str = "") -> None:
        """Write down who did something to people's data, by which door (log/audit); never what it said."""
        await self.ground(who).store.note(self.clock.now(), self.deed(who, did, about, counts))

    @staticmethod
    def deed(who: Who, did: Did, about: StreamKey | str = "", counts: Mapping[str, int | str] | None = None) -> Deed:
        """Return what the audit says of something that a caller does to people's data."""
        return Deed(did, who.door, who.key, about, who.wall, counts or {})

    @classmethod
    @contextlib.asynccontextmanager
    async def beside(cls, settings: Settings, at_once: int = AT_ONCE, part: Part = "whole") -> AsyncIterator[House]:
        """Open a house that only reads, or thinks: beside the servers that may have the data.

        What these erase is let go of here, too.
        """
        house = cls(settings, at_once=at_once, part=part)
        try:
            house._loop = asyncio.get_running_loop()
            async with watching(house.own_store()):
                yield house
        finally:
            await house.close()

    async def check(self) -> None:
        """Raise StorageError where the data folder cannot be read."""
        await self.ground(LOCAL_PEOPLE).store.version()

    def listeners(self) -> int:
        """Return how many listen to events."""
        return sum(len(ground.hub) for ground in self._grounds.values())

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Let go of all that was opened."""
        await self.finish_errands(0.0)
        for ground in self._grounds.values():
            await ground.hub.close()
        await self.minds.close()
        for memory in self._memories.values():
            await memory.close()
        await self.running.settle()
        for ground in self._grounds.values():
            await ground.close()
        await self._closing.aclose()
        if self._models is not None and self._own_models:
            await self._models.aclose()

    def begin(self, errand: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Let something go on, whoever asked for it; what it raises is for whoever awaits it, else it is logged."""
        task = asyncio.ensure_future(errand)
        self.errands.add(task)
        task.add_done_callback(self._ended)
        return task

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.errands.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            LOG.debug("an errand ended with %s", type(error).__name__)

    async def finish_errands(self, within_s: float) -> None:
        """Wait for what goes on, for so many seconds; then break it off."""
        if self.errands:
            _, late = await asyncio.wait(self.errands, timeout=within_s)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def drain(self, within_s: float) -> None:
        """Let what was begun end, for so many seconds, and end what listens to events; work of reasoners stays open."""
        self.is_ending = True
        await self.finish_errands(within_s)
        for ground in self._grounds.values():
            await ground.hub.close()

    @property
    def models(self) -> Models:
        """The models that the operator has named, shared by all minds."""
        if self._models is None:
            from mindstream.service.opening import answering

            self._models = answering(self.settings, at_once=self._at_once)
        return self._models

    @property
    def embedder(self) -> Embedder:
        """The embedder of new memories, and of all where one is named."""
        if self._embedder is None:
            self._embedder = embedder(self.settings.embedder)
        return self._embedder

    @property
    def named_embedder(self) -> Embedder | None:
        """The embedder that the settings name; None: each memory's own."""
        return self.embedder if self.settings.named_embedder else None

    def ground(self, who: Who) -> Ground:
        """Return what whoever asks has in the data folder: all that can be seen through it is their tenant's."""
        return self._ground(who.wall)

    def own_store(self) -> SqlStore:
        """Return where the server keeps what is its own."""
        return self._ground("").store

    def _ground(self, wall: str) -> Ground:
        found = self._grounds.get(wall)
        if found is None:
            found = self._grounds[wall] = Ground(self.settings.data, wall, self.clock)
        return found

    def store_of(self, wall: str) -> SqlStore:
        """Return a tenant's store; "": that of this machine's own people."""
        return self._ground(wall).store

    def _stream_of(self, wall: str, user: str) -> StreamKey:
        """Return whose an operation is: a user's, or (no user's) the tenant's."""
        return self._ground(wall).store.key(StreamName("user", user)) if user else operations_of(wall)

    def _show_running(self, one: Running) -> None:
        ground = self._grounds.get(one.wall)
        if ground is not None:
            stream = self._stream_of(one.wall, one.user) if one.user else StreamKey("")
            ground.hub.show(Logged(0, stream, self.clock.now(), "mindstream", OperationChanged.of(one), system=True))

    def town(self, who: Who, name: str) -> Location:
        """Return where a town lives: of one that is offered, or of a fork.

        Raises:
            NotFound: the tenant has none of that name.
        """
        fork = self.forks.all(who).get(name)
        return self.offered.town(who, name) if fork is None else fork.place

    def models_of(self, who: Who, on_call: Callable[[Metered], None]) -> Models:
        """Return the models for something that is done in somebody's name; `on_call` is told of each call."""
        budget = who.budget
        models = self.models if budget is None else self.models.each(lambda model: charged(model, budget))
        return models.with_listener(on_call)

    async def memory(self, who: Who) -> Memory:
        """Return a user's memory.

        Raises:
            InputError: nobody can be called so.
            StorageError: the data folder cannot be used.
        """
        store = self.ground(who).store
        key = (who.wall, store.key(who.name))
        memory = self._memories.get(key)
        if memory is None:
            await asyncio.to_thread(finish_erasures, self.settings.data, store.key(who.name))
            name = store.key(who.name)
            vectors, of_another = await choose_embedder(store, name, self.named_embedder)
            policy = await adopt_policy(store, name, self.clock.now(), policy_given(self.settings))
            memory = Memory(store, who.name, vectors, self.clock, strength=policy.laws)
            memory.vectors_of = of_another
            memory.second = second_stage(policy.reranker, policy.reranked, self.models if policy.reranker else None)
            memory = self._memories.setdefault(key, memory)
        self._memories.move_to_end(key)
        if len(self._memories) > MOST_MEMORIES:
            await self._memories.popitem(last=False)[1].close()
        return memory

    async def policy(self, who: Who) -> MemoryPolicy:
        """Return how a user's memory recalls and fades."""
        store = self.ground(who).store
        return await open_policy(store, store.key(who.name), policy_given(self.settings))

    @contextlib.asynccontextmanager
    async def mind(
        self, who: Who, session: str | None = None, speaker: str = "", holds: str = ""
    ) -> AsyncIterator[OpenMind]:
        """Give a user's mind: `open.mind.hear(text)` says something to it.

        Args:
            session: the conversation to go on with; None: the one that was gone on with last, else a new one.
            speaker: who answers, of `speakers` or the packs; "": whoever the operator has chosen.
            holds: under which name work was taken up for it, where it is opened for that.

        Raises:
            NotFound: there is no such speaker.
            MindstreamError: it cannot be opened.
        """
        speaker = speaker or self.own_speaker
        stream = self.ground(who).store.key(who.name)
        if session is None:
            lately = [each.key for each in self.minds.of(who.wall, stream) if each.key.speaker == speaker]
            session = lately[0].session if lately else format_iso(self.clock.now())
        key = MindKey(who.wall, stream, checked_name(session, "session"), speaker, holds)
        async with self.minds.use(key) as opened:
            opened.budget = who.budget
            await self._keep_payer(opened, who)
            yield opened

    async def _keep_payer(self, opened: OpenMind, who: Who) -> None:
        """Write down whose token pays for what is thought of what is said now, in whatever process that is thought."""
        payer = who.key if who.budget is not None else ""
        if payer != opened.payer and self.part != "thinks":
            opened.payer = payer
            store = self.ground(who).store
            await store.keep(opened.key.stream, PAYER, self.clock.now(), lambda _: payer or None)

    def speaker(self, name: str, zone: tzinfo | None = None) -> ResponderFactory:
        """Return who answers under a name.

        Args:
            zone: where the user lives; None: where the operator says.

        Raises:
            NotFound: nobody is called so; a path is nobody's name here.
        """
        if name in self.speakers:
            return self.speakers[name]()
        from mindstream.coach.coach import Coach

        if name not in self.speaker_names():
            raise NotFound(f"nobody is called {name!r} here; there are {', '.join(self.speaker_names())}")
        pack = self.settings.pack if name == self.own_speaker else name
        return Coach.using(pack, self.settings.gate, None, True, zone or self.usual_zone())

    def usual_zone(self) -> tzinfo:
        """Return where users live of whom nobody says it."""
        return read_zone(self.settings.timezone) if self.settings.timezone else MachineZone()

    def speaker_names(self) -> list[str]:
        """Return who can answer: the packs, and whoever was added."""
        from mindstream.coach.packs.load import shipped_packs

        return sorted({*shipped_packs(), *self.speakers, self.own_speaker})

    @property
    def own_speaker(self) -> str:
        """What the operator's pack is called: a folder of their own, by its last part."""
        return Path(self.settings.pack).name

    async def _open_mind(self, key: MindKey, stack: AsyncExitStack) -> OpenMind:

        ground = self._grounds[key.wall]
        await asyncio.to_thread(finish_erasures, self.settings.data, key.stream)
        payer, zone = SpentOf(), TalkZone(self.usual_zone())
        mind = await stack.enter_async_context(
            Mind.open(
                ground.store,
                user=name_of(key.stream),
                session=key.session,
                models=self.models.each(payer.charge),
                responder=self.speaker(key.speaker, zone),
                embed=self.named_embedder,
                clock=self.clock,
                timeouts=Timeouts(deadline_s=self.settings.deadline_s),
                policy=policy_given(self.settings),
                part=self.part,
                owner=key.holds,
            )
        )
        opened = OpenMind(key, mind, stack.aclose, self.clock.elapsed(), zone=zone)
        payer.of = opened
        stack.enter_context(mind.memory.feed.subscribe(ground.hub.show_live))
        return opened


def house_of(
    data: AnyData | House,
    settings: Settings | None = None,
    models: Models | None = None,
    offered: Offered | None = None,
    at_once: int = AT_ONCE,
    part: Part = "whole",
) -> House:
    """Return a house for data; one that is handed in is returned.

    Raises:
        InputError: a house has settings and models of its own.
    """
    if isinstance(data, House):
        if settings or models or offered:
            raise InputError("a house has settings and models of its own")
        return data
    chosen = settings or Settings()
    return House(
        chosen.model_copy(update={"data": Location.of(data)}),
        models=models,
        offered=offered,
        at_once=at_once,
        part=part,
    )
