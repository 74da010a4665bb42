"""Prompts: typed questions to a model.

`ask` puts a prompt to a model and returns its typed answer, `speak` its stream of text, `act` its tool calls or answer.

The fields of a prompt class are the variables of its template, its type argument is the type of the reply, its template
is a Markdown file of the same name next to the module, and its rule, which answers if no model is configured, is a
plain function:

    class RateImportance(Prompt[Importance]):       # rate_importance.md is next to this module
        memory: str

    @rule(RateImportance)
    def by_words(ask: RateImportance) -> Importance: ...

The template has two parts, `# system` (static text first, so that prefix caches work) and `# user`; both are Jinja
templates over the fields, and an unknown variable is an error. Users may write templates, so only a part of Jinja's
language is allowed, in Jinja's sandbox: a template can call only a few methods, cannot nest loops, and is stopped at a
limit of work (see `Sandbox`). Text from users, models, tools or files is data, never instruction, and is delimited
(see untrusted.py): `{{ text | data("memory") }}`, or on one line `{{ who | short("who") }}`. The reply is parsed
strictly (see reply.py).
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

from jinja2 import StrictUndefined, Template, pass_context
from jinja2.filters import FILTERS
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from mindstream.errors import ModelRefused, ReplyInvalid, SettingsError
from mindstream.models.fitting import fit
from mindstream.models.model import Call, JsonSchema, Message, Model, Piece, Request, TextLogprobs, ToolSpec, Usage
from mindstream.models.reply import LegiblePieces, legible_call, whole_json, without_thoughts
from mindstream.models.reply import first_json as first_json  # re-exported
from mindstream.models.schema import lean
from mindstream.models.untrusted import delimited as delimited  # re-exported
from mindstream.models.untrusted import delimited_short, legible, listed, numbered

if TYPE_CHECKING:
    from jinja2 import nodes

Render: TypeAlias = Callable[[Mapping[str, Any]], str]

MAX_TEMPLATE = 100_000
"""Maximum length of a template in characters."""
PARTS = re.compile(r"^# (system|user)[ \t]*$", re.MULTILINE)
NODES = frozenset({
    "Add", "And", "Assign", "Call", "Compare", "CondExpr", "Const", "Filter", "For", "Getattr", "Getitem", "If",
    "Keyword", "List", "Name", "Neg", "Not", "Operand", "Or", "Output", "Slice", "Sub", "Template", "TemplateData",
    "Test", "Tuple",
})  # fmt: skip
CALLED = frozenset({"written", "items", "keys", "values", "get"})
"""Methods that a template may call: `written` of a plan, and methods of mappings."""


@lru_cache(256)
def templates(words: str, label: str) -> tuple[Render, Render]:
    """Return the functions that render the system part and the user part of a prompt.

    Raises:
        SettingsError: the text is too long, has neither a line `# system` nor `# user`, or is not a valid template; the
            message names the line of a syntax error.
    """
    if len(words) > MAX_TEMPLATE:
        raise SettingsError(f"the text of the prompt {label!r} is longer than {MAX_TEMPLATE:,} characters")
    heads = list(PARTS.finditer(words))
    if not heads:
        raise SettingsError(
            f"the text of the prompt {label!r} has no line '# system' or '# user', but needs at least one"
        )
    ends = [head.start() for head in heads[1:]] + [len(words)]
    parts = {
        head[1]: "\n" * words.count("\n", 0, head.end()) + words[head.end() : end]
        for head, end in zip(heads, ends, strict=True)
    }
    return _render(parts.get("system", ""), label), _render(parts.get("user", ""), label)


def _render(words: str, label: str) -> Render:
    from jinja2 import TemplateError, TemplateSyntaxError

    where = f"the text of the prompt {label!r}"
    try:
        _check(SANDBOX.parse(words), where)
        template = SANDBOX.from_string(words)
    except TemplateSyntaxError as error:
        raise SettingsError(f"{where}, line {error.lineno}: {error.message}") from None
    except (TemplateError, RecursionError, MemoryError, SyntaxError, ValueError) as error:
        raise SettingsError(f"{where} is not a template: {str(error) or type(error).__name__}") from None

    def rendered(fields: Mapping[str, Any]) -> str:
        try:
            return render(template, fields)
        except Exception as error:  # noqa: BLE001 (a template is untrusted code; its author gets all its errors)
            raise SettingsError(f"{where}: {str(error) or type(error).__name__}") from None

    return rendered


def _check(tree: nodes.Template, where: str) -> None:
    """Refuse elements that a template must not use.

    Raises:
        SettingsError: there is such an element; the message names it and its line.
    """
    from jinja2 import nodes

    for node in tree.find_all(nodes.Node):
        if wrong := _wrong(node):
            raise SettingsError(f"{where}, line {node.lineno}: {wrong}")


def _wrong(node: nodes.Node) -> str:
    """Return the fault of an element of a template; "" if it has none."""
    from jinja2 import nodes

    kind = type(node).__name__
    if kind not in NODES:
        return f"{_name(kind)} cannot be used in the text of a prompt"
    match node:
        case nodes.Name(name=name) | nodes.Getattr(attr=name) | nodes.Getitem(arg=nodes.Const(value=str(name))):
            return f"{name!r} cannot be used: it begins with _" if name.startswith("_") else ""
        case nodes.Call(node=nodes.Getattr(attr=name)) if name in CALLED:
            return ""
        case nodes.Call():
            return f"only these methods can be called: {', '.join(sorted(CALLED))}"
        case nodes.Filter(name=name) if name not in SANDBOX.filters:
            return f"there is no filter {name!r}; the filters are {', '.join(sorted(SANDBOX.filters))}"
        case nodes.For() if node.recursive or any(True for part in node.body + node.else_ for _ in _loops(part)):
            return "a loop cannot contain a loop"
        case nodes.Assign() if not isinstance(node.target, nodes.Name):
            return "only a name can be set"
    return ""


def _loops(node: nodes.Node) -> Iterable[nodes.Node]:
    from jinja2 import nodes

    return [node] if isinstance(node, nodes.For) else node.find_all(nodes.For)


def _name(kind: str) -> str:
    signs = {"Concat": "~", "Mul": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "Pow": "**"}
    return repr(signs.get(kind, kind.lower()))


R_co = TypeVar("R_co", covariant=True)
P = TypeVar("P", bound="Prompt[Any]")


class Prompt(BaseModel, Generic[R_co]):
    """A question whose answer has the type R_co: a Pydantic model, or `str` for free text.

        class TellMood(Prompt[Mood]):
            text: str

            @classmethod
            def words(cls) -> str:
                return '# system\\nName the mood. Reply: {{ schema }}\\n\\n# user\\n{{ text | data("said") }}'

        mood = await ask("openai:gpt-5-mini", TellMood(text="What a day!"))

    Fields are the variables of the template. Instead of overriding `words`, put the template into a Markdown file with
    the class's name next to the module (`tell_mood.md`). `data` delimits text that is not trusted.
    """

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    role: ClassVar[str] = "reasoner"
    """The role whose model answers, unless the caller names another."""
    reply_tokens: ClassVar[int] = 0
    """Maximum tokens of the reply; 0: 1,000 for free text, 4,000 for structured data."""
    trim_order: ClassVar[tuple[tuple[str, Literal["first", "last"]], ...]] = (
        ("exemplars", "first"),
        ("talks", "last"),
        ("recalled", "first"),
        ("conversation", "last"),
        ("history", "last"),
        ("notes", "last"),
        ("known", "first"),
    )
    """Names of list fields that are shortened, in this order, if the prompt does not fit the model's context window.

    The second value is the end of the list that is kept. Lists whose items are numbered in the prompt keep the first
    items, so that the numbers stay right.
    """

    @classmethod
    def label(cls) -> str:
        """Return the prompt's name in snake case: the name of its text file and its name in the log."""
        return snake_case(cls.__name__)

    @classmethod
    def words(cls) -> str:
        """Return the text of the template that is next to the module."""
        return _text_of(cls)

    @classmethod
    @cache
    def reply_type(cls) -> Any:
        """Return the type of the answer.

        Raises:
            TypeError: the class does not name one, as in `class Rate(Prompt[int])`.
        """
        for base in cls.__mro__:
            arguments = getattr(base, "__pydantic_generic_metadata__", {}).get("args", ())
            if arguments:
                return arguments[0]
        raise TypeError(f"{cls.__name__} needs a reply type: class {cls.__name__}(Prompt[Reply])")

    def reply_schema(self) -> JsonSchema | None:
        """Return the answer's JSON Schema, or None for free text."""
        return _reply_schema(type(self))

    def dialogue(self) -> Sequence[Message]:
        """Return the conversation before this question: the messages between the system and the user message.

        Here there are none.
        """
        return ()

    def messages(self, words: str | None = None) -> tuple[Message, ...]:
        """Render a template (the prompt's own, or `words`) into messages."""
        words = self.words() if words is None else words
        system, user = templates(words, self.label())
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        shown = self.reply_schema() if "schema" in words else None
        fields["schema"] = _compact_reply(type(self)) if shown is _reply_schema(type(self)) else _compact(shown)
        both = Message("system", system(fields)), *self.dialogue(), Message("user", user(fields))
        return tuple(each for place, each in enumerate(both) if each.text or 0 < place < len(both) - 1)

    def parse(self, text: str) -> R_co:
        """Parse the model's answer.

        Raises:
            ReplyInvalid: the answer is not of the reply type; the message is written for the model. No other error is
                raised for any text.
        """
        if self.reply_type() is str:
            words = without_thoughts(legible(text))
            if not words:
                raise ReplyInvalid("The reply was empty. Answer in words.")
            return words  # type: ignore[return-value]
        schema = _reply_schema(type(self)) or {}
        value = _answer(text, schema)
        try:
            return _adapter(type(self)).validate_python(value)  # type: ignore[no-any-return]
        except ValidationError as error:
            with suppress(ValidationError):
                if (fitted := fit(value, schema)) is not value:
                    return _adapter(type(self)).validate_python(fitted)  # type: ignore[no-any-return]
            raise ReplyInvalid(f"The JSON does not fit: {complaints(error)}") from None

    def ground(
        self,
        reply: R_co,  # type: ignore[misc]  # always the value that `parse` returned
        turns: Sequence[Message],  # noqa: ARG002
    ) -> tuple[R_co, str]:
        """Remove from an answer the parts that the prompt and the turns do not support. Return the rest, and a
        description of the removed parts ("": none).

        By default, nothing is removed. The wrapper `Repair` shows the description to the model once.
        """
        return reply, ""


