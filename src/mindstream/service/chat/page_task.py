"""Side tasks of chat pages: titles, tags, what could be asked next. Answered without memory, and never remembered."""

from __future__ import annotations

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
CONTEXT = ("<context>", "</context>")
"""What Open WebUI found for somebody's words stands between these, after a beginning as that of a task."""


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
    """Return what somebody said, and what their page put before it: ("", "") parts that are not there."""
    opens, closes = CONTEXT
    start = text.lstrip()
    if not start.startswith(BEGINS) or opens not in start or closes not in start:
        return text, ""
    before, _, said = start.rpartition(closes)
    return (said.strip(), before + closes) if said.strip() else (text, "")
