"""LiveKit tools by which a voice agent delegates to a slow coach: answer at once, updates, cancellable."""
from collections.abc import Awaitable, Callable

from livekit.agents import RunContext, function_tool
from livekit.agents.llm import ToolFlag
from livekit.agents.llm.async_toolset import AsyncToolset

Tell = Callable[[str], Awaitable[None]]
Coach = Callable[[str, Tell], Awaitable[str]]


class CoachToolset(AsyncToolset):
    """`ask_coach` runs `coach(question, tell)` in the background; what the coach tells is an update."""

    def __init__(self, coach: Coach) -> None:
        super().__init__(id="coach")
        self._coach = coach

    @function_tool(flags=ToolFlag.CANCELLABLE, on_duplicate="reject")
    async def ask_coach(self, ctx: RunContext, question: str) -> str:
        """Ask the coach, who knows much and is slow. The answer comes later.

        Args:
            question: What the coach should think about, in full.
        """
        await ctx.update(f"The coach is thinking about: {question}")
        return await self._coach(question, ctx.update)
