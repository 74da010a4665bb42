"""Read and write ReWOO's format: `Plan: reason`, then `#E1 = Tool[input]` (Xu 2023, appendix).

An input may refer to earlier evidence as `#E1`. The reader accepts what people and models write: nested brackets,
several steps per line, a missing `=` or a colon instead, lists and bold type, inputs over several lines, full-width
characters. Other text is skipped and noted. If an id is repeated with other content, both steps are kept, so that
`check` reports them.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import pyjson5
from pydantic import JsonValue, ValidationError

from mindstream.errors import ReplyInvalid
from mindstream.json_values import JsonObject
from mindstream.models.fitting import named_tool
from mindstream.models.model import ToolSpec
from mindstream.models.prompt import complaints
from mindstream.models.reply import DECODER, MAX_DEPTH, check_depth
from mindstream.models.untrusted import without_controls
from mindstream.planning.plan import TEXT, Plan, PlannedStep, Reference, Text, fill, parse_part, reference_to

Scan = Callable[[str], JsonValue]
"""A function that replaces the references in a text; each plan format has its own notation of references."""
INPUT = "input"
"""Name of the argument in a call of a tool that is unknown or declares no arguments."""
PYTHON_PREFIXES = ("f", "F", "r", "R", "b", "u")
"""Letters before the quotation marks of texts in Python: f"{E1} * 2"."""
KEY = re.compile(r"\s*+[\"'`“]?(\w[\w-]{0,99})[\"'`”]?\s*+(?:=(?!=)|[:：＝])\s*+")
BARE = re.compile(r"(?<=[:\[,])(\s*+)([#＃]E\d{1,4}|\$\{?\d{1,4}\}?)(?=\s*+[,}\]])")
"""Matches a reference in JSON that lacks its quotation marks, as in `{"query": #E1}`."""
LITERALS: JsonObject = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "null": None,
    "None": None,
}
ESCAPE, ESCAPED = re.compile(r"\\([\\\"'nt])"), {"n": "\n", "t": "\t"}
IN_THE_PAPER = {"google": "web_search", "wolframalpha": "wolfram", "searchsotu": "search_documents"}
"""Tool names of Xu 2023, mapped to mindstream's tools. (Wikipedia, LLM and Calculator differ in case only.)"""
OPENING, CLOSING, QUOTES = "([{", ")]}", "\"'"
EMBRACING = {
    "“": "”",
    "„": "“”",
    "‘": "’",
    "「": "」",
    "『": "』",
    "«": "»",
    "《": "》",
    '"': '"',
    "'": "'",
    "`": "`",
    "＂": "＂",
}
"""Opening quotation marks, each with the marks that may close it."""
MOST_QUOTES = 3
"""Maximum number of equal quotation marks in a row, such as the three of a Markdown code block."""


def find_spec(name: str, tools: Sequence[ToolSpec]) -> ToolSpec | None:
    """Return the tool that a name in a plan means; None if none or several fit.

    The first of these that exists is the tool:

    - the tool with exactly this name;
    - a tool whose name differs only in case;
    - the tool for a name of the paper (IN_THE_PAPER);
    - a tool that `named_tool` finds, such as one whose name differs in spaces, hyphens and underscores.
    """
    if exact := [spec for spec in tools if spec.name == name]:
        return exact[0]
    folded = name.casefold()
    alike = [spec for spec in tools if spec.name.casefold() == folded]
    alike = alike or [spec for spec in tools if spec.name == IN_THE_PAPER.get(folded)]
    return alike[0] if len(alike) == 1 else None if alike else named_tool(name, tools)


def unquoted(text: str) -> str:
    """Return a text without the quotation marks that enclose the whole text.

    A text without such marks is returned unchanged. Examples are `"Harry Potter" author` and `"a" or "b"`, whose first
    mark is closed before the end.
    """
    if text[:1] in PYTHON_PREFIXES and text[1:2] in QUOTES and (inner := unquoted(text[1:])) != text[1:]:
        return inner
    closing = EMBRACING.get(text[:1])
    if not closing:
        return text
    run = len(text) - len(text.lstrip(text[0])) if text[0] in closing else 1
    inner = text[run:-run]
    if not 1 <= run <= MOST_QUOTES or len(text) <= 2 * run or any(each not in closing for each in text[-run:]):
        return text
    marks = re.escape("".join({text[0], *closing}))
    if re.search(rf"(?<!\\)[{marks}](?<!\w.(?=\w))", inner):  # a mark inside a word is an apostrophe
        return text
    return ESCAPE.sub(lambda found: ESCAPED.get(found[1], found[1]), inner)


