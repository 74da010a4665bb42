"""The project's stores, models, tools and reasoners keep the promises of their protocols; broken promises are
detected.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import postgres_server
import pytest
from fake_endpoint import Fails, FakeEndpoint, Says
from mindstream_evals.conformance import model, reasoner, store, tenants
from mindstream_evals.conformance import tool as tools
from mindstream_evals.conformance.samples import Promise, keep

from mindstream import FakeModel, SqliteStore, SystemClock, tool
from mindstream.chance import token
from mindstream.coach.belief.belief import BeliefReasoner
from mindstream.coach.belief.think import resource_tool
from mindstream.coach.packs.load import load as load_pack
from mindstream.log.events import Logged
from mindstream.memory.memory import Memory
from mindstream.memory.store.store import Commit, Store
from mindstream.models.embedders.embedder import WordLlama
from mindstream.models.model import Model, Part, Piece, Request, Usage
from mindstream.models.providers.provider import provider
from mindstream.models.recording import Playback, Recorder
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.reasoners.facts import FactsReasoner
from mindstream.reasoners.night import SleepReasoner
from mindstream.reasoners.reasoner import Reasoner, RunContext, RunResult, Trigger
from mindstream.reasoners.reflect.reflect import ReflectReasoner

Opened = Callable[[Path], AbstractAsyncContextManager[Model]]


# Stores.


@asynccontextmanager
async def sqlite(folder: Path) -> AsyncIterator[Store]:
    opened = SqliteStore(folder)
    yield opened
    await opened.close()


@asynccontextmanager
async def postgres(_: Path) -> AsyncIterator[Store]:
    url = postgres_server.fresh_url()
    from mindstream.memory.store.postgres.postgres import PostgresStore

    async with PostgresStore(url) as opened:
        yield opened


@pytest.mark.parametrize("promise", store.PROMISES, ids=lambda each: each.__name__)
@pytest.mark.parametrize("opened", [sqlite, postgres], ids=lambda each: each.__name__)
async def test_stores_keep_their_promises(
    opened: Callable[[Path], AbstractAsyncContextManager[Store]], promise: Promise[Store], folder: Path
) -> None:
    await promise(partial(opened, folder))


@asynccontextmanager
async def of_tenants(folder: Path) -> AsyncIterator[Sequence[Store]]:
    """Open a folder for two tenants, one with a prefix of the other's name, and for data without a tenant."""
    opened = [SqliteStore(folder, tenant) for tenant in ("acme", "acme-2", "")]
    yield opened
    for each in opened:
        await each.close()


@asynccontextmanager
async def of_tenants_in_postgres(_: Path) -> AsyncIterator[Sequence[Store]]:
    url = postgres_server.fresh_url()
    from mindstream.memory.store.postgres.postgres import PostgresStore

    opened = [PostgresStore(url, tenant) for tenant in ("acme", "acme-2", "")]
    yield opened
    for each in opened:
        await each.close()


@pytest.mark.parametrize("promise", tenants.PROMISES, ids=lambda each: each.__name__)
@pytest.mark.parametrize("opened", [of_tenants, of_tenants_in_postgres], ids=lambda each: each.__name__)
async def test_stores_of_tenants_keep_their_promises(
    opened: Callable[[Path], AbstractAsyncContextManager[Sequence[Store]]],
    promise: Promise[Sequence[Store]],
    folder: Path,
) -> None:
    await promise(partial(opened, folder))


# Models.


@asynccontextmanager
async def rules(_: Path) -> AsyncIterator[Model]:
    yield Rules()


@asynccontextmanager
async def scripted(_: Path) -> AsyncIterator[Model]:
    yield FakeModel({"greet": ["Hello, Ann."] * 9})


@asynccontextmanager
async def endpoint(_: Path) -> AsyncIterator[Model]:
    with FakeEndpoint() as door:
        door.otherwise = Says("Hello, Ann, come in.")
        opened = provider(f"{door.url}#any")
        yield opened
        await opened.aclose()


@asynccontextmanager
async def named(_: Path) -> AsyncIterator[Model]:
    """Return a table of models with all wrappers, around an endpoint."""
    with FakeEndpoint() as door:
        door.otherwise = Says("Hello, Ann, come in.")
        async with Models.named({"default": f"{door.url}#any"}) as models:
            yield models.of("talker")


@asynccontextmanager
async def played(folder: Path) -> AsyncIterator[Model]:
    recording = folder / f"{token()}.jsonl"
    recorded = Recorder(FakeModel({"greet": ["Hello, Ann."] * 9}), recording)
    for _ in range(9):
        async for _ in recorded.reply(Request(model.Greet(), "talker")):
            pass
    yield Playback(recording)


@pytest.mark.parametrize("promise", model.PROMISES, ids=lambda each: each.__name__)
@pytest.mark.parametrize("opened", [rules, scripted, endpoint, named, played], ids=lambda each: each.__name__)
async def test_models_keep_their_promises(opened: Opened, promise: Promise[Model], tmp_path: Path) -> None:
    await promise(partial(opened, tmp_path))


@asynccontextmanager
async def silent(_: Path) -> AsyncIterator[Model]:
    yield FakeModel({})


@asynccontextmanager
async def refusing(_: Path) -> AsyncIterator[Model]:
    with FakeEndpoint() as door:
        door.otherwise = Fails(400, "no")
        opened = provider(f"{door.url}#any")
        yield opened
        await opened.aclose()


