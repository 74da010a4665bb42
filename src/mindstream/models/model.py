"""The protocol `Model`, which answers a request part by part, and the types of requests, replies and their purposes.

The log stores the purpose of each call, its `Cause`:

    with calls_for(Cause(rows=(heard.seq,))):
        await ask(model, prompt)

Tasks that are started in the block inherit the cause.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol, Self, TypeAlias

from mindstream.models.schema import JsonSchema as JsonSchema
from mindstream.models.schema import SchemaChecker

if TYPE_CHECKING:
    from pydantic import JsonValue

    from mindstream.models.prompt import Prompt


@dataclass(frozen=True, slots=True)
class Call:
    """A model's request to call a tool. `arguments` is the JSON text as the model wrote it.

    A mapping that is passed as `arguments` is converted to JSON.
    """

    tool: str
    arguments: str
    id: str = ""

    if TYPE_CHECKING:

        def __init__(self, tool: str, arguments: str | Mapping[str, JsonValue], id: str = "") -> None: ...

    def __post_init__(self) -> None:
        if isinstance(self.arguments, Mapping):
            object.__setattr__(self, "arguments", json.dumps(self.arguments, ensure_ascii=False))


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
    """A tool as models see it: name, description, and the JSON Schema of its arguments."""

    name: str
    description: str
    parameters: JsonSchema

    @cached_property
    def tokens(self) -> int:
        """The estimated number of tokens of this description."""
        return estimate_tokens(f"{self.name}{self.description}{self.parameters}")

    @cached_property
    def arguments(self) -> dict[str, Any]:
        """The schemas of the arguments by name, in order."""
        found = self.parameters.get("properties")
        return found if isinstance(found, dict) else {}

    @cached_property
    def checker(self) -> SchemaChecker:
        """Checks arguments against the schema."""
        return SchemaChecker(self.parameters)


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of the reply's text, in the order of arrival."""

    text: str


@dataclass(frozen=True, slots=True)
class Usage:
    """The cost of a reply in tokens and US dollars; the last part of a reply.

    Attributes:
        cost_usd: None if the price is not known.
        cached_tokens: number of input tokens that the endpoint had cached from an earlier prompt with the same
            beginning.
    """

    input_tokens: int
    output_tokens: int
    cost_usd: float | None = None
    cached_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Logprobs:
    """Candidates for the first token of a reply, with their log-probabilities, the likeliest first."""

    first: tuple[tuple[str, float], ...]


@dataclass(frozen=True, slots=True)
class TextLogprobs:
    """The log-probability of each token of a given text."""

    tokens: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Distribution:
    """The probability of each answer of a typed question, as given by a rule or a decision endpoint."""

    weights: tuple[tuple[str, float], ...]


Part: TypeAlias = Piece | Call | Logprobs | TextLogprobs | Distribution | Usage
"""The parts of a reply, in the order of arrival."""


@dataclass(frozen=True, slots=True)
class Cut:
    """A part of a request that was removed: a number of items of a field, or of characters of its texts."""

    what: str
    items: int = 0
    characters: int = 0

    def __str__(self) -> str:
        """Return a short description of the cut: `conversation -3`, `utterances -200 characters`."""
        counts = [f"-{self.items}"] * bool(self.items) + [f"-{self.characters} characters"] * bool(self.characters)
        return " ".join((self.what, *counts))


@dataclass(frozen=True, slots=True)
class Sampling:
    """Sampling parameters; None: the model's own default.

    Attributes:
        stop: texts at which the reply ends.
    """

    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()

    def fields(self) -> dict[str, Any]:
        """Return the parameters that are set, by their names in OpenAI's API."""
        told = {"temperature": self.temperature, "top_p": self.top_p, "seed": self.seed, "stop": [*self.stop] or None}
        return {name: value for name, value in told.items() if value is not None}


FREELY = Sampling()
"""The model's own defaults."""


