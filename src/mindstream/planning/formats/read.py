"""Read texts as plans, in one of the published formats: ReWOO, LLMCompiler, numbered lists, JSON.

In a numbered list, each item waits for the one before it. Indented lines belong to the item above.

In LLMCompiler's format, `$1` can be a reference or an amount of money. It is a reference only if a step 1 came before
and one of these is true:

- It is a whole argument or list item.
- It is written `${1}`.
- Nothing that makes it an amount follows it: a letter, a digit, `,000`, `.50`, "million".

So "Split $5 in two" after a step 5 contains a reference.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import JsonValue, ValidationError

from mindstream.errors import InputError, ReplyInvalid
from mindstream.json_values import JsonObject
from mindstream.models.fitting import bare_name
from mindstream.models.model import ToolSpec
from mindstream.models.reply import whole_json
from mindstream.paths import read_text
from mindstream.planning.formats.rewoo import (
    INPUT,
    Findings,
    LineFormat,
    Rewoo,
    StepReader,
    find_spec,
    main_argument,
    read_input,
    read_json,
    read_literal,
    read_typed,
    scan_json,
    scan_text,
    split_arguments,
    split_at,
)
from mindstream.planning.plan import Plan, PlannedStep, Reference, parse_part

NUMBER = r"(?:[0-9]{1,4}|[一二三四五六七八九十]{1,3})"
ITEM = re.compile(
    rf"[-*#>\s]{{0,8}}(?:(?:Step|STEP|步骤|第)\s*+{NUMBER}\s*+步?[*]*+\s*+[.)、:：．）,，–—-]|{NUMBER}\s*+[.)、:：．）])(?!\d)[*]*+"
)
MOST_LINES = 100
"""Maximum number of lines of a list item."""
MODEL = "LLM"
"""Name of the tool that asks a model; it carries out the items of a numbered list."""


class Numbered:
    """Read a numbered list line by line; the text of each item is the input of the tool MODEL."""

    def __init__(self, tools: Sequence[ToolSpec] = ()) -> None:
        self.found = Findings()
        spec = find_spec(MODEL, tools)
        self._tool, self._argument = (spec.name if spec else MODEL), main_argument(spec)
        self._lines: list[str] = []

    def read_line(self, line: str) -> list[PlannedStep]:
        if item := ITEM.match(line):
            steps = self.end()
            self._lines = [line[item.end() :].strip().removesuffix("**")]
            return steps
        if self._lines and line[:1].isspace() and line.strip() and len(self._lines) < MOST_LINES:
            self._lines.append(line.strip())
            return []
        steps = self.end() if line.strip() else []
        self.found.note("this is not an item of the list", line)
        return steps

    def end(self) -> list[PlannedStep]:
        """Return the collected lines as a step that runs after the step before it, and forget the lines. [] if there
        are no lines."""
        words, self._lines = "\n".join(self._lines).strip(), []
        if not words:
            return []
        number = len(self.found.steps) + 1
        after = (f"E{number - 1}",) if number > 1 else ()
        return self.found.add(f"E{number}", self._tool, {self._argument: scan_text(words)}, after=after)


HEAD = re.compile(r"(?<![\w$.])([1-9][0-9]{0,3})\s{0,4}[.):]\s{0,4}[*`]{0,3}(\w[\w./:-]{0,127})\(")
NAMED = re.compile(r"\s*+([A-Za-z_]\w{0,99})\s*+=(?!=)")
ALONE = re.compile(r"\s*+\$(?:\{([1-9][0-9]{0,3})\}|([1-9][0-9]{0,3}))\s*+")
AMOUNT = r"\s*+(?:hundred|thousand|[mbtr]+illion|dollar|bucks|USD|[百千万亿]|美?元)"
REFERENCE = re.compile(
    rf"(?<![A-Za-z0-9$\\])\$(?:\{{([1-9][0-9]{{0,3}})\}}|([1-9][0-9]{{0,3}})(?![0-9A-Za-z_]|[.,][0-9])(?!{AMOUNT}))"
)
THOUGHT = re.compile(r"[\s*]*+Thought[*]*+\s*+:[*]*+")
END = "<END_OF_PLAN>"
JOINS = ("join", "joinner", "join_finish", "join_replan", "finish")
"""Names of the call that ends a plan."""


class Compiler:
    """Reads a plan in LLMCompiler's format, line by line."""

    def __init__(self, tools: Sequence[ToolSpec] = ()) -> None:
        self.found = Findings()
        self._tools = tools
        self._why = ""
        self._is_over = False

    def read_line(self, line: str) -> list[PlannedStep]:
        steps: list[PlannedStep] = []
        line, marker, _ = line.partition(END)
        at = 0
        while not self._is_over and (head := HEAD.search(line, at)):
            self._read_words(line[at : head.start()])
            parts, end = split_arguments(line, head.end(), HEAD)
            at = end + (line[end : end + 1] == ")")  # the closing bracket, which the published examples omit
            if head[2] in JOINS and not find_spec(head[2], self._tools):
                self._is_over = True
            else:
                steps += self._read_step(head, parts)
        if not self._is_over:
            self._read_words(line[at:])
        self._is_over = self._is_over or bool(marker)
        return steps

    def end(self) -> list[PlannedStep]:
        return []

    def _read_step(self, head: re.Match[str], parts: Sequence[str]) -> list[PlannedStep]:
        spec = find_spec(head[2], self._tools)
        arguments = self._read_arguments(parts, spec, int(head[1]))
        return self.found.add(f"E{head[1]}", spec.name if spec else head[2], arguments, self._why)

    def _read_arguments(self, parts: Sequence[str], spec: ToolSpec | None, number: int) -> JsonObject:
        def scan(text: str) -> JsonValue:
            return self.scan(text, number)

        known = spec.arguments if spec else {}
        if len(parts) == 1 and parts[0].strip()[:1] == "{":
            value = read_json(parts[0])
            if isinstance(value, dict) and value and value.keys() <= known.keys() and not parse_part(value):
                return {name: scan_json(each, scan) for name, each in value.items()}
        if len(known) == 1 and len(parts) > 1:  # a single text without quotation marks, which contains commas
            parts = [",".join(parts)]
        found: JsonObject = {}
        names = [*known, *([] if known else [INPUT])]
        for position, part in enumerate(parts):
            named = NAMED.match(part)
            if named and (named[1] in known or not spec):
                found[named[1]] = read_typed(part[named.end() :], known.get(named[1]), scan)
            else:
                name = names[position] if position < len(names) else f"argument{position + 1}"
                found[name] = read_literal(part, scan)
        return found

    def scan(self, text: str, number: int) -> JsonValue:
        """Return a text with references to earlier steps; a text that is only a reference becomes that reference. Note
        a text that looks like a reference but refers to no earlier step."""
        if alone := ALONE.fullmatch(text):
            step = f"E{alone[1] or alone[2]}"
            if self._is_earlier(step, number):
                return Reference(step).as_json()
            self.found.note("this refers to no earlier step and is read as text", text)
        found = ((each, f"E{each[1] or each[2]}") for each in REFERENCE.finditer(text))
        return split_at(text, (each for each in found if self._is_earlier(each[1], number))).as_json()

    def _is_earlier(self, step: str, number: int) -> bool:
        return step in self.found.steps and int(step[1:]) < number

    def _read_words(self, words: str) -> None:
        if thought := THOUGHT.match(words):
            self._why = words[thought.end() :].strip()
        else:
            self.found.note("this is not a step", words.strip(" \t*`)].,;-#"))


