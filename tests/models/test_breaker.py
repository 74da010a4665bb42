"""A model that failed is not called for a while, then probed by one call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest
from asking import parts_of, talk, text_of
from fake_endpoint import Fails, FakeEndpoint

from mindstream.clock import ManualClock
from mindstream.errors import (
    BudgetSpent,
    ModelError,
    ModelRefused,
    ModelResting,
    ModelUnavailable,
    RateLimited,
    ReplyInvalid,
)
from mindstream.models.model import Part, Piece, Request
from mindstream.models.roles import Models
from mindstream.models.rules import FakeModel, Line
from mindstream.models.wrappers.recovery import Breaker

DOWN = ModelUnavailable("it is down")


def breaker(*lines: Line) -> tuple[Breaker, FakeModel, ManualClock]:
    scripted, clock = FakeModel({"talk": lines}), ManualClock()
    return Breaker(scripted, clock=clock, longest_s=300), scripted, clock


async def fails(model: Breaker, kind: type[ModelError]) -> ModelError:
    with pytest.raises(kind) as caught:
        await parts_of(model)
    return caught.value


async def test_after_an_outage_no_call_is_made_until_the_pause_ends() -> None:
    model, scripted, clock = breaker(DOWN, "back")
    await fails(model, ModelUnavailable)
    for _ in range(3):
        resting = await fails(model, ModelResting)
        assert "it is down" in str(resting) and "not called for 5 s" in str(resting)
        assert getattr(resting, "rest_s", 0) == 5
    assert len(scripted.asked) == 1
    clock.advance(5)
    assert text_of(await parts_of(model)) == "back"
    assert text_of(await parts_of(Breaker(FakeModel({"talk": ["as before"]})))) == "as before"


async def test_the_log_names_the_beginning_and_the_end_of_an_outage_once(caplog: pytest.LogCaptureFixture) -> None:
    model, _, clock = breaker(DOWN, DOWN, "back", "and again")
    for _ in range(2):
        await fails(model, ModelUnavailable)
        await fails(model, ModelResting)
        clock.advance(300)
    for _ in range(2):
        await parts_of(model)
    told = [each.getMessage() for each in caplog.records if each.name == "mindstream.models"]
    assert told == [
        f"the model {model.name} is not available: ModelUnavailable", f"the model {model.name} answers again"
    ]  # fmt: skip


async def test_the_pause_grows_with_each_failed_try() -> None:
    model, _, clock = breaker(*[DOWN] * 9, "back", DOWN, "again")
    rests = []
    for _ in range(9):
        await fails(model, ModelUnavailable)
        rests.append(getattr(await fails(model, ModelResting), "rest_s", 0))
        clock.advance(rests[-1])
    assert rests == [5, 10, 20, 40, 80, 160, 300, 300, 300]
    await parts_of(model)
    await fails(model, ModelUnavailable)
    assert getattr(await fails(model, ModelResting), "rest_s", 0) == 5, "a complete reply resets the count"


@pytest.mark.parametrize("error", [ModelRefused("no"), ReplyInvalid("what?"), BudgetSpent("spent")])
async def test_a_refusal_does_not_open_the_breaker(error: ModelError) -> None:
    model, _, _ = breaker(error, "here")
    await fails(model, type(error))
    assert text_of(await parts_of(model)) == "here"


async def test_retry_after_sets_the_pause_up_to_a_maximum() -> None:
    for wish, rest in ((60.0, 60.0), (1e12, 300.0), (None, 5.0)):
        model, _, _ = breaker(RateLimited("busy", wish))
        await fails(model, RateLimited)
        assert getattr(await fails(model, ModelResting), "rest_s", 0) == rest


class Gated:
    """A model that answers only when released."""

    name = "gated"

    def __init__(self) -> None:
        self.asked = 0
        self.go = asyncio.Event()
        self.error: ModelError | None = DOWN

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        self.asked += 1
        await self.go.wait()
        if self.error:
            raise self.error
        yield Piece("here")
        yield Piece("!")


async def test_one_call_probes_while_the_others_are_refused() -> None:
    inner, clock = Gated(), ManualClock()
    model = Breaker(inner, clock=clock)
    inner.go.set()
    await fails(model, ModelUnavailable)
    clock.advance(5)
    inner.go.clear()
    inner.error = None
    trying = asyncio.create_task(parts_of(model))
    await asyncio.sleep(0)
    assert "another call tests" in str(await fails(model, ModelResting))
    inner.go.set()
    assert text_of(await trying) == "here!"
    assert inner.asked == 2


async def test_a_cancelled_probe_allows_the_next_one() -> None:
    inner, clock = Gated(), ManualClock()
    model = Breaker(inner, clock=clock)
    inner.go.set()
    await fails(model, ModelUnavailable)
    clock.advance(5)
    inner.go.clear()
    trying = asyncio.create_task(parts_of(model))
    await asyncio.sleep(0)
    trying.cancel()
    await asyncio.gather(trying, return_exceptions=True)
    inner.go.set()
    inner.error = None
    async with aclosing(model.reply(talk())) as parts:
        assert await anext(parts) == Piece("here")
    assert text_of(await parts_of(model)) == "here!"


async def test_all_roles_of_a_model_share_its_breaker() -> None:
    with FakeEndpoint() as door:
        door.otherwise = Fails(500, "oops")
        name, clock = f"{door.url}#any", ManualClock()
        async with Models.named({"talker": name, "reasoner": name}, retry=1, clock=clock) as models:
            with pytest.raises(ModelUnavailable, match="oops"):
                await parts_of(models.of("talker"))
            for role in ("reasoner", "talker", "reasoner"):
                with pytest.raises(ModelResting, match="oops"):
                    await parts_of(models.of(role))
        assert len(door.asked) == 1
