"""Concurrent writers during a life: late answers, tasks at the same moment, many rows, an erasure."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from keys import key_of
from lives import FINISH, call, living, rows, script

from mindstream.clock import SystemClock
from mindstream.life import commands, state
from mindstream.life.events import SLOT, Folded, TaskChanged
from mindstream.life.ledger import Ledger
from mindstream.life.life import Life
from mindstream.life.state import read_state
from mindstream.memory.memory import Memory
from mindstream.memory.store.store import Entry
from mindstream.models.model import Call, Request
from mindstream.models.roles import Models
from mindstream.models.rules import Line


async def test_concurrent_tasks_get_distinct_numbers(tmp_path: Path) -> None:
    async with living(tmp_path, script()) as life, Memory.open(tmp_path, "keeper") as other:
        texts = [f"task {n}" for n in range(6)]
        added = await asyncio.gather(
            *(commands.add_task((life.memory, other)[n % 2], text) for n, text in enumerate(texts))
        )
        there = (await commands.look(life.memory)).ledger.tasks
    assert len({task.number for task in added}) == len(texts)
    assert [there[task.number].text for task in added] == texts


def test_a_task_result_follows_a_renumbered_task() -> None:
    """Two processes gave one number; the second task's number in the model's calls is corrected."""
    ledger = Ledger()
    for text, standing in (("mine", "open"), ("theirs", "open"), ("theirs", "done")):
        ledger.apply(TaskChanged(task=1, text=text, standing=standing))
    assert [(task.number, task.text, task.standing) for task in ledger.ordered()] == [
        (1, "mine", "open"), (2, "theirs", "done"),
    ]  # fmt: skip


async def test_messages_before_a_fold_are_read(tmp_path: Path) -> None:
    async with living(tmp_path, script()) as life:
        before = life.state.model_dump_json()
        for n in range(10):
            await commands.notice(life.memory, f"the bell rang {n} times")
        await life.memory.commit(Entry(Folded(upto=0, since=0, text="", model="m", state=before), SLOT))
        assert [news.line[-7:] for news in (await read_state(life.memory)).unread] == [f"{n} times" for n in range(10)]


async def test_text_erased_by_another_process_is_not_sent_to_a_model(tmp_path: Path) -> None:
    seen: list[Request] = []

    def looks(request: Request) -> list[Call]:
        seen.append(request)
        return FINISH

    work = [call("M1", task="Read.", context="")]
    m1: list[Line] = [[call("U", memory="the sea is grey")], "read"]
    clock = SystemClock()
    async with living(tmp_path, script([work, "said", looks, "ok"], m1), clock=clock) as life:
        await commands.say(life.memory, "My secret word is hollyhock.")
        await life.run(turns=1)
        assert "hollyhock" in life.state.model_dump_json()
        async with Memory.open(tmp_path, "keeper", clock=clock) as other:
            (heard,) = [each for each in await other.latest("chat", 9) if "hollyhock" in each.text]
            await other.store.erase(key_of("keeper"), [heard.id])
        await life.run(turns=1)
        assert seen and "hollyhock" not in str(seen[0]), "the state is read again"
        assert "hollyhock" not in life.state.model_dump_json()


async def test_text_erased_during_a_turn_is_removed_from_its_later_steps(tmp_path: Path) -> None:
    """The turn is replayed from the log: no step is repeated, and a mark replaces the words."""
    told: list[str] = []

    async def erases(_: str) -> str:
        async with Memory.open(tmp_path, "keeper", clock=SystemClock()) as other:
            (note,) = [each for each in await other.latest("note", 9) if "hollyhock" in each.text]
            await other.store.erase(key_of("keeper"), [note.id])
        return "yes"

    def looks(request: Request) -> list[Call]:
        told.append(str(request.messages))
        return FINISH

    turn: list[Line] = [
        [call("U", memory="the secret word is hollyhock")],
        [call("I", tip="Forget it?", timeout=50)],
        looks,
        "ok",
    ]
    async with living(tmp_path, script(turn), clock=SystemClock(), user=erases) as life:
        await life.run()
        assert len(told) == 1 and "Forget it?" in told[0] and "hollyhock" not in told[0]
        assert [each.tool for each in await rows(life.memory, "observed")] == ["U", "I", "finish_task"]


@pytest.mark.parametrize("name", ["life", "you", "planner", "mindstream", "town", "talker"])
async def test_users_with_any_name_can_control_their_life(name: str, tmp_path: Path) -> None:
    async with Memory.open(tmp_path, name) as stream:
        await commands.give_goal(stream, "Write a page on tea")
        async with Life.open(stream, Models(script())) as life:
            await commands.say(stream, "Leave out the milk")
            await commands.add_task(stream, "find a picture")
            await life._inbox.read()
            assert any("milk" in news.line for news in life.state.unread)
            await commands.order(stream, "stop")
            assert await life.run(turns=1) == "halted"
        told = await stream.store.events(stream.key, kinds=state.FROM_OUTSIDE)
        assert told and not any(row.system for row in told)