STEPS = ("steps", "plan", "tasks", "actions", "calls", "tool_calls", "步骤", "计划")
WRAPPERS = ("properties", "items", "result", "response", "answer", "output")
"""Keys of objects around a plan: those of a JSON Schema that a model copies, and of an outer reply."""
ID = ("id", "step", "step_id", "task_id", "number", "index", "variable", "编号", "序号")
TOOL = ("tool", "tool_name", "action", "function", "name", "工具")
ARGUMENTS = (
    "arguments",
    "args",
    "input",
    "tool_input",
    "action_input",
    "parameters",
    "params",
    "query",
    "输入",
    "参数",
)
WHY = ("why", "reason", "thought", "description", "rationale", "plan")
AFTER = ("after", "depends_on", "dependencies", "deps", "requires", "依赖")
OUTPUT = ("output", "output_variable", "output_key", "save_as", "store_as", "assign_to", "result")
"""Keys under which a step gives its result a name other than the step's id."""
OF_STEP = {bare_name(name) for name in (*ID, *TOOL, *WHY, *AFTER, *OUTPUT)}
"""Keys of a step that are not names of arguments. If a step has no key such as `arguments`, all keys of the step that
are not in this set are read as arguments."""
STEP_NAMES = re.compile(
    rf"(?<![\w#$])(?:\$([1-9][0-9]{{0,3}}+)(?![.,][0-9]|{AMOUNT})|\$\{{([1-9][0-9]{{0,3}}+)\}}"
    r"|Evidence[ _-]?([1-9][0-9]{0,3}+))(?!\w)"
)
"""Matches the names `$1`, `${1}` and `Evidence1` of steps anywhere in a text, but not amounts of money."""
BLOCK = re.compile(r"```\w*[ \t]*\n(.*?)```", re.DOTALL)
YAML_STEP = re.compile(r"^[ ]*+(?:-[ ]*+)?(?:tool|action|function|name)[ ]*+:", re.MULTILINE)
YAML_TEXT = re.compile(
    r"^([ ]*+(?:-[ ]++)?[A-Za-z_]\w{0,59}+:[ ]++)((?![\"'\[{|>])(?=#|[^\n]*?(?:[ ]#E?\d|:[ ]))[^\n]*+)", re.MULTILINE
)
"""Matches a YAML text without quotation marks that contains a colon or a reference. YAML would read a reference (`#E1`)
as a comment."""
FOREIGN_NUMBER = re.compile(r"(^[ \t*>-]*+|[#＃$][Ee]?\{?|\bE)([٠-٩۰-۹०-९]{1,4})(?!\w)", re.MULTILINE)
"""Matches the number of a step in Arabic, Persian or Devanagari digits."""
OTHER_NAME = re.compile(
    r"^[ \t*`>-]*+(\$|Evidence[ _-]?)([1-9][0-9]{0,3})[*`]*+\s*+(?::=|[:=])(?=\s*+\w)", re.MULTILINE
)
"""Matches the beginning of a step that is named `$1` or `Evidence1`, as in `$1 = search`."""
YAML_ALIAS = re.compile(r"(?:^|[\s\[{,:-])[&*]\w|<<[ ]*:", re.MULTILINE)
MAX_YAML = 20_000
"""Maximum length of a text that is read as YAML or TOML, in characters. YAML with aliases, which can multiply the data,
is not read."""
TABLE_ROW = re.compile(
    r"\s*\|\s*[*`#]{0,3}(?:E|Step )?(\d{1,4})[*`]{0,2}\s*\|\s*[*`]{0,2}([\w. -]+?)[*`]{0,2}\s*\|(.*?)\|[^|]*"
)
ACTION = re.compile(r"[\s*]*(?:Action|Tool)(?: \d+)?[*]*\s*[:：]\s*(.+)")
MARKED = re.compile(
    r"^\s*+(?:\d{1,3}[.)]|\w[.)]|[①-⑳]|\d\ufe0f?\u20e3)\s*+[*`]{0,2}(\w[\w-]*+)[*`]{0,2}\s*+(?:[:：]\s*+(.+)|[\[(](.*)[\])]\s*+)"
)
"""Matches `1. tool: input`, `a) tool[input]` and `① tool[input]`."""
GIVEN = re.compile(
    r"^[\s*]*+(?:(?:Action|Tool) )?(?:Input|Arguments|Args|Query)(?: \d+)?[*]*\s*[:：]\s*(.+)", re.IGNORECASE
)
ASSIGNED = re.compile(r"^\s*+([A-Za-z_]\w*+)\s*+=\s*+(\w++)\((.*)\)\s*+")
"""Matches `name = tool(input)`, a call in Python."""
TAGGED = re.compile(r"<(?:tool|action|name)>([^<]+)</\w+>\s*<(?:input|arguments|args|query)>(.*?)</\w+>", re.DOTALL)
MAX_NESTING = 4
"""Maximum number of nested objects and JSON texts around a plan."""
USUAL_ID = re.compile(r"#?[Ee]?[0-9]{1,4}|None")
NAME = re.compile(r"[A-Za-z_]\w{0,59}")
STEP_NUMBER = re.compile(r"[#$]?\s?(?:[Ee]|step[ _-]?)?([1-9][0-9]{0,3})", re.IGNORECASE)


