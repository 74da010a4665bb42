"""Text forgotten during an answer or a run is in no answer, thought, dream or run written afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextvars import Context
from pathlib import Path

import pytest
from keys import key_of

from mindstream import Coach, Memory, Mind, Timeouts
from mindstream.errors import ErasedMeanwhile
from mindstream.log.events import Piece as Shown
from mindstream.log.events import Said, Thought
from mindstream.memory.store.record import RecordDraft
from mindstream.memory.store.redaction import MARK
from mindstream.models.model import Part, Piece, Request
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.planning.plan import Plan, PlannedStep
from mindstream.planning.planner import Planner
from mindstream.reasoners.reasoner import EVERY_TURN, RunContext, RunResult
from mindstream.tools.named import recall_tool

SECRET = "zibeth"
TEXT = f"The {SECRET} stands in the cellar."
ANN = key_of("ann")


class Halfway:
    """A model that runs a callback in the middle of its answer, once."""

    name = "halfway"

    def __init__(self, happens: Callable[[], Awaitable[object]]) -> None:
        self._happens, self.asked = happens, 0

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        self.asked += 1
        yield Piece("The ")
        if self.asked == 1:
            await self._happens()
        yield Piece(f"{SECRET} does.")


async def held(memory: Memory) -> str:
    """Return everything that is stored of a memory."""
    rows = [row.event.model_dump_json() for row in await memory.store.events(memory.key, limit=10_000)]
    records = [f"{each.text} {each.data}" for each in (await memory.store.changes(memory.key, 0)).records]
    return "\n".join([*rows, *records, *(each.error for each in await memory.store.open_work(memory.key))])


async def forget(folder: Path, id_: str) -> None:
    """Forget as another process does: with a separate store, outside any reading task."""

    async def elsewhere() -> None:
        async with Memory.open(folder, "ann") as other:
            await other.forget(id_)

    await asyncio.get_running_loop().create_task(elsewhere(), context=Context())


async def test_text_forgotten_during_an_answer_is_redacted_in_it(folder: Path) -> None:
    async with Memory.open(folder, "ann") as memory:
        note = await memory.retain(TEXT, "note")
    model = Halfway(lambda: forget(folder, note.id))
    models = Models(Rules(), {"talker": model})
    async with Mind.open(folder, user="ann", model=models, responder=Coach.using()) as mind:
        rows = [row.event async for row in mind.hear("What stands in the cellar?")]
        assert SECRET in "".join(row.text for row in rows if isinstance(row, Shown)), "it was shown before"
        (said,) = [row for row in rows if isinstance(row, Said)]
        assert said.text == MARK and not said.record
        await mind.settled()
        assert SECRET not in await held(mind.memory)
        assert await mind.send("And what now?"), "the conversation continues"


class Notes:
    """A reasoner that records its input."""

    slot, timeout_s, trigger = "notes", 30.0, EVERY_TURN

    def __init__(self, happens: Callable[[], Awaitable[object]]) -> None:
        self._happens, self.times = happens, 0

    async def think(self, context: RunContext) -> RunResult:
        found = await context.memory.recall("What stands in the cellar?", 3, kinds=["note"], touch=False)
        texts = " ".join(each.record.text for each in found)
        self.times += 1
        if self.times == 1:
            await self._happens()
        return RunResult(f"I have read: {texts}", "test", records=(RecordDraft(text=f"Read: {texts}", kind="note"),))


async def test_a_reasoner_run_is_repeated_without_the_forgotten_text(folder: Path) -> None:
    async with Memory.open(folder, "ann") as memory:
        note = await memory.retain(TEXT, "note")
    notes = Notes(lambda: forget(folder, note.id))
    async with Mind.open(folder, user="ann", reasoners=[notes], timeouts=Timeouts(retry_s=0.01)) as mind:
        [_ async for _ in mind.hear("Hello.")]
        async with asyncio.timeout(60):
            await mind.settled()
        thoughts = await mind.memory.store.events(ANN, kinds=[Thought.kind])
        assert notes.times == 2 and len(thoughts) == 1 and SECRET not in await held(mind.memory)
        assert await mind.memory.store.open_work(ANN) == []


async def test_a_plan_run_does_not_store_forgotten_text_and_can_be_resumed(folder: Path) -> None:
    async with Memory.open(folder, "ann") as memory:
        note = await memory.retain(TEXT, "note")
        step = PlannedStep(id="E1", tool="recall", arguments={"query": "what stands in the cellar?"})
        plan, tools = Plan(task="what stands in the cellar?", steps=[step]), [recall_tool(memory)]
        planner = Planner(model=Models(Halfway(lambda: forget(folder, note.id))), tools=tools, memory=memory)
        with pytest.raises(ErasedMeanwhile, match="read the mind again"):
            await planner.solve(plan.task, plan, run="one")
        assert SECRET not in await held(memory)
        planner = Planner(model=Models(Rules()), tools=tools, memory=memory)
        assert SECRET not in str(await planner.solve(plan.task, plan, run="one"))
