"""Handle the special content of chat pages: embedded documents, tasks of the page itself, branches, time zones.

The companion's answers are made in minds/chat_bot.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo
from typing import ClassVar

from mindstream.log.declared import Name, Names
from mindstream.log.events import Event
from mindstream.memory.conversation import Line
from mindstream.models.prompt import Prompt, rule


class TalkZone(tzinfo):
    """The time zone of a conversation, which may change with each message.

    Attributes:
        place: the current zone.
    """

    def __init__(self, place: tzinfo) -> None:
        self.place = self._usual = place

    def move(self, place: tzinfo | None) -> None:
        """Change to a time zone; None: to the default one."""
        self.place = place or self._usual

    def utcoffset(self, at: datetime | None) -> timedelta | None:
        return self.place.utcoffset(at and at.replace(tzinfo=self.place))

    def dst(self, at: datetime | None) -> timedelta | None:
        return self.place.dst(at and at.replace(tzinfo=self.place))

    def tzname(self, at: datetime | None) -> str | None:
        return self.place.tzname(at and at.replace(tzinfo=self.place))

    def fromutc(self, at: datetime) -> datetime:
        return self.place.fromutc(at.replace(tzinfo=self.place)).replace(tzinfo=self)


BEGINS = "### Task:"
"""The beginning of prompts that Open WebUI sends for its own use, such as for a title."""
SHOWS_TALK = ("<chat_history>", "{{MESSAGES")
"""Markers of the conversation; a prompt that begins with BEGINS contains at least one of them."""
OTHER_FORMS = (
    "Your task is to reflect the speaker's likely facial expression through a fitting emoji.",
    "You have been provided with a set of responses from various models to the latest user query:",
    "Provide a concise, 5-word-or-less title for the conversation,",
    "Please generate a concise, 5-word-or-less title for the conversation,",
)
"""The literal beginnings of Open WebUI's prompts that do not begin with BEGINS, and of LibreChat's prompts."""
TOOLS_FORM = "Available Tools: "
"""The beginning of the system message with which Open WebUI has a model choose tools."""
_BLOCK = re.compile(
    r"^[ \t]*<(context|sources?|documents?|attached_files?|files?|search_results?|web_search|knowledge|retrieved_\w+)"
    r"\b[^>]*>.*</\1>[ \t]*$",
    re.DOTALL | re.MULTILINE | re.IGNORECASE,
)
"""Documents that a chat page adds to the user's message: from the first opening tag to the last closing one, because a
document may itself contain such tags."""
_RULED = re.compile(r"^[^\n]{0,200}\n-{5,}\n.*\n-{5,}$", re.DOTALL | re.MULTILINE)
"""Documents in the form of LlamaIndex's default template: between two lines of dashes."""
_ASKED = (
    re.compile(r"<user_query>(.*)</user_query>", re.DOTALL | re.IGNORECASE),
    re.compile(r"^(?:user )?(?:query|question):[ \t]*(.+?)(?:\n+(?:answer|response):\s*)?\Z", re.DOTALL | re.I | re.M),
)
"""Patterns of the user's words in the templates of chat pages."""
_HEADING = re.compile(r"\n#{1,6} [^\n]{0,60}\Z")
"""A heading at the end of a text."""
ONLY_DOCUMENTS = "(a document, and no words of their own)"
"""Replaces the user's words if a message contains only documents."""


class PageTask(Prompt[str]):
    """Answer a request that a chat page makes for its own use, such as for a title or tags."""

    role: ClassVar[str] = "side_tasks"
    reply_tokens: ClassVar[int] = 600

    text: str


@rule(PageTask)
def leave_it_undone(ask: PageTask) -> str:  # noqa: ARG001
    """Rule-based default: return an empty JSON answer, which chat pages ignore."""
    return "{}"


def is_page_task(instructions: str, lines: Sequence[Line], text: str) -> bool:
    """Return whether a request is for the chat page's own use, such as for a title: it has no earlier lines, and the
    form of such a prompt."""
    if lines:
        return False
    start = text.lstrip()
    shows = start.startswith(BEGINS) and any(mark in start for mark in SHOWS_TALK)
    return shows or start.startswith(OTHER_FORMS) or instructions.lstrip().startswith(TOOLS_FORM)


def split_context(text: str) -> tuple[str, str]:
    """Split a message into the user's own words and the text that the chat page added: documents and instructions.

    If no words are recognized as the user's own, the whole message is treated as third-party content.
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


class Branched(Event):
    """A chat page shows another conversation than the stored one: lines were edited, or are answered again."""

    kind = "branched"
    session: Name
    left: Names = ()
    """Ids of the records of the abandoned lines, which are history now."""
    taken_up: Names = ()
    """Ids of abandoned records that are valid again."""


EVENTS: tuple[type[Event], ...] = (Branched,)