def read_json_plan(text: str, tools: Sequence[ToolSpec] = ()) -> Plan:
    """Read a plan that is written as JSON.

    Raises:
        InputError: the text has no steps, or a step is faulty; the message names the step.
        ValidationError: a step has a field with an invalid value.
    """
    value, steps = next(((value, steps) for value in _values(text) if (steps := _steps(value))), (None, []))
    if not steps:
        raise InputError(f"expected JSON with a list of steps under one of {', '.join(STEPS[:3])}, found none")
    steps = _with_usual_ids(steps)
    written = json.dumps(steps, ensure_ascii=False, default=str)
    # `$1` is a reference if an earlier step has this number, otherwise an amount of dollars. If the plan writes
    # references as `#E1` (so that `scan_text` changes `written`), `$1` is always an amount: `earlier` gets no steps.
    earlier = Compiler(tools)
    found: tuple[PlannedStep, ...] = ()
    for number, each in enumerate(steps, 1):
        found += ((step := _read_step(each, number, tools, earlier)),)
        earlier.found.steps |= {step.id: step} if scan_text(written) == written else {}
    task = value.get("task") if isinstance(value, Mapping) else ""
    return Plan(task=task if isinstance(task, str) else "", steps=found)


def _values(text: str) -> Iterator[Any]:
    """Yield the values that may be the plan, in this order:

    - the whole text as JSON;
    - JSON within the text;
    - the text as TOML;
    - each code block as JSON;
    - the text, then each code block, as YAML.
    """
    yield read_json(text.strip())
    for kind in (dict, list):
        with suppress(ReplyInvalid):
            values = whole_json(text, kind)
            yield values if kind is dict and len(values) > 1 else values[0]
    if "[[" in text and len(text) <= MAX_YAML:
        with suppress(ValueError, RecursionError):
            yield tomllib.loads(text)
    blocks = [each[1] for each in BLOCK.finditer(text)]
    yield from map(read_json, blocks)
    for each in (text, *blocks):
        if len(each) <= MAX_YAML and YAML_STEP.search(each) and not YAML_ALIAS.search(each):
            with suppress(yaml.YAMLError, ValueError, RecursionError):
                yield yaml.safe_load(YAML_TEXT.sub(lambda found: found[1] + json.dumps(found[2].strip()), each))


