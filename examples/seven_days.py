"""Simulate seven days of one mind with one memory: conversation, planning, a life with a diary, reflection and sleep.

Rules answer instead of a model: no API key, no download.
"""

import asyncio
import tempfile
from pathlib import Path

from mindstream import Coach, Life, LifeConfig, ManualClock, Mind, Models, Planner
from mindstream.clock import DAY_S, HOUR_S
from mindstream.life.events import TurnEnded
from mindstream.memory.store.record import KINDS
from mindstream.models.rules import Rules
from mindstream.reasoners.reflect.reflect import reflect_if_due
from mindstream.tools.named import Means, named_tools

DOCUMENTS = Path(__file__).with_name("documents")
DAYS = (
    ("I wake at three and my thoughts race.", "My daughter Iris starts school on Monday."),
    ("I drink two espressos after lunch.", "Can you make me a plan?"),
    ("I tried it. What comes next?", "My neighbour Rui plays the drums."),
    ("No, three espressos, not two.", "thanks, talk tomorrow"),
    ("Slept better, six hours.", "When do I wake?"),
    ("What is my daughter's name?", "How many espressos do I drink?"),
    ("Who plays the drums?", "good night"),
)
TASKS = {
    1: "How high is Mount Everest?",
    3: "8,849 - 8,611",
}
GOAL, ORDER = "Keep a diary of what was good.", "every day at 21: ask me what was good today"
GOOD = (
    "The first cherries.", "Iris drew a whale.", "The bus waited for me.", "Rui brought soup.", "An hour of silence.",
    "I found the green glove.", "Nothing hurt.",
)  # fmt: skip


async def live(mind: Mind, day: int) -> list[str]:
    """Run the mind's life until the day is over; return its summary of each turn."""

    async def answer(_: str) -> str:
        return GOOD[day]

    stream, config = mind.memory, LifeConfig(hears=False)
    before = await stream.store.last(stream.name, "turn_ended")
    async with Life.open(stream, Models(Rules()), goal=GOAL, orders=[ORDER], config=config, user=answer) as life:
        await life.run(until=stream.clock.now() + 12 * HOUR_S)
    ended = await stream.store.events(stream.name, before.seq if before else 0, ["turn_ended"])
    return [row.event.words for row in ended if isinstance(row.event, TurnEnded)]


async def main() -> None:
    clock = ManualClock()
    with tempfile.TemporaryDirectory() as folder:
        for day, lines in enumerate(DAYS):
            print(f"\nDay {day + 1}")
            async with Mind.open(
                folder, user="ann", session=f"day {day + 1}", clock=clock, responder=Coach.using(), policy="decay"
            ) as mind:
                for line in lines:
                    clock.advance(60)
                    answer = await mind.send(line)
                    print(f"> {line}\n  {answer.splitlines()[0]}")
                    await mind.settled()
                if task := TASKS.get(day):
                    names = ("calculator", f"documents:{DOCUMENTS}")
                    async with named_tools(names, Means(memory=mind.memory, data=Path(folder))) as tools:
                        planner = Planner(model=Rules(), tools=tools, memory=mind.memory)
                        solution = await planner.solve(task, run=f"task {day + 1}")
                    print(f"? {task}\n  {solution.answer or solution.stopped} ({len(solution.plan.steps)} steps)")
                for said in await live(mind, day):
                    print(f"  life: {said}")
                reflected = await reflect_if_due(mind.memory, Rules(), start=20)
                dream = await mind.memory.sleep(n=200)
                print(f"  night: {'reflected, ' if reflected else ''}{'dreamt: ' + dream if dream else 'no dream'}")
                kinds = {kind: len(await mind.memory.latest(kind, 1_000)) for kind in KINDS}
            clock.advance(DAY_S - 12 * HOUR_S - 60 * len(lines))
        print("\nmemory:", {kind: count for kind, count in kinds.items() if count})


if __name__ == "__main__":
    asyncio.run(main())
