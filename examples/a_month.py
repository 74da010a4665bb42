"""Simulate a life for one month without a model: a brief, a diary, sleep, and the memories that remain.

    python examples/a_month.py [--days 30] [--data FOLDER] [--out FOLDER]

The folder a_month/ holds the documents and the user's script.
"""

import argparse
import asyncio
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from mindstream import LifeConfig, ManualClock, Memory, Record
from mindstream.life.permission import Permits
from mindstream.life.simulation import Day, ScriptedUser, Simulation
from mindstream.tools.documents import open_documents
from mindstream.tools.write_file import write_file_tool

HERE = Path(__file__).with_name("a_month")
BEGINS = datetime(2026, 5, 4, 7, tzinfo=UTC)
GOAL = (
    "Write a brief with sources on the ferry Marta: who built her, why she stopped running, who decided it, what she"
    " cost the parish, her successor, the cost of her repair, and the fate of her bell"
)
ORDERS = ("every day at 19: ask me what I did on the boat", "every Sunday at 20:30: sum up my week")


@dataclass
class Lane:
    """A record with its level at the end of each day; below 0: archived."""

    text: str
    kind: str
    levels: tuple[int, ...]
    lasting: bool


async def main(days: int, data: Path, out: Path) -> None:
    """Simulate the month and print it."""
    clock = ManualClock(BEGINS.timestamp())
    tools = write_file_tool(out)
    config = LifeConfig(permits=Permits(always=("write_file",)))
    async with Memory.open(data, "ann", clock=clock) as stream, open_documents(HERE / "documents") as documents:
        lived: list[Day] = []
        async with Simulation.open(
            stream, goal=GOAL, orders=ORDERS, user=ScriptedUser.load(HERE / "user.jsonl"),
            tools=(*documents.tools(), tools), config=config,
        ) as simulation:  # fmt: skip
            async for day in simulation.days(days):
                print(f"\nDay {day.number}")
                for at, words in day.said:
                    print(f"  {datetime.fromtimestamp(at, UTC):%H:%M} {words.replace(chr(10), chr(10) + ' ' * 8)}")
                lived.append(day)
            state = simulation.life.state
            print(f"\n{state.turn} turns, {state.spent.calls} steps of rules, no model, no money")
        lanes = await lanes_of(stream, lived)
    show(lanes)


async def lanes_of(stream: Memory, lived: list[Day]) -> list[Lane]:
    """Return the levels of each record over the days."""
    ids = list(dict.fromkeys(id_ for day in lived for id_ in day.levels))
    records: list[Record] = await stream.store.records(stream.name, ids)
    levels = {id_: tuple(day.levels[id_] for day in lived if id_ in day.levels) for id_ in ids}
    return [Lane(record.text, record.kind, levels[record.id], record.lasting) for record in records]


def show(lanes: list[Lane]) -> None:
    """Print long-term, remaining and archived records, and dreams."""
    notes = [lane for lane in lanes if lane.kind == "note"]
    for title, some in (
        ("Long-term", [lane for lane in notes if lane.lasting]),
        ("Remaining", [lane for lane in notes if not lane.lasting and lane.levels[-1] >= 0]),
        ("Archived", [lane for lane in notes if lane.levels[-1] < 0]),
        ("Dreams", [lane for lane in lanes if lane.kind == "dream"]),
    ):
        print(f"\n{title}: {len(some)}")
        for lane in some:
            print(f"  - {lane.text}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--out", type=Path, default=Path("a_month_out"))
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(main(asked.days, asked.data or Path(folder), asked.out))
    print(f"\nthe brief is in {asked.out}")
