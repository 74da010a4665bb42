"""M2, a life's orchestrator: turns with tools, summaries of old turns, and the search for work of its own."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import tzinfo

from mindstream.clock import format_spoken
from mindstream.errors import BudgetSpent, InputError, ModelError, ReplyInvalid
from mindstream.life.agent import StepCalls, StepModel
from mindstream.life.events import Folded, Proposed, Replied, TurnEnded
from mindstream.life.ledger import Task
from mindstream.life.prompts import MOST, FoldTurns, Live, ProposeWork, WorkFound
from mindstream.life.state import LifeState, Turn, day_of
from mindstream.life.steps import Steps
from mindstream.life.tools import MARK, LifeTool, Where, memory
from mindstream.memory.store.record import is_tainted
from mindstream.models.model import Message, Model, Request, estimate_tokens
from mindstream.models.untrusted import cut, delimited, listed
from mindstream.models.wrappers.recovery import shorten
from mindstream.text.times import read_moment
from mindstream.tools.call import run_loop

STEPS = 12
"""Maximum number of model calls in a turn."""
QUIET = 3
"""Number of successive turns for tasks, all without a call, after which a remark in M2's prompt says so."""


@dataclass
class M2:
    """The role M2 of a life. M2 decides what to do, M1 does tasks, M0 thinks about questions (docs/life.md).

    Attributes:
        prompt_tokens: maximum length of M2's prompt in tokens.
        zone: the time zone of the times that M2 is shown.
    """

    steps: Steps
    model: Model
    tools: Mapping[str, LifeTool]
    prompt_tokens: int
    zone: tzinfo

    async def turn(self, number: int) -> TurnEnded:
        """Run a turn to its end; steps that are in the log are not done again.

        Raises:
            BudgetSpent: the budget allows no further model call; the turn can be resumed.
            Halted: a person has paused or stopped this life, or texts were erased; the turn can be resumed.
        """
        state = self.steps.state
        calls = StepCalls(
            self.steps, "M2", lambda: self.tools, state.tainted, lambda call: state.times_running(call.id)
        )
        asked = StepModel(self.model.name, str(number), self._reply)
        try:
            words = await run_loop(asked, Live(goal=""), calls, steps=STEPS, role="M2")
        except BudgetSpent:
            raise
        except ReplyInvalid:  # M2 returned only thoughts, or called tools until the last step
            words = ""
        except ModelError as error:
            return TurnEnded(turn=number, words="", error=str(error))
        return TurnEnded(turn=number, words=words)

    def request(self, turns: Sequence[Message], *, offer: bool = True) -> Request:
        """Return the request of M2 (the role that decides) with these messages; `offer`: whether it may call tools."""
        state = self.steps.state
        prompt = Live(
            goal=state.goal,
            orders=state.orders,
            earlier=tuple(fold.text for fold in state.folds),
            language=state.language,
            tasks=tuple(state.opened.tasks),
            now=state.opened.at,
            because=state.turns[-1].because if state.turns else "",
            news=tuple(state.opened.news),
            begins=sum(len(turn.messages) for turn in state.turns[:-1]),
        )
        specs = tuple(tool.spec for tool in self.tools.values()) if offer else ()
        return shorten(Request(prompt, "M2", tuple(turns), specs), self.prompt_tokens)

    def opening(self, because: str) -> str:
        """Return the message to M2 at the beginning of a turn: the time, the reason, the news, and the ledger."""
        state, now = self.steps.state, self.steps.memory.clock.now()
        parts = [f"Turn {state.turn + 1}. {format_spoken(now, self.zone)}. Woken by: {because}."]
        parts += [self._news()] if state.unread else []
        parts.append(delimited(listed(state.ledger.lines(now, self.zone)) or "nothing is left to do", "ledger"))
        if state.quiet_turns >= QUIET:
            quiet = f"Nothing was called in {state.quiet_turns} turns"
            parts.append(f"({quiet}: call a tool, or finish or put off a task.)")
        return "\n".join(parts)

    async def _reply(self, id_: str, asked: Request) -> Replied:
        """Return the reply `id_` of M2 (the role that decides) from the log. If there is none, ask M2 and log its
        reply.

        M2 reads this turn and earlier turns.

        Args:
            asked: the request of the tool loop. Its messages are not used, only whether it offers tools.
        """
        state = self.steps.state
        if known := state.replies.get(id_):
            return known
        await self.steps.inbox.read()
        news = self._news() if id_ not in state.asked and state.unread else ""
        turns = [message for turn in state.turns for message in turn.messages]
        request = self.request([*turns, *([Message("user", news)] if news else [])], offer=bool(asked.tools))
        return await self.steps.reply(id_, "M2", self.model, request, news, state.seen)

    def _news(self) -> str:
        return delimited(listed(news.line for news in self.steps.state.unread), "news")


FULL, KEPT = 0.75, 0.4
"""FULL: if the prompt of M2 (the role that decides) is longer than this share of its limit, the oldest turns are folded
(replaced by a summary). KEPT: so many turns are folded that the rest of the prompt, without the new summary, has at
most this share of the limit.
"""
LONGEST = 3_000
"""Maximum length of the summary that replaces the oldest turns, in characters."""