@dataclass(frozen=True)
class Request:
    """A request to a model.

    Attributes:
        prompt: the typed question; its text is rendered only when a model reads `messages`.
        role: the role that asks (talker, reasoner, …); each role has its model.
        turns: messages after the question: the model's own calls and replies, tool results, corrections.
        tools: the tools that may be called.
        words: the text of a template to use instead of the prompt's own.
        longest_reply: maximum tokens of the reply that the model allows, if known; 0: only the prompt's limit.
        sampling: sampling parameters.
        cut: the parts that were removed so that the rest fits the model's window (see wrappers/fit).
        options: the answers whose probabilities are requested in place of a text (see decide).
        continuation: a text after the prompt whose log-probabilities are requested in place of a reply (see
            `ask.text_logprobs`).
        on_call: called by the meter for this request, in addition to the meter's own listener (see wrappers/meter).
        on_thought: called with each piece of the model's thoughts, which are not part of the reply.
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
        """The prompt's messages, then the turns."""
        return (*self.prompt.messages(self.words), *self.turns)

    @property
    def schema(self) -> JsonSchema | None:
        """The JSON Schema of the reply, or None for free text."""
        return self.prompt.reply_schema()

    @cached_property
    def tokens(self) -> int:
        """The estimated number of tokens that a model reads: messages, calls and the descriptions of tools."""
        found = sum(estimate_tokens(each.text) + 4 for each in self.messages)
        found += sum(estimate_tokens(call.arguments) for each in self.messages for call in each.calls)
        return found + sum(tool.tokens for tool in self.tools)

    def but(self, **changes: Any) -> Self:
        """Return a copy with changed fields; messages are rendered again only if a change affects them."""
        other = object.__new__(type(self))
        other.__dict__.update(self.__dict__, **changes)
        if not RENDERED.isdisjoint(changes):
            other.__dict__.pop("messages", None)
            other.__dict__.pop("tokens", None)
        return other

    def then(self, *turns: Message) -> Request:
        """Return a copy with more turns at its end."""
        return self.but(turns=(*self.turns, *turns))


RENDERED = frozenset({"prompt", "turns", "words", "tools", "offered"})
"""The fields of a request that determine its messages and their length."""


def estimate_tokens(text: str) -> int:
    """Estimate the number of a text's tokens, usually too high: one per 3.5 characters of a text in ASCII; of any other
    text, one per 3 bytes in UTF-8."""
    return len(text) * 2 // 7 + 1 if text.isascii() else len(text.encode("utf-8", "replace")) // 3 + 1


class Model(Protocol):
    """An object that answers requests: a model behind an endpoint or in this process, rules, or a `FakeModel`."""

    @property
    def name(self) -> str:
        """The model's name in messages and in the log: `openai:gpt-5`, `rules`, …"""

    def reply(self, request: Request) -> AsyncGenerator[Part]:
        """Yield the parts of a reply: pieces of text, calls, and at the end the usage if it is known.

        Raises:
            ModelError: the model is unavailable, or refuses.
        """


@dataclass(frozen=True, slots=True)
class Cause:
    """The purpose of model calls.

    Attributes:
        rows: sequence numbers (`seq`) of the log rows that the calls process or answer.
        resident, step: the resident and the time step of a town; "" and None outside of towns.
    """

    rows: tuple[int, ...] = ()
    resident: str = ""
    step: int | None = None


NO_CAUSE = Cause()
_cause: ContextVar[Cause] = ContextVar("cause", default=NO_CAUSE)


@contextmanager
def calls_for(cause: Cause) -> Iterator[None]:
    """Attribute calls that start in the block to a cause. Do not use it around a `yield` of an async generator."""
    before = _cause.set(cause)
    try:
        yield
    finally:
        _cause.reset(before)


def current_cause() -> Cause:
    """Return the cause of a model call that starts now: the log rows that it processes or answers."""
    return _cause.get()
