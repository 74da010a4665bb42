"""M2's tools for the ledger: a task is added, finished, or waits for its time."""

from __future__ import annotations

from datetime import tzinfo

from mindstream.clock import Moment, format_spoken
from mindstream.errors import InputError, ToolError
from mindstream.life.events import TaskChanged
from mindstream.life.ledger import Task, line_of
from mindstream.life.prompts import spec_of
from mindstream.life.steps import Done, Steps
from mindstream.life.tools.own_tools import Arguments, OwnTool, Where
from mindstream.text.times import read_moment
from mindstream.tools.call import Observation

LONGEST = 1_000


class LedgerTools:
    """The tools `add_task`, `finish_task` and `wait_task`."""

    def __init__(self, steps: Steps, language: str, zone: tzinfo) -> None:
        self._steps, self._language, self._zone = steps, language, zone

    def tools(self) -> tuple[OwnTool, ...]:
        """Return them."""
        does = {"add_task": self._add, "finish_task": self._finish, "wait_task": self._wait}
        return tuple(OwnTool(spec_of(name, self._language), do) for name, do in does.items())

    async def _add(self, given: Arguments, where: Where) -> Done:  # noqa: ARG002
        until = self._moment(given.when) if given.when.strip() else None
        try:
            event = self._steps.state.ledger.add(given.text, until)
        except InputError as error:
            raise ToolError(str(error)) from None
        return self._done(f"task {event.task} was added", event)

    async def _finish(self, given: Arguments, where: Where) -> Done:  # noqa: ARG002
        task, result = self._task(given), given.result[:LONGEST]
        if not given.done:
            return self._done(f"task {task.number} is given up", task.changed("stopped", result=result))
        return self._done(f"task {task.number} is done", task.changed("done", result=result))

    async def _wait(self, given: Arguments, where: Where) -> Done:  # noqa: ARG002
        task, until = self._task(given), self._moment(given.until)
        return self._done(
            f"task {task.number} waits until {format_spoken(until, self._zone)}", task.changed("waiting", until)
        )

    def _done(self, said: str, event: TaskChanged) -> Done:
        ledger = self._steps.state.ledger.model_copy(deep=True)
        ledger.apply(event)
        now = self._steps.memory.clock.now()
        left = "\n".join(ledger.lines(now, self._zone)) or "nothing is left to do"
        return Done(Observation(f"{said}; the ledger now:\n{left}"), events=(event,))

    def _task(self, given: Arguments) -> Task:
        ledger = self._steps.state.ledger
        try:
            task = ledger.find(int(str(given.task).strip().lstrip("#")))
        except InputError as error:
            raise ToolError(str(error)) from None
        except ValueError:
            there = "; ".join(line_of(each, 0.0) for each in ledger.ordered()[:10])
            raise ToolError(f"{given.task!r} is no number of a task; there are: {there}") from None
        if task.standing in ("done", "stopped"):
            raise ToolError(f"task {task.number} is over already")
        return task

    def _moment(self, words: str) -> Moment:
        now = self._steps.memory.clock.now()
        try:
            at = read_moment(words, now, self._zone)
        except InputError as error:
            raise ToolError(str(error)) from None
        if at is None:
            raise ToolError(
                f"{words[:80]!r} is no time; write it as: in 2 hours, tomorrow 9:00, monday 8:00, Feb 14 19:00"
            )
        return at
