"""Evidence that a run found in memory is forgotten with its record."""

from __future__ import annotations

import asyncio
from pathlib import Path

from keys import key_of

from mindstream.memory.memory import Memory
from mindstream.memory.store.record import RecordDraft
from mindstream.models.rules import FakeModel
from mindstream.planning.journal import RunCheckpoint, read_run
from mindstream.planning.planner import Planner
from mindstream.tools.named import recall_tool
from mindstream.tools.tool import tool


def say(text: str) -> str:
    """Say it again."""
    return text


async def run_and_erase(folder: Path, note: str) -> RunCheckpoint:
    """Solve a task with a note in every part, erase the note, and return the logged run."""
    plan = f"Plan: {note}\n#E1 = recall[query={note}, count=1]\n#E2 = say[#E1]\n#E3 = say[{note}]\n"
    lines = {"make_plan": [plan], "answer_from_evidence": [f"As far as I know: {note}"]}
    async with Memory.open(folder, "ada") as stream:
        (record,) = await stream.retain_all([RecordDraft(text=note, kind="note", by="ada")])
        tools = [recall_tool(stream), tool(say)]
        planner = Planner(model=FakeModel(lines), tools=tools, memory=stream)
        solution = await planner.solve(f"Is it so? {note}", run="r")
        assert solution.answer and not solution.missing
        await stream.store.erase(key_of("ada"), [record.id])
        begun = await read_run(stream, "r")
    assert begun is not None
    return begun


def test_no_byte_of_an_erased_record_is_left_in_a_run(tmp_path: Path) -> None:
    begun = asyncio.run(run_and_erase(tmp_path, "The cat is called Zanzibarino."))
    assert begun.answer is not None and len(begun.evidence) == 3
    files = [file for file in tmp_path.rglob("*") if file.is_file()]
    assert files and not [file for file in files if b"Zanzibarino" in file.read_bytes()]


def test_a_run_whose_plan_was_erased_can_be_read(tmp_path: Path) -> None:
    assert asyncio.run(run_and_erase(tmp_path, "say")).plan is None