def _with_usual_ids(steps: list[Any]) -> list[Any]:
    """Return the steps with the ids E1, E2, … and the references #E1, #E2, … in place of other ids and references, such
    as `{{sum.output}}`.

    If a step is not an object, or two steps have the same id, or several (but not all) have none, return the steps
    unchanged.
    """
    given = [str(_first(each, ID)).strip() for each in steps if isinstance(each, Mapping)]
    if len(given) != len(steps) or (len({*given}) != len(steps) and {*given} != {"None"}):
        return steps
    numbers = [STEP_NUMBER.fullmatch(name) for name in given]
    ids = [f"E{int(found[1]) if found and all(numbers) else n}" for n, found in enumerate(numbers, 1)]
    outputs = [_first(each, OUTPUT) for each in steps]
    names = {
        name: id_
        for name, id_ in zip(outputs, ids, strict=True)
        if isinstance(name, str) and NAME.fullmatch(name) and outputs.count(name) == 1
    }
    usual = all(USUAL_ID.fullmatch(name) for name in given)
    own = {} if {*given} == {"None"} else dict(zip(given, ids, strict=True))
    names |= {} if usual else own
    places = names | own
    if not places:
        return steps
    either, place = (
        "|".join(map(re.escape, sorted(all_, key=len, reverse=True))) or "(?!)" for all_ in (names, places)
    )
    field = r"(?:\.\w+|\[[\"']\w+[\"']\])?"
    of = r"(?:steps?|tasks?|outputs?|results?)(?:[._ ]|\[[\"']?)"
    used = re.compile(
        rf"\{{{{1,2}}\s?\$?({either}){field}\s?\}}{{1,2}}|<({either})>|[#$]\{{?({either}){field}\}}?(?!\w)"
        rf"|\{{{{1,2}}\s?\$?{of}({place})(?:[\"']?\])?{field}\s?\}}{{1,2}}"
        rf"|<(?:(?:result|output) (?:of|from) )?(?:step |task )?#?({place})>"
    )

    def renamed(value: Any) -> Any:
        if isinstance(value, list):
            return [renamed(each) for each in value]
        if isinstance(value, Mapping):
            return {key: renamed(each) for key, each in value.items()}
        if not isinstance(value, str):
            return value
        return used.sub(lambda found: f"#{places[next(filter(None, found.groups()))]}", value)

    fixed = {bare_name(name) for name in (*ID, *AFTER)}
    return [
        {key: _usual(each, names) if bare_name(key) in fixed else renamed(each) for key, each in step.items()}
        for step in steps
    ]


