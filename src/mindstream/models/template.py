"""The words of a prompt as a template: what may stand in one, and what rendering one may cost.

Words can come from anybody, so they are no program: Jinja's sandbox, and of its language only what a text needs. A
template cannot call what it likes, cannot loop in a loop, and stops when it has done more work than any text takes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from mindstream.errors import SettingsError
from mindstream.models.fence import fenced, fenced_short, listed, numbered

if TYPE_CHECKING:
    from jinja2 import Environment, nodes

Render: TypeAlias = Callable[[Mapping[str, Any]], str]

MOST_WORDS, MOST_TEXT, MOST_WORK = 100_000, 2_000_000, 20_000_000
"""Characters that a template may have, that may come of it, and that its filters and calls may handle on the way."""
PARTS = re.compile(r"^# (system|user)[ \t]*$", re.MULTILINE)
NODES = frozenset({
    "Add", "And", "Assign", "Call", "Compare", "CondExpr", "Const", "Filter", "For", "Getattr", "Getitem", "If",
    "Keyword", "List", "Name", "Neg", "Not", "Operand", "Or", "Output", "Slice", "Sub", "Template", "TemplateData",
    "Test", "Tuple",
})  # fmt: skip
CALLED = frozenset({"written", "items", "keys", "values", "get"})
"""Methods that a template may call: of a plan, and of mappings."""
JINJAS = (
    "capitalize", "count", "d", "default", "int", "length", "list", "lower", "reverse", "string", "title", "trim",
    "upper",
)  # fmt: skip
"""Filters that are taken from Jinja."""
_WORK = "_work"


@lru_cache(256)
def templates(words: str, label: str) -> tuple[Render, Render]:
    """Return what renders the system words and the user words of a prompt.

    Raises:
        SettingsError: they are no template, or one that may not be rendered; with the line.
    """
    if len(words) > MOST_WORDS:
        raise SettingsError(f"the words of the prompt {label!r} are longer than {MOST_WORDS:,} characters")
    heads = list(PARTS.finditer(words))
    if not heads:
        raise SettingsError(f"the words of the prompt {label!r} need a line '# system' or '# user'")
    ends = [head.start() for head in heads[1:]] + [len(words)]
    parts = {
        head[1]: "\n" * words.count("\n", 0, head.end()) + words[head.end() : end]
        for head, end in zip(heads, ends, strict=True)
    }
    return _render(parts.get("system", ""), label), _render(parts.get("user", ""), label)


def _render(words: str, label: str) -> Render:
    from jinja2 import TemplateError, TemplateSyntaxError

    where = f"the words of the prompt {label!r}"
    try:
        environment = _environment()
        _check(environment.parse(words), where)
        template = environment.from_string(words)
    except TemplateSyntaxError as error:
        raise SettingsError(f"{where}, line {error.lineno}: {error.message}") from None
    except (TemplateError, RecursionError, MemoryError, SyntaxError, ValueError) as error:
        raise SettingsError(f"{where} are not a template: {error or type(error).__name__}") from None

    def render(fields: Mapping[str, Any]) -> str:
        texts, left = [], MOST_TEXT
        try:
            for text in template.generate({**fields, _WORK: _Work()}):
                texts.append(text)
                left -= len(text)
                if left < 0:
                    raise _TooMuch(f"more than {MOST_TEXT:,} characters come of them")
        except SettingsError:
            raise
        except Exception as error:  # noqa: BLE001 (a template is foreign code: whatever it raises, its author is told)
            raise SettingsError(f"{where}: {error or type(error).__name__}") from None
        return "".join(texts).strip()

    return render


def _check(tree: nodes.Template, where: str) -> None:
    """Refuse what a text does not need.

    Raises:
        SettingsError: naming it, with its line.
    """
    from jinja2 import nodes

    for node in tree.find_all(nodes.Node):
        if wrong := _wrong(node):
            raise SettingsError(f"{where}, line {node.lineno}: {wrong}")


def _wrong(node: nodes.Node) -> str:
    """Say what is wrong with a part of a template; "" where nothing is."""
    from jinja2 import nodes

    kind = type(node).__name__
    if kind not in NODES:
        return f"{_name(kind)} cannot be used in the words of a prompt"
    match node:
        case nodes.Name(name=name) | nodes.Getattr(attr=name) | nodes.Getitem(arg=nodes.Const(value=str(name))):
            return f"{name!r} cannot be used: it begins with _" if name.startswith("_") else ""
        case nodes.Call(node=nodes.Getattr(attr=name)) if name in CALLED:
            return ""
        case nodes.Call():
            return f"nothing can be called but {', '.join(sorted(CALLED))}"
        case nodes.Filter(name=name) if name not in _environment().filters:
            return f"there is no filter {name!r}; there are: {', '.join(sorted(_environment().filters))}"
        case nodes.For() if node.recursive or any(True for part in node.body + node.else_ for _ in _loops(part)):
            return "a loop cannot stand in a loop"
        case nodes.Assign() if not isinstance(node.target, nodes.Name):
            return "only a name can be set"
    return ""


def _loops(node: nodes.Node) -> Iterable[nodes.Node]:
    from jinja2 import nodes

    return [node] if isinstance(node, nodes.For) else node.find_all(nodes.For)


def _name(kind: str) -> str:
    signs = {"Concat": "~", "Mul": "*", "Div": "/", "FloorDiv": "//", "Mod": "%", "Pow": "**"}
    return repr(signs.get(kind, kind.lower()))


# What rendering may cost.


class _TooMuch(Exception):  # noqa: N818
    """A template wants more than any text takes."""


@dataclass(slots=True)
class _Work:
    """What a rendering may still do."""

    left: int = MOST_WORK

    def spend(self, size: int) -> None:
        """Count what is about to be made, or was made, in characters or items.

        Raises:
            _TooMuch: it is too long, or all of it is too much.
        """
        self.left -= size + 100
        if size > MOST_TEXT or self.left < 0:
            raise _TooMuch("rendering them takes more than any text does")


@cache
def _environment() -> Environment:
    from jinja2 import StrictUndefined, pass_context
    from jinja2.filters import FILTERS
    from jinja2.runtime import Context
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    class Sandbox(ImmutableSandboxedEnvironment):
        intercepted_binops = frozenset({"+"})

        def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
            context[_WORK].spend(_size(left) + _size(right))
            return super().call_binop(context, operator, left, right)

        def call(__self, __context: Context, __called: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: N805
            result = super().call(__context, __called, *args, **kwargs)
            __context[_WORK].spend(_size(result))
            return result

    def counted(plain: Callable[..., Any]) -> Callable[..., Any]:
        @pass_context
        def filtered(context: Context, *args: Any, **kwargs: Any) -> Any:
            result = plain(*args, **kwargs)
            context[_WORK].spend(_size(result))
            return result

        return filtered

    @pass_context
    def attributes(context: Context, values: Iterable[object], attribute: str) -> list[object]:
        return [context.environment.getattr(value, attribute) for value in values]

    @pass_context
    def join(context: Context, values: Iterable[object], between: str = "") -> str:
        texts = [str(value) for value in values]
        context[_WORK].spend(sum(map(len, texts)) + len(between) * len(texts))
        return between.join(texts)

    @pass_context
    def replace(context: Context, text: object, old: str, new: str) -> str:
        context[_WORK].spend(len(str(text)) + (str(text).count(old) + 1) * len(new))
        return str(text).replace(old, new)

    plain = {name: FILTERS[name] for name in JINJAS} | {
        "data": fenced, "short": fenced_short, "listed": listed, "numbered": numbered, "tojson": _json,
        "first": lambda values: next(iter(values), ""), "last": lambda values: next(reversed(values), ""),
    }  # fmt: skip
    environment = Sandbox(undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, autoescape=False)
    environment.filters = {name: counted(each) for name, each in plain.items()}
    environment.filters |= {"map": attributes, "join": join, "replace": replace}
    environment.globals.clear()
    return environment


def _size(value: object) -> int:
    return len(value) if isinstance(value, str | list | tuple | dict) else 0


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
