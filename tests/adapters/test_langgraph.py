"""Programs written for LangGraph's own store and saver work with mindstream's."""

from __future__ import annotations

import asyncio
import base64
import itertools
import random
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from foreign_programs import Run, environment, run_python
from postgres_server import fresh_url

from mindstream import InputError, Memory, SqliteStore

OURS = {
    "langgraph_store": {
        "from langgraph.store.memory import InMemoryStore  # <- here":
            "from mindstream.adapters.langgraph import MindstreamStore",
        'store = InMemoryStore(index={"embed": embed, "dims": DIMS, "fields": ["text"]})  # <- here':
            'store = MindstreamStore("data", index={"embed": embed, "dims": DIMS, "fields": ["text"]})',
    },
    "langgraph_saver": {
        "from langgraph.checkpoint.memory import InMemorySaver  # <- here":
            "from mindstream.adapters.langgraph import MindstreamSaver",
        "checkpointer = InMemorySaver()  # <- here": 'checkpointer = MindstreamSaver("data")',
    },
}  # fmt: skip


@pytest.mark.parametrize("replaced", [False, True], ids=["its own", "ours"])
@pytest.mark.parametrize("name", OURS)
def test_the_program_runs(name: str, replaced: bool, run_program: Run, needs: Callable[..., None]) -> None:
    needs("langgraph.graph")
    run_program(name, OURS[name] if replaced else {})


async def test_the_saver_passes_the_conformance_suite(tmp_path: Path, needs: Callable[..., None]) -> None:
    needs("langgraph.checkpoint.conformance")
    from langgraph.checkpoint.conformance import checkpointer_test, validate

    from mindstream.adapters.langgraph import MindstreamSaver

    counter = itertools.count()

    @checkpointer_test(name="MindstreamSaver")  # type: ignore[untyped-decorator, unused-ignore]
    async def checkpointer() -> AsyncIterator[MindstreamSaver]:
        saver = MindstreamSaver(tmp_path / str(next(counter)))
        yield saver
        await asyncio.to_thread(saver.close)

    report = await validate(checkpointer)
    failures = {name: result.failures for name, result in report.results.items() if result.failures}
    assert report.passed_all_base() and not failures, failures
    assert {name for name, result in report.results.items() if not result.detected} == {
        "copy_thread", "delete_for_runs", "prune",
    }  # fmt: skip


LESSONS = ("learners", "mona", "lessons")


@pytest.fixture
def stores(needs: Callable[..., None]) -> Iterator[Callable[..., Any]]:
    """Open stores and close them at the end."""
    needs("langgraph.store.base")
    from mindstream.adapters.langgraph import MindstreamStore

    opened: list[Any] = []

    def open_one(*args: Any, **settings: Any) -> Any:
        opened.append(MindstreamStore(*args, **settings))
        return opened[-1]

    yield open_one
    for each in opened:
        each.close()


def random_operations(chance: random.Random) -> Iterator[Any]:
    """Generate operations on few keys, so that they interact."""
    from langgraph.store.base import GetOp, ListNamespacesOp, MatchCondition, PutOp, SearchOp

    labels, keys = ["a", "b", "ä.b".replace(".", ""), "c" * 120], ["k1", "k2", "", "🥬"]
    filters: list[dict[str, Any] | None] = [
        None, {"level": 1}, {"level": {"$gte": 1}}, {"level": {"$gt": 0, "$lt": 3}}, {"kind": {"$ne": "x"}},
        {"kind": {"$eq": "y"}, "level": {"$lte": 2}}, {"deep": {"in": True}}, {"tags": ["a", "b"]}, {"none": None},
    ]  # fmt: skip
    while True:
        place = tuple(chance.choices(labels, k=chance.randint(1, 3)))
        value = {
            "kind": chance.choice("xy"), "level": chance.randint(0, 3), "deep": {"in": chance.random() < 0.5},
            "tags": chance.choice([["a", "b"], ["b"]]),
        }  # fmt: skip
        yield chance.choice([
            PutOp(place, chance.choice(keys), chance.choice([value, value, None])),
            GetOp(place, chance.choice(keys)),
            SearchOp(place[: chance.randint(0, 2)], chance.choice(filters), limit=100),
            ListNamespacesOp(
                (MatchCondition(chance.choice(["prefix", "suffix"]), (chance.choice(["*", *labels]), *place[1:])),),
                chance.choice([None, 1, 2]),
            ),
        ])  # fmt: skip