def main_argument(spec: ToolSpec | None) -> str:
    """Return the name of the argument that an input without argument names belongs to.

    That is the only required argument of type string, otherwise the first argument.
    """
    if spec is None or len(spec.arguments) < 2:
        return next(iter(spec.arguments), INPUT) if spec else INPUT
    required = spec.parameters.get("required")
    needed = [name for name in spec.arguments if name in required] if isinstance(required, list) else []
    texts = [name for name in needed if "string" in _types(spec.arguments[name])]
    return texts[0] if len(texts) == 1 else next(iter(spec.arguments), INPUT)


def read_input(text: str, spec: ToolSpec | None, scan: Scan) -> JsonObject:
    """Read the input in `Tool[…]`.

    The input can be

    - a JSON object;
    - `name=value, …`, with names of the tool's arguments;
    - values in the order of the arguments, if the tool requires more than one;
    - a single value.

    Enclosing quotation marks are removed.
    """
    text = text.strip()
    known, main = spec.arguments if spec else {}, main_argument(spec)
    inner = unquoted(text)
    if inner != text and not inner.lstrip().startswith("{"):
        return {main: scan(inner)}
    text = inner.strip()
    if not text:
        return {}
    if text.startswith("{") and isinstance(value := read_json(text), dict):
        return {main: value} if parse_part(value) else {name: scan_json(each, scan) for name, each in value.items()}
    if named := _read_named(text, known, scan) or _read_in_order(text, known, spec, scan):
        return named
    types = _types(known.get(main))
    if text[0] == "[" and isinstance(value := read_json(text), list) and len(value) == 1 and isinstance(value[0], str):
        return {main: scan(value[0]) if not types or "string" in types else scan_json(value, scan)}
    if text[0] == "[" and text[-1] == "]" and not set(text[1:-1]) & {"[", "]"} and read_json(text) is None:
        text = text[1:-1].strip()  # `Tool[[input]]`
    return {main: read_literal(text, scan) if types and "string" not in types else scan(text)}


def _read_named(text: str, known: dict[str, Any], scan: Scan) -> JsonObject:
    """Read `name=value, …`; {} if the text does not begin with a known argument.

    A comma without an argument name after it is part of the value before the comma.
    """
    if not KEY.match(text):
        return {}
    parts: list[tuple[str, str]] = []
    for part in split_arguments(text, 0)[0]:
        key = KEY.match(part)
        if key and key[1] in known:
            parts.append((key[1], part[key.end() :]))
        elif parts:
            parts[-1] = parts[-1][0], f"{parts[-1][1]},{part}"
        else:
            return {}
    return {name: read_typed(value, known[name], scan) for name, value in parts}


def _read_in_order(text: str, known: dict[str, Any], spec: ToolSpec | None, scan: Scan) -> JsonObject:
    """Read `value, value, …` as arguments in the order of the tool's parameters.

    A part `name: value` is the value of the named parameter. The result is {} if the values do not fit, or if the tool
    does not require at least two arguments.
    """
    required = spec.parameters.get("required") if spec else None
    if not isinstance(required, list) or len(required) < 2:
        return {}
    parts, end = split_arguments(text, 0)
    if not len(required) <= len(parts) <= len(known) or end < len(text):
        return {}
    given: dict[str, str] = {}
    for name, part in zip(known, parts, strict=False):
        key = KEY.match(part)
        given |= {key[1]: part[key.end() :]} if key and key[1] in known else {name: part}
    is_whole = len(given) == len(parts) and given.keys() >= {*required}
    return {name: read_typed(part, known[name], scan) for name, part in given.items()} if is_whole else {}


def read_typed(text: str, schema: Any, scan: Scan) -> JsonValue:
    """Read a value as a literal. If the argument must be a string, and the literal is not a string (such as `12`),
    return the text itself."""
    value = read_literal(text, scan)
    is_text = isinstance(value, str) or parse_part(value) is not None
    return value if is_text or _types(schema) != {"string"} else scan(text.strip())


def read_literal(text: str, scan: Scan) -> JsonValue:
    """Read a number, a quoted text, a list, an object, or a word such as `None`; anything else is plain text."""
    text = text.strip()
    if text in LITERALS:
        return LITERALS[text]
    if (inner := unquoted(text)) != text:
        return scan(inner)
    if text[:1] and text[:1] in QUOTES:
        inner = text[1:-1] if text[-1] == text[0] and len(text) > 1 else text[1:]
        return scan(ESCAPE.sub(lambda found: ESCAPED.get(found[1], found[1]), inner))
    if text[:1] in ("[", "{") or text[:1].isdecimal() or text[:1] == "-":
        value = read_json(text)
        return scan(text) if value is None else scan_json(value, scan)
    return scan(text)


def read_json(text: str) -> JsonValue:
    """Read JSON or JSON5, in which references may lack quotation marks; None if the text is neither."""
    for attempt in (text, BARE.sub(r'\1"\2"', text)):
        for decode in (DECODER.decode, _decode_json5):
            try:
                value: JsonValue = decode(attempt)
                check_depth([value])
            except (ValueError, RecursionError, ReplyInvalid):
                continue
            return value
    return None


