"""One turn of a life with a scripted model: M2 plans, M1 carries out, M0 thinks, and only results return upwards.

`mindstream life turn 1` prints the same for a life of yours.
"""

import asyncio
import json
import tempfile

from mindstream import Call, FakeModel, Life, ManualClock, Memory, Models, tool
from mindstream.life.events import Replied
from mindstream.log.events import Observed

ROOMS = {"kitchen": 12.5, "study": 9.0, "hall": 6.25}


def measure(room: str) -> str:
    """Measure the floor of a room, in square metres."""
    return f"{ROOMS.get(room, 0)} square metres"


def call(name: str, **arguments: object) -> Call:
    return Call(name, json.dumps(arguments))


M2 = [
    [call("M1", task="Find out how much paint the three floors need.", context="One litre covers 5 m².")],
    [call("U", memory="The three floors need 6 litres of paint.")],
    [call("finish_task", task=1, result="6 litres")],
    "The amount is computed and stored: 6 litres.",
]
M1 = [
    [call("measure", room=room) for room in ROOMS],
    [call("M0", question="How many litres for 12.5 + 9.0 + 6.25 m²?", context="whole litres, 5 m² each")],
    "6 litres: 27.75 m² at 5 m² a litre is 5.55, and paint is sold by the litre.",
]
M0 = ["12.5 + 9.0 + 6.25 = 27.75; 27.75 / 5 = 5.55; whole litres only, so 6."]


async def main() -> None:
    models = Models(FakeModel({"live": M2, "carry_out": M1, "think_deeply": M0}))
    with tempfile.TemporaryDirectory() as folder:
        async with (
            Memory.open(folder, "painter", clock=ManualClock()) as memory,
            Life.open(memory, models, goal="Buy the paint for the floors.", tools=[tool(measure)]) as life,
        ):
            ended = await life.run()
            async for row in memory.log(kinds=["replied", "observed"]):
                if isinstance(row.event, Replied | Observed):
                    depth = "    " * ((row.event.id.count(".") + 1) // 2)  # 1.1 is M2, 1.1.1.1 M1, deeper M0
                    calls = row.event.calls if isinstance(row.event, Replied) else ()
                    text = "; ".join(f"calls {each.tool} {each.arguments}" for each in calls) or row.event.text
                    print(f"{depth}{text}")
            print(f"ended: {ended}; stored: {(await memory.latest('note'))[0].text}")


if __name__ == "__main__":
    asyncio.run(main())