def _usual(given: Any, names: Mapping[str, str]) -> Any:
    return [_usual(each, names) for each in given] if isinstance(given, list) else names.get(str(given), given)


def _is_numbered(value: Mapping[str, Any], kind: type) -> bool:
    """Return whether each key is the number of a step, and each value has the type `kind`."""
    return bool(value) and all(
        STEP_NUMBER.fullmatch(key.strip()) and isinstance(each, kind) for key, each in value.items()
    )


def _steps(value: Any, depth: int = 0) -> list[Any]:
    """Return the steps in a value, which may be a list, an object with a list under a known key, objects by id, or a
    single step. [] if the value has none of these forms.

    The list may be inside a text that is JSON, or inside objects with a key of WRAPPERS.
    """
    if depth > MAX_NESTING:
        return []
    if isinstance(value, str):
        return _steps(read_json(value), depth + 1) if value.lstrip()[:1] in ("{", "[") else []
    if isinstance(value, list):
        groups = [
            _steps(each, depth + 1) if _first(each, TOOL) is None else [] for each in value if isinstance(each, Mapping)
        ]
        return [step for group in groups for step in group] if groups and all(groups) else value
    if not isinstance(value, Mapping):
        return []
    if _first(value, TOOL) is not None:
        return [value]
    for key in (*STEPS, *WRAPPERS):
        if (inner := _first(value, (key,))) is not None and (steps := _steps(inner, depth + 1)):
            return steps
    if _is_numbered(value, Mapping):
        return [{"id": key, **each} for key, each in value.items()]
    return []


def _read_step(given: Any, number: int, tools: Sequence[ToolSpec], earlier: Compiler) -> PlannedStep:
    if not isinstance(given, Mapping):
        raise InputError(f"step {number}: expected an object, found {str(given)[:40]!r}")
    called = _first(given, TOOL)
    call = called if isinstance(called, Mapping) else given  # {"function": {"name": …, "arguments": …}}
    name = _first(call, ("name", *TOOL)) if call is called else called
    if not isinstance(name, str) or not name.strip():
        raise InputError(f"step {number}: expected the name of a tool under one of {', '.join(TOOL)}, found none")
    spec, input_ = find_spec(name, tools), _first(call, ARGUMENTS)
    if input_ is None and spec:  # the arguments are keys beside the tool's name
        input_ = {
            name: each for name, each in call.items() if name in spec.arguments and bare_name(name) not in OF_STEP
        }
    if isinstance(input_, list):  # values in the order of the tool's arguments
        input_ = dict(zip([*(spec.arguments if spec else ()), INPUT], input_, strict=False))

    def scan(text: str) -> JsonValue:
        return scanned if (scanned := scan_text(text)) != text else earlier.scan(text, number)

    arguments = read_input(input_, spec, scan) if isinstance(input_, str) else scan_json(input_ or {}, scan)
    if not isinstance(arguments, dict):
        raise InputError(f"step {number}: expected the arguments of {name} as an object or a text")
    after, why = _first(given, AFTER), _first(given, WHY)
    after = after if isinstance(after, list) else [] if after is None else str(after).replace(",", " ").split()
    return PlannedStep(
        id=_id(_first(given, ID), number),
        tool=spec.name if spec else name.strip().replace(" ", "_"),
        arguments=arguments,
        why=why if isinstance(why, str) else "",
        after=tuple(_id(each, number) for each in after),
    )


