"""Render untrusted templates: Jinja's sandbox with few filters, and a limit on the work done.

This module is imported when the first template is compiled, because importing Jinja takes a moment.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from jinja2 import StrictUndefined, Template, pass_context
from jinja2.filters import FILTERS
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

from mindstream.models.untrusted import delimited, delimited_short, listed, numbered

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
        """Subtract a number of characters or items that a filter or call produces, and 100 for the operation itself.

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
    """Jinja's sandbox, which counts the results of additions and calls."""

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
    """Return a mapping as text, one key per line, lists with semicolons: fewer tokens than JSON."""
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
