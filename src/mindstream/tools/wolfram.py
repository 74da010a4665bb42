"""Wolfram Alpha by its LLM API, which needs a key."""

from __future__ import annotations

from dataclasses import dataclass, field

from mindstream.errors import ToolError
from mindstream.models.secrets import mask, remember
from mindstream.tools.tool import FunctionTool, tool
from mindstream.tools.traits import FROM_STRANGERS
from mindstream.tools.web import Web

LONGEST_QUERY, LONGEST = 400, 4_000
NOT_UNDERSTOOD = 501


@dataclass(frozen=True)
class Wolfram:
    """Wolfram Alpha: https://products.wolframalpha.com/llm-api/documentation."""

    key: str = field(repr=False)
    url: str = "https://www.wolframalpha.com/api/v1/llm-api"
    web: Web = field(default_factory=Web)

    def __post_init__(self) -> None:
        remember(self.key)

    async def look_up(self, query: str) -> str:
        """Return what Wolfram Alpha answers.

        Raises:
            ToolError: it does not understand the query, refuses the key, or failed.
        """
        if not query.strip() or len(query) > LONGEST_QUERY:
            raise ToolError(f"a query has 1 to {LONGEST_QUERY} characters")
        parameters = {"input": query, "maxchars": str(LONGEST)}
        answer = await self.web.ask(self.url, parameters, headers={"Authorization": f"Bearer {self.key}"})
        if answer.status == NOT_UNDERSTOOD:
            raise ToolError(f"Wolfram Alpha does not understand {query!r}: ask in fewer, plainer words")
        answer.check("WOLFRAM_APP_ID")
        return mask(answer.text[:LONGEST]).strip() or "Wolfram Alpha answered with nothing"


def wolfram_tool(source: Wolfram) -> FunctionTool:
    """Make the tool `wolfram`."""

    async def wolfram(query: str) -> str:
        """Ask Wolfram Alpha in a few English words: mathematics, units, dates, science, countries.

        Returns its results as text.
        """
        return await source.look_up(query)

    return tool(wolfram, FROM_STRANGERS)
