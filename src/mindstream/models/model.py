"""The protocol `Model`, which answers a request part by part, and the types of requests, replies and their purposes.

The log stores the purpose of each call, its `Cause`:

    with calls_for(Cause(rows=(heard.seq,))):
        await ask(model, prompt)

Tasks that are started in the block inherit the cause.

`Layered` is the base of the wrappers around models. A wrapper adds a `Layer` to each reply. The layers of nested
wrappers share one loop (`_read`), so that a part of a reply passes one generator, however many wrappers there are.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
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
        if type(self.arguments) is not str and isinstance(self.arguments, Mapping):
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
        """The schemas of the arguments by name, in the order of `parameters`; {} if the tool takes none."""
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

    @property
    def tokens(self) -> int:
        """The number of input and output tokens."""
        return self.input_tokens + self.output_tokens


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
    """The probability of each permitted answer of a question with a fixed set of answers.

    A rule or a decision endpoint gives the probabilities.
    """

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
"""Sampling parameters that leave everything to the model's own defaults."""


@dataclass(frozen=True)
class Request:
    """A request to a model.

    Attributes:
        prompt: the typed question; its text is rendered only when a model reads `messages`.
        role: the role that asks (talker, reasoner, …); each role has its model.
        turns: messages after the question: the model's own calls and replies, tool results, corrections.
        tools: the tools that may be called.
        words: the text of a template to use instead of the prompt's own.
        longest_reply: maximum number of tokens of a reply that the model allows; 0: unknown, only the prompt's limit
            applies.
        sampling: sampling parameters.
        cut: the parts that were removed so that the rest fits the model's window (see `Fit` in wrappers/recovery).
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
    """Estimate the number of a text's tokens; the estimate is usually too high. A text in ASCII has one token per 3.5
    characters, any other text one per 3 bytes in UTF-8."""
    return len(text) * 2 // 7 + 1 if text.isascii() else len(text.encode("utf-8", "replace")) // 3 + 1


TEXT_TOKENS, DATA_TOKENS = 1_000, 4_000
"""Maximum length of free text, and of a structured reply, in tokens, unless the prompt sets one."""
THOUGHT_TOKENS = {True: 3_000, False: 4_000}
"""Maximum tokens of thoughts before free text (True) or a structured reply (False).

They are added to the limit of the reply, because endpoints count thoughts as part of the reply.
"""


def reply_tokens(request: Request) -> int:
    """Return the maximum number of tokens of the reply itself, without the model's thoughts."""
    return request.prompt.reply_tokens or (TEXT_TOKENS if request.schema is None else DATA_TOKENS)


def all_tokens(request: Request) -> int:
    """Return the maximum number of tokens of the reply with its thoughts: the limit that an endpoint gets."""
    if request.options:
        return 1
    most = reply_tokens(request) + THOUGHT_TOKENS[request.schema is None]
    return min(most, request.longest_reply or most)


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


class Layer:
    """One concern of a reply, such as a limit, a measurement or a filter. Each method does nothing unless overridden.

    Attributes:
        inner: the model that is asked next.
        request: the request that `inner` gets.
        begun: whether a part has reached this layer.
        ended: whether the reply ends here; later parts are not read.
    """

    ended = False

    def __init__(self, inner: Model, request: Request) -> None:
        self.inner, self.request, self.begun = inner, request, False

    async def begin(self) -> None:
        """Wait until the request may be sent; set `request` or `inner` if another request or model is needed."""

    async def start(self) -> None:
        """Act when the first part has arrived, before `take` gets it."""

    def take(self, part: Part) -> Sequence[Part]:
        """Return the parts to pass on in place of this one."""
        return (part,)

    async def again(self, failure: Exception | None) -> bool:  # noqa: ARG002
        """Return whether to ask `inner` again, after a complete reply (`failure` is None) or a failure."""
        return False

    def end(self) -> Sequence[Part]:
        """Return the parts that follow the last one, when the reply is complete; here none."""
        return ()

    def close(self, failure: BaseException | None) -> None:
        """Release what `begin` reserved. Called once, unless `begin` failed.

        Args:
            failure: the reason why the reply is not complete; None: it is complete. GeneratorExit: the reader stopped,
                or an outer layer ended the reply or failed.
        """


