"""LangGraph's store and saver are a memory; a program for the framework's own works with ours."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest
from running import Run

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


async def test_the_saver_conforms(tmp_path: Path, needs: Callable[..., None]) -> None:
    needs("langgraph.checkpoint.conformance")
    from langgraph.checkpoint.conformance import checkpointer_test, validate

    from mindstream.adapters.langgraph import MindstreamSaver

    counter = itertools.count()

    @checkpointer_test(name="MindstreamSaver")
    async def checkpointer() -> AsyncIterator[MindstreamSaver]:
        saver = MindstreamSaver(tmp_path / str(next(counter)))
        yield saver
        await asyncio.to_thread(saver.close)

    report = await validate(checkpointer)
    failures = {name: result.failures for name, result in report.results.items() if result.failures}
    assert report.passed_all_base() and not failures, failures
    assert {name for name, result in report.results.items() if not result.detected} == {"prune"}
