"""A mind that answers at once and thinks longer in the background, for tests of voice agents."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from mindstream import Host, RunContext, RunResult, Trigger


class Slow:
    """A reasoner that acts once it is released, and reports it."""

    slot, trigger, timeout_s = "slow", Trigger(), 30.0

    def __init__(self) -> None:
        self.go, self.acts, self.stopped = asyncio.Event(), list[str](), list[str]()

    async def think(self, context: RunContext) -> RunResult:
        asked = context.utterances[-1].text
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.stopped.append(asked)
            raise
        self.acts.append(asked)
        return RunResult("thought", follow_up=f"Later about {asked}")


async def at_once(text: str, host: Host) -> AsyncIterator[str]:
    yield "At once "
    yield f"about {text}"