def _decode_json5(text: str) -> JsonValue:
    try:
        value = pyjson5.decode(text, maxdepth=MAX_DEPTH)
    except pyjson5.Json5Exception as error:
        raise ValueError(str(error)[:200]) from None
    return DECODER.decode(json.dumps(value, allow_nan=False))  # type: ignore[no-any-return]


def scan_json(value: JsonValue, scan: Scan) -> JsonValue:
    """Return a JSON value with the references in its texts replaced by `scan`; values that are references already stay
    as they are.
    """
    return fill(value, lambda part: part.as_json(), scan)


def _types(schema: Any) -> set[str]:
    """Return the JSON types that a schema allows; an empty set if it names none."""
    if not isinstance(schema, dict):
        return set()
    named = schema.get("type", [])
    inner = schema.get("anyOf")
    found = {named} if isinstance(named, str) else {each for each in named if isinstance(each, str)}
    return found.union(*map(_types, inner)) if isinstance(inner, list) else found


def split_arguments(text: str, start: int, stop: re.Pattern[str] | None = None) -> tuple[list[str], int]:
    """Split the arguments of a call at commas; return the parts and the position of their end.

    The end is the closing bracket, a match of `stop`, or the end of the text.

    A quotation mark closes a quotation only before a comma, a colon, a closing bracket or the end of the text.
    Brackets, commas and matches of `stop` within a quotation are text.
    """
    parts: list[str] = []
    begin, at, depth = start, start, 0
    hopeless: set[str] = set()  # quotation marks that are never closed
    before = ","
    while at < len(text):
        char = text[at]
        if stop and stop.match(text, at):
            break
        if char in QUOTES and before in "([{,=:" and char not in hopeless:
            closing = _CLOSING[char].search(text, at + 1)
            if closing:
                at, before = closing.end(), char
                continue
            hopeless.add(char)
        if char in OPENING:
            depth += 1
        elif char in CLOSING and depth:
            depth -= 1
        elif char == ")":
            return _parts(parts, text[begin:at]), at
        elif char == "," and not depth:
            parts.append(text[begin:at])
            begin = at + 1
        before = before if char.isspace() else char
        at += 1
    return _parts(parts, text[begin:at]), at


_CLOSING = {
    quote: re.compile(rf"(?:\\.|[^\\{quote}]|{quote}(?!\s*(?:[,)\]}}:]|$)))*+{quote}", re.DOTALL) for quote in QUOTES
}


def _parts(parts: list[str], last: str) -> list[str]:
    return [*parts, last] if parts or last.strip() else []


LONGEST_LINE = 120_000
"""Maximum length of a line in characters; the rest is ignored."""
MOST_NOTES, SHOWN = 100, 80
"""Maximum number of notes about skipped parts of a plan, and of characters of such a part that a note shows."""


@dataclass
class Findings:
    """The results of a reader.

    Attributes:
        task: the task; "": the text names none.
        steps: the steps by id.
        notes: notes about skipped text.
        line: number of the current line.
    """

    task: str = ""
    steps: dict[str, PlannedStep] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    line: int = 0

    def note(self, why: str, text: str) -> None:
        """Add a note that a part of the current line was skipped, and why, unless the part is blank."""
        if text.strip() and len(self.notes) < MOST_NOTES:
            self.notes.append(f"line {self.line}: {why}: {text.strip()[:SHOWN]!r}")

    def add(
        self, id: str, tool: str, arguments: JsonObject, why: str = "", after: tuple[str, ...] = ()
    ) -> list[PlannedStep]:
        """Add a step and return it in a list; [] if the step is invalid or an exact repetition.

        If another step already has the same id, the new step is returned but not added. `check` reports such steps.
        """
        try:
            step = PlannedStep(id=id, tool=tool, arguments=arguments, why=why, after=after)
        except ValidationError as error:
            self.note(f"the step is invalid ({complaints(error)[:SHOWN]})", f"{id} = {tool}")
            return []
        if self.steps.get(id) == step:
            self.note("this step was given already", f"{id} = {tool}")
            return []
        self.steps.setdefault(id, step)
        return [step]


class LineFormat(Protocol):
    """Reads a plan in one format, line by line."""

    found: Findings

    def read_line(self, line: str) -> list[PlannedStep]:
        """Read a line, and return the steps that it completes."""

    def end(self) -> list[PlannedStep]:
        """Return the steps that were still waiting for more lines when the text ended."""


