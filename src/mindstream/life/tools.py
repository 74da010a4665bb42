"""The tools of a life's roles: I (asks the user), the ledger's tools, the memory tools, and external tools.

Apart from their context, the memory tools are the roles' only access to memory: R recalls, U stores a memory, S sleeps.
R finds only records that U wrote or that sleep derived from such records, and the summaries of M2's turns; all of these
have `life` in their data.

M1, the role that does tasks, also has external tools (functions, MCP servers, a planner, documents), with approval and
idempotency keys.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import tzinfo
from typing import Protocol

from pydantic import BaseModel, Field, ValidationError

from mindstream import tracing
from mindstream.clock import Moment, format_spoken
from mindstream.errors import BudgetSpent, InputError, ModelUnavailable, ReplyInvalid, ToolError
from mindstream.life import permission
from mindstream.life.events import PermissionAsked, PermissionUsed, Questioned, TaskChanged
from mindstream.life.ledger import Task, line_of
from mindstream.life.permission import Permits
from mindstream.life.prompts import NOT_YET, spec_of
from mindstream.life.schedule import Rhythm
from mindstream.life.state import LifeState, day_of
from mindstream.life.steps import Done, Steps
from mindstream.log.events import Corrected
from mindstream.memory.lifecycle.sleep import Compose, count_fading
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import TAINTED, Record, RecordDraft, is_tainted, normalised
from mindstream.memory.store.store import Revision
from mindstream.models.model import Call, Model, Part, Piece, Request, ToolSpec, Usage
from mindstream.models.prompt import complaints
from mindstream.text.times import read_moment
from mindstream.text.words import count_words
from mindstream.tools.call import Observation, ToolRequest, call_tool, ungiven
from mindstream.tools.tool import Tool, arguments_of, key_argument, traits_of
from mindstream.tools.tool_search import ToolIndex
from mindstream.tracing import fail, span, tell

LONGEST = 20_000
"""Maximum length, in characters, of each of these: a query, a question, a context, a result, the text of a task."""
LONGEST_MEMORY = 4_000
"""Maximum length of a memory, in characters."""
LONGEST_WAIT_S = 7 * 86_400
"""Maximum time that the tool I, which asks the user, waits for the answer, in seconds."""


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
        named = {tracing.TOOL: call.tool, tracing.CALL_ID: call.id, tracing.ARGUMENTS: call.arguments}
        with span(tracing.EXECUTE_TOOL, call.tool, named) as traced:
            try:
                done = await self._does(self.checked(call), where)
            except InputError as error:
                raise ToolError(str(error)) from None
            tell(traced, {tracing.RESULT: done.found.text})
            if done.found.failed:
                fail(traced, ToolError.__name__)
            return done

    def checked(self, call: Call) -> Arguments:
        """Parse and check the arguments of a call; raise ToolError if they do not fit."""
        try:
            given = arguments_of(call)
            arguments = Arguments.model_validate({k: v for k, v in given.items() if v is not None})
        except ValidationError as error:
            raise ToolError(
                f"{self.spec.name}: the arguments do not fit the tool's schema: {complaints(error)}"
            ) from None
        except ReplyInvalid as error:
            raise ToolError(f"{self.spec.name}: {error}") from None
        said = {name for name, value in given.items() if value is not None and str(value).strip()}
        said |= {"memory"} if "replaces" in said else set()  # a withdrawal needs no new memory
        missing = [name for name in self.spec.parameters["required"] if name not in said]
        if missing:
            raise ToolError(f"{self.spec.name} lacks the required arguments: {', '.join(missing)}")
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
        """Return the tools `add_task`, `finish_task` and `wait_task`."""
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
        left = "\n".join(ledger.lines(self._steps.memory.clock.now(), self._zone)) or "nothing is left to do"
        return Done(Observation(f"{said}; the ledger now:\n{left}"), events=(event,))

    def _task(self, given: Arguments) -> Task:
        ledger = self._steps.state.ledger
        try:
            task = ledger.find(int(str(given.task).strip().lstrip("#")))
        except ValueError:
            there = "; ".join(line_of(each, 0.0) for each in ledger.ordered()[:10]) or "none"
            raise ToolError(f"{given.task!r} is not the number of a task; the first tasks are: {there}") from None
        if not task.is_left:
            raise ToolError(f"task {task.number} is already done or given up, so it cannot be changed")
        return task

    def _moment(self, words: str) -> Moment:
        at = read_moment(words, self._steps.memory.clock.now(), self._zone)
        if at is None:
            raise ToolError(
                f"{words[:80]!r} is not a time; write it as: in 2 hours, tomorrow 9:00, monday 8:00, Feb 14 19:00"
            )
        return at


MARK = {"life": True}
"""Data that marks the records that the recall tool R may find.

