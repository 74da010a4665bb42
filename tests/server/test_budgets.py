"""Token budgets: calls reserve their maximum in advance, in every process, and settle at the end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import FakeEndpoint, Says
from local_issuer import AUDIENCE, LocalIssuer
from served import Served

from mindstream.clock import ManualClock, SystemClock
from mindstream.errors import BudgetSpent, ModelError
from mindstream.memory.opening import open_store
from mindstream.models.model import Model, Part, Piece, Request, Usage
from mindstream.models.prompt import Prompt
from mindstream.models.wrappers.meter import Budget, Meter
from mindstream.server.admission import Budgets
from mindstream.server.issuer import Issuer
from mindstream.server.server_state import ServerState
from mindstream.server.tokens import Token, Tokens
from mindstream.service.operations.open_minds import Charge

LIMIT = 3_000
"""Tokens a day."""
TOKEN = Token(id="t", hash="h", tenant="acme", scopes=["write"], made=0.0, ends=9e9, tokens=LIMIT)


class Talk(Prompt[str]):
    @classmethod
    def words(cls) -> str:
        return "# system\nBe kind.\n# user\nhi"


def talk() -> Request:
    return Request(Talk(), "talker")


async def parts_of(model: Model) -> list[Part]:
    return [part async for part in model.reply(talk())]


class Spends:
    """A model that uses 1,000 tokens a call, more than estimated; `fails`: it ends before it reports its usage."""

    def __init__(self, name: str = "spends", *, fails: bool = False, usd: float | None = None) -> None:
        self.name, self.fails, self.usd, self.calls = name, fails, usd, 0

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        self.calls += 1
        yield Piece("well " * 50)
        await asyncio.sleep(0.01)
        if self.fails:
            raise ModelError("the endpoint went away")
        yield Usage(500, 500, self.usd)


def metered(model: Spends) -> Meter:
    return Meter(model, lambda _: None)


async def side_by_side(*models: Any, times: int) -> int:
    """Make many concurrent calls; return how many were refused."""
    asked = [parts_of(model) for model in models for _ in range(times)]
    came = await asyncio.gather(*asked, return_exceptions=True)
    return sum(isinstance(each, BudgetSpent) for each in came)


@pytest.mark.parametrize(("tokens", "calls"), [(LIMIT, 3), (10_500, 11), (999, 1)])
async def test_concurrent_calls_exceed_the_budget_by_one_call_at_most(tokens: int, calls: int) -> None:
    model, budget = Spends(), Budget(tokens=tokens)
    assert await side_by_side(Charge(budget).to(metered(model)), times=40) == 40 - model.calls
    assert 1 <= model.calls <= calls and budget.spent_tokens == 1_000 * model.calls and not budget.reserved_tokens


@pytest.mark.parametrize("servers", [2, 5])
async def test_servers_with_the_same_data_share_reservations(folder: Path, servers: int) -> None:
    clock, model = ManualClock(), Spends()
    async with open_store(folder) as store:
        all_ = [Budgets(ServerState(lambda: store, clock), clock, Tokens(lambda: store, clock)) for _ in range(servers)]
        await side_by_side(*[Charge(await each.of(TOKEN)).to(metered(model)) for each in all_], times=10)
        for each in all_:
            await each.keep()
        last = await Budgets(ServerState(lambda: store, clock), clock, Tokens(lambda: store, clock)).of(TOKEN)
    assert last is not None and last.spent_tokens == 1_000 * model.calls, "the reservation is corrected"
    assert model.calls <= LIMIT // 1_000 + servers


@pytest.mark.parametrize("end", ["fails", "closed", "cancelled"])
async def test_a_failed_call_releases_its_reservation(end: str) -> None:
    budget = Budget(tokens=LIMIT)
    model = Charge(budget).to(metered(Spends(fails=end == "fails")))
    if end == "fails":
        with pytest.raises(ModelError):
            await parts_of(model)
    elif end == "closed":
        async with aclosing(model.reply(talk())) as parts:
            await anext(parts)
            assert budget.reserved_tokens
    else:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.003):
                await parts_of(model)
    assert not budget.reserved_tokens
    assert 0 < budget.spent_tokens < 1_000, "text before the failure is charged by an estimate"


async def test_a_cost_limit_refuses_models_without_a_known_price() -> None:
    for name in ("http://127.0.0.1:9/v1#any", "http://127.0.0.1:11/v1#own", "https://llm.example.org/v1#x"):
        model = Spends(name)
        with pytest.raises(BudgetSpent, match=r"the price of .* is not known: .*--max-tokens"):
            await parts_of(Charge(Budget(cost_usd=1)).to(metered(model)))
        assert not model.calls
    own = Spends("mine")  # the price is known only after the first answer
    assert await side_by_side(Charge(Budget(cost_usd=1)).to(metered(own)), times=9) == 8
    priced, budget = Spends(usd=0.1), Budget(cost_usd=1)
    await side_by_side(Charge(budget).to(metered(priced)), times=40)
    assert 10 <= priced.calls <= 11 and budget.spent_usd <= 1.11


def test_every_route_to_a_model_respects_the_budget(
    folder: Path, door: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "x")
    door.otherwise = Says("Hello.", usage=(500, 500))

    def ask(number: int) -> int:
        user, streams = f"/api/v1/users/u{number}", {"Accept": "text/event-stream"}
        chat = {"model": "companion", "user": f"c{number}", "messages": [{"role": "user", "content": "Hello!"}]}
        called = {"name": "say", "arguments": {"text": "Hello!"}}
        mcp = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": called}
        ways: list[tuple[str, Any, dict[str, str]]] = [
            (f"{user}/send", {"text": "Hello!"}, streams), ("/v1/chat/completions", chat, {}),
            (f"{user}/plans", {"task": "who wrote it?", "how": "direct"}, {}), (f"/mcp/m{number}", mcp, streams),
        ]  # fmt: skip
        path, body, more = ways[number % len(ways)]
        return client.post(path, json=body, headers=poor | more).status_code

    with Served(folder, model=f"{door.url}#any") as served, served.client() as client:
        poor = served.token("acme", tokens=5_000)
        with ThreadPoolExecutor(12) as threads:
            list(threads.map(ask, range(12)))
        limits = client.get("/api/v1/cost", headers=poor).json()["limits"]
    assert 0 < len(door.asked) <= 6 and limits["spent_tokens"] <= 6_000, limits


@pytest.mark.parametrize(("tokens", "usd"), [(LIMIT, 2.0), (LIMIT, None), (None, 0.5)])
async def test_each_holder_of_issuer_tokens_has_their_own_budget(
    folder: Path, tokens: int | None, usd: float | None
) -> None:
    with LocalIssuer() as issuing:
        known = Issuer(issuing.url, [AUDIENCE], SystemClock(), user_claim="sub", tokens=tokens, usd=usd)
        with Served(folder, model="rules", require_token=True, issuer=known) as served, served.client() as client:
            for sub in ("ann", "bob"):
                told = client.get("/api/v1/cost", headers=issuing.token(sub=sub)).json()["limits"]
                assert (told["tokens"], told["usd"], told["spent_tokens"]) == (tokens, usd, 0)
        found = await known.find(issuing.token(sub="ann")["Authorization"].split()[1])
    assert found is not None
    async with open_store(folder) as store:
        budgets = Budgets(
            ServerState(lambda: store, SystemClock()), SystemClock(), Tokens(lambda: store, SystemClock()), known.limits
        )
        budget = await budgets.of_id(found.id)
    assert budget is not None and (budget.tokens, budget.cost_usd) == (tokens, usd), (
        "thoughts resumed by another process are charged, too"
    )