@dataclass
class StepReader:
    """Read a plan in one format from pieces of text of any length. It never raises an exception."""

    format: LineFormat
    _pieces: list[str] = field(default_factory=list, init=False)
    _length: int = field(default=0, init=False)

    @property
    def task(self) -> str:
        """The task that the text names; "": none."""
        return self.format.found.task

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes about skipped text."""
        return tuple(self.format.found.notes)

    def feed(self, text: str) -> list[PlannedStep]:
        """Read a piece of text, and return the steps that it completes."""
        first, *others = text.split("\n")
        self._length += len(first)
        if self._length - len(first) < LONGEST_LINE:
            self._pieces.append(first)
        steps: list[PlannedStep] = []
        for line in others:
            steps += self._read_line()
            self._pieces, self._length = [line[:LONGEST_LINE]], len(line)
        return steps

    def close(self) -> list[PlannedStep]:
        """Return the steps that were incomplete when the text ended."""
        return [*(self._read_line() if self._length else ()), *self.format.end()]

    def _read_line(self) -> list[PlannedStep]:
        line, found = "".join(self._pieces)[:LONGEST_LINE], self.format.found
        found.line += 1
        if self._length > LONGEST_LINE:
            ignored = self._length - LONGEST_LINE
            found.note(f"the line is too long; its last {ignored} characters were ignored", line)
        self._pieces, self._length = [], 0
        return self.format.read_line(without_controls(line))


DIGITS = r"0{0,3}([1-9１-９][0-9０-９]{0,3})(?![0-9A-Za-z_０-９])"
STEP = rf"[EeＥｅ]{DIGITS}"
FIELD = r"(?:\.(?:result|output|value|answer|text|content)(?![\w.(\[]))?"
"""Matches a field of a step's result, as in `#E1.output`. A result is a single text, so the field means all of it."""
REFERENCE = re.compile(
    rf"\$?\{{{{1,2}}\s?[#＃]?\s?{STEP}{FIELD}\s?\}}{{1,2}}"  # {#E1} {{E1}} ${E1}
    rf"|(?<![\w)])(?:\*\*[#＃]\s?{STEP}\*\*|`[#＃]\s?{STEP}`)(?![\w(])"  # **#E1** `#E1`; in x**#E1**2 only #E1
    rf"|[\[［【<]\s?[#＃]\s?{STEP}\s?[\]］】>]|[#＃]\s?{STEP}{FIELD}|\${STEP}{FIELD}"  # [#E1] <#E1> #E1 $E1
)
IN_REFERENCE = re.compile(r"[#＃$]|\{\s{0,2}[EeＥｅ]")
"""Matches in every text that has a reference. Searching for this pattern is faster than searching for REFERENCE."""
AFTER = r"\s++after(?:[\s,]++#E[0-9]{1,4}){1,64}+"
SIGN = r"(?::=|=>|->|<-|[=:：＝→←⇒])"
TOOL = r"\w[\w./:-]{0,127}+(?: \w[\w./:-]{0,60}+){0,3}+"
ID = rf"[*`\[{{(<]{{0,4}}(?:([#＃$])\s?|(?<!\w)){STEP}[*`\]}})>]{{0,4}}"
HEAD = re.compile(rf"{ID}({AFTER})?\s*+({SIGN}?)\s*+[*`\"'@]{{0,3}}({TOOL})[*`\"']{{0,3}}\s*+[\[［【]")
"""Matches the beginning of a step, `#E2 = Tool[`. The extension `#E2 after #E1 = Tool[` is for a step that waits for
another step without referring to its evidence."""
PLAIN_STEP = re.compile(r"#E([1-9][0-9]{0,3}) = (\w[\w./:-]{0,127}+)\[([^\[\]\n]*+)\][ \t]*+")
"""Matches a whole line with one step in ReWOO's own form, if the step's input has no brackets."""
MAY_BE_STEP = re.compile(r"\[|[Ee]\d")
WHY = re.compile(r"(?<!\w)(?:Plan|PLAN|计划|計劃)[*_`]{0,3}\s*+[0-9]{0,3}[*_`]{0,3}\s*+[:：]")
TASK = re.compile(r"(?:Question|Task|问题|任务)[*_`]{0,3}\s*+[:：]")
PREFIX = re.compile(r"(?:\s|[-*+•>`]|[0-9]{1,3}[.)、]|#{1,6}(?=\s))*+")
"""Matches Markdown at the beginning of a line: list marks, bold type, headings."""
BRACKET = re.compile(r"[\[\]［］【】]")
SPACE = re.compile(r"\s*+")
OPENS, CLOSES = "[［【", "]］】"
MARKS = " \t\n*_`.,;，；。"
OTHER_ID = re.compile(r"\\?[#＃]\s?(E|S|Evidence|Step|Result|Observation)([ _-]?)([0-9]{1,4})(?!\w)", re.IGNORECASE)
"""Matches other forms of step ids, such as `#S1` or `#Step 1`. A form counts as a step id only after a step of the plan
was written with it."""
OTHER_HEAD = re.compile(rf"[\s*`>•(\[-]*+(?:[0-9]{{1,3}}[.)]\s*+)?{OTHER_ID.pattern}[*`\])]*+\s*+{SIGN}", re.IGNORECASE)
ESCAPED_HEAD = re.compile(r"[\s*`>•-]*+\\?[#＃]E[^\[\n]{0,100}\[")
MARKDOWN = re.compile(r"\\([#_*\[\]])")
BARE_ID = re.compile(rf"(?<![\w#＃$.]){STEP}")
"""Matches a step id without `#`. Such an id is a reference if the steps of the plan are also written without `#`."""
FRAGMENT = re.compile(r"://\S*\w\Z")
"""Matches a web address directly before `#E1`. After an address, `#E1` is a fragment of the address, no reference."""
BLANK = str.maketrans("", "", "\u200b\u2060\ufeff")
MOST_LINES, LONGEST = 200, 20_000
"""Maximum number of lines, and of characters, of the input of one step."""


