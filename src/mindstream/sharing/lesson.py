"""Lessons: local conventions, quirks and procedures that agents learn from experience, in one or two sentences each.

The state of a lesson is computed from the pool's log: who wrote it, which tasks confirm or contradict it, and whether
answers were right that were given with the lesson in the prompt. A lesson that verdicts contradict too often is retired
by this computation, without another event.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from mindstream.clock import Moment
from mindstream.log.events import Logged
from mindstream.memory.store.redaction import MARK
from mindstream.sharing import events
from mindstream.sharing.exemplar import question_id

VOUCHED = "by hand"
"""The entry of `Lesson.confirmed_by` if a member who is listed by name wrote the lesson by hand, or the owner vouched
for it. All other entries are digests of tasks."""
BY_HAND = "written by hand"
"""The source of a lesson that a person wrote, unless the person names another one."""
MAX_WRONG = 3
"""Minimum number of wrong answers given with a lesson in the prompt before the lesson is flagged
(`Lesson.is_flagged`)."""

UTILITY_PRIOR = 4
"""Number of neutral answers (neither right nor wrong) that are added to compute `Lesson.utility`. They keep the utility
near 0 until there are several answers."""


@dataclass
class Lesson:
    """The current state of a lesson.

    Attributes:
        applies: when the lesson applies; "": always.
        sources: the evidence for the lesson: tasks, corrections, documents.
        asked_by: the user whose statements the lesson is based on; "" if this user is the pool's owner or listed as a
            member by name.
        private: whether the lesson is shown only to `asked_by` (if `asked_by` is "", to the writer) until it is shared.
        untrusted: whether third-party content was part of the work that the lesson was learned from; False after the
            owner has vouched for the lesson.
        confirmed_by: digests of the tasks whose verdicts confirm the lesson, and perhaps VOUCHED.
        contradicted_by: digests of the tasks whose verdicts contradict the current text.
        right: number of right answers given with the lesson in the prompt, also with its earlier texts.
        wrong: number of wrong answers given with the current text in the prompt.
        useful: time of the newest right answer given with the lesson in the prompt; None: there was none.
        disputes: ids of lessons that contradict this lesson.
        retired: why the lesson is no longer shown; "": it is not retired.
        by_hand: the person who wrote the current text without naming a source; "": the text has another source, such as
            a task.
        version: the log row of the current text. An amendment names the version that the amendment's writer has read.
    """

    id: str
    text: str
    applies: str
    state: Literal["confirmed", "assumed"]
    writer: str
    asked_by: str
    private: bool
    untrusted: bool
    at: Moment
    sources: tuple[str, ...] = ()
    confirmed_by: set[str] = field(default_factory=set)
    contradicted_by: set[str] = field(default_factory=set)
    right: int = 0
    wrong: int = 0
    useful: Moment | None = None
    disputes: set[str] = field(default_factory=set)
    retired: str = ""
    by_hand: str = ""
    version: int = 0

    @property
    def is_flagged(self) -> bool:
        """Whether at least MAX_WRONG wrong answers were given with the lesson, and there are more wrong answers than
        right answers and confirmations together."""
        return self.wrong >= MAX_WRONG and self.wrong > self.right + len(self.confirmed_by)

    @property
    def utility(self) -> float:
        """The balance of right and wrong answers given with the lesson, from -1 to 1; near 0 with few answers."""
        return (self.right - self.wrong) / (self.right + self.wrong + UTILITY_PRIOR)

    def is_open(self, reader: str) -> bool:
        """Return whether the lesson is shared, or private to this reader.

        The caller also has to check whether the reader may read texts of the lesson's writer (`PoolState.may_read`).
        """
        return not self.private or reader == (self.asked_by or self.writer)

    def line(self, names: dict[str, str]) -> str:
        """Return the lesson as a line of a prompt.

        Args:
            names: the short names (L1, L2) of the lessons in the prompt, by lesson id.
        """
        marks = [f"confirmed by {len(self.confirmed_by)}" if self.state == "confirmed" else "assumed, not checked"]
        if self.contradicted_by:
            marks.append(f"contradicted by {len(self.contradicted_by)}")
        if self.untrusted:
            marks.append("learned from third-party text")
        if self.is_flagged:
            marks.append(f"{self.wrong} wrong answers were given with it")
        if others := [names[each] for each in sorted(self.disputes) if each in names]:
            marks.append(f"{' and '.join(others)} says otherwise")
        when = f" When: {self.applies}." if self.applies else ""
        return f"{names.get(self.id, '-')} ({'; '.join(marks)}): {self.text}{when}"


@dataclass
class LessonBook:
    """All lessons of a pool, by id."""

    lessons: dict[str, Lesson] = field(default_factory=dict)
    _judged: set[tuple[str, str, bool]] = field(default_factory=set)

    def fold(self, row: Logged) -> None:
        """Apply a row of the log; rows that are not about lessons change nothing."""
        match row.event:
            case events.LessonWritten() as event:
                self._write(event, row)
            case events.LessonsShared(ids=ids, vouched=vouched):
                for each in self._of(ids):
                    each.private = False
                    each.untrusted = each.untrusted and not vouched
                    if vouched:
                        each.state = "confirmed"
                        each.confirmed_by.add(VOUCHED)
            case events.LessonRetired(ids=ids, because=because):
                for each in self._of(ids):
                    each.retired = because or "retired"
            case events.TaskJudged() as event:
                self._judge(event, row.at)

    def is_judged(self, task: str) -> bool:
        """Return whether a verdict on a task, given by its digest, was recorded."""
        return any(task == each for each, *_ in self._judged)

    def _of(self, ids: tuple[str, ...]) -> Iterator[Lesson]:
        return (self.lessons[id_] for id_ in ids if id_ in self.lessons)

    def _write(self, event: events.LessonWritten, row: Logged) -> None:
        """Add or amend a lesson.

        If the lesson was amended since the writer read it, the new text becomes another lesson. The two are shown as
        contradicting each other until one of them is retired.
        """
        one, versions = self.lessons.get(event.id), dict(zip((event.id, *event.replaces), event.reads, strict=False))
        if event.text == MARK:  # the words of this version were erased; the lesson keeps those of the version before
            if one:
                one.version = row.seq
            return
        id_, disputes = event.id, set(event.disputes)
        if one and not self._is_read(event.id, versions) and one.text != event.text:
            id_ = question_id(f"{event.id} {row.seq}")
            disputes, one = disputes | {event.id}, None
        one = one or Lesson(
            id_, "", "", event.state, event.writer, event.asked_by, event.private, event.untrusted, row.at
        )
        one.text, one.applies, one.state, one.retired = event.text, event.applies, event.state, ""
        one.untrusted, one.version = one.untrusted or event.untrusted, row.seq
        one.by_hand = event.said_by if event.sources == (BY_HAND,) else ""
        one.contradicted_by, one.wrong = set(), 0  # these were about the earlier text
        for other in self._of(event.replaces):
            if not self._is_read(other.id, versions):
                disputes.add(other.id)
                continue
            one.sources += other.sources
            one.confirmed_by |= other.confirmed_by
            one.untrusted = one.untrusted or other.untrusted
            one.disputes |= other.disputes - {one.id}
            other.retired = f"merged into {one.id}"
        one.sources = tuple(dict.fromkeys([*one.sources, *event.sources]))
        if event.state == "confirmed":
            one.confirmed_by.add(event.task or VOUCHED)
        for other in self._of(tuple(disputes)):
            one.disputes.add(other.id)
            if not event.private:
                other.disputes.add(one.id)
        self.lessons[one.id] = one

    def _is_read(self, id_: str, versions: dict[str, int]) -> bool:
        """Return whether the writer of an event had read the current text of a lesson; True if this is not recorded.

        `versions`: the versions of lessons that the event says its writer had read, by id.
        """
        return versions.get(id_, self.lessons[id_].version) == self.lessons[id_].version

    def _judge(self, event: events.TaskJudged, at: Moment) -> None:
        verdict = event.task, event.by, event.right
        is_repeated = verdict in self._judged
        self._judged.add(verdict)
        for each in self._of(() if is_repeated else event.shown):
            each.right += event.right
            each.wrong += not event.right and each.id not in event.confirms
            each.useful = at if event.right else each.useful
        for each in self._of(event.confirms):
            each.confirmed_by.add(event.task)
            each.state = "confirmed"
        for each in self._of(event.contradicts):
            each.contradicted_by.add(event.task)
            against, confirmed = len(each.contradicted_by), len(each.confirmed_by)
            # a single contradiction may be a mistake
            if against > 1 and (against > confirmed or (against > 2 and against == confirmed)):
                each.retired = f"contradicted by the verdicts on {against} tasks"