def turns_to_fold(state: LifeState, tokens: int, limit: int) -> list[Turn]:
    """Return the oldest turns, which have to be folded (summarised) so that M2's prompt fits; [] if there is room.

    The newest turn is never folded.

    Args:
        tokens: current length of M2's prompt.
        limit: maximum length of M2's prompt.
    """
    if tokens <= FULL * limit or len(state.turns) < 2:
        return []
    over, oldest = tokens - KEPT * limit, []
    for turn in state.turns[:-1]:
        if over <= 0:
            break
        over -= sum(map(_tokens, turn.messages))
        oldest.append(turn)
    return oldest


async def fold(steps: Steps, model: Model, turns: list[Turn]) -> None:
    """Let M2 (the role that decides) summarise turns, and replace the turns by the summary, which is stored as a
    memory.

    Without a valid reply the turns stay, and are summarised again at the beginning of the next turn.
    """
    state = steps.state
    ask = FoldTurns(goal=state.goal, turns=tuple(map(write_turn, turns)), language=state.language)
    id_ = f"fold-{turns[-1].number}-{state.turn}"
    replied = await steps.reply(id_, "M2", model, Request(ask, "M2"))
    try:
        text = ask.parse(replied.text)
    except ReplyInvalid:
        return
    where = Where(f"{turns[-1].number}", "M2", any(turn.tainted for turn in turns))
    record = (await steps.memory.build_records([memory(cut(text, LONGEST), where)]))[0]
    folded = Folded(since=turns[0].number, upto=turns[-1].number, text=record.text, record=record.id, model=model.name)
    state.apply(folded, steps.memory.clock.now())
    state.drop_step(id_)
    steps.note_applied(folded.model_copy(update={"state": state.model_dump_json()}), [record])
    await steps.flush()


def write_turn(turn: Turn) -> str:
    """Return a turn as text: its number, messages, calls and results."""
    lines = [f"Turn {turn.number}"]
    for message in turn.messages:
        lines += [message.text] if message.text else []
        lines += [f"-> {call.tool}({call.arguments})" for call in message.calls]
    return "\n".join(lines)


def _tokens(message: Message) -> int:
    return 4 + estimate_tokens(message.text) + sum(estimate_tokens(call.arguments) for call in message.calls)


REMEMBERED, RESULT, LINE = 10, 300, 600
"""Limits of the prompt that asks M2 (the role that decides) for work. REMEMBERED: maximum number of memories. RESULT:
maximum characters of a task's result. LINE: maximum characters of a memory, and of M2's reason in the log.
"""


async def look_for_work(steps: Steps, model: Model, zone: tzinfo) -> None:
    """Let M2 (the role that decides) propose tasks for the goal, and add them to the ledger.

    Raises:
        BudgetSpent: the budget allows no further model call.
        Halted: a person has paused or stopped this life, or texts were erased.
    """
    state, now = steps.state, steps.memory.clock.now()
    ask = await _question(steps, zone)
    id_ = f"look-{state.turn}-{state.looked:.0f}"
    replied = await steps.reply(id_, "M2", model, Request(ask, "M2"))
    try:
        if replied.error:
            raise ReplyInvalid(replied.error)
        work = ask.parse(replied.text)
    except ReplyInvalid as error:
        work = WorkFound(because=str(error))
    state.drop_step(id_)
    found = [text for text in work.tasks[:MOST] if not _is_known(steps, text)]
    until = None
    with suppress(InputError):  # the words of M2 name no time, or one that has passed or does not exist
        until = None if found else read_moment(work.until, now, zone)
    steps.note(Proposed(tasks=tuple(found), because=cut(work.because, LINE), until=until))
    for text in found:
        steps.note(state.ledger.add(text))
    await steps.flush()


def _is_known(steps: Steps, text: str) -> bool:
    """Return whether a proposed task cannot be added, or is in the ledger already, also as a finished task."""
    try:
        added = steps.state.ledger.add(text)
    except InputError:
        return True
    return any(task.text == added.text for task in steps.state.ledger.tasks.values())


async def _question(steps: Steps, zone: tzinfo) -> ProposeWork:
    """Build the prompt that asks for work. Tainted memories and summaries (based on third-party content) are left out:
    such content must not create tasks."""
    state, now = steps.state, steps.memory.clock.now()
    recalled = await steps.memory.recall(
        state.goal, REMEMBERED, kinds=("note", "dream"), where=MARK, touch=False, rerank=False
    )
    return ProposeWork(
        goal=state.goal,
        orders=state.orders,
        language=state.language,
        now=format_spoken(now, zone),
        earlier=tuple(fold.text for fold in state.folds[-1:] if not fold.tainted),
        memories=tuple(
            f"{day_of(each.record.created)}: {cut(each.record.text, LINE)}"
            for each in recalled
            if not is_tainted(each.record)
        ),
        over=tuple(_over(task) for task in state.ledger.ordered() if not task.is_left),
        waiting=tuple(state.ledger.lines(now, zone)),
        room=steps.budget.room_today(state.spent, now),
    )


def _over(task: Task) -> str:
    ended = "done" if task.standing == "done" else "given up"
    return f"{task.text} ({ended})" + (f": {cut(' '.join(task.result.split()), RESULT)}" if task.result else "")
