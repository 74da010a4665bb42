"""Limits of a life: repetition, fan-out, budgets, failing models, and a user who pauses and stops it."""

from __future__ import annotations

from pathlib import Path

import pytest
from lives import FINISH, call, living, results, rows, script

from mindstream.clock import DAY_S, ManualClock
from mindstream.errors import ModelUnavailable
from mindstream.life import commands
from mindstream.life.life import TRIES, LifeConfig
from mindstream.life.schedule import ActiveHours, Rhythm
from mindstream.life.state import LifeBudget
from mindstream.models.model import Call, Request, Usage
from mindstream.models.wrappers.meter import Metered


async def test_a_repeated_call_is_reported_and_then_refused(tmp_path: Path) -> None:
    look = [call("R", query="the key")]
    async with living(tmp_path, script([look, look, look, look, "well", look, "hm"])) as life:
        await life.run(turns=2)
        given = [text for _, text in await results(life.memory)]
    assert "3 times running" not in given[1] and "Not made" not in given[2]
    assert "Not made" in given[3] and "Not made" in given[4]
    assert "You have made this same call 3 times running" in str(life.state.turns)


async def test_repeated_calls_of_m1_are_refused(tmp_path: Path) -> None:
    think = [call("R", query="the same")]
    async with living(tmp_path, script([[call("M1", task="Think.")], "ok"], [think] * 5 + ["well"])) as life:
        await life.run(turns=1)
        assert ["Not made" in text for name, text in await results(life.memory) if name == "R"] == [False] * 3 + [
            True
        ] * 2


async def test_calls_per_reply_are_limited(tmp_path: Path) -> None:
    many = [call("R", query=f"thing {n}") for n in range(12)]
    async with living(tmp_path, script([many, "ok"])) as life:
        await life.run(turns=1)
        assert sum("at most 8 calls" in text for _, text in await results(life.memory)) == 4


@pytest.mark.parametrize(
    "wished",
    [
        Call("nonsense", "{}"), Call("U", "{"), Call("M1", "{}"), Call("I", '{"tip": "x", "timeout": -1}'),
        Call("finish_task", '{"task": 77}'), Call("wait_task", '{"task": 1, "until": "the cows come home"}'),
    ],
)  # fmt: skip
async def test_every_call_error_is_returned_to_the_model(tmp_path: Path, wished: Call) -> None:
    async with living(tmp_path, script([[wished], "ok"])) as life:
        await life.run(turns=1)
        (found,) = await rows(life.memory, "observed")
        assert found.failed and found.text and not (await rows(life.memory, "turn_ended"))[0].error


@pytest.mark.parametrize("limit", ["calls", "tokens", "usd"])
async def test_a_budget_is_exceeded_by_one_call_at_most_across_lives(tmp_path: Path, limit: str) -> None:
    clock = ManualClock()
    budget = {"calls": LifeBudget(calls=5), "tokens": LifeBudget(tokens=4_000), "usd": LifeBudget(usd=0.0)}[limit]
    asked = 0
    for _ in range(4):  # each acts as a process of its own, as far as the log is concerned
        model = script(["I lived."] * 20)
        async with living(tmp_path, model, clock=clock, config=LifeConfig(budget=budget)) as life:
            assert await life.run(turns=4, wait=False) in ("turns", "halted")
            before = life.state.spent.tokens
        asked += len(model.asked)
    async with living(tmp_path, script(["I live again."]), clock=clock, config=LifeConfig(budget=LifeBudget())) as life:
        spent = life.state.spent
        assert await life.run(turns=1, wait=False) == "turns", "with a larger budget it continues"
    dearest = 1_500
    assert {"calls": asked == 5, "tokens": 4_000 <= before < 4_000 + dearest, "usd": asked == 0}[limit], (asked, spent)


async def test_the_daily_budget_is_renewed_on_the_next_day(tmp_path: Path) -> None:
    clock = ManualClock()
    async with living(
        tmp_path, script(["one", "two"]), clock=clock, config=LifeConfig(budget=LifeBudget(usd_per_day=1.0))
    ) as life:
        life.state.spent.usd_today, life.state.spent.day = 2.0, "2023-11-14"
        assert await life.run(turns=1, wait=False) == "turns"
        assert life.state.halted.startswith("budget")
        clock.advance(DAY_S)
        assert await life.run(turns=1, wait=False) == "turns" and not life.state.halted


async def test_a_failing_model_halts_the_life_after_several_pauses(tmp_path: Path) -> None:
    clock = ManualClock()
    model = script([ModelUnavailable("down")] * 10)
    async with living(tmp_path, model, clock=clock) as life:
        before = clock.now()
        assert await life.run(turns=10, wait=False) == "halted"
        assert len(model.asked) == TRIES and "down" in life.state.halted and clock.now() - before >= 2 + 4 + 8 + 16


async def test_a_failure_of_m1_is_returned_to_m2(tmp_path: Path) -> None:
    async with living(tmp_path, script([[call("M1", task="Try.")], FINISH, "ok"], [ModelUnavailable("down")])) as life:
        assert await life.run(turns=2) == "done"
        assert any("M1 could not answer" in text for _, text in await results(life.memory))


