"""Untrusted text stays untrusted: derived records are marked, and recalled as foreign."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel

from mindstream.clock import ManualClock
from mindstream.log.events import Remembered
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import RecordDraft, is_tainted
from mindstream.memory.store.store import Entry
from mindstream.models.model import Call
from mindstream.reasoners.background import conclude
from mindstream.reasoners.reasoner import RunContext, RunResult, Writing
from mindstream.tools.call import Observation, UntrustedText, call_tool
from mindstream.tools.named import recall_tool
from mindstream.tools.tool import UNTRUSTED, tool

PAGE = "A page says that the museum opens at nine."


class Trip(BaseModel):
    goal: str = ""
    day: str = ""


async def test_records_derived_from_a_page_stay_tainted(tmp_path: Path) -> None:
    clock = ManualClock()
    async with Memory.open(tmp_path, "ada", clock=clock) as stream:
        page = await stream.retain(PAGE, "evidence", data={"tainted": True})
        own = await stream.retain("Ada likes museums.", "note")
        note = await stream.retain("The museum opens at nine.", "note", evidence=[own.id, page.id])
        thought = await stream.retain("Going early would suit her.", "thought", evidence=[note.id])
        corrected = await stream.supersede(note.id, "The museum opens at half past nine.")
        first = await stream.believe("trip", {"goal": "museum at nine"}, Trip, evidence=[page.id])
        await stream.believe("trip", {"day": "Sunday"}, Trip, evidence=[own.id])
        belief = await stream.version("trip")
        assert first.version == 1 and belief and belief.version == 2
        assert not is_tainted(own) and all(map(is_tainted, (note, thought, corrected, belief)))
        await stream.store.erase(stream.key, [page.id])  # the file was changed, or the page forgotten
        clock.advance(7 * 86_400)
        look = recall_tool(stream)
        found = await call_tool(Call("recall", json.dumps({"query": "when does the museum open?"})), [look])
        assert found.untrusted and "from outside" in found.text
        found = await call_tool(Call("recall", json.dumps({"query": "likes museums", "count": 1})), [look])
        assert not found.untrusted and "Ada likes museums" in found.text


async def test_results_of_a_run_that_read_a_page_are_tainted(tmp_path: Path) -> None:
    def page() -> str:
        """Read a page."""
        return PAGE

    def some() -> str:
        """Read a page or not."""
        return UntrustedText(PAGE)

    async def nothing_more(*_: object) -> Sequence[Entry]:
        return ()

    async with Memory.open(tmp_path, "ada") as stream:

        async def write() -> Writing:
            records = await stream.build_records([RecordDraft(text="It opens at nine.", kind="note")])
            return [Entry(Remembered(count=1, kinds={"note": 1}), "facts", tuple(records))], ()

        for read in (tool(page, UNTRUSTED), tool(some), None):
            context = RunContext("facts", stream, (), ())
            call = Call("page" if read else "none", "{}", "c1")
            found = await call_tool(Call(read.spec.name, "{}"), [read]) if read else Observation("own words")
            await context.log_call(call)
            await context.log_observation(call, found)
            await conclude(context, RunResult("", "", write=write), nothing_more, (), None)
            (record,) = await stream.latest("note")
            assert is_tainted(record) is (read is not None)
        (row,) = await stream.store.events(stream.key, 0, ["observed"], 1)
        assert row.event.model_dump()["foreign"] is True