def _id(given: JsonValue, number: int) -> str:
    if given is None:
        return f"E{number}"
    found = STEP_NUMBER.fullmatch(str(given).strip())
    if not found:
        raise InputError(f"step {number}: expected a number or an id such as E1, found {str(given)[:40]!r}")
    return f"E{int(found[1])}"


def _first(given: Mapping[str, Any], names: Sequence[str]) -> Any:
    """Return the value of the first of these names that `given` has as a key; case and separators are ignored."""
    found = {bare_name(key): each for key, each in given.items() if each is not None}
    return next((found[bare_name(name)] for name in names if bare_name(name) in found), None)


FormatName = Literal["rewoo", "compiler", "numbered"]
FORMATS: dict[FormatName, Callable[[Sequence[ToolSpec]], LineFormat]] = {
    "rewoo": Rewoo,
    "compiler": Compiler,
    "numbered": Numbered,
}


@dataclass(frozen=True, slots=True)
class ReadPlan:
    """A plan, and notes about the parts of its text that were skipped."""

    plan: Plan
    notes: tuple[str, ...] = ()


def open_reader(format: FormatName = "rewoo", tools: Sequence[ToolSpec] = ()) -> StepReader:
    """Return a reader for a format; the names of a step's arguments are taken from the tool's spec in `tools`."""
    return StepReader(FORMATS[format](tools))


def read(text: str, tools: Sequence[ToolSpec] = (), format: FormatName = "rewoo", task: str = "") -> ReadPlan:
    """Read a whole text as a plan; `task`: the plan's task if the text names none. It never raises an exception."""
    reader = open_reader(format, tools)
    steps = (*reader.feed(text), *reader.close())
    return ReadPlan(Plan(task=reader.task or task, steps=steps), reader.notes)


def read_other(text: str, tools: Sequence[ToolSpec]) -> Plan | None:
    """Read a planner's text that has no step in ReWOO's format: JSON, LLMCompiler's calls, or a form that `_as_rewoo`
    reads, such as a table or a ReAct trace.

    Return None if the text has no steps in these formats, or if a step names an unknown tool.
    """
    if (usual := FOREIGN_NUMBER.sub(lambda found: f"{found[1]}{int(found[2])}", text)) != text:
        return _read_again(usual, tools)
    try:
        plan = read_json_plan(text, tools)
    except (InputError, ValidationError):
        plan = read(text, tools, "compiler").plan
    if not plan.steps:
        plan = read(_as_rewoo(text, tools), tools).plan
    if not plan.steps and (usual := _with_usual_names(text)) != text:
        return _read_again(usual, tools)
    if not plan.steps and (inner := _inner_text(text)) and inner != text:
        return _read_again(inner, tools)
    return plan if plan.steps and all(find_spec(step.tool, tools) for step in plan.steps) else None


def _read_again(text: str, tools: Sequence[ToolSpec]) -> Plan | None:
    plan = read(text, tools).plan
    return plan if plan.steps else read_other(text, tools)


def _with_usual_names(text: str) -> str:
    """Return a text in which ReWOO's names of steps (`#E1`) replace names such as `$1` (OTHER_NAME), also in
    references."""
    begun = {(found[1][0], found[2]) for found in OTHER_NAME.finditer(text)}

    def named(found: re.Match[str]) -> str:
        number = found[1] or found[2] or found[3]
        return f"#E{number}" if (found[0][0], number) in begun else found[0]

    return STEP_NAMES.sub(named, text) if begun else text


