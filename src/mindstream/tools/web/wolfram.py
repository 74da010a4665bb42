"""Wolfram Alpha by its LLM API, which needs a key."""

from __future__ import annotations

from mindstream.errors import ToolError
from mindstream.models.providers.secrets import mask, remember
from mindstream.tools.tool import FunctionTool, ShortWords, tool
from mindstream.tools.traits import FROM_STRANGERS
from mindstream.tools.web.web import Web

LONGEST, NOT_UNDERSTOOD = 4_000, 501


def wolfram_tool(key: str, web: Web, url: str = "https://www.wolframalpha.com/api/v1/llm-api") -> FunctionTool:
    """Make the tool `wolfram`: https://products.wolframalpha.com/llm-api/documentation."""
    remember(key)

    async def wolfram(query: ShortWords) -> str:
        """Ask Wolfram Alpha in a few English words: mathematics, units, dates, science, countries.

        Returns its results as text.
        """
        parameters = {"input": query, "maxchars": str(LONGEST)}
        answer = await web.ask(url, parameters, headers={"Authorization": f"Bearer {key}"})
        if answer.status == NOT_UNDERSTOOD:
            raise ToolError(f"Wolfram Alpha does not understand {query!r}: ask in fewer, plainer words")
        answer.check("WOLFRAM_APP_ID")
        return mask(answer.text[:LONGEST]).strip() or "Wolfram Alpha answered with nothing"

    return tool(wolfram, FROM_STRANGERS)
