"""The tool `read_page`: the text of a web page."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from pydantic import Field

from mindstream.errors import ToolError
from mindstream.tools.child import run_child
from mindstream.tools.tool import UNTRUSTED, FunctionTool, tool
from mindstream.tools.web.web import Web, WebResponse

PART = 6_000
"""Maximum number of characters of a page that one call returns."""
PARSER = Path(__file__).with_name("file_text.py")
SECONDS, MEGABYTES = 5, 1_000
Place = Annotated[int, Field(ge=0, le=10_000_000)]


def page_tool(web: Web) -> FunctionTool:
    """Make the tool `read_page`."""

    async def read_page(url: str, from_character: Place = 0) -> str:
        """Read the text of a page of the web (http or https); what is long comes in parts, by `from_character`."""
        answer = await web.ask(url, follow=True, headers={"Accept": "text/html, text/*, application/json"})
        answer.check()
        text = await readable(answer)
        if from_character and from_character >= len(text):
            raise ToolError(f"that page has {len(text):,} characters")
        part = text[from_character : from_character + PART]
        end = from_character + len(part)
        if end < len(text):
            return f"{part}\n… (characters {from_character} to {end} of {len(text)}; the next part is from {end})"
        return f"{part}\n… (the page was too large, and its end is cut off)" if answer.is_cut else part

    return tool(read_page, UNTRUSTED)


async def readable(answer: WebResponse) -> str:
    """Return the text of a page, a paragraph a line.

    Raises:
        ToolError: the page is not text, or is empty.
    """
    kind = answer.content_type
    if kind and not (kind.startswith("text/") or kind.endswith(("json", "xml"))):
        raise ToolError(f"that page is {kind[:60]}, and only text is read")
    if b"\0" in answer.body[:1_000] and "utf-16" not in answer.headers.get("Content-Type", "").lower():
        raise ToolError("that page is not text")
    text = answer.text
    if "html" in kind or (not kind and "<html" in text[:1_000].lower()):
        text = await run_child(PARSER, "read_html", text, seconds=SECONDS, megabytes=MEGABYTES)
    if not text.strip():
        raise ToolError("there is no text on that page; it may be made by scripts, which are not run")
    return text