async def test_a_paused_life_resumes_at_the_same_step(tmp_path: Path) -> None:
    async def user(_: str) -> str:
        await commands.order(life.memory, "pause", "lunch")
        return "yes"

    model = script([[call("I", tip="Ready?", timeout=5)], FINISH, "ok"])
    async with living(tmp_path, model, user=user) as life:
        assert await life.run(turns=3, wait=False) == "halted" and len(model.asked) == 1
        assert life.state.halted == "paused: lunch"
        await commands.order(life.memory, "resume")
        assert await life.run(turns=3) == "done"
        assert [event.turn for event in await rows(life.memory, "turn_began")] == [1]


async def test_a_stopped_life_stays_stopped_until_it_is_resumed(tmp_path: Path) -> None:
    clock = ManualClock()
    async with living(tmp_path, script(["one", "two"]), clock=clock) as life:
        await commands.order(life.memory, "stop")
        assert await life.run(turns=3) == "halted"
    clock.advance(60)
    async with living(tmp_path, script(), clock=clock, goal="") as life:
        assert await life.run(turns=3) == "halted"


async def test_the_user_can_change_the_ledger_at_any_time(tmp_path: Path) -> None:
    seen: list[str] = []

    def looks(request: Request) -> str:
        seen.append(request.messages[-1].text)
        return "ok"

    async with living(tmp_path, script([looks, looks])) as life:
        await commands.add_task(life.memory, "Sweep the stairs.")
        await commands.move_task(life.memory, 2, before=1)
        await life.run(turns=1)
        await commands.stop_task(life.memory, 1)
        await life.run(turns=1)
    assert seen[0].index("Sweep") < seen[0].index("Keep the lighthouse") and "Keep" not in seen[1]


async def test_repeated_turns_without_calls_are_reported(tmp_path: Path) -> None:
    seen: list[str] = []

    def looks(request: Request) -> str:
        seen.append(request.messages[-1].text)
        return "I am thinking."

    async with living(tmp_path, script([looks] * 5)) as life:
        await life.run(turns=5)
    assert ["Nothing was called" in text for text in seen] == [False] * 3 + [True] * 2


async def test_repeated_requests_of_a_step_are_billed(tmp_path: Path) -> None:
    def asked_twice(request: Request) -> str:
        for _ in range(2):
            assert request.on_call is not None
            request.on_call(Metered("m", "M2", "live", 0.0, None, 0.1, Usage(100, 10, 0.5)))
        return "after all"

    async with living(tmp_path, script([asked_twice])) as life:
        await life.run(turns=1)
        spent = life.state.spent
        assert (spent.calls, spent.tokens, spent.usd) == (2, 220, 1.0)


async def test_notices_wait_for_active_hours_and_user_messages_do_not(tmp_path: Path) -> None:
    clock = ManualClock(1_700_000_000.0)  # 22:13 UTC
    config = LifeConfig(rhythm=Rhythm(ActiveHours("08:00-22:00")))
    async with living(tmp_path, script(["heard", FINISH, "seen"]), clock=clock, config=config) as life:
        await commands.notice(life.memory, "a file came")
        assert await life.run(turns=1, wait=False) == "waiting"
        await commands.say(life.memory, "Good evening.")
        assert await life.run(turns=1, wait=False) == "turns" and life.state.turns[-1].because == "user"


async def test_messages_during_an_outage_are_answered_afterwards(tmp_path: Path) -> None:
    told: list[str] = []

    def answers(request: Request) -> str:
        told.append(request.messages[-1].text)
        return "Good evening."

    async with living(tmp_path, script([FINISH, "ok", ModelUnavailable("down"), answers])) as life:
        await life.run(turns=1)
        await commands.say(life.memory, "Who is there?")
        await life.run(turns=1)
        await life.run(turns=1)
        assert await life.run() == "done"
        ended = await rows(life.memory, "turn_ended")
    assert [event.words for event in ended] == ["ok", "", "Good evening."] and "Woken by: user" in told[0]


async def test_turns_stay_unfolded_while_the_model_fails(tmp_path: Path) -> None:
    config = LifeConfig(prompt_tokens=2_500)
    told = ["the sea was grey " * 60] * 20
    model = script(told, fold_turns=[ModelUnavailable("down"), "The sea was grey."])
    async with living(tmp_path, model, config=config) as life:
        await life.run(turns=6)
        folded = await rows(life.memory, "folded")
        asked = [
            event.id for event in await rows(life.memory, "replied") if event.id.startswith("fold") and event.error
        ]
    assert len(asked) == 1 and [event.text for event in folded[:1]] == ["The sea was grey."]


async def test_an_impossible_task_is_stopped_and_not_marked_done(tmp_path: Path) -> None:
    wished = [call("finish_task", task=1, result="There is no tool that calls a taxi.", done=False)]
    async with living(tmp_path, script([wished, "It cannot be done."])) as life:
        assert await life.run() == "done"
        (task,) = life.state.ledger.ordered()
    assert (task.standing, task.result) == ("stopped", "There is no tool that calls a taxi.")