def scan_text(text: str) -> JsonValue:
    """Return a text with each `#E1` as a reference. A text that is only one reference becomes this reference itself."""
    if not IN_REFERENCE.search(text):
        return text
    found = (
        (each, _step_id(each))
        for each in REFERENCE.finditer(text)
        if each[0][0] != "#" or not FRAGMENT.search(text, max(0, each.start() - MOST_LINES), each.start())
    )
    whole = split_at(text, found)
    alone = whole.pieces[0] if len(whole.pieces) == 1 else ""
    return alone.as_json() if isinstance(alone, Reference) else whole.as_json()


def split_at(text: str, found: Iterable[tuple[re.Match[str], str]]) -> Text:
    """Return a text in which each match is replaced by a reference; `found` has each match with the id of its step."""
    pieces: list[str | Reference] = []
    at = 0
    for match, step in found:
        pieces += [text[at : match.start()], reference_to(step)]
        at = match.end()
    return Text((*pieces, text[at:]))


def _step_id(found: re.Match[str]) -> str:
    """Return the step id of a reference: `E1` for `#E1`, `{E1}` and all other forms."""
    return f"E{int(found[found.lastindex or 0])}"


class Rewoo:
    """Reads a plan in ReWOO's format, line by line."""

    def __init__(self, tools: Sequence[ToolSpec] = ()) -> None:
        self.found = Findings()
        self._tools = tools
        self._why = ""
        self._is_bare_why = False  # whether the last line was only "Plan:", so that the reason may follow
        # other forms of step ids than E1 in this plan; the value: 1 if they count from 0 (added to each number), else 0
        self._forms: dict[tuple[str, str], int] = {}
        self._open: list[str] = []  # lines of a step whose bracket is still open
        self._is_over = False  # whether the rest of the text is no part of the plan
        self._is_bare = False  # whether the plan writes ids of steps without `#`

    def read_line(self, line: str) -> list[PlannedStep]:
        if self._is_over:
            return []
        if line.isascii() and not (self._open or self._forms):  # most lines: fast patterns read them
            if plain := PLAIN_STEP.fullmatch(line):
                return self._add(int(plain[1]), plain[2], plain[3])
            if line.startswith("Plan:") and not MAY_BE_STEP.search(line):
                self._read_why(line[len("Plan:") :])
                return []
        line = self._with_usual_ids(line.translate(BLANK))
        if not self._open:
            return self._read(line)
        if _begins_anew(line) or len(self._open) >= MOST_LINES or sum(map(len, self._open)) > LONGEST:
            return [*self.end(), *self._read(line)]
        self._open.append(line)
        return self._read("\n".join(self._open)) if _may_close(self._open) else []

    def _with_usual_ids(self, line: str) -> str:
        """Return a line in which other forms of step ids, such as `#S1`, are replaced by `#E1`.

        If the first step in such a form has the number 0, all numbers in this form are increased by one.
        """
        if "\\" in line and (head := ESCAPED_HEAD.match(line)) and "\\" in head[0]:
            line = MARKDOWN.sub(r"\1", line)
        if head := OTHER_HEAD.match(line):
            form = head[1].upper(), head[2]
            if form not in self._forms and (form != ("E", "") or (int(head[3]) == 0 and not self.found.steps)):
                self._forms[form] = int(int(head[3]) == 0)
        if not self._forms:
            return line
        return OTHER_ID.sub(self._usual_id, line)

    def _usual_id(self, found: re.Match[str]) -> str:
        added = self._forms.get((found[1].upper(), found[2]))
        return found[0] if added is None else f"#E{int(found[3]) + added}"

    def end(self) -> list[PlannedStep]:
        """Read the step whose bracket was never closed, if there is one.

        The input of this step is the rest of its first line. The other lines are noted as unread.
        """
        if not self._open:
            return []
        first, *others = self._open
        self._open = []
        steps = self._read(first, is_final=True)
        for line in others:
            self.found.note("no plan and no step", line)
        return steps

    def _read(self, text: str, is_final: bool = False) -> list[PlannedStep]:
        """Read a line, or the lines of one step."""
        self._open = []
        heads = _find_heads(text)
        if not heads and (other := read_other_form(text, self._tools)):
            self._read_words(other.before)
            self._is_bare = self._is_bare or BARE_ID.match(text.strip(MARKS)) is not None
            step = self._add(int(other.id[1:]), other.spec.name, other.given)
            self.found.note("no plan and no step", other.behind.strip(MARKS))
            return step
        closings = _match_brackets(text) if heads else {}
        starts = [*(head.start() for head in heads), len(text)]
        steps: list[PlannedStep] = []
        at = 0
        for n, head in enumerate(heads):
            if head.start() < at:
                continue  # this head is part of the input of the step before it
            self._read_words(text[at : head.start()])
            following = starts[n + 1]
            closing = closings.get(head.end() - 1)
            is_quoted = (
                closing is not None and text[head.start() - 1 : head.start()] == '"' == text[closing + 1 : closing + 2]
            )
            end = closing if is_quoted else _find_end(text, head.end() - 1, closings, starts)
            if end is None and not is_final and following == len(text):
                self._open = text[head.start() :].split("\n")
                return steps
            at = following if end is None else end + 1
            if end is None:
                self.found.note("the bracket is not closed", text[head.start() : following])
            given = text[head.end() : following if end is None else end]
            steps += self._read_step(head, _unescaped(given) if is_quoted else given)
        self._read_words(text[at:])
        return steps

    def _read_step(self, head: re.Match[str], given: str) -> list[PlannedStep]:
        after = tuple(map(_step_id, REFERENCE.finditer(head[3] or "")))
        self._is_bare = self._is_bare or not head[1]
        return self._add(int(head[2]), head[5], given, after)

    def _add(self, number: int, tool: str, given: str, after: tuple[str, ...] = ()) -> list[PlannedStep]:
        spec = find_spec(tool, self._tools)
        name = spec.name if spec else tool.replace(" ", "_")
        if self._is_bare:
            given = BARE_ID.sub(self._named, given)
        return self.found.add(f"E{number}", name, read_input(given, spec, scan_text), self._why, after)

    def _named(self, found: re.Match[str]) -> str:
        return f"#{_step_id(found)}" if _step_id(found) in self.found.steps else found[0]

    def _read_why(self, words: str) -> None:
        self._why = _unquote(words.strip().removeprefix("**").removesuffix("**").strip())
        self._is_bare_why = not self._why

    def _read_words(self, words: str) -> None:
        """Read text outside of steps: the reason of the next step, or the task. Skip other text, and note that."""
        if not words.strip():
            return
        begin = PREFIX.match(words)
        bare = words[begin.end() if begin else 0 :]
        if task := TASK.match(bare):
            if self.found.steps:
                self._is_over = True
                self.found.note("a second question begins; the rest of the text is ignored", words)
            else:
                self.found.task = _unquote(bare[task.end() :].strip(" \t\n*_`"))
        elif why := WHY.search(words):
            self.found.note("no plan and no step", words[: why.start()].strip(MARKS + "#-+•>0123456789)"))
            self._read_why(words[why.end() :])
        elif self._is_bare_why and bare.strip(MARKS):
            self._why, self._is_bare_why = bare.strip(), False
        elif found := REFERENCE.match(bare):
            self.found.note(f"this is not a step; write it as #{_step_id(found)} = Tool[input]", words)
        else:
            self.found.note("no plan and no step", bare.strip(MARKS))


