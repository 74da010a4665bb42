"""Handle the special content of chat pages: embedded documents, tasks of the page itself, branches, time zones.

The companion's answers are made in minds/chat_bot.

A page sends the whole conversation with each new message. The conversation is compared with the stored one, so that no
message is stored twice. An earlier line is either stored already, or unknown here because the user wrote it to another
model. If lines are missing at the beginning, the client has shortened the conversation. If the page no longer shows
another stored line, the user has edited that line or requested another answer, so the line's record is no longer valid.
If the page later returns to that branch of the conversation, the record becomes valid again.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from typing import ClassVar
from weakref import WeakKeyDictionary

from mindstream.clock import Moment
from mindstream.log.declared import Name, Names
from mindstream.log.events import Event, Heard, Logged
from mindstream.memory.conversation import Line
from mindstream.memory.memory import Memory
from mindstream.memory.store.columns import OPEN, Columns
from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Entry, Revision
from mindstream.models.prompt import Prompt, rule
from mindstream.models.untrusted import without_controls


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
"""Markers of the conversation. A text that begins with BEGINS counts as a prompt of Open WebUI only if it contains one
of these markers."""
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
"""Matches documents that a chat page adds to the user's message, from the first opening tag to the last closing tag: a
document may itself contain such tags."""
_RULED = re.compile(r"^[^\n]{0,200}\n-{5,}\n.*\n-{5,}$", re.DOTALL | re.MULTILINE)
"""Documents in the form of LlamaIndex's default template: between two lines of dashes."""
_ASKED = (
    re.compile(r"<user_query>(.*)</user_query>", re.DOTALL | re.IGNORECASE),
    re.compile(r"^(?:user )?(?:query|question):[ \t]*(.+?)(?:\n+(?:answer|response):\s*)?\Z", re.DOTALL | re.I | re.M),
)
"""Patterns that find the user's own question in a message of a chat page. The page has wrapped the question and the
documents in a template. Group 1 is the question."""
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
    """Return whether a request is for the chat page's own use, such as for a title. Such a request has no earlier
    lines, and its text or instructions have the form of a prompt of a chat page."""
    if lines:
        return False
    start = text.lstrip()
    shows = start.startswith(BEGINS) and any(mark in start for mark in SHOWS_TALK)
    return shows or start.startswith(OTHER_FORMS) or instructions.lstrip().startswith(TOOLS_FORM)


