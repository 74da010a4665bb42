"""A turn of M2, a life's orchestrator: it looks at the ledger, calls its tools, and ends the turn with a word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import tzinfo

from mindstream.clock import format_spoken
from mindstream.errors import BudgetSpent, ModelError, ReplyInvalid
from mindstream.life.agent import StepCalls, StepModel
from mindstream.life.events import Replied, TurnEnded
from mindstream.life.prompts.live import Live
from mindstream.life.steps import Steps
from mindstream.life.tools.own_tools import LifeTool
from mindstream.models.fence import fenced, listed
from mindstream.models.model import Message, Model, Request
from mindstream.models.shorten import shorten
from mindstream.tools.loop import run_loop

STEPS = 12
"""So often M2 is asked in one turn."""
QUIET = 3
"""So many turns in which nothing was called are named to M2."""


@dataclass
class M2:
    """The orchestrator of a life, ready for its turns. M2 is its name in the source, beside M1 and M0.

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
        calls = StepCalls(
            self.steps, "M2", lambda: self.tools, state.tainted, lambda call: state.times_running(call.id)
        )
        asked = StepModel(self.model.name, str(number), self._reply)
        try:
            words = await run_loop(asked, Live(goal=""), calls, steps=STEPS, role="M2")
        except BudgetSpent:
            raise
        except ReplyInvalid:  # it only thought, or called to the end
            words = ""
        except ModelError as error:
            return TurnEnded(turn=number, words="", error=str(error))
        return TurnEnded(turn=number, words=words)

    def request(self, turns: Sequence[Message], *, offer: bool = True) -> Request:
        """Make what is put to M2 after these messages; `offer`: it may call tools."""
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
        """Return what M2 is told at the beginning of a turn: the time, what is new, the ledger."""
        state, now = self.steps.state, self.steps.memory.clock.now()
        parts = [f"Turn {state.turn + 1}. {format_spoken(now, self.zone)}. Woken by: {because}."]
        parts += [self._news()] if state.unread else []
        parts.append(fenced(listed(state.ledger.lines(now, self.zone)) or "nothing is left to do", "ledger"))
        if state.quiet_turns >= QUIET:
            quiet = f"Nothing was called in {state.quiet_turns} turns"
            parts.append(f"({quiet}: call a tool, or finish or put off a task.)")
        return "\n".join(parts)

    async def _reply(self, id_: str, asked: Request) -> Replied:
        """Put to M2 what stands in its life: that is its context, of this turn and those before, not the loop's."""
        state = self.steps.state
        if known := state.replies.get(id_):
            return known
        await self.steps.inbox.read()
        news = self._news() if id_ not in state.asked and state.unread else ""
        turns = [message for turn in state.turns for message in turn.messages]
        request = self.request([*turns, *([Message("user", news)] if news else [])], offer=bool(asked.tools))
        return await self.steps.reply(id_, "M2", self.model, request, news, state.seen)

    def _news(self) -> str:
        return fenced(listed(news.line for news in self.steps.state.unread), "news")