def complaints(error: ValidationError) -> str:
    """Return the first five errors of a Pydantic validation on one line, each with the path of its field."""
    return "; ".join(
        f"{'.'.join(map(str, found['loc']))[:100] or 'the whole'}: {found['msg'][:200]}"
        for found in error.errors(include_url=False, include_context=False, include_input=False)[:5]
    )


def _answer(text: str, schema: JsonSchema) -> Any:
    """Find in a reply the JSON value that has fields of a schema. If no value has such a field and there is only one
    value, fit it to the schema.

    Raises:
        ReplyInvalid: there is no such value, or there are several different ones: the model may have quoted one of
            them.
    """
    values = _values(text, schema)
    fields = schema.get("properties", {})
    meant = [value for value in values if not fields or fields.keys() & value] or values
    if any(value != meant[0] for value in meant):
        raise ReplyInvalid(f"There are {len(meant)} JSON values in the reply. Answer with one and nothing else.")
    if not fields or not meant[0] or fields.keys() & meant[0]:
        return meant[0]
    if fields.keys() & (fitted := fit(meant[0], schema)):
        return fitted
    there = ", ".join(meant[0])[:200]
    raise ReplyInvalid(f"The JSON has none of the fields {', '.join(fields)}; it has {there}.")


def _values(text: str, schema: JsonSchema) -> list[Any]:
    """Return the JSON values in a reply that are of the schema's type (object or list).

    A value inside a JSON string counts, too. A value of the other type counts if `fit` can convert it, such as a list
    that contains only the object.

    Raises:
        ReplyInvalid: there is no such value.
    """
    kind, other = (list, dict) if schema.get("type") == "array" else (dict, list)
    try:
        return whole_json(text, kind)
    except ReplyInvalid:
        words = without_thoughts(text)
        if words[:2] == '"{' and words[-1:] == '"':
            with suppress(ValueError):
                return whole_json(json.loads(words), kind)
        with suppress(ReplyInvalid):
            found = whole_json(text, other)
            if len(found) == 1 and isinstance(fitted := fit(found[0], schema), kind):
                return [fitted]
        raise


