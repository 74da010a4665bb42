"""A simple in-process memory capability for pydantic-ai: facts per user, kept for the process's life.

It contributes instructions (what the memory is for, and what is known about this run's user)
and three tools: remember, recall, forget.
"""
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from pydantic_ai import FunctionToolset, RunContext
from pydantic_ai.capabilities import AbstractCapability


def _words(text: str) -> set[str]:
    return set(re.findall(r"[a-z0-9]+", text.lower()))


@dataclass
class InProcessMemory(AbstractCapability[Any]):
    """Memory across runs. `user` says whose memory a run uses, from its RunContext."""

    user: Callable[[RunContext[Any]], str]
    facts: dict[str, dict[int, str]] = field(default_factory=dict)
    last_id: int = 0

    def get_instructions(self):
        return [
            "You have a memory that lasts between conversations. Use the tool remember for lasting facts "
            "about the user, recall to look something up, forget when the user asks for it.",
            self._known,
        ]

    def _known(self, ctx: RunContext[Any]) -> str:
        facts = self.facts.get(self.user(ctx), {})
        if not facts:
            return "Nothing is known about this user yet."
        return "Known about this user:\n" + "\n".join(f"- {fact}" for fact in facts.values())

    def get_toolset(self):
        toolset = FunctionToolset[Any]()

        @toolset.tool
        def remember(ctx: RunContext[Any], content: str) -> str:
            """Store one lasting fact about the user."""
            self.last_id += 1
            self.facts.setdefault(self.user(ctx), {})[self.last_id] = content
            return f"Remembered as {self.last_id}."

        @toolset.tool
        def recall(ctx: RunContext[Any], query: str) -> str:
            """Search the user's memories, best match first."""
            ranked = sorted(
                self.facts.get(self.user(ctx), {}).items(),
                key=lambda item: len(_words(query) & _words(item[1])),
                reverse=True,
            )
            hits = [f"{key}: {fact}" for key, fact in ranked if _words(query) & _words(fact)]
            return "\n".join(hits[:3]) or "Nothing found."

        @toolset.tool
        def forget(ctx: RunContext[Any], query: str) -> str:
            """Delete the remembered fact about the user that matches best."""
            mine = self.facts.get(self.user(ctx), {})
            best = max(mine, key=lambda key: len(_words(query) & _words(mine[key])), default=None)
            if best is None or not _words(query) & _words(mine[best]):
                return "Nothing to forget."
            return f"Forgot: {mine.pop(best)}"

        return toolset
