"""A coach for a LiveKit voice agent: the tool `ask_coach` answers at once, reports follow-ups, and can be cancelled.

async with Mind.open("data", user="ann", responder=Coach.using()) as mind:
    session = AgentSession(llm=…, tools=[CoachToolset(mind)])
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeAlias

from livekit.agents import RunContext, function_tool
from livekit.agents.llm import ToolFlag
from livekit.agents.llm.async_toolset import AsyncToolset
from livekit.agents.llm.tool_context import ToolResult

from mindstream.adapters.delegate import MindDelegate
from mindstream.log.events import Piece
from mindstream.minds.mind import Mind

Tell: TypeAlias = Callable[[str], Awaitable[None]]
AskFunction: TypeAlias = Callable[[str, Tell], Awaitable[str]]

SAYS = "The coach says: {message}\nTell the user, in these words as far as they fit. More of it may follow by itself."
"""The message by which the voice agent's model gets a text of the mind."""


class CoachToolset(AsyncToolset):
    """One tool, `ask_coach`, for the sessions of one conversation.

    With a mind, the tool's output is the mind's answer, or a filler phrase ("let me think") if the answer takes longer.
    Later texts (a late answer, and follow-ups of the background reasoners) are spoken when nobody speaks. Cancelling
    the tool call stops the reasoners; hanging up does not.

    With a function, each text that the function passes to `tell` is spoken, and then the text that it returns.

    Args:
        coach: a mind, or `async def coach(question, tell) -> answer`.
    """

    def __init__(self, coach: Mind | AskFunction) -> None:
        super().__init__(id="coach")
        self._delegate = MindDelegate(coach) if isinstance(coach, Mind) else None
        self._function = None if isinstance(coach, Mind) else coach
        self._hung_up = False

    @function_tool(flags=ToolFlag.CANCELLABLE, on_duplicate="reject")
    async def ask_coach(self, ctx: RunContext, question: str) -> Any:  # type: ignore[type-arg]
        """Ask the coach, who knows the user and thinks longer than you. Its answer may come later, by itself.

        Args:
            question: What the user said or wants to know, in their own words, in full.
        """
        if self._delegate is None:
            assert self._function is not None
            await ctx.update(f"The coach is thinking about: {question}")
            return await self._function(question, ctx.update)
        try:
            async with aclosing(self._delegate.ask(question)) as events:
                async for event in events:
                    if not isinstance(event, Piece):
                        await ctx.update(event.text, template=SAYS)
        except asyncio.CancelledError:
            if not self._hung_up:
                await self._delegate.call_off()
            raise
        return ToolResult("The coach has said all that there was to say.", reply_required=False)

    async def aclose(self) -> None:
        """Cancel running calls. A mind's reasoners still process the utterances that it has heard, and store the
        results in its memory."""
        self._hung_up = True
        await super().aclose()
