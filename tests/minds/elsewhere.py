"""A process with a mind, to be killed; it prints its actions, one per line.

python elsewhere.py DATA thinks SECONDS    prints `thinks` when an idle trigger starts a run, `done` when it ends
python elsewhere.py DATA answers TEXT ...  accepts each text, prints `ack SEQ`, and answers none
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator, Callable

from mindstream import Mind, Timeouts, answer_with
from mindstream.minds.responder import Host
from mindstream.reasoners.reasoner import RunContext, RunResult, Trigger

SOON = Timeouts(lease_s=1.0)


class Idle:
    """Run once after a number of seconds without messages."""

    slot, timeout_s = "night", 60.0
    trigger = Trigger(every=0, idle_s=0.3)

    def __init__(self, seconds: float = 0.0, tell: Callable[[str], object] = lambda _: None) -> None:
        self.seconds, self.tell = seconds, tell
        self.begun = self.ended = 0

    async def think(self, context: RunContext) -> RunResult:
        assert not context.utterances
        self.begun += 1
        self.tell("thinks")
        try:
            await asyncio.sleep(self.seconds)
        finally:
            self.ended += 1
        return RunResult("it was quiet")


async def never(_: str, __: Host) -> AsyncIterator[str]:
    """Never answer."""
    await asyncio.Event().wait()
    yield "never"


def tell(line: str) -> None:
    """Print a line and flush it."""
    print(line, flush=True)


async def think(data: str, seconds: float) -> None:
    async with Mind.open(data, user="ann", session="s", reasoners=[Idle(seconds, tell)], timeouts=SOON) as mind:
        async for _ in mind.hear("Good night."):
            pass
        await asyncio.sleep(60)


async def hear(data: str, texts: list[str]) -> None:
    async with Mind.open(data, user="ann", session="s", responder=answer_with(never), timeouts=SOON) as mind:

        async def say(text: str) -> None:
            async for row in mind.hear(text):
                tell(f"ack {row.seq}")

        async with asyncio.TaskGroup() as group:
            for text in texts:
                group.create_task(say(text))


if __name__ == "__main__":
    where, what, *rest = sys.argv[1:]
    asyncio.run(think(where, float(rest[0])) if what == "thinks" else hear(where, rest))