These are records that the tool U wrote, summaries of turns, and records that sleep derived only from such records.
"""
RETURNED, SHARE = 5, 20
"""RETURNED: default number of memories that the recall tool R returns. SHARE: the sleep tool S draws at least one in
SHARE of the records that can decay."""
LONGEST_LINE = 1_500
QUOTED = 20
"""Number of recalled memories among which the tool U (store a memory) looks for the memory to replace."""
_DAY = re.compile(r"^(?:- )?\d{4}-\d\d-\d\d: ")
NO_DREAM = {"en": "nothing was forgotten, so there is no dream", "zh": "没有遗忘什么，所以没有梦"}
NOTHING = {"en": "nothing is remembered of that", "zh": "没有相关记忆"}


def recall_tool(steps: Steps, language: str, n: int = RETURNED) -> OwnTool:
    """Return the tool R(query), which returns up to n memories.

    The commit of the result also strengthens these memories, and weakens others that were found but not returned.
    """
    stream = steps.memory

    async def recall(given: Arguments, where: Where) -> Done:  # noqa: ARG001
        found = await stream.recall(given.query, n, kinds=("note", "dream"), where=MARK, touch=False)
        text = "\n".join(_line(each.record) for each in found) or NOTHING[language]
        return Done(Observation(text, untrusted=any(is_tainted(each.record) for each in found)), touch=found.touch)

    return OwnTool(spec_of("R", language), recall)


def retain_tool(steps: Steps, language: str) -> OwnTool:
    """Return the tool U(memory, replaces), which stores a memory, and ends the memory that it replaces.

    A memory with the same words as a stored memory is not stored again. A replaced or withdrawn memory stays as
    history.
    """
    stream = steps.memory

    async def retain(given: Arguments, where: Where) -> Done:
        text, ok = given.memory.strip(), Observation("ok")
        old = await _find_memory(stream, given.replaces) if given.replaces.strip() else None
        new_id, records = "", tuple[Record, ...]()
        if text or old is None:  # otherwise the old memory is only withdrawn
            known = (await stream.find_same("note", [text])).get(normalised(text))
            if old and known and known.id == old.id:
                return Done(ok)
            new = memory(text, where)
            if old:
                tainted = {TAINTED: True} if is_tainted(old) else {}
                new = replace(new, evidence=(old.id,), data={**new.data, **tainted})
            records = () if known else tuple(await stream.build_records([new]))
            new_id = (known or records[0]).id
        if old is None:
            return Done(ok, records=records)
        ended = Revision(id=old.id, valid_until=stream.clock.now(), superseded_by=new_id or None)
        return Done(ok, records=records, events=(Corrected(old=old.id, new=new_id),), revisions=(ended,))

    return OwnTool(spec_of("U", language), retain)


async def _find_memory(stream: Memory, words: str) -> Record:
    """Return the one memory (stored by the tool U, or a summary of turns) that contains the given words.

    If several memories contain the words, return the one whose whole text is the words.

    Raises:
        ToolError: no memory contains the words; or several do, and the words are not the whole text of exactly one.
    """
    wanted = _DAY.sub("", _plain(words)).strip(' .…“”"')
    found = await stream.recall(words, QUOTED, kinds=("note",), where=MARK, touch=False, rerank=False)
    says = [each.record for each in found if wanted and wanted in _plain(each.record.text)]
    same = [each for each in says if _plain(each.text).strip(' .…“”"') == wanted] or says
    if len(same) == 1:
        return same[0]
    if not same:
        raise ToolError(
            f"replaces: no memory contains {words[:80]!r}; copy its text as the recall tool R returned it,"
            " without the day"
        )
    listed = "\n".join(map(_line, same))
    raise ToolError(f"replaces: {len(same)} memories contain these words; give more of the words of one:\n{listed}")


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def memory(text: str, where: Where) -> RecordDraft:
    """Return the draft of the memory record for a text of the tool U (store a memory), or for a summary of turns."""
    data = {**MARK, **({TAINTED: True} if where.tainted else {})}
    return RecordDraft(text=text, kind="note", by=where.role, episode=f"turn {where.id.partition('.')[0]}", data=data)


def sleep_tool(steps: Steps, language: str, model: Model, n: int, dreams: Callable[[Where], Compose]) -> OwnTool:
    """Return the tool S(), which runs a sleep of the memory (memory/lifecycle/sleep).

    The sleep draws n records at random (more from a large memory, see SHARE). M1 (the role that does tasks) writes the
    dream of the sleep.

    Args:
        model: the model of M1, which also rates records without an importance.
        dreams: a function that returns, for a call of the tool, the function that writes the dream.
    """
    stream = steps.memory

    async def sleep(given: Arguments, where: Where) -> Done:  # noqa: ARG001
        rater = StepModel(steps, where.id, "M1", model)
        drawn = max(n, await count_fading(stream) // SHARE)
        dream = await stream.sleep(rater, drawn, cause=where.row, fence=steps.fence, compose=dreams(where))
        if not dream:
            return Done(Observation(NO_DREAM[language]))
        return Done(Observation(dream, untrusted=await _is_tainted(stream, dream)))

    return OwnTool(spec_of("S", language), sleep)


async def _is_tainted(stream: Memory, dream: str) -> bool:
    return any(record.text == dream and is_tainted(record) for record in await stream.latest("dream", 3))


def _line(record: Record) -> str:
    dreamt = " (dream)" if record.kind == "dream" else ""
    return f"- {day_of(record.created)}{dreamt}: {' '.join(record.text[:LONGEST_LINE].split())}"


class StepModel:
    """A model whose replies are stored as steps of a turn; a request whose reply is stored is not sent again."""

    def __init__(self, steps: Steps, id_: str, role: str, model: Model) -> None:
        self.name = model.name
        self._steps, self._id, self._role, self._model = steps, id_, role, model

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        words = "\n".join(message.text for message in request.messages)
        id_ = f"{self._id}.{hashlib.blake2b(words.encode(), digest_size=4).hexdigest()}"
        try:
            replied = await self._steps.reply(id_, self._role, self._model, request)
        except BudgetSpent as error:
            raise ReplyInvalid(str(error)) from None
        await self._steps.flush()  # before anything based on the reply is written
        if replied.error:
            raise ModelUnavailable(replied.error)
        yield Piece(replied.text)
        yield Usage(replied.tokens, 0, replied.cost_usd)


TIMEOUT_S = 60.0
HELD = (
    "not made yet: it changes the world, and a person was asked for leave. Go on with something else; you will be told."
)
HELD_ADDRESS = (
    "not made yet: neither the user nor a search gave this address, and third-party content was read before; the user"
    " was asked. Go on with something else; you will be told."
)
REFUSED = "not made: a person said no to this call"


@dataclass(frozen=True, slots=True)
class OutsideTools:
    """All external tools of a life; the tools that a task needs are searched when the role M1 does the task.

    Attributes:
        at_once: maximum number of tools that one search attaches to a task.
    """

    shelf: ToolIndex
    state: LifeState
    permits: Permits
    life: str
    at_once: int

    @property
    def has_more(self) -> bool:
        """Whether there are more available tools than one search attaches."""
        return len(self._ready()) > self.at_once

    async def find(self, need: str) -> list[OutsideTool]:
        """Return the available tools that fit a need best, at most `at_once`."""
        found = self._ready()
        if len(found) > self.at_once:
            ranked = await self.shelf.find(need, len(self.shelf.tools) - 1)
            found = [tool for tool in ranked if tool in found][: self.at_once]
        return [OutsideTool(tool, self.state, self.permits, self.life) for tool in found]

    def named(self, names: Sequence[str]) -> list[OutsideTool]:
        """Return the available tools with these names."""
        found = (tool for tool in self._ready() if tool.spec.name in names)
        return [OutsideTool(tool, self.state, self.permits, self.life) for tool in found]

    def _ready(self) -> list[Tool]:
        traits = [(tool, traits_of(tool).ready) for tool in self.shelf.tools]
        return [tool for tool, is_ready in traits if is_ready is None or is_ready()]


@dataclass(frozen=True, slots=True)
class OutsideTool:
    """An external tool that a role of a life can call."""

    tool: Tool
    state: LifeState
    permits: Permits
    life: str
    """The name of the mind. An idempotency key consists of this name, the time when the life began, and the id of the
    call."""

    @property
    def spec(self) -> ToolSpec:
        return self.tool.spec

    @property
    def finds(self) -> bool:
        """Whether the tool is a search tool: the pages that its results name may be fetched."""
        return traits_of(self.tool).finds

    async def __call__(self, call: Call, where: Where) -> Done:
        used: tuple[PermissionUsed, ...] = ()
        address = ungiven(self.tool, call.arguments, where.given) if where.tainted else ""
        if address or not self.permits.allow(self.tool, where.tainted):
            wish = permission.decision_on(self.state, call)
            request = ToolRequest(tool=call.tool, arguments=call.arguments, foreign=where.tainted, address=address)
            if not wish and not await self.permits.approve(request):
                asked = PermissionAsked(id=where.id, tool=call.tool, arguments=call.arguments, foreign=where.tainted)
                events = () if permission.is_asked(self.state, call) else (asked,)
                return Done(Observation(HELD_ADDRESS if address else HELD, failed=True), events=events)
            used = (PermissionUsed(id=wish),) if wish else ()
            if wish and not self.state.leave[wish]:
                return Done(Observation(REFUSED, failed=True), events=used)
        return Done(await call_tool(self._with_key(call, where.id), [self.tool], TIMEOUT_S), events=used)

    def _with_key(self, call: Call, id_: str) -> Call:
        """Return a call with an idempotency key, if its tool takes one. A call that is made again after a crash gets
        the same key."""
        if not (name := key_argument(self.tool)):
            return call
        try:
            given = arguments_of(call)
        except ReplyInvalid:
            return call
        return replace(
            call, arguments=json.dumps({**given, name: f"{self.life}-{self.state.began:.0f}-{id_}"}, ensure_ascii=False)
        )