def shown(result: Any) -> Any:
    """Return the comparable part of a result: without times, scores and the order of a search."""
    if isinstance(result, list) and result and hasattr(result[0], "value"):
        return sorted((shown(each) for each in result), key=repr)
    return (result.namespace, result.key, sorted(result.value.items())) if hasattr(result, "value") else result


@pytest.mark.parametrize("seed", range(4))
def test_the_store_behaves_like_the_in_memory_store(stores: Callable[..., Any], folder: Path, seed: int) -> None:
    ours = stores(folder)
    from langgraph.store.memory import InMemoryStore

    theirs, chance = InMemoryStore(), random.Random(seed)
    operations = random_operations(chance)
    for _ in range(60):
        ops = [next(operations) for _ in range(chance.randint(1, 4))]
        ops.sort(key=lambda op: not hasattr(op, "max_depth"))
        for name in [name for name, items in theirs._data.items() if not items]:
            del theirs._data[name]  # InMemoryStore also lists empty namespaces
        found, wanted = ours.batch(ops), theirs.batch(ops)
        for op, one, other in zip(ops, found, wanted, strict=True):
            assert shown(one) == shown(other), op
    again = stores(str(folder))
    assert shown(again.search((), limit=100)) == shown(theirs.search((), limit=100))


def test_items_survive_a_kill(stores: Callable[..., Any], tmp_path: Path) -> None:
    needed = stores(tmp_path / "unused")
    code = """
import os
from mindstream.adapters.langgraph import MindstreamStore
store = MindstreamStore("data")
store.put(("a", "b"), "k", {"text": "one"})
store.put(("a", "b"), "k", {"text": "two"})
store.put(("a", "b"), "gone", {"text": "three"})
store.delete(("a", "b"), "gone")
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment(), check=False)
    assert done.returncode == -9
    store = stores(tmp_path / "data")
    assert [(each.key, each.value) for each in store.search(("a",))] == [("k", {"text": "two"})]
    assert needed.search(()) == []


async def test_concurrent_writers_create_one_item_and_delete_it_completely(
    stores: Callable[..., Any], folder: Path
) -> None:
    async with SqliteStore(folder) as one, SqliteStore(folder) as other:
        both = stores(one), stores(other)
        for n in range(5):
            key = f"k{n}"
            await asyncio.gather(*(store.aput(("a",), key, {"text": f"by {at}"}) for at, store in enumerate(both)))
            assert len({repr((await store.aget(("a",), key)).value) for store in both}) == 1
            assert [len(await store.asearch(("a",), query="by whom")) for store in both] == [1, 1]
            await both[n % 2].adelete(("a",), key)
            assert [await store.aget(("a",), key) for store in both] == [None, None]
        async with SqliteStore(folder) as third:
            assert await stores(third).asearch(("a",)) == []
            await asyncio.to_thread(lambda: [each.handle.close() for each in both])


def test_deleted_and_replaced_items_stay_in_the_archive_until_purged(stores: Callable[..., Any], folder: Path) -> None:
    store = stores(folder, "ann")
    store.put(LESSONS, "a", {"text": "the walrus lesson"})
    store.put(LESSONS, "a", {"text": "the penguin lesson"})
    store.put(LESSONS, "b", {"text": "the ibex lesson"})
    store.delete(LESSONS, "b")
    assert [each.value["text"] for each in store.search((), query="walrus ibex lesson")] == ["the penguin lesson"]
    archive = store.handle.wait(lambda memory: memory.archive())
    assert [each.data["=text"] for each in archive] == ["the walrus lesson", "the ibex lesson"]
    rows = store.handle.wait(lambda memory: memory.store.events(memory.key))
    assert [each.event.kind for each in rows] == [*["remembered"] * 3, "corrected"]
    first = store.get(LESSONS, "a")
    assert first.created_at < first.updated_at
    assert store.purge() == 2
    assert store.get(LESSONS, "a").value == {"text": "the penguin lesson"}
    store.close()
    kept = b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())
    assert (b"penguin" in kept, b"walrus" in kept, b"ibex" in kept) == (True, False, False)


def test_records_forgotten_by_the_memory_are_no_longer_items(stores: Callable[..., Any], folder: Path) -> None:
    store = stores(folder, "ann")
    store.put(LESSONS, "a", {"text": "the walrus lesson"})
    store.put(LESSONS, "b", {"text": "the ibex lesson"})
    forgotten = store.handle.wait(lambda memory: memory.forget(about="walrus"))
    assert forgotten.records == 1
    assert [each.key for each in store.search(LESSONS)] == ["b"] and store.get(LESSONS, "a") is None


def test_items_expire_and_reading_renews_them(stores: Callable[..., Any], folder: Path) -> None:
    store = stores(folder, ttl={"default_ttl": 60, "refresh_on_read": True})
    store.put(("a",), "short", {"text": "soon gone"}, ttl=0.0005)
    store.put(("a",), "long", {"text": "an hour"})
    store.put(("a",), "ever", {"text": "for ever"}, ttl=None)

    def until(key: str) -> float | None:
        found = store.handle.wait(lambda memory: memory.find(where={"key": key}, over=True))
        return found[0].valid_until  # type: ignore[no-any-return]

    before = until("long")
    while store.get(("a",), "short", refresh_ttl=False) is not None:
        pass
    assert {each.key for each in store.search(("a",), refresh_ttl=False)} == {"long", "ever"}
    assert until("long") == before
    assert {each.key for each in store.search(("a",), query="gone, an hour, for ever")} == {"long", "ever"}
    assert (until("long") or 0) > (before or 0) and until("ever") is None
    assert (store.sweep_ttl(), store.sweep_ttl(), store.purge()) == (1, 0, 0)
    kept = b"".join(path.read_bytes() for path in folder.iterdir() if path.is_file())
    assert b"soon gone" not in kept and b"an hour" in kept
    store.put(("a",), "short", {"text": "again"})
    assert store.get(("a",), "short").value == {"text": "again"}


async def test_users_and_tenants_are_isolated(stores: Callable[..., Any], folder: Path) -> None:
    ann, bob = stores(folder, "ann"), stores(folder, "bob")
    await ann.aput(("a",), "k", {"text": "ann's"})
    assert await bob.asearch((), query="ann") == [] and await bob.aget(("a",), "k") is None
    async with SqliteStore(folder, tenant="acme") as acme:
        theirs = stores(acme, "ann")
        assert await theirs.asearch(()) == []
        await theirs.aput(("a",), "k", {"text": "acme's"})
        assert (await ann.aget(("a",), "k")).value == {"text": "ann's"}
        await asyncio.to_thread(theirs.handle.close)


def test_a_comparing_filter_searches_beyond_the_first_page(stores: Callable[..., Any], folder: Path) -> None:
    from langgraph.store.base import PutOp

    store = stores(folder)
    store.batch([PutOp(LESSONS, f"l{n}", {"text": f"lesson on trains {n}", "level": n}) for n in range(100)])
    found = store.search(("learners",), query="lesson on trains", filter={"level": {"$gte": 90}}, limit=20)
    assert {each.value["level"] for each in found} == set(range(90, 100))
    pages = [store.search(LESSONS, query="lesson on trains", limit=30, offset=at) for at in range(0, 120, 30)]
    assert [len(page) for page in pages] == [30, 30, 30, 10] and len(
        {each.key for page in pages for each in page}
    ) == 100
    assert store.search(LESSONS, filter={"level": {"$gt": "text"}}) == []
    with pytest.raises(ValueError, match="operator"):
        store.search(LESSONS, filter={"level": {"$in": [1]}})


def test_a_batch_with_a_value_that_is_not_json_is_refused_whole(stores: Callable[..., Any], folder: Path) -> None:
    from langgraph.store.base import PutOp

    store = stores(folder)
    with pytest.raises(InputError, match="JSON"):
        store.batch([PutOp(("a",), "fine", {"text": "fine"}), PutOp(("a",), "bad", {"at": datetime.now(UTC)})])
    assert store.search(()) == []


@pytest.mark.parametrize(
    ("given", "held"), [("Hi \ud83d there", "Hi \ufffd there"), ("\ude00", "\ufffd"), ("\ud83d\ude00 ok", "😀 ok")]
)
def test_unpaired_surrogates_in_an_item_are_replaced(
    stores: Callable[..., Any], folder: Path, given: str, held: str
) -> None:
    store = stores(folder)
    store.put(("runs", given), given, {"text": given, given: [1, given]})
    item = store.get(("runs", given), given)
    assert (item.namespace, item.key, item.value) == (("runs", held), held, {"text": held, held: [1, held]})


def test_items_are_stored_in_postgresql(stores: Callable[..., Any], tmp_path: Path) -> None:
    stores(tmp_path / "unused")
    url = fresh_url()
    store = stores(url)
    store.put(LESSONS, "a", {"text": "the walrus lesson", "level": 2})
    store.put(LESSONS, "a", {"text": "the penguin lesson", "level": 3})
    assert [each.value["level"] for each in store.search((), query="penguin", filter={"level": {"$gt": 2}})] == [3]
    store.delete(LESSONS, "a")
    assert store.search(()) == []


GRAPH = """
import operator, os, sys
from typing import Annotated
from typing_extensions import TypedDict
from langgraph.graph import START, StateGraph
from langgraph.types import interrupt
from mindstream.adapters.langgraph import MindstreamSaver

