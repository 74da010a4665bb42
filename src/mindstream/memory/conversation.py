"""Conversations and notes in the form in which prompts contain them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from pydantic import BaseModel, ConfigDict

from mindstream.clock import DAY_S, Moment, format_iso
from mindstream.frozen import Frozen
from mindstream.memory.store.record import Record
from mindstream.models.model import Message
from mindstream.models.untrusted import cut, escaped, indented

USER = "user"
MAX_YES = 30
"""If the newest utterances have at most this many characters in total, they may confirm ("yes") the question before
them."""
MAX_SHOWN = 4_000
"""Maximum number of characters of a line or a note in a prompt."""


class Line(BaseModel):
    """A line of a conversation."""

    model_config = ConfigDict(frozen=True)

    by_user: bool
    text: str
    by: str = "mind"
    """The speaker's name, if the speaker is not the user."""
    later: str = ""
    """How much time has passed since the previous conversation, such as "the next day". Set only on the first line of a
    conversation that follows another one.
    """

    @property
    def words(self) -> str:
        return f"({self.later}) {self.text}" if self.later else self.text

    def __str__(self) -> str:
        return f"{USER if self.by_user else self.by}: {indented(cut(self.words, MAX_SHOWN))}"

    @property
    def message(self) -> Message:
        """The line as a message of a chat request; no delimiters are needed, because the message has a role."""
        return Message("user" if self.by_user else "assistant", escaped(self.words))


class DatedLine(Line):
    """A line of an earlier conversation, with its day."""

    day: str

    def __str__(self) -> str:
        return f"{self.day} {super().__str__()}"


class Note(Frozen):
    """A memory with the day on which it was written."""

    day: str
    text: str

    def __str__(self) -> str:
        return f"{self.day}: {indented(cut(self.text, MAX_SHOWN))}"


def note(record: Record, now: Moment | None = None) -> Note:
    """Return a record as a note. Its day is relative to `now`; None: the date."""
    return Note(day=_day(record, now), text=record.text)


def _day(record: Record, now: Moment | None) -> str:
    return format_iso(record.created)[:10] if now is None else format_ago(now - record.created)


def format_ago(passed_s: float) -> str:
    """Return how long ago a moment was, such as "3 days ago"; "earlier" if it was less than half a day ago. Days are
    rounded periods of 24 hours, not calendar days, because the time zone is unknown.
    """
    return _format_days(passed_s, "earlier", "a day ago", "ago")


def _format_days(passed_s: float, none: str, one: str, end: str) -> str:
    days = round(passed_s / DAY_S)
    return none if days < 1 else one if days == 1 else f"{days} days {end}"


def dated_line(record: Record, now: Moment | None = None) -> DatedLine:
    """Return a chat record as a line of an earlier conversation. If `now` is given, the day of the line is relative to
    `now`."""
    by_user = bool(record.data.get("by_user"))
    return DatedLine(day=_day(record, now), by_user=by_user, text=record.text, by=record.by)


def lines(records: Sequence[Record]) -> tuple[Line, ...]:
    """Return chat records as lines, without the time since the previous conversation (`later`)."""
    return tuple(Line(by_user=bool(record.data.get("by_user")), text=record.text, by=record.by) for record in records)


def lines_of_talks(
    records: Sequence[Record], session: str, now: Moment, known: Mapping[str, Line] = MappingProxyType({})
) -> tuple[Line, ...]:
    """Return chat records of several conversations as lines; lines of other sessions than `session` have a day.

    The first line of a new conversation says how much time has passed since the last line of the conversation before.

    Args:
        known: lines of `session` that exist already, by the id of their record.
    """
    found, before = list[Line](), None
    for record in records:
        own = (known.get(record.id) or lines([record])[0]) if record.episode == session else None
        line = own or dated_line(record, now)
        if before and record.episode != before.episode:
            line = line.model_copy(update={"later": format_later(record.created - before.created)})
        found.append(line)
        before = record
    return tuple(found)


def format_later(passed_s: float) -> str:
    """Return how much later a moment is: "later", "the next day", or for example "3 days later".

    The time is rounded to periods of 24 hours. These are not calendar days, because the time zone is unknown.
    """
    return _format_days(passed_s, "later", "the next day", "later")


def user_statements(conversation: Sequence[Line], utterances: Sequence[str]) -> Iterator[str]:
    """Yield the user's statements, the utterances last.

    If the utterances are short ("yes, exactly"), they may confirm a question. The newest line of the other speaker is
    then yielded before the utterances, if this line contains a question.
    """
    yield from (line.text for line in conversation if line.by_user)
    asked = next((line.text for line in reversed(conversation) if not line.by_user), "")
    if len(" ".join(utterances)) <= MAX_YES and ("?" in asked or "？" in asked):
        yield asked
    yield from utterances
