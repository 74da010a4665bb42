"""A process that talks to a mind until it is killed: prints `ack SEQ` for each utterance that was acknowledged.

python talking.py FOLDER NAME COUNT
"""

from __future__ import annotations

import asyncio
import sys

from mindstream import Coach, Mind, Timeouts

WORDS = [
    "Noise keeps me awake.",
    "Can you make me a plan?",
    "I don't like that step.",
    "I drink coffee at night.",
    "next",
]


async def talk(folder: str, name: str, count: int) -> None:
    timeouts = Timeouts(lease_s=1.0, deadline_s=5.0)
    async with Mind.open(folder, user="ann", session=name, timeouts=timeouts, responder=Coach.using()) as mind:
        print("open", flush=True)
        for n in range(count):
            async for logged in mind.hear(f"{WORDS[n % len(WORDS)]} ({name} {n})"):
                if logged.event.kind == "heard":
                    print(f"ack {logged.seq}", flush=True)
        await mind.settled()
        print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(talk(sys.argv[1], sys.argv[2], int(sys.argv[3])))