# Other forms of a step. They are read only if the tool is known, so that ordinary text does not become a call.


@dataclass(frozen=True)
class OtherForm:
    """A step in another form than `#E1 = Tool[input]`. `given`: its input; `before`, `behind`: the text around it."""

    before: str
    id: str
    spec: ToolSpec
    given: str
    behind: str = ""


WORDS = r"[*`]{0,3}(\w[\w-]{0,60}+(?:[ .]\w[\w-]{0,60}+){0,3}?)[*`]{0,3}\s*+"
NAMED = re.compile(rf"{ID}\s*+{SIGN}\s*+(?:<([\w-]{{1,60}}+)>|{WORDS}(?=[(（:：\"'“„‘「『«`{{]))")
"""Matches the beginning of `#E1 = Tool(input)`, `#E1 = Tool: input`, `#E1 = Tool "input"`, `#E1 = Tool {"x": 1}` and
`#E1 = <Tool>input</Tool>`."""
REVERSED = re.compile(rf"{WORDS}([\[(（［【])(.*)[\])）］】]\s*(?:->|=>|[→⇒])\s*{ID}[\s*`.;]*", re.DOTALL)
"""Matches `Tool[input] -> #E1`."""
DIGIT = re.compile(r"\d")
LABELLED = re.compile(
    rf"{ID}\s*+{SIGN}\s*+(?:Tool|Action)[*`]{{0,3}}\s*+[:=]\s*+{WORDS}[,;|]\s*+"
    r"(?:(?:Tool|Action) )?(?:Input|Args|Arguments|Query)[*`]{0,3}\s*+[:=]\s*+(.+)",
    re.IGNORECASE | re.DOTALL,
)
"""Matches `#E1 = Tool: Name, Input: input`."""
NUMBERED = re.compile(
    rf"[\s*_`>#-]*(?:(?:Step|STEP|step|步骤)\s*)?{DIGITS}\s*[.):：、–—-]\s*{WORDS}[\[［【](.*)[\]］】]([^\]］】]*)"
)
"""Matches `1. Tool[input]` and `Step 1: Tool[input]`; with round brackets this would be LLMCompiler's format."""


