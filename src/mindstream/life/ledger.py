"""The ledger of a life: its open, waiting and finished tasks. A person may read and change it at any time."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo

from pydantic import BaseModel

from mindstream.clock import Moment, format_spoken
from mindstream.errors import InputError
from mindstream.frozen import Frozen
from mindstream.life.events import Standing, TaskChanged

KEPT = 20
"""Maximum number of finished tasks that stay in the ledger; older ones are in the log."""
MOST = 100
"""Maximum number of open and waiting tasks together."""
LONGEST = 300


class Task(Frozen):
    """A task of a life.

    Attributes:
        until: for a waiting task: when it can be worked on; None: only after a person opens it again.
        place: position in the ledger; tasks are sorted by this number.
        result: the result of a finished task, in words.
    """

    number: int
    text: str
    standing: Standing = "open"
    until: Moment | None = None
    place: float = 0.0
    result: str = ""

    @property
    def is_left(self) -> bool:
        """Whether the task is unfinished: open or waiting, not done or given up."""
        return self.standing in ("open", "waiting")

    def can_be_done(self, now: Moment) -> bool:
        """Return whether the task can be worked on now."""
        return self.standing == "open" or (self.standing == "waiting" and self.until is not None and self.until <= now)

    def changed(self, standing: Standing, until: Moment | None = None, result: str = "") -> TaskChanged:
        """Return the event that changes the state of the task; `result`: the new result; "": the old result stays."""
        return TaskChanged(
            task=self.number,
            text=self.text,
            standing=standing,
            until=until,
            place=self.place,
            result=result or self.result,
        )


class Ledger(BaseModel):
    """The tasks of a life, by number."""

    tasks: dict[int, Task] = {}
    last: int = 0
    """The highest task number so far."""

    def apply(self, event: TaskChanged) -> None:
        """Apply an event. If two processes have added different tasks with the same number, the second task gets
        another number. Of the finished tasks, only the KEPT that changed last remain."""
        held = self.tasks.get(event.task)
        if held is not None and held.text != event.text:
            same = self._find_left(event.text)
            event = event.model_copy(update={"task": same.number if same else self.last + 1})
        self.last = max(self.last, event.task)
        self.tasks.pop(event.task, None)  # the newest change is last, so that the oldest finished tasks are dropped
        self.tasks[event.task] = _task(event)
        for each in [each for each in self.tasks.values() if not each.is_left][:-KEPT]:
            del self.tasks[each.number]

    def find_added(self, event: TaskChanged) -> Task:
        """Return the task that an event has added; its number may differ from that of the event."""
        there = self.tasks.get(event.task)
        if there is not None and there.text == event.text:
            return there
        return self._find_left(event.text) or _task(event)

    def _find_left(self, text: str) -> Task | None:
        """Return the open or waiting task with this text; None: there is none."""
        return next((each for each in self.tasks.values() if each.is_left and each.text == text), None)

    def find(self, number: int) -> Task:
        """Return a task.

        Raises:
            InputError: there is no task of that number.
        """
        if number not in self.tasks:
            there = ", ".join(str(each.number) for each in self.ordered()) or "none"
            raise InputError(f"there is no task {number}; the task numbers are: {there}")
        return self.tasks[number]

    def add(self, text: str, until: Moment | None = None) -> TaskChanged:
        """Return the event that adds a task at the end.

        Raises:
            InputError: the text is empty, the ledger is full, or an open task has the same text.
        """
        words = " ".join(text.split())
        if not words:
            raise InputError("the text of a task is empty; describe what has to be done")
        if len(self.left()) >= MOST:
            raise InputError(f"the ledger has {MOST} open or waiting tasks, its maximum; finish or stop some first")
        if same := next((t for t in self.tasks.values() if t.text == words[:LONGEST] and t.standing == "open"), None):
            raise InputError(f"task {same.number} already has this text")
        place = max((each.place for each in self.tasks.values()), default=0.0) + 1
        return TaskChanged(
            task=self.last + 1, text=words[:LONGEST], standing="waiting" if until else "open", until=until, place=place
        )

    def move(self, number: int, before: int) -> TaskChanged:
        """Return the event that moves the task with this number directly before another one.

        Raises:
            InputError: one of the numbers is unknown.
        """
        task, other = self.find(number), self.find(before)
        earlier = [each.place for each in self.tasks.values() if each.place < other.place and each.number != number]
        place = (max(earlier) + other.place) / 2 if earlier else other.place - 1
        return task.changed(task.standing, task.until).model_copy(update={"place": place})

    def ordered(self) -> list[Task]:
        """Return the tasks sorted by position, finished ones last."""
        return sorted(self.tasks.values(), key=lambda each: (not each.is_left, each.place))

    def left(self) -> list[Task]:
        """Return the unfinished tasks, sorted by position."""
        return [each for each in self.ordered() if each.is_left]

    def to_do(self, now: Moment) -> Iterator[Task]:
        """Yield the tasks that can be worked on now, in order."""
        return (each for each in self.ordered() if each.can_be_done(now))

    def next_due(self) -> Moment | None:
        """Return the first time at which a waiting task can be worked on; None: no task waits for a time."""
        return min(
            (each.until for each in self.tasks.values() if each.standing == "waiting" and each.until), default=None
        )

    def lines(self, now: Moment, zone: tzinfo | None = None) -> list[str]:
        """Return the unfinished tasks, one line each; times are in this zone, None: the machine's zone."""
        return [line_of(each, now, zone) for each in self.left()]


def _task(event: TaskChanged) -> Task:
    return Task(
        number=event.task,
        text=event.text,
        standing=event.standing,
        until=event.until,
        place=event.place,
        result=event.result,
    )


def line_of(task: Task, now: Moment, zone: tzinfo | None = None) -> str:
    """Return a task as one line of text."""
    if task.standing == "waiting" and not task.can_be_done(now):
        when = f"waits until {format_spoken(task.until, zone)}" if task.until else "waits"
        return f"{task.number}. {task.text} ({when})"
    ended = {"done": " (done)", "stopped": " (given up)"}.get(task.standing, "")
    return f"{task.number}. {task.text}{ended}"
