"""The opponents: one agent with a constitution and the talk as messages, one call a turn; what they see of weeks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing

from mindstream.models.ask import ask, speak
from mindstream.models.model import Message, Model
from mindstream.models.prompt import Prompt
from mindstream.reasoners.conversation import Line
from mindstream.text.context import Part, fit

RECENT_TOKENS = 8_000
"""What an agent with a window is shown of the talk."""


class PlainAgent(Prompt[str]):
    """Answer the utterance, as a good agent without a memory, a belief or a plan would."""

    constitution: str
    history: tuple[Line, ...]
    utterance: str

    def dialogue(self) -> Sequence[Message]:
        return [line.message for line in (*self.history, Line(by_user=True, text=self.utterance))]


class Summarise(Prompt[str]):
    """What is worth keeping of a talk that is over, and of the summary of those before it?"""

    role = "talker"

    before: str
    talk: tuple[Line, ...]


class Agent:
    """Holds a conversation; the talk is all it has.

    Args:
        window: of the talk so far it is shown the newest, as many tokens; 0: all of it.
    """

    def __init__(self, model: Model, constitution: str, window: int = 0) -> None:
        self._model, self._constitution, self._window = model, constitution, window
        self._said: list[Line] = []

    async def note(self, text: str) -> None:
        """Take down what passes between two talks, as "the next day"."""
        self._said.append(Line(by_user=True, text=f"({text})"))

    async def hear(self, text: str) -> AsyncGenerator[str]:
        """Answer, piece by piece."""
        history = tuple(self._said)
        if self._window:
            history = fit([Part("history", history, "last")], self._window).kept("history", history)
        prompt, said = PlainAgent(constitution=self._constitution, history=history, utterance=text), ""
        async with aclosing(speak(self._model, prompt, "talker")) as pieces:
            async for piece in pieces:
                said += piece
                yield piece
        self._said += [Line(by_user=True, text=text), Line(by_user=False, text=said)]


class SummingUp(Agent):
    """Has the talk of today, and of those before it a summary that it writes when a new one begins."""

    async def note(self, text: str) -> None:
        before = self._said[0].text if self._said and self._said[0].by == "summary" else ""
        talk = tuple(line for line in self._said if line.by != "summary")
        summary = await ask(self._model, Summarise(before=before, talk=talk))
        self._said = [Line(by_user=True, text=f"(What was said before, summed up: {summary})", by="summary")]
        await super().note(text)


PLAIN, RECENT, SUMMARY = "plain", "recent", "summary"
OPPONENTS: dict[str, Callable[[Model, str], Agent]] = {
    PLAIN: Agent,
    RECENT: lambda model, constitution: Agent(model, constitution, RECENT_TOKENS),
    SUMMARY: SummingUp,
}
"""Shown the whole talk, its newest tokens, or a summary of the days before."""
