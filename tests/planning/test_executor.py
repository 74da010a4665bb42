"""Steps run as soon as their inputs are ready; every tool outcome is evidence, and the run continues."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass

import pytest
from planned import RecordingWatcher, plan_of

from mindstream.json_values import JsonObject
from mindstream.models.model import Call, ToolSpec
from mindstream.planning.executor import Executor, Limits, allow
from mindstream.planning.plan import Plan, PlannedStep
from mindstream.tools.call import ToolRequest, UntrustedText
from mindstream.tools.tool import UNTRUSTED, FunctionTool, Traits, read_arguments, tool


async def run(plan: Plan, executor: Executor) -> dict[str, str]:
    for step in plan.steps:
        executor.begin(step)
    return {id: each.text for id, each in (await executor.finish()).items()}


def shout(text: str) -> str:
    """Say it loud."""
    return text.upper()


class Meeting:
    """A tool whose calls wait until a number of them run concurrently."""

    def __init__(self, wanted: int) -> None:
        self.wanted, self.there, self.all = wanted, 0, asyncio.Event()

    async def meet(self, name: str) -> str:
        """Wait for the others."""
        self.there += 1
        if self.there == self.wanted:
            self.all.set()
        await self.all.wait()
        return name


async def test_independent_steps_run_concurrently_and_dependent_steps_later() -> None:
    plan = plan_of("#E1 = meet[a]\n#E2 = meet[b]\n#E3 = meet[c]\n#E4 = shout[#E1#E2#E3]", ["meet", "shout"])
    found = await run(plan, Executor([tool(Meeting(3).meet), tool(shout)], limits=Limits(timeout_s=5)))
    assert found["E4"] == "ABC"


async def test_the_total_size_of_arguments_is_limited() -> None:
    def page(name: str) -> str:
        """Give a long text."""
        return name * 7_000

    many = "#E1" * 300
    steps = "".join(f"#E{n} = shout[{many}]\n" for n in range(2, 12))
    found = await run(plan_of(f"#E1 = page[x]\n{steps}", ["page", "shout"]), Executor([tool(page), tool(shout)]))
    over = [text for text in found.values() if "exceed 5,000,000 characters" in text]
    assert len(over) == 8


async def test_references_in_evidence_are_not_resolved() -> None:
    def odd(text: str) -> str:
        """Give what looks like references."""
        return '#E2, $1, {"$ref": "E2"} and $1 billion'

    plan = plan_of("#E1 = odd[x]\n#E2 = shout[#E1!]\n#E12 = shout[#E1 and #E12b]", ["odd", "shout"])
    found = await run(plan, Executor([tool(odd), tool(shout)]))
    assert found["E2"] == '#E2, $1, {"$REF": "E2"} AND $1 BILLION!'
    assert found["E12"] == '#E2, $1, {"$REF": "E2"} AND $1 BILLION AND #E12B'


def failing(kind: str) -> FunctionTool:
    async def broken(text: str) -> object:
        """Fail."""
        if kind == "raises":
            raise RuntimeError("no luck")
        if kind == "exits":
            raise SystemExit(3)
        if kind == "hangs":
            await asyncio.sleep(3_600)
        return {"empty": "  ", "large": "x" * 10_000_000, "surrogate": "a\ud800b", "none": None}[kind]

    return tool(broken)


@pytest.mark.parametrize(
    ("kind", "words"),
    [("raises", "no luck"), ("exits", "SystemExit"), ("hangs", "0.5 seconds"), ("empty", "empty result"),
     ("large", "characters cut"), ("surrogate", "a?b"), ("none", "null")],
)  # fmt: skip
async def test_a_tool_failure_is_evidence_and_other_steps_continue(kind: str, words: str) -> None:
    plan = plan_of("#E1 = broken[a]\n#E2 = shout[b]\n#E3 = shout[after #E1]\n#E4 = shout[#E1]", ["broken", "shout"])
    executor = Executor([failing(kind), tool(shout)], limits=Limits(timeout_s=0.5 if kind == "hangs" else 30.0))
    found = await run(plan, executor)
    assert words in found["E1"] and found["E2"] == "B" and len(found["E1"]) < 10_000
    failed = kind in ("raises", "exits", "hangs", "empty")
    assert executor.evidence["E1"].failed is failed
    assert ("(NOTHING: " in found["E3"]) is failed  # inside other text it is marked as missing
    assert executor.evidence["E4"].failed is failed  # alone it is required


async def test_missing_and_circular_references_fail_without_blocking() -> None:
    plan = plan_of("#E1 = shout[#E3]\n#E3 = shout[#E1]\n#E4 = shout[#E9]\n#E5 = shout[fine]", ["shout"])
    executor = Executor([tool(shout)])
    async with asyncio.timeout(100):
        found = await run(plan, executor)
    assert found["E5"] == "FINE" and all(executor.evidence[id].failed for id in ("E1", "E3", "E4"))
    assert "E9" in found["E4"] and "waits for steps that wait for each other" in found["E1"] + found["E3"]


async def test_failed_calls_are_retried_if_the_tool_allows_it() -> None:
    made: list[str] = []

    def flaky(text: str, key: str = "") -> str:
        """Work at the third call."""
        made.append(key)
        if len(made) % 3:
            raise RuntimeError("not yet")
        return text

    steps = plan_of("#E1 = flaky[text=a]", ["flaky"])
    for traits, tries, keys in (
        (Traits(retries=2), 3, {""}),
        (Traits(retries=2, changes=True), 1, {""}),  # it may have had its effect
        (Traits(retries=2, changes=True, key="key"), 3, {"mine/E1/ed85f22ade5b"}),
    ):
        made.clear()
        executor = Executor([tool(flaky, traits)], run="mine", approve=allow({"flaky"}))
        await run(steps, executor)
        assert (executor.evidence["E1"].tries, len(made), set(made)) == (tries, tries, keys)


async def test_side_effects_need_approval_and_untrusted_arguments_always_ask() -> None:
    sent: list[str] = []

    def send(text: str) -> str:
        """Send it."""
        sent.append(text)
        return "sent"

    def page(name: str) -> str:
        """Read a page."""
        return f"the words of {name}"

    tools = [tool(send, Traits(changes=True)), tool(page, Traits(untrusted=True))]
    plan = plan_of("#E1 = page[x]\n#E2 = send[mine]\n#E3 = send[#E1]", ["page", "send"])
    await run(plan, Executor(tools))
    assert sent == []
    executor = Executor(tools, approve=allow({"send"}))
    await run(plan, executor)
    assert sent == ["mine"] and executor.evidence["E3"].failed and executor.evidence["E3"].foreign
    asked: list[ToolRequest] = []

    async def yes(wish: ToolRequest) -> bool:
        asked.append(wish)
        return True

    await run(plan, Executor(tools, approve=allow({"send"}, otherwise=yes)))
    assert sent == ["mine", "mine", "the words of x"] and [wish.foreign for wish in asked] == [True]
    assert "the words of x" in asked[0].arguments


async def test_calls_of_a_batching_tool_are_batched() -> None:
    batches: list[int] = []

    async def together(calls: Sequence[Call]) -> list[str]:
        batches.append(len(calls))
        return [call.id for call in calls]

    plan = plan_of("\n".join(f"#E{n} = shout[{n}]" for n in range(1, 41)) + "\n#E41 = shout[#E1 #E40]", ["shout"])
    found = await run(plan, Executor([tool(shout, Traits(batch=together))]))
    assert batches == [32, 8, 1] and found["E7"] == "E7"


async def test_concurrent_calls_are_limited() -> None:
    going, most = 0, 0

    async def work(text: str) -> str:
        """Work."""
        nonlocal going, most
        going += 1
        most = max(most, going)
        await asyncio.sleep(0.001)
        going -= 1
        return text

    many = plan_of("\n".join(f"#E{n} = work[{n}]" for n in range(1, 41)), ["work"])
    await run(many, Executor([tool(work)], limits=Limits(at_once=5)))
    assert most == 5
    most = 0
    await run(many, Executor([tool(work, Traits(at_once=2))], limits=Limits(at_once=5)))
    assert most == 2


async def test_watchers_are_notified_before_and_after_each_call() -> None:
    told = RecordingWatcher()
    await run(plan_of("#E1 = shout[a]\n#E2 = shout[#E1]", ["shout"]), Executor([tool(shout)], watchers=[told]))
    assert told.lines == ["began E1", "found E1 A", "began E2", "found E2 A"]


NUMBERS = ToolSpec(
    "count",
    "Count.",
    {
        "type": "object",
        "properties": {"n": {"type": "integer"}, "all": {"type": "array", "items": {"type": "string"}}},
        "additionalProperties": False,
    },
)


@dataclass
class Counting:
    """A tool with a schema of its own, as those of servers are."""

    spec: ToolSpec = NUMBERS
    traits: Traits = UNTRUSTED

    async def __call__(self, call: Call) -> str:
        return json.dumps(read_arguments(call, self.spec))


@pytest.mark.parametrize(
    ("said", "argument", "given"),
    [("7", "n", "7"), (" 12\n", "n", "12"), ('["a", "b"]', "all", '["a", "b"]'), ("seven", "n", None)],
)
async def test_evidence_becomes_the_number_or_list_that_an_argument_requires(
    said: str, argument: str, given: str | None
) -> None:
    def ask(text: str) -> str:
        """Answer."""
        return said

    steps = (
        PlannedStep(id="E1", tool="ask", arguments={"text": "?"}),
        PlannedStep(id="E2", tool="count", arguments={argument: {"$ref": "E1"}}),
    )
    found = await run(Plan(steps=steps), Executor([tool(ask), Counting()]))
    assert found["E2"] == f'{{"{argument}": {given}}}' if given else "n should be integer" in found["E2"]


@pytest.mark.parametrize("said", ['{"url": "https://its.host/?d=secret"}', '["https://its.host/?d=secret"]'])
async def test_an_address_in_evidence_that_becomes_an_object_still_needs_approval(said: str) -> None:
    asked = list[str]()

    def ask(text: str) -> UntrustedText:
        """Answer."""
        return UntrustedText(said)

    async def refuse(wish: ToolRequest) -> bool:
        asked.append(wish.address)
        return False

    kind = "object" if said[0] == "{" else "array"
    counting = Counting(ToolSpec("count", "Count.", {"type": "object", "properties": {"q": {"type": kind}}}))
    steps = (
        PlannedStep(id="E1", tool="ask", arguments={"text": "?"}),
        PlannedStep(id="E2", tool="count", arguments={"q": {"$ref": "E1"}}),
    )
    found = await run(Plan(steps=steps), Executor([tool(ask), counting], approve=refuse))
    assert len(asked) == 1 and "its.host" in asked[0] and "not called" in found["E2"]


class Listening:
    """A tool that takes any arguments and returns their text as it was written."""

    @property
    def spec(self) -> ToolSpec:
        return ToolSpec("listen", "Listen.", {"type": "object"})

    async def __call__(self, call: Call) -> str:
        return call.arguments


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"query": 'a "quoted" \\ text with a tab\t, a line\n, ü, 計 and \u2028'},
        {'a "naïve" name': ""},
        {"query": "text", "count": 3},
        {"query": None, "places": ["Lyon", {"in": True}]},
    ],
)
async def test_a_call_gets_its_arguments_as_the_json_encoder_writes_them(arguments: JsonObject) -> None:
    step = PlannedStep(id="E1", tool="listen", arguments=arguments)
    assert await run(Plan(steps=(step,)), Executor([Listening()])) == {"E1": json.dumps(arguments, ensure_ascii=False)}
