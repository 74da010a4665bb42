"""A turn of M2: it looks at the ledger, calls its tools, and ends the turn with a word (the M0, M1, M2 system)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from mindstream.clock import format_spoken
from mindstream.errors import ReplyInvalid
from mindstream.life.agent import Caller
from mindstream.life.events import Replied, TurnEnded
from mindstream.life.prompts.live import Live
from mindstream.life.steps import Steps
from mindstream.life.tools.own_tools import LifeTool
from mindstream.models.fence import fenced, listed
from mindstream.models.model import Message, Model, Request
from mindstream.models.shorten import shorten

STEPS = 12
"""So often M2 is asked in one turn."""
QUIET = 3
"""So many turns in which nothing was called are named to M2."""


@dataclass
class M2:
    """M2, ready for its turns.

    Attributes:
        prompt_tokens: its prompt is never longer.
        zone: whose clock tells it the time.
    """

    steps: Steps
    model: Model
    tools: Mapping[str, LifeTool]
    prompt_tokens: int
    zone: tzinfo

    async def turn(self, number: int) -> TurnEnded:
        """Go through a turn to its end; what stands in the log of it is not done again.

        Raises:
            BudgetSpent: nothing is left for another call of a model; the turn can be gone on with.
            Halted: a person paused or stopped this life, as above.
        """
        state = self.steps.state
        caller = Caller(self.steps, "M2", lambda: self.tools, lambda call: state.times_running(call.id))
        for step in range(1, STEPS + 1):
            replied = await self._reply(f"{number}.{step}", offer=step < STEPS)
            if replied.error:
                return TurnEnded(turn=number, words="", error=replied.error)
            if not replied.calls:
                return TurnEnded(turn=number, words=_words(replied))
            for n, wish in enumerate(replied.calls, 1):
                await caller.call(f"{replied.id}.{n}", n, wish, state.tainted)
        return TurnEnded(turn=number, words="")

    def request(self, turns: Sequence[Message], *, offer: bool = True) -> Request:
        """Make what is put to M2 after these messages; `offer`: it may call tools."""
        state = self.steps.state
        prompt = Live(
            goal=state.goal, orders=state.orders, earlier=tuple(fold.text for fold in state.folds),
            language=state.language, tasks=tuple(state.opened.tasks), now=state.opened.at,
            because=state.turns[-1].because if state.turns else "", news=tuple(state.opened.news),
            begins=sum(len(turn.messages) for turn in state.turns[:-1]),
        )  # fmt: skip
        specs = tuple(tool.spec for tool in self.tools.values()) if offer else ()
        return shorten(Request(prompt, "M2", tuple(turns), specs), self.prompt_tokens)

    def opening(self, because: str) -> str:
        """Return what M2 is told at the beginning of a turn: the time, what is new, the ledger."""
        state, now = self.steps.state, self.steps.stream.clock.now()
        parts = [f"Turn {state.turn + 1}. {format_spoken(now, self.zone)}. Woken by: {because}."]
        parts += [self._news()] if state.unread else []
        parts.append(fenced(listed(state.ledger.lines(now, self.zone)) or "nothing is left to do", "ledger"))
        if state.quiet_turns >= QUIET:
            quiet = f"Nothing was called in {state.quiet_turns} turns"
            parts.append(f"({quiet}: call a tool, or finish or put off a task.)")
        return "\n".join(parts)

    async def _reply(self, id_: str, offer: bool) -> Replied:
        state = self.steps.state
        if known := state.replies.get(id_):
            return known
        await self.steps.inbox.read()
        news = self._news() if id_ not in state.asked and state.unread else ""
        turns = [message for turn in state.turns for message in turn.messages]
        request = self.request([*turns, *([Message("user", news)] if news else [])], offer=offer)
        return await self.steps.reply(id_, "M2", self.model, request, news, state.seen)

    def _news(self) -> str:
        return fenced(listed(news.line for news in self.steps.state.unread), "news")


def _words(replied: Replied) -> str:
    """Return what M2 said at the end of a turn, without what it only thought."""
    try:
        return Live(goal="").parse(replied.text)
    except ReplyInvalid:
        return ""