RULES: dict[type[Prompt[Any]], Callable[..., Any]] = {}


def rule(prompt: type[P]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the function that answers a prompt when no model is configured.

    The function gets the prompt and, if it has a second parameter, the previous turns. For a prompt that is used with
    tools (`act`), it may return a list of `Call` instead of a reply.

    Raises:
        ValueError: the prompt has a rule already.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if RULES.setdefault(prompt, function) is not function:
            raise ValueError(f"the prompt {prompt.label()!r} has a rule already: {RULES[prompt].__qualname__}")
        return function

    return register


@cache
def _text_of(prompt: type[Prompt[Any]]) -> str:
    path = Path(sys.modules[prompt.__module__].__file__ or ".").with_name(f"{prompt.label()}.md")
    try:
        return path.read_text("utf-8")
    except OSError as error:
        raise SettingsError(
            f"the text of the prompt {prompt.label()!r} cannot be read from {path}: {error.strerror}"
        ) from None


@cache
def _adapter(prompt: type[Prompt[Any]]) -> TypeAdapter[Any]:
    return TypeAdapter(prompt.reply_type())


@cache
def _reply_schema(prompt: type[Prompt[Any]]) -> JsonSchema | None:
    return None if prompt.reply_type() is str else _adapter(prompt).json_schema()


@cache
def snake_case(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name.split("[")[0]).lower()


@cache
def _compact_reply(prompt: type[Prompt[Any]]) -> str:
    return _compact(_reply_schema(prompt))


def _compact(schema: JsonSchema | None) -> str:
    """Return a schema as compact JSON without Pydantic's titles, class docstrings and defaults, which saves tokens."""
    return "" if schema is None else json.dumps(lean(schema), ensure_ascii=False, separators=(",", ":"))


MAX_TEXT, MAX_WORK = 2_000_000, 20_000_000
"""Maximum number of characters that a template may render, and that its filters and calls may process."""
JINJA_FILTERS = (
    "capitalize",
    "count",
    "d",
    "default",
    "int",
    "length",
    "list",
    "lower",
    "reverse",
    "string",
    "title",
    "trim",
    "upper",
)
"""Jinja's filters that templates may use."""
MAX_ATTRIBUTES = 1_000
"""Maximum number of attributes for which the sandbox's decision is cached."""
_WORK = "_work"


class TooMuch(Exception):  # noqa: N818
    """A template renders too much text, or exceeds the limit of work."""


@dataclass(slots=True)
class _Work:
    """The remaining work of one rendering, in characters or items."""

    left: int = MAX_WORK

    def spend(self, size: int) -> None:
        """Subtract a number of characters or items that a filter, a call or `+` produces, and 100 for the operation.

        Raises:
            TooMuch: the number exceeds MAX_TEXT, or the total exceeds MAX_WORK.
        """
        self.left -= size + 100
        if size > MAX_TEXT or self.left < 0:
            raise TooMuch(
                f"the template exceeds a limit: {MAX_TEXT:,} characters in one value, {MAX_WORK:,} in all its"
                " operations"
            )


def render(template: Template, fields: Mapping[str, Any]) -> str:
    """Render a template.

    Raises:
        TooMuch: the text is too long, or takes too much work.
        Exception: any error of the template.
    """
    texts, left = [], MAX_TEXT
    for text in template.generate({**fields, _WORK: _Work()}):
        texts.append(text)
        left -= len(text)
        if left < 0:
            raise TooMuch(f"the template renders more than {MAX_TEXT:,} characters")
    return "".join(texts).strip()


class Sandbox(ImmutableSandboxedEnvironment):
    """Jinja's sandbox, which limits the work of a template: the sizes of operands of `+` and of results of calls
    count."""

    intercepted_binops = frozenset({"+"})
    _safe: ClassVar[dict[tuple[type, str], bool]] = {}
    """Cached decisions on attributes; Jinja decides by the type and the name."""

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        known = self._safe.get((type(obj), attr))
        if known is None:
            known = super().is_safe_attribute(obj, attr, value)
            if len(self._safe) < MAX_ATTRIBUTES:
                self._safe[type(obj), attr] = known
        return known

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        context[_WORK].spend(_size(left) + _size(right))
        return super().call_binop(context, operator, left, right)

    def call(__self, __context: Context, __called: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
        result = super().call(__context, __called, *args, **kwargs)
        __context[_WORK].spend(_size(result))
        return result


def _size(value: object) -> int:
    return len(value) if isinstance(value, str | list | tuple | dict) else 0


def _counted(plain: Callable[..., Any]) -> Callable[..., Any]:
    @pass_context
    def filtered(context: Context, *args: Any, **kwargs: Any) -> Any:
        result = plain(*args, **kwargs)
        context[_WORK].spend(_size(result))
        return result

    return filtered


@pass_context
def _attributes(context: Context, values: Iterable[object], attribute: str) -> list[object]:
    return [context.environment.getattr(value, attribute) for value in values]


@pass_context
def _join(context: Context, values: Iterable[object], between: str = "") -> str:
    texts = [str(value) for value in values]
    context[_WORK].spend(sum(map(len, texts)) + len(between) * len(texts))
    return between.join(texts)


@pass_context
def _replace(context: Context, text: object, old: str, new: str) -> str:
    context[_WORK].spend(len(str(text)) + (str(text).count(old) + 1) * len(new))
    return str(text).replace(old, new)


def _fields(value: Mapping[str, object]) -> str:
    """Return a mapping as text: one key per line, with semicolons between the items of a list.

    This takes fewer tokens than JSON.
    """
    texts = {name: "; ".join(map(str, held)) if isinstance(held, list) else held for name, held in value.items()}
    return "\n".join(f"{name}: {text}" for name, text in texts.items())


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


_PLAIN = {name: FILTERS[name] for name in JINJA_FILTERS} | {
    "data": delimited,
    "short": delimited_short,
    "listed": listed,
    "numbered": numbered,
    "tojson": _json,
    "fields": _fields,
    "first": lambda values: next(iter(values), ""),
    "last": lambda values: next(reversed(values), ""),
}
SANDBOX = Sandbox(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
SANDBOX.filters = {name: _counted(each) for name, each in _PLAIN.items()}
SANDBOX.filters |= {"map": _attributes, "join": _join, "replace": _replace}
SANDBOX.globals.clear()


R = TypeVar("R")


async def ask(model: Model, prompt: Prompt[R], role: str = "") -> R:
    """Return the model's typed answer.

    Raises:
        ModelError: the model gave no answer, or an answer of the wrong type (the wrapper `Repair` lets the model
            correct it).
    """
    text, _, _ = await gather_reply(model, Request(prompt, role or prompt.role))
    return prompt.ground(prompt.parse(text), ())[0]


async def speak(model: Model, prompt: Prompt[str], role: str = "") -> AsyncGenerator[str]:
    """Yield the model's text piece by piece.

        async for piece in speak(model, Greet()):
            print(piece, end="", flush=True)

    Raises:
        ModelError: the endpoint failed; pieces that were already yielded are valid.
        ReplyInvalid: the reply has no text.
    """
    has_text, pieces = False, LegiblePieces()
    async with aclosing(model.reply(Request(prompt, role or prompt.role))) as parts:
        async for part in parts:
            if isinstance(part, Piece) and (text := pieces.add(part.text)):
                has_text = has_text or any(sign.isprintable() and sign != " " for sign in text)
                yield text
    if not has_text:
        raise ReplyInvalid(f"{model.name} answered the prompt {prompt.label()!r} without any visible text")


async def act(
    model: Model,
    prompt: Prompt[R],
    tools: Sequence[ToolSpec],
    turns: Sequence[Message] = (),
    role: str = "",
    on_text: Callable[[str], None] | None = None,
) -> tuple[str, tuple[Call, ...]] | R:
    """Return (text, calls) if the model calls tools, else its typed answer. `run_tool_loop` also makes the calls.

    Args:
        on_text: called with each piece of text as it arrives.
    """
    request = Request(prompt, role or prompt.role, tuple(turns), tuple(tools))
    text, calls, _ = await gather_reply(model, request, on_text)
    return (text, calls) if calls else prompt.ground(prompt.parse(text), turns)[0]


async def gather_reply(
    model: Model, request: Request, on_text: Callable[[str], None] | None = None
) -> tuple[str, tuple[Call, ...], Usage | None]:
    """Return the text, the calls and the usage of a complete reply, without NUL and single surrogates."""
    text, calls, used = list[str](), list[Call](), None
    pieces = LegiblePieces()
    async with aclosing(model.reply(request)) as parts:
        async for part in parts:
            match part:
                case Piece():
                    if legible := pieces.add(part.text):
                        text.append(legible)
                        if on_text is not None:
                            on_text(legible)
                case Call():
                    calls.append(legible_call(part))
                case Usage():
                    used = part
    return "".join(text), tuple(calls), used


async def text_logprobs(model: Model, prompt: Prompt[Any], text: str) -> tuple[float, ...]:
    """Return the log-probabilities of the tokens of `text` as the continuation of a prompt.

    The model may report only those of the first tokens.

    Raises:
        ModelRefused: the model reports no log-probabilities.
        ModelError: the model is unavailable.
    """
    request = Request(prompt, prompt.role, continuation=text)
    async with aclosing(model.reply(request)) as parts:
        async for part in parts:
            if isinstance(part, TextLogprobs):
                return part.tokens
    raise ModelRefused(f"{model.name} reports no log-probabilities of a given text")
