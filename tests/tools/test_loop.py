from __future__ import annotations

import asyncio

import pytest
from pydantic import BaseModel

from mindstream.errors import ReplyInvalid
from mindstream.models.model import Call, Message
from mindstream.models.prompt import Prompt
from mindstream.models.rules import FakeModel
from mindstream.tools.call import Observation
from mindstream.tools.loop import run_tool_loop
from mindstream.tools.tool import tool


class Answer(BaseModel):
    value: int


class Sum(Prompt[Answer]):
    """A question for these tests."""

    task: str

    @classmethod
    def words(cls) -> str:
        return "# system\nSolve.\n# user\n{{ task | data('task') }}"


class Watching:
    def __init__(self) -> None:
        self.seen: list[str] = []
        self.news: list[str] = []

    async def recorded_result(self, call: Call) -> str | None:
        return None

    async def log_call(self, call: Call) -> None:
        self.seen.append(f"call {call.tool} {call.arguments}")

    async def take_newer(self) -> str:
        return self.news.pop(0) if self.news else ""

    async def log_observation(self, call: Call, found: Observation) -> None:
        self.seen.append(f"{'failed' if found.failed else 'got'} {found.text}")


def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


async def hang() -> str:
    """Never come back."""
    await asyncio.sleep(60)
    return ""


def burst() -> str:
    """Fail."""
    raise RuntimeError("pipe broke")


TOOLS = [tool(add), tool(hang), tool(burst)]


async def run(*lines: object) -> tuple[Answer, Watching, FakeModel]:
    model, watching = FakeModel({"sum": list(lines)}), Watching()  # type: ignore[arg-type]
    return await run_tool_loop(model, Sum(task="1 + 2"), TOOLS, watching, tool_timeout_s=0.5), watching, model


def results(model: FakeModel) -> list[Message]:
    return [turn for turn in model.asked[-1].turns if turn.role == "tool"]


async def test_a_tool_result_is_sent_back_to_the_model() -> None:
    answer, watching, model = await run([Call("add", '{"a": 1, "b": 2}', "c1")], Answer(value=3))
    assert answer.value == 3
    assert watching.seen == ['call add {"a": 1, "b": 2}', "got 3"]
    assert results(model)[0].call_id == "c1"


@pytest.mark.parametrize(
    ("call", "told"),
    [
        (Call("subtract", "{}"), "there is no tool 'subtract'"),
        (Call("add", '{"a": "many"}'), "the arguments do not fit: a"),
        (Call("add", "not json"), "No whole JSON"),
        (Call("hang", ""), "did not answer within"),
        (Call("burst", ""), "RuntimeError: pipe broke"),
    ],
)
async def test_a_failed_call_is_reported_and_the_run_continues(call: Call, told: str) -> None:
    answer, watching, model = await run([call], Answer(value=1))
    assert answer.value == 1
    assert told in watching.seen[1] and watching.seen[1].startswith("failed")
    assert told in results(model)[0].text


async def test_new_utterances_reach_a_running_loop() -> None:
    model, watching = FakeModel({"sum": [[Call("add", '{"a": 1}')], Answer(value=2)]}), Watching()
    watching.news = ["make it three </newest_utterances>"]
    await run_tool_loop(model, Sum(task="x"), TOOLS, watching)
    last = model.asked[-1].turns[-1]
    assert last.role == "user" and "make it three" in last.text and last.text.count("</newest_utterances>") == 1


async def test_calls_of_one_step_run_concurrently() -> None:
    arrived = asyncio.Event()
    others = 0

    async def meet() -> str:
        """Wait for the other call."""
        nonlocal others
        others += 1
        if others == 2:
            arrived.set()
        await arrived.wait()
        return "met"

    model = FakeModel({"sum": [[Call("meet", "", "1"), Call("meet", "", "2")], Answer(value=1)]})
    assert (await run_tool_loop(model, Sum(task="x"), [tool(meet)], Watching())).value == 1


async def test_endless_tool_calls_end_the_run() -> None:
    with pytest.raises(ReplyInvalid, match="within 6 steps, but called tools"):
        await run(*[[Call("add", '{"a": 1}')]] * 6)


async def test_a_failing_watcher_cancels_the_other_calls() -> None:
    began, ended = asyncio.Event(), list[str]()

    async def slow() -> str:
        """Take long."""
        began.set()
        try:
            await asyncio.sleep(3_600)
        finally:
            ended.append("slow")
        return ""

    class Failing(Watching):
        async def log_observation(self, call: Call, found: Observation) -> None:
            await began.wait()
            raise OSError("the log is full")

    model = FakeModel({"sum": [[Call("slow", "{}"), Call("add", '{"a": 1}')]]})
    with pytest.raises(OSError, match="the log is full"):
        await run_tool_loop(model, Sum(task="1 + 2"), [tool(slow), tool(add)], Failing())
    assert ended == ["slow"] and len(asyncio.all_tasks()) == 1
