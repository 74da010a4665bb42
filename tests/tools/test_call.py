"""One tool call: slow, wrong or hostile, it blocks nothing, and no caller waits forever."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from pydantic import BaseModel

from mindstream.errors import ToolError
from mindstream.models.model import Call
from mindstream.models.prompt import Prompt
from mindstream.models.rules import FakeModel
from mindstream.tools import tool as threads
from mindstream.tools.call import MAX_CALLS, MAX_PER_REPLY, MAX_RESULT, MAX_SAME, Observation, call_tool, run_tool_loop
from mindstream.tools.tool import tool


class Answer(BaseModel):
    value: int


class Count(Prompt[Answer]):
    """A question for these tests."""

    @classmethod
    def words(cls) -> str:
        return "# system\nCount.\n# user\nGo."


class Watching:
    """Counts its calls."""

    def __init__(self) -> None:
        self.calls = 0

    async def recorded_result(self, call: Call) -> str | None:
        return None

    async def log_call(self, call: Call) -> None:
        self.calls += 1

    async def log_observation(self, call: Call, found: Observation) -> None: ...

    async def take_newer(self) -> str:
        return ""


async def test_a_blocking_function_does_not_block_the_loop_and_times_out() -> None:
    go_on = threading.Event()

    def blocks() -> str:
        """Block."""
        go_on.wait(30)
        return "done"

    beats = 0

    async def beat() -> None:
        nonlocal beats
        while True:
            await asyncio.sleep(0.01)
            beats += 1

    heart = asyncio.ensure_future(beat())
    found = await call_tool(Call("blocks", ""), [tool(blocks)], timeout_s=0.2)
    heart.cancel()
    go_on.set()
    assert found.failed and "did not answer within 0.2 seconds" in found.text and beats > 3


def exits() -> str:
    """Leave."""
    raise SystemExit(1)


async def cancels() -> str:
    """Cancel."""
    raise asyncio.CancelledError


def surrogate() -> str:
    """Return text that cannot be encoded."""
    return "a \ud800 b"


def thing() -> object:
    """Return a value that is no data."""
    return threading.Lock()


def recurses() -> str:
    """Go deeper."""
    return recurses()


class Money:
    def __str__(self) -> str:
        return "5 EUR"


class Table:
    def to_dict(self) -> dict[str, Any]:
        return {"city": {0: "Ulm"}}


LOOP: list[Any] = []
LOOP.append(LOOP)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (np.int64(5), "5"),
        ({"a": np.arange(2), "b": [np.float32(0.5), np.bool_(True)]}, '{"a":[0,1],"b":[0.5,true]}'),
        (float("nan"), "NaN"),
        (Money(), '"5EUR"'),
        (Table(), '{"city":{"0":"Ulm"}}'),
        (b"\xff", "b'\\xff'"),
        (LOOP, "[[...]]"),
    ],
    ids=["number", "arrays", "not a number", "own text", "table", "bytes", "contains itself"],
)
async def test_a_result_that_json_does_not_have_is_shown(value: object, text: str) -> None:
    def give() -> object:
        """Give it."""
        return value

    found = await call_tool(Call("give", ""), [tool(give)])
    assert not found.failed and "".join(found.text.split()) == text


@pytest.mark.parametrize("function", [exits, cancels, thing, recurses], ids=lambda each: each.__name__)
async def test_any_tool_failure_becomes_an_observation(function: Callable[[], object]) -> None:
    found = await call_tool(Call(function.__name__, ""), [tool(function)])
    assert found.failed and found.text.startswith(f"{function.__name__} failed: ") and len(found.text) < 1000


async def test_tool_results_are_cut_and_encodable() -> None:
    assert (await call_tool(Call("surrogate", ""), [tool(surrogate)])).text == "a ? b"

    def flood() -> str:
        """Say much."""
        return "x" * 10_000_000

    assert len((await call_tool(Call("flood", ""), [tool(flood)])).text) < MAX_RESULT + 100


async def test_functions_that_never_return_are_limited_in_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "_free", threading.Semaphore(2))
    go_on = threading.Event()
    for _ in range(2):
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await threads.run_in_thread(lambda: go_on.wait(30))
    with pytest.raises(ToolError, match="earlier ones are still running"):
        await threads.run_in_thread(lambda: None)
    go_on.set()


def add(a: int) -> int:
    """Add one."""
    return a + 1


async def run(*replies: object) -> tuple[Watching, FakeModel]:
    model, watching = FakeModel({"count": [*replies, Answer(value=1)]}), Watching()  # type: ignore[list-item]
    await run_tool_loop(model, Count(), [tool(add)], watching, steps=len(replies) + 2)
    return watching, model


async def test_calls_per_reply_are_limited() -> None:
    watching, model = await run([Call("add", f'{{"a": {n}}}', str(n)) for n in range(1000)])
    assert watching.calls == MAX_PER_REPLY
    turns = model.asked[-1].turns
    assert len(turns[0].calls) == len(turns) - 1 <= 2 * MAX_PER_REPLY, "each call that stands is answered"
    assert turns[-1].text == f"<result>\nNot run: at most {MAX_PER_REPLY} calls a reply.\n</result>"


async def test_a_run_makes_so_many_calls_and_no_more() -> None:
    replies = [[Call("add", f'{{"a": {step * 10 + n}}}') for n in range(MAX_PER_REPLY)] for step in range(6)]
    watching, _ = await run(*replies)
    assert watching.calls == MAX_CALLS


async def test_repeated_identical_calls_are_not_run() -> None:
    watching, model = await run(*[[Call("add", '{"a": 1}')]] * 5)
    assert watching.calls == MAX_SAME
    assert "the same call was made before" in model.asked[-1].turns[-1].text
