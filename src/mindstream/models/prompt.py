"""A prompt is a typed question.

Its fields are its variables, its type argument is the reply, its words stand in a Markdown file of the same name beside
the module, and its rule, the answer when there is no model, is a plain function beside it:

    class RateImportance(Prompt[Importance]):       # rate_importance.md lies beside this module
        memory: str

    @rule(RateImportance)
    def by_words(ask: RateImportance) -> Importance: ...

The words have two parts, `# system` (static words first, so that prefix caches work) and `# user`; they are Jinja
templates over the fields, and a variable that is not there is an error. `{{ text | data("memory") }}` fences what
people, models, tools or files wrote: data, never instruction.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError
from pydantic_core import from_json

from mindstream.errors import ReplyInvalid, SettingsError
from mindstream.models.model import JsonSchema, Message

R = TypeVar("R")
P = TypeVar("P", bound="Prompt[Any]")


class Prompt(BaseModel, Generic[R]):
    """A question whose answer has the type R: a Pydantic model, or `str` for free text."""

    model_config = ConfigDict(frozen=True, arbitrary_types_allowed=True)

    role: ClassVar[str] = "reasoner"
    """Which model answers, unless the caller says otherwise."""

    @classmethod
    def label(cls) -> str:
        """Return the prompt's name in snake case: the name of its words' file and its name in the log."""
        return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", cls.__name__.split("[")[0]).lower()

    @classmethod
    def words(cls) -> str:
        """Return the template that lies beside the module."""
        return _words_beside(cls)

    @classmethod
    def reply_type(cls) -> Any:
        """Return the type of the answer."""
        return _reply_type(cls)

    def reply_schema(self) -> JsonSchema | None:
        """Return the answer's JSON Schema, or None where the answer is free text."""
        return _reply_schema(type(self))

    def dialogue(self) -> Sequence[Message]:
        """Return messages that stand between system and user words: a conversation so far."""
        return ()

    def messages(self, words: str | None = None) -> tuple[Message, ...]:
        """Render the words (the prompt's own, or `words`) into messages."""
        system, user = _templates(words if words is not None else self.words(), self.label())
        fields = {name: getattr(self, name) for name in type(self).model_fields}
        fields["schema"] = _compact(self.reply_schema())
        rendered = [Message("system", text) for text in [system(fields)] if text]
        rendered.extend(self.dialogue())
        rendered.extend(Message("user", text) for text in [user(fields)] if text)
        return tuple(rendered)

    def parse(self, text: str) -> R:
        """Read the model's answer.

        Raises:
            ReplyInvalid: with words that tell the model what is wrong.
        """
        kind = self.reply_type()
        if kind is str:
            if not text.strip():
                raise ReplyInvalid("The reply was empty. Answer in words.")
            return text.strip()  # type: ignore[return-value]
        try:
            return _adapter(type(self)).validate_python(first_json(text))  # type: ignore[no-any-return]
        except ValidationError as error:
            raise ReplyInvalid(f"The JSON does not fit: {complaints(error)}") from None


def complaints(error: ValidationError) -> str:
    """Say in one line what a Pydantic validation found, with the place of each finding."""
    return "; ".join(
        f"{'.'.join(map(str, found['loc'])) or 'the whole'}: {found['msg']}" for found in error.errors()[:5]
    )


def first_json(text: str) -> Any:
    """Return the first JSON object (or list) in a text that may have words or fences around it.

    Raises:
        ReplyInvalid: there is none, or it is not finished.
    """
    text = re.sub(r"<think>.*?</think>", "", text, flags=re.DOTALL)
    if not text.strip():
        raise ReplyInvalid("The reply was empty. Answer with one JSON object and nothing else.")
    decoder = json.JSONDecoder(strict=False)
    for found in re.finditer(r"[{\[]", text):
        try:
            value, _ = decoder.raw_decode(text, found.start())
        except json.JSONDecodeError:
            continue
        if isinstance(value, dict | list):
            return value
    try:
        return from_json(text.strip())
    except ValueError as error:
        raise ReplyInvalid(
            f"No complete JSON object in the reply ({error}). Answer with one and nothing else."
        ) from None


# Rules: the answers when there is no model.

RULES: dict[type[Prompt[Any]], Callable[..., Any]] = {}


def rule(prompt: type[P]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register the answer that stands in when no model is configured.

    The function gets the prompt; where the prompt is put with tools (`act`), it also gets the turns so far, and may
    return a list of `Call` instead of a reply.
    """

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        RULES[prompt] = function
        return function

    return register


# Words.


def fenced(text: object, tag: str) -> str:
    """Put what others wrote between tags that it cannot close itself."""
    inner = re.sub(rf"</?\s*{re.escape(tag)}\s*>", "", str(text), flags=re.IGNORECASE)
    return f"<{tag}>\n{inner.strip()}\n</{tag}>"


@cache
def _words_beside(prompt: type[Prompt[Any]]) -> str:
    module = sys.modules[prompt.__module__]
    path = Path(module.__file__ or ".").with_name(f"{prompt.label()}.md")
    try:
        return path.read_text("utf-8")
    except OSError:
        raise SettingsError(
            f"the words of the prompt {prompt.label()!r} should lie in {path}; there is no such file"
        ) from None


@cache
def _reply_type(prompt: type[Prompt[Any]]) -> Any:
    for base in prompt.__mro__:
        arguments = getattr(base, "__pydantic_generic_metadata__", {}).get("args", ())
        if arguments:
            return arguments[0]
    raise TypeError(f"{prompt.__name__} must say what its reply is: class {prompt.__name__}(Prompt[Reply])")


@cache
def _adapter(prompt: type[Prompt[Any]]) -> TypeAdapter[Any]:
    return TypeAdapter(_reply_type(prompt))


@cache
def _reply_schema(prompt: type[Prompt[Any]]) -> JsonSchema | None:
    return None if _reply_type(prompt) is str else _adapter(prompt).json_schema()


def _compact(schema: JsonSchema | None) -> str:
    """Write a schema without the titles and docstrings that Pydantic adds: fewer tokens, same meaning."""

    def strip(node: Any, named: bool = False) -> Any:
        if isinstance(node, Mapping):
            drop = () if named else ("title", "description") if "properties" in node else ("title",)
            return {k: strip(v, named=k in ("properties", "$defs")) for k, v in node.items() if k not in drop}
        return [strip(item) for item in node] if isinstance(node, list) else node

    return "" if schema is None else json.dumps(strip(schema), ensure_ascii=False, separators=(",", ":"))


Render = Callable[[Mapping[str, Any]], str]


@cache
def _templates(words: str, label: str) -> tuple[Render, Render]:
    from jinja2 import Environment, StrictUndefined, TemplateError

    environment = Environment(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    environment.filters["data"] = fenced
    environment.policies["json.dumps_kwargs"] = {"ensure_ascii": False}
    parts = re.split(r"^# (system|user)[ \t]*$", words, flags=re.MULTILINE)
    named = dict(zip(parts[1::2], parts[2::2], strict=True))
    if not named:
        raise SettingsError(f"the words of the prompt {label!r} need a line '# system' or '# user'")

    def part(name: str) -> Render:
        try:
            template = environment.from_string(named.get(name, "").strip())
        except TemplateError as error:
            raise SettingsError(f"the words of the prompt {label!r} are not a template: {error}") from None

        def render(fields: Mapping[str, Any]) -> str:
            try:
                return template.render(fields).strip()
            except TemplateError as error:
                raise SettingsError(f"the words of the prompt {label!r}: {error}") from None

        return render

    return part("system"), part("user")
