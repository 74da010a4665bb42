"""The built-in tools of a life's roles: argument checks, the tool I (asks the user) and the ledger's tools."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import tzinfo
from typing import Protocol

from pydantic import BaseModel, Field, ValidationError

from mindstream.clock import Moment, format_spoken
from mindstream.errors import InputError, ReplyInvalid, ToolError
from mindstream.life.events import Questioned, TaskChanged
from mindstream.life.ledger import Task, line_of
from mindstream.life.prompts import NOT_YET, spec_of
from mindstream.life.schedule import Rhythm
from mindstream.life.steps import Done, Steps
from mindstream.models.model import Call, ToolSpec
from mindstream.models.prompt import complaints
from mindstream.models.reply import first_json
from mindstream.text.times import read_moment
from mindstream.text.words import count_words
from mindstream.tools.call import Observation
from mindstream.tracing import fail, genai, span, tell

LONGEST = 20_000
"""Maximum length of a task, a question or a context, in characters."""
LONGEST_MEMORY = 4_000
"""Maximum length of a memory, in characters."""
LONGEST_WAIT_S = 7 * 86_400
"""Maximum time that the tool I waits for the user, in seconds."""


class Arguments(BaseModel, extra="ignore"):
    query: str = Field("", max_length=LONGEST)
    memory: str = Field("", max_length=LONGEST_MEMORY)
    replaces: str = Field("", max_length=LONGEST_MEMORY)
    question: str = Field("", max_length=LONGEST)
    context: str = Field("", max_length=LONGEST)
    task: int | str = ""
    tip: str = Field("", max_length=2_000)
    timeout: int = Field(0, ge=0, le=LONGEST_WAIT_S)
    text: str = Field("", max_length=LONGEST)
    when: str = Field("", max_length=200)
    until: str = Field("", max_length=200)
    result: str = Field("", max_length=LONGEST)
    done: bool = True
    need: str = Field("", max_length=2_000)


@dataclass(frozen=True, slots=True)
class Where:
    """The origin of a call.

    Attributes:
        id: the id of the call.
        role: the role that makes the call: M2, M1 or M0.
        tainted: whether this role has read third-party content.
        row: the log row of the call. If a crash has interrupted an earlier attempt at the call, the rows that this
            attempt has written come later.
        given: web addresses that may be fetched even if the role is tainted (tools/call.py).
    """

    id: str
    role: str
    tainted: bool = False
    row: int = 0
    given: frozenset[str] = frozenset()


class LifeTool(Protocol):
    """A tool that a role may call."""

    @property
    def spec(self) -> ToolSpec: ...

    async def __call__(self, call: Call, where: Where) -> Done:
        """Make the call.

        Raises:
            ToolError: the arguments do not fit, or the call failed; the message is shown to the model.
        """


@dataclass(frozen=True, slots=True)
class OwnTool:
    """A built-in tool of a role: its specification, and the function that carries it out.

    Attributes:
        after: called after a successful call, for its effect in this process. It is also called when the result is
            read from the log.
    """

    spec: ToolSpec
    _does: Callable[[Arguments, Where], Awaitable[Done]]
    after: Callable[[Arguments], Awaitable[None]] | None = None

    async def __call__(self, call: Call, where: Where) -> Done:
        named = {genai.TOOL: call.tool, genai.CALL_ID: call.id, genai.ARGUMENTS: call.arguments}
        with span(genai.EXECUTE_TOOL, call.tool, named) as traced:
            try:
                done = await self._does(self.checked(call), where)
            except InputError as error:
                raise ToolError(str(error)) from None
            tell(traced, {genai.RESULT: done.found.text})
            if done.found.failed:
                fail(traced, ToolError.__name__)
            return done

    def checked(self, call: Call) -> Arguments:
        """Parse and check the arguments of a call; raise ToolError if they do not fit."""
        try:
            given = first_json(call.arguments, dict) if call.arguments.strip() else {}
            arguments = Arguments.model_validate({k: v for k, v in given.items() if v is not None})
        except ValidationError as error:
            raise ToolError(f"{self.spec.name}: the arguments do not fit: {complaints(error)}") from None
        except ReplyInvalid as error:
            raise ToolError(f"{self.spec.name}: {error}") from None
        said = {name for name, value in given.items() if value is not None and str(value).strip()}
        said |= {"memory"} if "replaces" in said else set()  # a withdrawal needs no new memory
        missing = [name for name in self.spec.parameters["required"] if name not in said]
        if missing:
            raise ToolError(f"{self.spec.name} needs {', '.join(missing)}")
        return arguments


def ask_tool(steps: Steps, rhythm: Rhythm, language: str) -> OwnTool:
    """Return the tool I, which asks the user a question and waits for the answer until its timeout.

    Outside active hours, or beyond the day's word limit, the question is stored but not shown, and the tool does not
    wait.
    """
    state = steps.state

    async def ask_user(given: Arguments, where: Where) -> Done:
        now = steps.memory.clock.now()
        if where.id not in state.questions:
            words = count_words(given.tip)
            shown = rhythm.is_active(now) and steps.budget.may_speak(state.spent, words, now)
            until = now + given.timeout if shown else now
            steps.note(Questioned(id=where.id, tip=given.tip.strip(), until=until, shown=shown))
            await steps.flush()
            await steps.inbox.put(state.questions[where.id])
        until = state.questions[where.id].until
        await steps.inbox.wait(until, lambda: where.id in state.answers)
        return Done(Observation(state.answers.get(where.id, NOT_YET[language])))

    return OwnTool(spec_of("I", language), ask_user)


MAX_RESULT = 1_000
"""Maximum length of a task's result, in characters."""


class LedgerTools:
    """The tools `add_task`, `finish_task` and `wait_task`."""

    def __init__(self, steps: Steps, language: str, zone: tzinfo) -> None:
        self._steps, self._language, self._zone = steps, language, zone

    def tools(self) -> tuple[OwnTool, ...]:
        """Return the three tools."""
        does = {"add_task": self._add, "finish_task": self._finish, "wait_task": self._wait}
        return tuple(OwnTool(spec_of(name, self._language), do) for name, do in does.items())

    async def _add(self, given: Arguments, where: Where) -> Done:  # noqa: ARG002
        event = self._steps.state.ledger.add(given.text, self._moment(given.when) if given.when.strip() else None)
        return self._done(f"task {event.task} was added", event)

    async def _finish(self, given: Arguments, where: Where) -> Done:  # noqa: ARG002
        task, ended = self._task(given), "done" if given.done else "given up"
        event = task.changed("done" if given.done else "stopped", result=given.result[:MAX_RESULT])
        return self._done(f"task {task.number} is {ended}", event)

    async def _wait(self, given: Arguments, where: Where) -> Done:  # noqa: ARG002
        task, until = self._task(given), self._moment(given.until)
        event = task.changed("waiting", until)
        return self._done(f"task {task.number} waits until {format_spoken(until, self._zone)}", event)

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
        except ValueError:
            there = "; ".join(line_of(each, 0.0) for each in ledger.ordered()[:10])
            raise ToolError(f"{given.task!r} is not the number of a task; the tasks are: {there}") from None
        if task.standing in ("done", "stopped"):
            raise ToolError(f"task {task.number} is already done or given up, so it cannot be changed")
        return task

    def _moment(self, words: str) -> Moment:
        at = read_moment(words, self._steps.memory.clock.now(), self._zone)
        if at is None:
            raise ToolError(
                f"{words[:80]!r} is not a time; write it as: in 2 hours, tomorrow 9:00, monday 8:00, Feb 14 19:00"
            )
        return at