def read_other_form(text: str, tools: Sequence[ToolSpec]) -> OtherForm | None:
    """Read a step that is not written as `#E1 = Tool[…]`; None: no step in a known form with a known tool was found."""
    text = text.strip()
    if not DIGIT.search(text):  # all of these forms have a number
        return None
    begin = PREFIX.match(text)
    at = begin.end() if begin else 0
    if (found := REVERSED.fullmatch(text, at)) and (spec := find_spec(found[1], tools)):
        return OtherForm("", f"E{int(found[5])}", spec, found[3])
    if (found := LABELLED.fullmatch(text, at)) and (spec := find_spec(found[3], tools)):
        return OtherForm("", f"E{int(found[2])}", spec, found[4])
    if (found := NUMBERED.fullmatch(text)) and (spec := find_spec(found[2], tools)):
        return OtherForm("", f"E{int(found[1])}", spec, found[3], found[4])
    for found in NAMED.finditer(text):
        spec = find_spec(found[3] or found[4], tools)
        if spec and (found[1] or found.start() <= at) and (parts := _read_rest(text[found.end() :], found[3])):
            return OtherForm(text[: found.start()], f"E{int(found[2])}", spec, *parts)
    return None


def _read_rest(rest: str, tag: str | None) -> tuple[str, str] | None:
    """Return the input that follows a tool's name, and the text after it; None if no input follows."""
    if tag:
        inner, closing, behind = rest.partition(f"</{tag}>")
        return (inner, behind) if closing else None
    if rest[0] in "(（":
        plain = rest.replace("（", "(").replace("）", ")")
        _, end = split_arguments(plain, 1)
        behind = rest[end + 1 :]
        is_apart = not behind.strip(MARKS) or (behind[0].isspace() and behind.lstrip()[0].isalpha())
        return (rest[1:end], behind) if plain[end : end + 1] == ")" and is_apart else None
    bare = rest.rstrip(" \t.;")
    if rest[0] in ":：":
        return (bare[1:].strip(), "") if bare[1:].strip() else None
    if rest[0] == "{" and bare[-1] == "}" and not isinstance(read_json(bare), dict):
        inner = bare[1:-1].strip()
        return (inner, "") if inner and not set(inner) & {"{", "}", '"'} else None
    is_whole = rest[0] == "{" or unquoted(bare) != bare
    return (bare, "") if is_whole else None


def _begins_anew(line: str) -> bool:
    """Return whether a line begins a reason, a task or a step. Such a line does not continue the step before."""
    begin = PREFIX.match(line)
    at = begin.end() if begin else 0
    return bool(WHY.match(line, at) or TASK.match(line, at) or ((head := HEAD.match(line, at)) and head[4]))


def _may_close(lines: Sequence[str]) -> bool:
    """Return whether the lines of a step may contain the closing bracket of its arguments. This is only an estimate,
    because brackets within JSON strings are counted, too."""
    text = "\n".join(lines)
    opened, closed = (sum(text.count(sign) for sign in signs) for signs in (OPENS, CLOSES))
    return closed >= opened or (lines[-1].rstrip(MARKS)[-1:] in CLOSES and "{" in lines[0])


def _find_heads(text: str) -> list[re.Match[str]]:
    """Return the beginnings of steps. A beginning without `#` or without `=` counts only at the start of its line."""
    heads = []
    for head in HEAD.finditer(text):
        begin = PREFIX.match(text, text.rfind("\n", 0, head.start()) + 1)
        is_first = begin is not None and begin.end() >= head.start()
        if (head[4] and (head[1] or is_first)) or (head[1] and is_first and " " not in head[5]):
            heads.append(head)
    return heads


def _match_brackets(text: str) -> dict[int, int]:
    """Return the positions of the opening brackets, each with the position of its closing bracket."""
    found, waiting = {}, []
    for bracket in BRACKET.finditer(text):
        if bracket[0] in OPENS:
            waiting.append(bracket.start())
        elif waiting:
            found[waiting.pop()] = bracket.start()
    return found


