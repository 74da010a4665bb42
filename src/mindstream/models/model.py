"""The seam: a model is whatever can answer a request, part by part."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias

from mindstream.models.schema import JsonSchema as JsonSchema

if TYPE_CHECKING:
    from mindstream.models.prompt import Prompt


@dataclass(frozen=True, slots=True)
class Call:
    """A model's wish that a tool be called; `arguments` is the JSON text as the model wrote it."""

    tool: str
    arguments: str
    id: str = ""


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a request. A `tool` message answers the call with id `call_id`."""

    role: Literal["system", "user", "assistant", "tool"]
    text: str
    calls: tuple[Call, ...] = ()
    call_id: str = ""
    tool: str = ""


@dataclass(frozen=True)
class ToolSpec:
    """What a model is told of a tool: its name, what it does, the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: JsonSchema

    @cached_property
    def tokens(self) -> int:
        """What a model reads of it, in tokens by an estimate."""
        return estimate_tokens(f"{self.name}{self.description}{self.parameters}")


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of text, as it comes."""

    text: str


@dataclass(frozen=True, slots=True)
class Usage:
    """What the answer cost, in tokens and US dollars; the last part of an answer. `cost_usd` None: price not known.

    `cached_tokens`: how many of the input tokens the endpoint had kept from an earlier prompt with the same beginning.
    """

    input_tokens: int
    output_tokens: int
    cost_usd: float | None = None
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Logprobs:
    """What could stand first in the answer: tokens with the logarithms of their probabilities, the likeliest first."""

    first: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class TextLogprobs:
    """How likely a model finds a text that was given to it: the logarithm of each token's probability."""

    tokens: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Distribution:
    """How probable each answer of a typed question is, as a rule or a decision endpoint says."""

    weights: tuple[tuple[str, float], ...]


Part: TypeAlias = Piece | Call | Logprobs | TextLogprobs | Distribution | Usage
"""What an answer consists of, in the order in which it comes."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Something that a request goes without: so many items of a field, or so many characters of its texts."""

    what: str
    items: int = 0
    characters: int = 0

    def __str__(self) -> str:
        """Say in short what is left out: `conversation -3`, `utterances -200 characters`."""
        counts = [f"-{self.items}"] * bool(self.items) + [f"-{self.characters} characters"] * bool(self.characters)
        return " ".join((self.what, *counts))


@dataclass(frozen=True, slots=True)
class Sampling:
    """How a model chooses its words, where somebody says so; None: as it does by itself.

    Attributes:
        stop: texts at which the answer ends.
    """

    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()

    def fields(self) -> dict[str, Any]:
        """Return what is said, by the names of OpenAI's API."""
        told = {"temperature": self.temperature, "top_p": self.top_p, "seed": self.seed, "stop": [*self.stop] or None}
        return {name: value for name, value in told.items() if value is not None}


FREELY = Sampling()
"""As a model does by itself."""


@dataclass(frozen=True)
class Request:
    """What is put to a model.

    Attributes:
        prompt: the typed question; its words are rendered only when a model reads `messages`.
        role: who asks (talker, reasoner, …); decides which model answers.
        turns: what came after the question: the model's own calls and replies, observations, complaints.
        tools: what may be called.
        words: a template to use instead of the prompt's own.
        longest_reply: the tokens that the model can write at most, where that is known; 0: what the prompt says.
        sampling: how the words are chosen.
        cut: what was left out so that the rest fits the model's window (see wrappers/fit).
        options: the answers of a typed question whose probabilities are wanted: one token, and no text (see decide).
        continuation: a text after the prompt's words, of which nothing but its probability is wanted (see likelihood).
        on_call: whom a meter tells of the call, besides its own listener (see wrappers/meter).
        on_thought: is called with the model's thoughts, piece by piece; they are no part of the reply.
    """

    prompt: Prompt[Any]
    role: str = ""
    turns: tuple[Message, ...] = ()
    tools: tuple[ToolSpec, ...] = ()
    words: str | None = field(default=None, repr=False)
    longest_reply: int = 0
    sampling: Sampling = FREELY
    cut: tuple[Cut, ...] = ()
    options: tuple[str, ...] = ()
    continuation: str = ""
    on_call: Callable[[Any], None] | None = field(default=None, repr=False, compare=False)
    on_thought: Callable[[str], object] | None = field(default=None, repr=False, compare=False)

    @cached_property
    def messages(self) -> tuple[Message, ...]:
        """The prompt's words, then the turns."""
        return (*self.prompt.messages(self.words), *self.turns)

    @property
    def schema(self) -> JsonSchema | None:
        """The JSON Schema of the reply, or None for free text."""
        return self.prompt.reply_schema()

    @cached_property
    def tokens(self) -> int:
        """What a model reads, in tokens by an estimate: messages, calls and the descriptions of tools."""
        found = sum(estimate_tokens(each.text) + 4 for each in self.messages)
        found += sum(estimate_tokens(call.arguments) for each in self.messages for call in each.calls)
        return found + sum(tool.tokens for tool in self.tools)

    def but(self, **changes: Any) -> Self:
        """Return the same request with other fields; messages that stay the same are not rendered again."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, **changes)
        if not RENDERED.isdisjoint(changes):
            other.__dict__.pop("messages", None)
            other.__dict__.pop("tokens", None)
        return other

    def then(self, *turns: Message) -> Request:
        """Return the same request with more turns after it."""
        return self.but(turns=(*self.turns, *turns))


RENDERED = frozenset({"prompt", "turns", "words", "tools", "offered"})
"""The fields of a request that its messages and its length depend on."""


def estimate_tokens(text: str) -> int:
    """Estimate a text's tokens, rather too many: 3.5 characters of English are one, or 3 bytes of any other script."""
    return len(text) * 2 // 7 + 1 if text.isascii() else len(text.encode("utf-8", "replace")) // 3 + 1


class Model(Protocol):
    """Whoever answers: a model behind an endpoint or in the process, rules, a `FakeModel`."""

    @property
    def name(self) -> str:
        """Say who answers, for people and for the log: `openai:gpt-5`, `rules`, …"""

    def reply(self, request: Request) -> AsyncGenerator[Part]:
        """Answer part by part: pieces of text, calls, and at the end the usage where it is known.

        Raises:
            ModelError: it cannot be had, or refuses.
        """