def _as_rewoo(text: str, tools: Sequence[ToolSpec]) -> str:
    """Return the steps of a table, a ReAct trace, a list of calls, Python calls or XML as text in ReWOO's format."""
    lines, names, columns, tool = list[str](), dict[str, int](), (-1, -1), ""

    def add(name: str, given: str, number: int = 0) -> None:
        lines.append(f"#E{number or len(lines) + 1} = {name.strip()}[{given.strip()}]")

    for line in text.splitlines():
        cells = [each.strip(" \t*`") for each in line.strip().strip("|").split("|")]
        if (
            line.strip().startswith("|")
            and columns != (-1, -1)
            and len(cells) > max(columns)
            and any(map(str.strip, cells))
        ):
            found = STEP_NUMBER.fullmatch(cells[0])
            if not set(line) <= set("|-: \t"):
                add(cells[columns[0]], cells[columns[1]], int(found[1]) if found else 0)
        elif line.strip().startswith("|") and columns == (-1, -1) and (heads := _columns(cells)):
            columns = heads
        elif row := TABLE_ROW.fullmatch(line):
            add(row[2], row[3], int(row[1]))
        elif (marked := MARKED.fullmatch(line)) and (marked[3] or find_spec(marked[1], tools)):
            add(marked[1], marked[2] or marked[3] or "")
        elif (assigned := ASSIGNED.fullmatch(line)) and find_spec(assigned[2], tools):
            either = "|".join(names)
            given = (
                re.sub(rf"\{{({either})\}}", lambda found: f"#E{names[found[1]]}", assigned[3])
                if names
                else assigned[3]
            )
            add(assigned[2], given)
            names[assigned[1]] = len(lines)
        elif (given_line := GIVEN.fullmatch(line)) and tool:
            add(tool, given_line[1])
            tool = ""
        elif action := ACTION.fullmatch(line):
            tool = action[1].strip(" *`")
            if not find_spec(tool, tools):
                lines.append(f"#E{len(lines) + 1} = {tool}")
                tool = ""
    return "\n".join(
        lines or (f"#E{n} = {each[1].strip()}[{each[2].strip()}]" for n, each in enumerate(TAGGED.finditer(text), 1))
    )


def _columns(cells: Sequence[str]) -> tuple[int, int] | None:
    """Return the indexes of a table's tool column and input column, found by their headings; None if one is missing."""
    heads = [bare_name(each) for each in cells]
    found = [
        next((heads.index(bare_name(name)) for name in names if bare_name(name) in heads), -1)
        for names in (TOOL, ARGUMENTS)
    ]
    return (found[0], found[1]) if min(found) >= 0 else None


def _inner_text(text: str) -> str:
    """Return, as text, the lines of a plan that a model wrapped in JSON. The JSON is a string, a list of lines, or an
    object with a line for each step number. "" if there is no such JSON."""
    value: Any = next((each for each in _values(text) if each is not None), None)
    for _ in range(MAX_NESTING):
        if isinstance(value, Mapping):
            if _is_numbered(value, str):
                return "\n".join(f"#E{n} = {each}" for n, each in enumerate(value.values(), 1))
            value = _first(value, (*STEPS, *WRAPPERS))
    if isinstance(value, list):
        value = "\n".join(each for each in value if isinstance(each, str))
    return value if isinstance(value, str) else ""


def read_any(text: str, tools: Sequence[ToolSpec] = ()) -> ReadPlan:
    """Read a plan that a person wrote: as JSON, or in the first format of FORMATS in which the text has a step.

    Raises:
        InputError: the text has no step, or the JSON is not a plan; the message names the place in the text.
    """
    if text.lstrip().startswith("{"):
        try:
            return ReadPlan(Plan.load(text))
        except InputError:
            try:
                return ReadPlan(read_json_plan(text, tools))
            except (InputError, ValidationError):
                pass
            raise
    tried = [read(text, tools, format) for format in FORMATS]
    for found in tried:
        if found.plan.steps:
            return found
    where = next((f": {found.notes[0]}" for found in tried if found.notes), "")
    raise InputError(
        f'expected a plan, found no step{where}; write steps as `#E1 = Tool[input]`, `1. tool("input")`, '
        "or as items of a numbered list"
    )


MAX_FILE_BYTES = 2_000_000
"""Maximum size of a file with a plan or exemplars, in bytes."""


def read_plan(file: Path, tools: Sequence[ToolSpec] = ()) -> ReadPlan:
    """Read a plan from a file.

    Raises:
        InputError: the file cannot be read, or is not a plan; the message names the place.
    """
    text = read_named(file)
    try:
        return read_any(text, tools)
    except InputError as error:
        raise InputError(f"{file}: {error}") from None


def read_named(file: Path) -> str:
    """Read a text file that the user has named.

    Raises:
        InputError: the file cannot be read, or is too large.
    """
    try:
        return read_text(file, MAX_FILE_BYTES)
    except InputError as error:
        raise InputError(f"{file} {error}") from None