def _find_end(text: str, opening: int, closings: dict[int, int], starts: Sequence[int]) -> int | None:
    """Return the position where the input after an opening bracket ends; None if the bracket is never closed.

    If the brackets do not match, the input ends at a closing bracket at the end of the line, or before the next step in
    the line.
    """
    if (end := _find_json_end(text, opening + 1)) is not None:
        return end
    closing = closings.get(opening)
    begin = opening + 1 if closing is None else closing + 1
    limit = starts[bisect_left(starts, begin)]
    why = WHY.search(text, begin, limit)
    rest = text[begin : why.start() if why else limit].partition("\n")[0].rstrip(MARKS)
    is_closed_at_end = rest.endswith(tuple(CLOSES))
    if closing is None:
        return begin + len(rest) - 1 if is_closed_at_end and "\n" not in text else None
    surplus = sum(map(rest.count, CLOSES)) - sum(map(rest.count, OPENS))
    return begin + len(rest) - 1 if is_closed_at_end and surplus > 0 else closing


def _find_json_end(text: str, at: int) -> int | None:
    """Return the position of the closing bracket after a JSON object that begins at `at`; None if one is missing."""
    at = _skip_space(text, at)
    if text[at : at + 1] != "{":
        return None
    try:
        _, end = DECODER.raw_decode(text, at)
    except (ValueError, RecursionError):
        return None
    end = _skip_space(text, end)
    return end if end < len(text) and text[end] in CLOSES else None


def _skip_space(text: str, at: int) -> int:
    space = SPACE.match(text, at)
    return space.end() if space else at


def _unquote(words: str) -> str:
    """Return the content of a JSON string; other text is returned unchanged."""
    if words[:1] == '"':
        try:
            value = DECODER.decode(words)
        except ValueError:
            return words
        return value if isinstance(value, str) else words
    return words


def _unescaped(given: str) -> str:
    """Return a part of a JSON string without its escapes."""
    quoted = f'"{given}"'
    return given if "\\" not in given or (value := _unquote(quoted)) == quoted else value


def write_plan(plan: Plan, tools: Sequence[ToolSpec] = (), with_task: bool = True) -> str:
    """Return a plan as text in ReWOO's format, beginning with its task unless `with_task` is False. Parts that would
    not be read back the same are written as JSON."""
    lines = [_write_task(plan.task)] if with_task and plan.task else []
    for step in plan.steps:
        lines += [_write_why(step.why), _write_step(step, tools)]
    return "".join(f"{line}\n" for line in lines)


def _write_task(task: str) -> str:
    plain = f"Question: {task}"
    reader = StepReader(Rewoo())
    steps = [*reader.feed(f"{plain}\n"), *reader.close()]
    return plain if reader.task == task and not steps and not reader.notes else f"Question: {_quote(task)}"


def _write_why(why: str) -> str:
    plain = f"Plan: {why}".rstrip()
    step = PlannedStep(id="E1", tool="t", why=why)
    return plain if _read(f"{plain}\n#E1 = t[]\n") == [step] else f"Plan: {_quote(why)}"


def _write_step(step: PlannedStep, tools: Sequence[ToolSpec]) -> str:
    after = f" after {', '.join(f'#{id}' for id in step.after)}" if step.after else ""
    head = f"#{step.id}{after} = {step.tool}"
    bare = step.model_copy(update={"why": ""})
    plain = (f"{head}[{text}]" for text in _plain_inputs(step, tools))
    return next((line for line in plain if _read(f"{line}\n", tools) == [bare]), f"{head}[{_write_json(step)}]")


def _plain_inputs(step: PlannedStep, tools: Sequence[ToolSpec]) -> Iterable[str]:
    if not step.arguments:
        yield ""
    if [*step.arguments] == [main_argument(find_spec(step.tool, tools))]:
        (value,) = step.arguments.values()
        part = parse_part(value)
        yield str(part) if part else value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _write_json(step: PlannedStep) -> str:
    """Return a step's arguments as JSON. `read_input`, which scans texts for references, reads it as the same
    arguments."""

    def write_part(part: Reference | Text) -> JsonValue:
        return str(part) if scan_text(str(part)) == part.as_json() else part.as_json()

    def write_text(text: str) -> JsonValue:
        return text if scan_text(text) == text else {TEXT: [text]}

    return json.dumps(
        {name: fill(each, write_part, write_text) for name, each in step.arguments.items()}, ensure_ascii=False
    )


def _read(text: str, tools: Sequence[ToolSpec] = ()) -> list[PlannedStep]:
    reader = StepReader(Rewoo(tools))
    return [*reader.feed(text), *reader.close()]


def _quote(words: str) -> str:
    """Return a text as a JSON string, with `#` escaped: no part of the string is read as a step."""
    quoted = json.dumps(words, ensure_ascii=False)
    return quoted.replace("#", "\\u0023").replace("＃", "\\uff03")