class Layered:
    """A model around another one (`inner`), whose replies pass through a layer."""

    def __init__(self, inner: Model) -> None:
        self.inner = inner

    @property
    def name(self) -> str:
        return self.inner.name

    def layer(self, request: Request) -> Layer | None:
        """Return the layer through which the reply to a request passes. None: this model has no layer for it, so its
        overridden method `reply` is called."""
        return Layer(self.inner, request)

    def reply(self, request: Request) -> AsyncGenerator[Part]:
        return _read(self, request)


async def _read(model: Model, request: Request) -> AsyncGenerator[Part]:
    """Read a reply through its layers. A layer may repeat the request to the model that it wraps."""
    asked: tuple[Model, Request] | None = (model, request)
    stack, failure = _Stack(), None
    other: BaseException | None = None
    try:
        while asked is not None:
            try:
                async with aclosing(await stack.begin(*asked)) as parts:
                    async for part in parts:
                        for each in await stack.take((part,)):
                            yield each
                        if stack.is_ended:
                            break
                failure = None
            except Exception as error:  # noqa: BLE001 (each layer decides which failures it handles)
                failure = error
            asked, failure = None, stack.break_off(failure)
            while stack.layers and asked is None:
                try:
                    asked, rest = await stack.end(failure)
                    for each in await stack.take(rest):
                        yield each
                    if stack.is_ended:
                        failure = stack.break_off(failure)
                except Exception as error:  # noqa: BLE001 (see above)
                    failure = stack.break_off(error)
        if failure is not None:
            raise failure
    except BaseException as error:
        other = stack.close(error)
        if other is not error:
            raise other from None
        raise
    finally:
        # their tracebacks refer to this frame: without `del`, only the garbage collector would free all of them
        del failure, other


class _Stack:
    """The layers of a reply that have begun, the outermost first.

    Attributes:
        left: number of layers that still take part; `break_off` closes the others.
        raised: index of the layer that raised the failure; -1: the innermost model raised it.
        is_ended: whether a layer has ended the reply.
    """

    def __init__(self) -> None:
        self.layers: list[Layer] = []
        self.left, self.raised, self.is_ended = 0, -1, False

    async def begin(self, model: Model, request: Request) -> AsyncGenerator[Part]:
        """Begin the layers of a model; return the reply of the model within them."""
        while isinstance(model, Layered) and (layer := model.layer(request)) is not None:
            await layer.begin()
            self.layers.append(layer)
            self.left += 1
            model, request = layer.inner, layer.request
        return model.reply(request)

    async def take(self, parts: Sequence[Part]) -> Sequence[Part]:
        """Pass parts from the innermost layer outwards; return those that the reader gets."""
        for at in range(self.left - 1, -1, -1):
            if not parts:
                break
            layer = self.layers[at]
            if layer.begun and type(layer).take is Layer.take and not layer.ended:
                continue  # it passes every part on
            try:
                if not layer.begun:
                    layer.begun = True
                    await layer.start()
                parts = [each for part in parts for each in layer.take(part)]
            except Exception:
                self.left = self.raised = at
                raise
            if layer.ended:
                self.left, self.is_ended = at + 1, True
        return parts

    async def end(self, failure: Exception | None) -> tuple[tuple[Model, Request] | None, Sequence[Part]]:
        """Ask the innermost layer whether to ask again. If so, return the model and the request; else end the layer,
        and return None and its last parts."""
        layer = self.layers[-1]
        try:
            if await layer.again(failure):
                return (layer.inner, layer.request), ()
            rest = layer.end() if failure is None else ()
        except Exception:
            self.left = self.raised = len(self.layers) - 1
            raise
        self.layers.pop()
        self.left -= 1
        layer.close(failure)
        return None, rest

    def break_off(self, failure: Exception | None) -> Exception | None:
        """Close the layers that no longer take part. Return the failure to handle next; None if there is none.

        If a layer has ended the reply, these are the layers inside it. If a layer has failed, they are that layer and
        the layers inside it.
        """
        while len(self.layers) > self.left:
            layer = self.layers.pop()
            try:
                layer.close(failure if len(self.layers) == self.raised else GeneratorExit())
            except Exception as error:  # noqa: BLE001 (it replaces the failure, as in a `finally` block)
                failure = error
        self.raised, self.is_ended = -1, False
        return failure

    def close(self, failure: BaseException) -> BaseException:
        """Close all layers; return the failure to raise."""
        while self.layers:
            try:
                self.layers.pop().close(failure)
            except Exception as error:  # noqa: BLE001 (see `break_off`)
                failure = error
        return failure