def split_context(text: str) -> tuple[str, str]:
    """Split a message into the user's own words and the text that the chat page added: documents and instructions.

    If the message contains added text but no words of the user, the first part is ONLY_DOCUMENTS.
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
    """Ids of the records of the abandoned lines; these records are no longer valid."""
    taken_up: Names = ()
    """Ids of abandoned records that are valid again."""


EVENTS: tuple[type[Event], ...] = (Branched,)


MAX_RECORDS = 400
"""Maximum number of records of a conversation that are compared; the newest are used."""
MAX_CONVERSATIONS = 20
"""Maximum number of conversations with the same first message that are compared; the newest are used."""
MAX_LINES = 120
"""If a chat page was edited, at most this many of its lines, the newest, are matched with stored records. Older lines
count as not stored."""
MATCH = 1_000
"""The score of one matched line when two alignments of a page with the stored records are compared; a valid record adds
1. The alignment with more matched lines wins; if both have equally many, the one with more valid records."""


@dataclass(frozen=True, slots=True)
class Followed:
    """The result of comparing the conversation that a chat page shows with the stored one.

    Attributes:
        again: the log row of the new message, if that message is stored already and needs another answer; else None.
        all_heard: whether all earlier lines of the page are stored.
    """

    again: Logged | None
    all_heard: bool


async def follow(memory: Memory, session: str, lines: Sequence[Line], text: str) -> Followed:
    """Update a stored conversation to what the chat page shows.

    Records that the page no longer shows become invalid. Records that the page shows again become valid again.

    Args:
        lines: the lines that the page shows before the new message.
        text: the new message.

    Raises:
        StorageError: the conversation cannot be read or written.
    """
    now = memory.clock.now()
    heard, path = await _after_shown(memory, session, lines, now), list[int | None]()
    if heard is None:
        heard = await heard_of(memory, session)
        path = find_path(lines, heard, now)
    found = [place for place in path if place is not None]
    last = found[-1] if found else -1
    all_heard = len(found) == len(path)
    again = _said_before(heard[last + 1 :], text, now) if all_heard else None
    kept = {heard[place].id for place in found} | ({again.id} if again else set())
    begins = path[0] if path else None
    # earlier lines are missing because the client shortened the conversation, not because the user took another branch
    is_cut = begins is not None and holds(heard[begins], now)
    first = found[0] if is_cut else -1
    left = [each for each in heard[first + 1 :] if each.id not in kept and holds(each, now)]
    restored = [each for each in heard if each.id in kept and not holds(each, now) and _was_left(each)]
    if left or restored:
        event = Branched(
            session=session, left=tuple(each.id for each in left), taken_up=tuple(each.id for each in restored)
        )
        ends = [Revision(id=each.id, valid_until=now) for each in left]
        holds_again = [Revision(id=each.id, emptied=("valid_until",)) for each in restored]
        await memory.commit(Entry(event, "mindstream", system=True), revisions=[*ends, *holds_again])
    return Followed(await _row_of(memory, again) if again else None, all_heard)


_marks: WeakKeyDictionary[Columns, dict[int, int]] = WeakKeyDictionary()
"""Hashes of messages, by row of the columns; 0: the message is not compared (see `heard_of`)."""


async def _after_shown(memory: Memory, session: str, lines: Sequence[Line], now: Moment) -> list[Record] | None:
    """Return the messages of a conversation (as `heard_of`) that follow the messages shown by a chat page.

    Return None if the page does not show exactly the first valid messages, or if a message was erased meanwhile.

    Only hashes are compared, so the texts of a long conversation are neither read nor held in memory.
    """
    columns, rows = await memory.message_rows(session, MAX_RECORDS)
    marks = _marks.setdefault(columns, {})
    if new := [row for row in rows if row not in marks]:
        records = await memory.records_at(columns, new)
        if len(records) < len(new):  # a record was erased meanwhile
            return None
        for row, each in zip(new, records, strict=True):
            marks[row] = 0 if each.evidence or not each.seq else _mark(each.text, bool(each.data.get("by_user")))
    is_valid = (columns.valid_until.values[rows] > now) & (columns.forgotten.values[rows] == OPEN)
    current = [row for row, valid in zip(rows, is_valid.tolist(), strict=True) if valid and marks[row]]
    if len(current) < len(lines):
        return None
    if any(_mark(line.text, line.by_user) != marks[row] for line, row in zip(lines, current, strict=False)):
        return None
    after = current[len(lines) - 1] if lines else -1
    rest = [row for row in rows if row > after and marks[row]]
    records = await memory.records_at(columns, rest)
    return records if len(records) == len(rest) else None


def _mark(text: str, by_user: bool) -> int:
    """Return a hash by which a line and a record are compared; never 0."""
    return hash((_plain(text), by_user)) or 1


async def find_talk(memory: Memory, session: str, lines: Sequence[Line]) -> str:
    """Return the name of the conversation that a chat page shows without naming it.

    Only conversations with the same first message are candidates. Return the newest candidate that contains all shown
    lines, else the candidate that contains most of them.

    If the page shows no earlier lines, the first message is new or is to be answered again. Return the newest candidate
    if it has at most two valid messages, else the name of a new conversation.

    Args:
        session: the name that is derived from the first message.
        lines: the lines that the page shows before the new message.
    """
    columns, now = await memory.columns(), memory.clock.now()
    names = [session]
    while names[-1] in columns.episodes:
        names.append(f"{session}.{len(names) + 1}")
    *there, new = names
    best, most = (there or names)[-1], 0
    for name in reversed(there[-MAX_CONVERSATIONS:]):
        heard = await heard_of(memory, name)
        if not lines:
            return name if sum(holds(each, now) for each in heard) <= 2 else new
        found = sum(place is not None for place in find_path(lines, heard, now))
        if found == len(lines):
            return name
        best, most = (name, found) if found > most else (best, most)
    return best


async def heard_of(memory: Memory, session: str) -> list[Record]:
    """Return the records of a conversation's messages in their order, including those of abandoned branches. Later
    corrections of a message, which have evidence, are left out."""
    found = await memory.messages(session, MAX_RECORDS)
    return sorted((each for each in found if not each.evidence and each.seq), key=lambda each: each.seq)


def find_path(lines: Sequence[Line], heard: Sequence[Record], now: Moment) -> list[int | None]:
    """Return for each line of a chat page the index of its record in `heard`; None: the line is not stored."""
    current = [place for place, each in enumerate(heard) if holds(each, now)]
    if len(lines) <= len(current) and all(map(is_same, lines, (heard[place] for place in current))):
        return list(current[: len(lines)])
    skipped = max(0, len(lines) - MAX_LINES)
    return [*[None] * skipped, *_longest_common(lines[skipped:], heard, set(current))]


def _longest_common(lines: Sequence[Line], heard: Sequence[Record], current: AbstractSet[int]) -> list[int | None]:
    """Return for each line the index of its record in `heard`, or None. As many lines as possible get a record, and the
    records are in the order of the lines. Of records with the same words, valid ones (`current`) are preferred."""
    gain = [MATCH + (place in current) for place in range(len(heard))]
    same = [[is_same(line, each) for each in heard] for line in lines]
    best = [[0] * (len(heard) + 1) for _ in range(len(lines) + 1)]
    for at in range(len(lines) - 1, -1, -1):
        for place in range(len(heard) - 1, -1, -1):
            without = max(best[at + 1][place], best[at][place + 1])
            best[at][place] = max(without, gain[place] + best[at + 1][place + 1]) if same[at][place] else without
    path, place = list[int | None](), 0
    for at in range(len(lines)):
        most = best[at][place]
        fits = (
            each
            for each in range(place, len(heard))
            if same[at][each] and gain[each] + best[at + 1][each + 1] == most and best[at][each] == most
        )
        found = next(fits, None) if most > best[at + 1][place] else None
        path.append(found)
        place = place if found is None else found + 1
    return path


def _said_before(after: Sequence[Record], text: str, now: Moment) -> Record | None:
    """Return the record of a user's message with this text.

    The result is the first valid message; without a valid message, the last abandoned message; without both, None.
    """
    there = [each for each in after if each.data.get("by_user") and _plain(each.text) == _plain(text)]
    current = [each for each in there if holds(each, now)]
    left = [each for each in there if _was_left(each)]
    return next(iter(current[:1] or left[-1:]), None)


async def _row_of(memory: Memory, record: Record) -> Logged | None:
    rows = await memory.store.events(memory.key, record.seq - 1, [Heard.kind], 1)
    return next((row for row in rows if isinstance(row.event, Heard) and row.event.record == record.id), None)


def is_same(line: Line, record: Record) -> bool:
    """Return whether a line has the text of a record.

    If an answer was interrupted, the page may show less or more of the answer than is stored. The line still counts as
    the same.
    """
    if line.by_user != bool(record.data.get("by_user")):
        return False
    if line.text == record.text:
        return True
    shown, kept = _plain(line.text), _plain(record.text)
    return shown == kept or (not line.by_user and bool(shown) and (shown.startswith(kept) or kept.startswith(shown)))


def _plain(text: str) -> str:
    return " ".join(without_controls(text).split())


def holds(record: Record, now: Moment) -> bool:
    """Return whether a record is valid at the time `now`, and not archived."""
    return record.forgotten is None and (record.valid_until is None or record.valid_until > now)


def _was_left(record: Record) -> bool:
    return record.forgotten is None and record.superseded_by is None