@asynccontextmanager
async def gone(_: Path) -> AsyncIterator[Model]:
    opened = provider("http://127.0.0.1:9/v1#any")
    yield opened
    await opened.aclose()


@pytest.mark.parametrize("promise", model.FAILING, ids=lambda each: each.__name__)
@pytest.mark.parametrize("opened", [silent, refusing, gone], ids=lambda each: each.__name__)
async def test_failing_models_keep_their_promises(opened: Opened, promise: Promise[Model], tmp_path: Path) -> None:
    await promise(partial(opened, tmp_path))


# Tools.


@tool
def moon(day: str, count: int = 1) -> str:
    """Return the phase of the moon on a day."""
    return f"{day}: full" * count


@tool
async def wait(seconds: float | None = None) -> dict[str, float]:
    """Wait a while."""
    await asyncio.sleep(0)
    return {"seconds": seconds or 0.0}


TRIALS = {
    "moon": tools.Trial(moon, '{"day": "2026-11-24"}', '{"day": "2026-11-24", "count": "many"}'),
    "wait": tools.Trial(wait, "{}", '{"minutes": 1}'),
    "a pack's": tools.Trial(resource_tool(load_pack("sleep"), "en"), '{"query": "noise"}', '{"topic": 7}'),
}


@asynccontextmanager
async def tried(name: str) -> AsyncIterator[tools.Trial]:
    yield TRIALS[name]


@pytest.mark.parametrize("promise", tools.PROMISES, ids=lambda each: each.__name__)
@pytest.mark.parametrize("name", TRIALS)
async def test_tools_keep_their_promises(name: str, promise: Promise[tools.Trial]) -> None:
    await promise(partial(tried, name))


# Reasoners.

REASONERS: dict[str, Callable[[], Reasoner]] = {
    "facts": lambda: FactsReasoner(Rules()),
    "belief": lambda: BeliefReasoner(Rules(), load_pack("sleep")),
    "reflect": lambda: ReflectReasoner(Rules(), start=1),
    "night": lambda: SleepReasoner(Rules()),
}


@asynccontextmanager
async def thinking(build: Callable[[], Reasoner], folder: Path) -> AsyncIterator[reasoner.Trial]:
    async with sqlite(folder) as opened, Memory(opened, "ann", WordLlama(), SystemClock()) as stream:
        yield reasoner.Trial(build(), stream)


@pytest.mark.parametrize("promise", reasoner.PROMISES, ids=lambda each: each.__name__)
@pytest.mark.parametrize("name", REASONERS)
async def test_reasoners_keep_their_promises(name: str, promise: Promise[reasoner.Trial], folder: Path) -> None:
    await promise(partial(thinking, REASONERS[name], folder))


# Broken promises are detected and named.


class Forgetful(SqliteStore):
    """Writes half of a commit."""

    async def commit(self, *commits: Commit) -> list[Logged]:
        return await super().commit(*(replace(each, entries=each.entries[:1], revisions=()) for each in commits))


class Leaking(SqliteStore):
    """A store without tenant isolation."""

    def events(self, mind=None, after=0, kinds=None, limit=1000):  # type: ignore[no-untyped-def]
        return super().events(None, after, kinds, limit)


@pytest.mark.parametrize(("kind", "broken"), [(Forgetful, "distinct holds"), (Leaking, "never sees it")])
async def test_a_broken_promise_of_a_store_is_detected(kind: type[SqliteStore], broken: str, tmp_path: Path) -> None:
    opened: list[SqliteStore] = []

    @asynccontextmanager
    async def opening() -> AsyncIterator[Store]:
        opened.append(kind(tmp_path / str(len(opened))))
        yield opened[-1]
        await opened[-1].close()

    with pytest.raises(AssertionError, match=f"not kept: .*{broken}"):
        await keep(store.PROMISES, opening)
    for each in opened:
        await each.close()


class Raw:
    """A model that raises any exception, after its usage."""

    name = "raw"

    def __init__(self, fails: bool) -> None:
        self.fails = fails

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        if self.fails:
            raise KeyError("oh")
        yield Usage(1, 1)
        yield Piece("hello")


async def test_a_broken_promise_of_a_model_is_detected() -> None:
    @asynccontextmanager
    async def opening(fails: bool) -> AsyncIterator[Model]:
        yield Raw(fails)

    with pytest.raises(AssertionError, match="usage last: one Usage at most, as the last part"):
        await keep(model.PROMISES, partial(opening, False))
    with pytest.raises(AssertionError, match="a ModelError, not KeyError"):
        await keep(model.FAILING, partial(opening, True))


class Hasty:
    """A reasoner that writes during its run."""

    slot, trigger, timeout_s = "hasty", Trigger(), 5.0

    async def think(self, context: RunContext) -> RunResult:
        await context.memory.retain("written at once", "note")
        return RunResult("", "no model", write=lambda: asyncio.sleep(0, ((), ())))


async def test_a_broken_promise_of_a_reasoner_is_detected(tmp_path: Path) -> None:
    numbers = iter(range(9))

    def opening() -> AbstractAsyncContextManager[reasoner.Trial]:
        return thinking(Hasty, tmp_path / str(next(numbers)))

    with pytest.raises(AssertionError, match="not kept: thinking alone remembers nothing"):
        await keep(reasoner.PROMISES, opening)
