"""Several servers with one database share its limits, and kills lose and duplicate nothing."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import subprocess
import sys
import threading
from pathlib import Path

import httpx
import postgres_server
import pytest
from fake_endpoint import Asked, Behaviour, FakeEndpoint, Says, Stalls
from scale_processes import run
from served import ServerProcess

from mindstream import ManualClock
from mindstream.clock import DAY_S
from mindstream.memory.opening import open_store
from mindstream.models.model import Usage
from mindstream.server import admission
from mindstream.server.admission import PORTIONS, Budgets, Limits
from mindstream.server.problems import Refusal
from mindstream.server.server_state import ServerState
from mindstream.server.tokens import Token, Tokens
from mindstream.service.operations.operation import SERVER

USER = "/api/v1/users/ann"
TOKEN = Token(id="t", hash="h", tenant="acme", scopes=["write"], made=0.0, ends=9e9, a_minute=1_200, tokens=1_000)
FEW = Token(id="few", hash="h", tenant="acme", scopes=["write"], made=0.0, ends=9e9, a_minute=5)


async def count_allowed(limits: list[Limits], token: Token, asked: int) -> int:
    allowed = 0
    for number in range(asked):
        try:
            async with limits[number % len(limits)].one(token.id, token):
                allowed += 1
        except Refusal as refusal:
            assert int(refusal.headers["Retry-After"]) > 0
    return allowed


async def test_servers_share_the_rate_limit(folder: Path) -> None:
    clock = ManualClock()
    async with open_store(folder) as store:
        servers = [Limits(clock, ServerState(lambda: store, clock)) for _ in range(3)]
        assert await count_allowed(servers, FEW, 30) == 5
        clock.advance(24)
        assert await count_allowed(servers, FEW, 30) == 2
        assert await count_allowed(servers, TOKEN, 2_000) == 1_200
        portion = TOKEN.a_minute // PORTIONS if TOKEN.a_minute else 0
        clock.advance(60)
        assert await count_allowed(servers, TOKEN, 3_000) <= 1_200 + 3 * portion


async def test_servers_share_the_budget(folder: Path) -> None:
    clock = ManualClock()
    async with open_store(folder) as store:
        tokens = Tokens(lambda: store, clock)
        servers = [Budgets(ServerState(lambda: store, clock), clock, tokens) for _ in range(3)]
        spent = 0
        for number in range(30):
            budget = await servers[number % 3].of(TOKEN)
            assert budget is not None and budget.tokens is not None
            if budget.spent_tokens >= budget.tokens:
                break
            budget.spend(Usage(60, 40))
            spent += 100
            clock.advance(1)
        assert 1_000 <= spent <= 1_300  # each server may exceed once by its unreported spending
        for each in servers:
            await each.keep()
        last = Budgets(ServerState(lambda: store, clock), clock, tokens)
        found = await last.of(TOKEN)
        assert found is not None and found.spent_tokens == spent


async def test_spending_reaches_other_servers_without_further_requests(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(admission, "KEPT_S", 0.01)
    clock = ManualClock()
    async with open_store(folder) as store:
        tokens = Tokens(lambda: store, clock)
        one, other = (Budgets(ServerState(lambda: store, clock), clock, tokens) for _ in range(2))
        async with one.running():
            budget = await one.of(TOKEN)
            assert budget is not None
            budget.spend(Usage(60, 40))
            while (found := await other.of(TOKEN)) is not None and not found.spent_tokens:
                clock.advance(1)
                await asyncio.sleep(0.01)
            assert found is not None and found.spent_tokens == 100


async def test_old_counters_of_servers_are_removed(folder: Path) -> None:
    clock = ManualClock()
    async with open_store(folder) as store:
        state = ServerState(lambda: store, clock)
        for number in range(20):
            await state.draw(f"iss-{number}", 60, 1)
            await state.spend(f"iss-{number}", number, 1, 100, 0.0)
        await state.deliver("receiver", 7)
        clock.advance(4 * DAY_S)
        assert await state.draw("iss-1", 60, 1) == 1
        assert sorted(each.name for each in await store.kept(SERVER)) == ["delivered:receiver", "rate:iss-1"]


async def test_kills_lose_and_duplicate_nothing() -> None:
    """A worker, PostgreSQL and a server are killed."""
    postgres_server.admin_url()  # otherwise the test checks nothing
    row = await run(argparse.Namespace(minds=8, per_second=5, seconds=0, kills=3, reasoner_s=0.2))
    assert row["acknowledged"] >= 25
    assert (row["lost"], row["doubled"]) == (0, 0), row


def test_any_server_can_stop_the_thought_of_a_worker(door: FakeEndpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    thinks = threading.Event()

    def answer(asked: Asked) -> Behaviour:
        if "You think for a coach" not in asked.body["messages"][0]["content"]:
            return Says("I see.")
        thinks.set()
        return Stalls()

    door.otherwise = answer
    data, model = postgres_server.fresh_url(), ("--model", f"{door.url}#any")
    with (
        ServerProcess(data, "--no-thinking", *model) as one,
        ServerProcess(data, "--no-thinking", *model) as other,
        subprocess.Popen([sys.executable, "-m", "mindstream", "work", "--data", data, *model]) as worker,
        contextlib.ExitStack() as stack,
    ):
        stack.callback(worker.kill)
        said = {"text": "I have a cat.", "session": "s"}
        assert httpx.post(f"{one.url}{USER}/send", json=said, timeout=100).status_code == 202
        assert thinks.wait(100)
        told = httpx.post(f"{other.url}{USER}/cancel", json={"session": "s"}, timeout=100)
        assert told.json() == {"stopped": 1}
        assert door.hung_up.wait(100)  # the model call has ended
        rows = httpx.get(f"{one.url}{USER}/log", params={"kinds": ["thought"]}, timeout=100).json()["rows"]
        assert [row["text"] for row in rows] == ["cancelled"]
