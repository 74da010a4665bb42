"""Side tasks of chat pages: titles, tags, what could be asked next. Answered without memory, and never remembered."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import ClassVar

from mindstream.models.prompt import Prompt, rule
from mindstream.reasoners.conversation import Line

BEGINS = "### Task:"
"""So Open WebUI's own prompts begin; what it shows of a talk stands in the tags of `SHOWS_TALK`."""
SHOWS_TALK = ("<chat_history>", "{{MESSAGES")
OTHER_FORMS = (
    "Your task is to reflect the speaker's likely facial expression through a fitting emoji.",
    "You have been provided with a set of responses from various models to the latest user query:",
    "Provide a concise, 5-word-or-less title for the conversation,",
    "Please generate a concise, 5-word-or-less title for the conversation,",
)
"""So others of its prompts begin, word for word, and those of LibreChat."""
TOOLS_FORM = "Available Tools: "
_BLOCK = re.compile(
    r"^[ \t]*<(context|sources?|documents?|attached_files?|files?|search_results?|web_search|knowledge|retrieved_\w+)"
    r"\b[^>]*>.*</\1>[ \t]*$",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
"""Content that a page found for the user's words: from the first opening tag to the last closing one, since a document
may contain such tags."""
_RULED = re.compile(r"^[^\n]{0,200}\n-{5,}\n.*\n-{5,}$", re.DOTALL | re.MULTILINE)
"""The same in the form of LlamaIndex's default template: between two lines of dashes."""
_ASKED = (
    re.compile(r"<user_query>(.*)</user_query>", re.DOTALL | re.IGNORECASE),
    re.compile(r"^(?:user )?(?:query|question):[ \t]*(.+?)(?:\n+(?:answer|response):\s*)?\Z", re.DOTALL | re.I | re.M),
)
"""Where templates of chat pages put the user's words."""
_HEADING = re.compile(r"\n#{1,6} [^\n]{0,60}\Z")
ONLY_DOCUMENTS = "(a document, and no words of their own)"


class PageTask(Prompt[str]):
    """Do what a chat page wants for its own use."""

    role: ClassVar[str] = "side_tasks"
    reply_tokens: ClassVar[int] = 600

    text: str


@rule(PageTask)
def leave_it_undone(ask: PageTask) -> str:  # noqa: ARG001
    """Stand in: give an empty answer of JSON, which pages take for none."""
    return "{}"


def is_page_task(instructions: str, lines: Sequence[Line], text: str) -> bool:
    """Tell whether a page asks for itself: by the written form of its prompts, where nothing was said before."""
    if lines:
        return False
    start = text.lstrip()
    shows = start.startswith(BEGINS) and any(mark in start for mark in SHOWS_TALK)
    return shows or start.startswith(OTHER_FORMS) or instructions.lstrip().startswith(TOOLS_FORM)


def split_context(text: str) -> tuple[str, str]:
    """Return what the user said, and what the page put beside it: documents and the page's own instructions.

    A message of which no words are recognised as the user's own is taken for third-party content as a whole.
    """
    blocks = _BLOCK.search(text) or _RULED.search(text)
    if blocks is None:
        return text, ""
    before, after = text[: blocks.start()].strip(), text[blocks.end() :].strip()
    for form in _ASKED:
        if asked := form.search(after):
            return asked[1].strip() or ONLY_DOCUMENTS, text[: blocks.end()]
    if not after:  # the user's words come first, perhaps with a heading between them and the documents
        said = "" if before.startswith(BEGINS) else _HEADING.sub("", f"\n{before}").strip()
        return said or ONLY_DOCUMENTS, text[blocks.start() :]
    return after, text[: blocks.end()]
