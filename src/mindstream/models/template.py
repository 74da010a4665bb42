"""Compiles the text of a prompt as a template, and refuses elements that templates must not use.

Users may write templates, so only a part of Jinja's language is allowed, in Jinja's sandbox: a template can call only a
few methods, cannot nest loops, and is stopped at a limit of work (see sandbox).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeAlias

from mindstream.errors import SettingsError

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
        SettingsError: the text is not a valid template; the message names the line.
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

    from mindstream.models.sandbox import SANDBOX, render

    where = f"the text of the prompt {label!r}"
    try:
        _check(SANDBOX.parse(words), where)
        template = SANDBOX.from_string(words)
    except TemplateSyntaxError as error:
        raise SettingsError(f"{where}, line {error.lineno}: {error.message}") from None
    except (TemplateError, RecursionError, MemoryError, SyntaxError, ValueError) as error:
        raise SettingsError(f"{where} is not a template: {error or type(error).__name__}") from None

    def rendered(fields: Mapping[str, Any]) -> str:
        try:
            return render(template, fields)
        except Exception as error:  # noqa: BLE001 (a template is untrusted code; its author gets all its errors)
            raise SettingsError(f"{where}: {error or type(error).__name__}") from None

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

    from mindstream.models.sandbox import SANDBOX

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
