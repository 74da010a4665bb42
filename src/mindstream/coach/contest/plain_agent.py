"""The opponent: one agent with a constitution, the talk as messages, and one call a turn."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing

from mindstream.models.ask import speak
from mindstream.models.model import Message, Model
from mindstream.models.prompt import Prompt
from mindstream.reasoners.conversation import Line
from mindstream.text.context import Part, fit


class PlainAgent(Prompt[str]):
    """Answer the utterance, as a good agent without a memory, a belief or a plan would."""

    constitution: str
    history: tuple[Line, ...]
    utterance: str

    def dialogue(self) -> Sequence[Message]:
        return [line.message for line in (*self.history, Line(by_user=True, text=self.utterance))]


class Agent:
    """Holds a conversation; the talk is all it has.

    Args:
        window: of the talk so far it is shown the newest, as many tokens; 0: all of it.
    """

    def __init__(self, model: Model, constitution: str, window: int = 0) -> None:
        self._model, self._constitution, self._window = model, constitution, window
        self._said: list[Line] = []

    def note(self, text: str) -> None:
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
