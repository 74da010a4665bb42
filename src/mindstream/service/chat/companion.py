"""What chat pages send: documents beside the user's words, tasks of their own, conversations in branches, time zones.

The answers come from minds/chat_bot.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import datetime, timedelta, tzinfo
from typing import ClassVar

from mindstream.log.declared import NoWords
from mindstream.log.events import Event
from mindstream.memory.conversation import Line
from mindstream.models.prompt import Prompt, rule


class TalkZone(tzinfo):
    """The time zone of a conversation, which may change with each utterance.

    Attributes:
        place: the current zone.
    """

    def __init__(self, place: tzinfo) -> None:
        self.place = self._usual = place

    def move(self, place: tzinfo | None) -> None:
        """Change to a zone; None: the default one."""
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
"""The beginning of Open WebUI's own prompts; they contain the conversation in the tags of `SHOWS_TALK`."""
SHOWS_TALK = ("<chat_history>", "{{MESSAGES")
OTHER_FORMS = (
    "Your task is to reflect the speaker's likely facial expression through a fitting emoji.",
    "You have been provided with a set of responses from various models to the latest user query:",
    "Provide a concise, 5-word-or-less title for the conversation,",
    "Please generate a concise, 5-word-or-less title for the conversation,",
)
"""The beginnings of its other prompts, and of LibreChat's, word for word."""
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
"""How templates of chat pages embed the user's words."""
_HEADING = re.compile(r"\n#{1,6} [^\n]{0,60}\Z")
ONLY_DOCUMENTS = "(a document, and no words of their own)"


class PageTask(Prompt[str]):
    """Do what a chat page wants for its own use."""

    role: ClassVar[str] = "side_tasks"
    reply_tokens: ClassVar[int] = 600

    text: str


@rule(PageTask)
def leave_it_undone(ask: PageTask) -> str:  # noqa: ARG001
    """Rule-based default: return an empty JSON answer, which pages ignore."""
    return "{}"


def is_page_task(instructions: str, lines: Sequence[Line], text: str) -> bool:
    """Return whether a page asks for its own use: by the form of its prompts, if there are no earlier lines."""
    if lines:
        return False
    start = text.lstrip()
    shows = start.startswith(BEGINS) and any(mark in start for mark in SHOWS_TALK)
    return shows or start.startswith(OTHER_FORMS) or instructions.lstrip().startswith(TOOLS_FORM)


def split_context(text: str) -> tuple[str, str]:
    """Return the user's own words, and what the page added: documents and its own instructions.

    A message in which no words are recognised as the user's own is treated as third-party content.
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
    """A page shows another conversation than the one that was heard: lines were edited, or are answered again."""

    kind = "branched"
    session: NoWords[str]
    left: NoWords[tuple[str, ...]] = ()
    """Ids of the records of the abandoned lines, which are history now."""
    taken_up: NoWords[tuple[str, ...]] = ()
    """Ids of abandoned records that are valid again."""


EVENTS: tuple[type[Event], ...] = (Branched,)
