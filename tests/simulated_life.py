"""What tests of a life by rules share: a folder of documents, a life over it, its words and what it wrote."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from mindstream.clock import ManualClock
from mindstream.life.leave import Permits
from mindstream.life.life import Habits
from mindstream.life.simulation import ScriptedUser, ScriptLine, Simulation
from mindstream.memory.stream import Stream
from mindstream.tools.documents import open_documents
from mindstream.tools.write_file import write_file_tool

MORNING = 1_777_881_600.0
"""Monday 4 May 2026, 8:00 UTC."""
WRITES = Habits(permits=Permits(always=("write_file",)))


@dataclass(frozen=True)
class Lived:
    """What came of a life."""

    said: list[str]
    ended: str
    tasks: dict[str, str]
    calls: int


@asynccontextmanager
async def simulation(
    data: Path, goal: str, orders: Sequence[str] = (), lines: Sequence[ScriptLine] = (), drawn: int = 20
) -> AsyncIterator[Simulation]:
    async with (
        Stream.open(data, "ann", clock=ManualClock(MORNING)) as stream,
        Simulation.open(
            stream, goal=goal, orders=orders, user=ScriptedUser(tuple(lines)), habits=Habits(drawn=drawn)
        ) as found,
    ):
        yield found


async def live(root: Path, goal: str, documents: Mapping[str, str], *, writes: bool = True) -> Lived:
    """Live for a goal over documents until there is nothing to do, at most 60 turns."""
    folder = root / "documents"
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in documents.items():
        (folder / name).write_text(text, "utf-8")
    async with Stream.open(root / "data", "ann", clock=ManualClock(MORNING)) as stream, open_documents(folder) as docs:
        tools = (*docs.tools(), *((write_file_tool(root / "out"),) if writes else ()))
        async with Simulation.open(stream, goal=goal, tools=tools, habits=WRITES) as found:
            ended = await found.life.run(60)
            state = found.life.state
            rows = await stream.store.events(stream.name, 0, ["turn_ended"], 500)
            said = [str(getattr(row.event, "words", "")) for row in rows]
            return Lived(said, ended, {task.text: task.standing for task in state.ledger.ordered()}, state.spent.calls)
