"""Servers without thinking leave actions after silence to workers; only one worker acts."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from pathlib import Path

import postgres_server
import pytest
from keys import key_of

from mindstream.location import Location
from mindstream.log.events import Thought
from mindstream.memory.opening import open_store
from mindstream.minds.responder import FunctionResponder, Host, ResponderFactory
from mindstream.reasoners.reasoner import RunContext, RunResult, Trigger
from mindstream.service.operations.operation import LOCAL_PRINCIPAL
from mindstream.service.operations.orphaned_work import OrphanedWork
from mindstream.service.operations.runtime import Runtime
from mindstream.settings import Settings


class Idle:
    """A reasoner that thinks after a period of silence."""

    slot, timeout_s = "night", 60.0
    trigger = Trigger(every=0, idle_s=0.3)
    begun = 0

    async def think(self, context: RunContext) -> RunResult:
        assert not context.utterances
        self.begun += 1
        return RunResult("it was quiet")


class Hosts:
    """Builds responders, each with a reasoner that acts on silence."""

    def __init__(self) -> None:
        self.idle: list[Idle] = []

    def __call__(self) -> ResponderFactory:
        def make(host: Host) -> FunctionResponder:
            made = FunctionResponder(host, _echo, "host")
            self.idle.append(Idle())
            made.reasoners = (self.idle[-1],)
            return made

        return make


async def _echo(text: str, _: Host) -> AsyncIterator[str]:
    yield f"You said: {text}"


@pytest.mark.parametrize("kind", ["sqlite", "postgres"])
async def test_only_one_of_two_workers_acts_on_silence(folder: Path, kind: str) -> None:
    data = Location.of(postgres_server.fresh_url() if kind == "postgres" else folder)
    settings, talks, thinks = Settings(data=data), Hosts(), Hosts()
    async with contextlib.AsyncExitStack() as stack:
        server = await stack.enter_async_context(Runtime(settings, responders={"host": talks}, part="talks"))
        for _ in range(2):
            worker = await stack.enter_async_context(Runtime.open_reader(settings, part="thinks"))
            worker.responders["host"] = thinks
            orphaned_work = OrphanedWork(worker, answers=False, at_once=4, budgets=_no_budget)
            await stack.enter_async_context(orphaned_work.running())
        principal = LOCAL_PRINCIPAL.of("ann")
        async with server.mind(principal, "s", "host") as opened:
            assert await opened.mind.send("Good night.") == "You said: Good night."
            async with open_store(data) as store:
                for _ in range(600):
                    if (row := await store.last(key_of("ann"), Thought.kind)) is not None:
                        break
                    await asyncio.sleep(0.05)
                assert row is not None
                assert isinstance(row.event, Thought) and row.event.slot == "night"
                await asyncio.sleep(2)
                assert await store.count(key_of("ann"), Thought.kind) == 1
    assert sum(each.begun for each in thinks.idle) == 1
    assert all(each.begun == 0 for each in talks.idle)


async def _no_budget(_: str) -> None:
    return None
