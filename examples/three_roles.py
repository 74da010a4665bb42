"""M2 plans, M1 does, M0 thinks, and only results come back up: a life with a scripted model, printed step by step.

    python examples/three_roles.py

No key and no download: what the three roles say stands below. What each step is, who takes it and what comes of it is
what the log of any life holds; `mindstream life turn 1` prints the same of one of yours.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from pathlib import Path

from mindstream import Call, FakeModel, Life, ManualClock, Memory, Models, tool
from mindstream.life.events import Asked, Replied, TurnBegan, TurnEnded
from mindstream.log.events import Event, Observed

ROOMS = {"kitchen": 12.5, "study": 9.0, "hall": 6.25}


def measure(room: str) -> str:
    """Measure the floor of a room, in square metres."""
    return f"{ROOMS.get(room, 0)} square metres"


def call(name: str, **arguments: object) -> Call:
    """Make a call of a tool."""
    return Call(name, json.dumps(arguments, ensure_ascii=False))


def model() -> FakeModel:
    """Return what the three roles say, in the order in which they are asked."""
    return FakeModel({
        "live": [
            [call("M1", task="Find out how much paint the three floors need.", context="One litre covers 5 m².")],
            [call("U", memory="The three floors need 6 litres of paint: 27.75 m² at 5 m² a litre, rounded up.")],
            [call("finish_task", task=1, result="6 litres")],
            "The paint is worked out and remembered: 6 litres.",
        ],
        "carry_out": [
            [call("measure", room=room) for room in ROOMS],
            [call("M0", question="How many litres for 12.5 + 9.0 + 6.25 m²?", context="by the litre, 5 m² each")],
            "6 litres: 27.75 m² at 5 m² a litre is 5.55, and paint is bought by the litre.",
        ],
        "think_deeply": ["12.5 + 9.0 + 6.25 = 27.75; 27.75 / 5 = 5.55; whole litres only, so 6."],
    })  # fmt: skip


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with (
            Memory.open(Path(folder), "painter", clock=ManualClock()) as stream,
            Life.open(stream, Models(model()), goal="Buy the paint for the floors.", tools=[tool(measure)]) as life,
        ):
            ended = await life.run()
            for row in await stream.store.events("painter"):
                if line := describe(row.event):
                    print(line)
            print(f"\nended: {ended}; remembered: {(await stream.latest('note'))[0].text}")


def describe(event: Event) -> str:
    """Write what a step says, further to the right the deeper it stands; "" for what only keeps the books."""
    match event:
        case TurnBegan():
            return f"turn {event.turn}"
        case Replied() if event.calls:
            wished = "; ".join(f"{wish.tool} {wish.arguments}" for wish in event.calls)
            return f"{indent(event.id)}{event.role} calls {wished}"
        case Replied():
            return f"{indent(event.id)}{event.role}: {event.text}"
        case Observed():
            return f"{indent(event.id)}= {event.text}".replace("\n", " ")
        case TurnEnded():
            return f"end of turn {event.turn}"
        case Asked():
            return ""
    return ""


def indent(id_: str) -> str:
    """Return the room before a step, by where it stands: 1.1 is M2's, 1.1.1.1 M1's, 1.1.1.1.1.1 M0's."""
    return "    " * ((id_.count(".") + 1) // 2)


if __name__ == "__main__":
    asyncio.run(main())