class State(TypedDict):
    said: Annotated[list[str], operator.add]

def ask(state): return {"said": ["asked"]}
def wait(state): return {"said": [interrupt("well?")]}

builder = StateGraph(State).add_sequence([ask, wait])
builder.add_edge(START, "ask")
saver = MindstreamSaver("data")
graph = builder.compile(checkpointer=saver)
thread = {"configurable": {"thread_id": "an odd/thread\\n" + "x" * 600}}
"""


def test_a_thread_continues_after_a_kill(tmp_path: Path, stores: Callable[..., Any]) -> None:
    stores(tmp_path / "unused")
    killed = GRAPH + 'graph.invoke({"said": ["hello"]}, thread)\nos.kill(os.getpid(), 9)\n'
    done = subprocess.run([sys.executable, "-c", killed], cwd=tmp_path, env=environment(), check=False)
    assert done.returncode == -9
    resumed = GRAPH + (
        "from langgraph.types import Command\n"
        'print(graph.get_state(thread).tasks[0].interrupts[0].value, graph.invoke(Command(resume="yes"), thread))\n'
        'saver.delete_thread(thread["configurable"]["thread_id"])\n'
        "print(graph.get_state(thread).values, list(saver.list(None)), saver.purge())\n"
    )
    assert run_python(resumed, tmp_path) == "well? {'said': ['hello', 'asked', 'yes']}\n{} [] None\n"
    kept = b"".join(path.read_bytes() for path in (tmp_path / "data").iterdir() if path.is_file())
    assert base64.b64encode(b"hello")[:6] not in kept and b"channel" not in kept


def test_a_long_thread_writes_each_value_once(tmp_path: Path, stores: Callable[..., Any]) -> None:
    stores(tmp_path / "unused")
    code = GRAPH + (
        "for n in range(30): graph.update_state(thread, {'said': ['x' * 1000]}, as_node='wait')\n"
        "async def count(memory):\n"
        "    async with memory.store.walk(memory.key) as (n, rows):\n"
        "        kinds = [(each.kind, each.data['place'][2] == 'said') async for each in rows]\n"
        "    return kinds.count(('document', False)), kinds.count(('evidence', True))\n"
        "print(saver.handle.wait(count), len(list(saver.list(thread))))\n"
    )
    assert run_python(code, tmp_path) == "(30, 30) 30\n"


def test_deleting_a_thread_removes_its_records(folder: Path, stores: Callable[..., Any]) -> None:
    stores(folder)
    from langgraph.checkpoint.base import empty_checkpoint

    from mindstream.adapters.langgraph import MindstreamSaver

    saver = MindstreamSaver(folder, "ann")
    for thread in ("monday", "tuesday"):
        checkpoint = empty_checkpoint() | {"channel_values": {"said": "hello"}, "channel_versions": {"said": "1"}}
        config: Any = {"configurable": {"thread_id": thread, "checkpoint_ns": ""}}
        saver.put_writes(saver.put(config, checkpoint, {}, {"said": "1"}), [("said", "more")], "task")
    saver.handle.wait(lambda memory: memory.forget(session="monday"))
    assert [each.config["configurable"]["thread_id"] for each in saver.list(None)] == ["tuesday"]
    saver.delete_thread("tuesday")

    async def count(memory: Memory) -> int:
        async with memory.store.walk(memory.key) as (records, _):
            return records

    assert saver.handle.wait(count) == 0
    saver.close()
