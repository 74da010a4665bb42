"""LLMCompiler's form: `1. search("x")`, `2. math("…", ["$1"])`, `3. join()<END_OF_PLAN>`.

Whether `$1` is a reference or money is decided by where it stands. It refers to step 1 only where that step came
before, and where it is an argument or an item of a list by itself, or is written `${1}`, or stands in a text with
nothing behind it that makes an amount of it: a letter, a digit, `,000`, `.50`, "million". "Split $5 in two" after a
step 5 stays a reference.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import JsonValue

from mindstream.models.model import ToolSpec
from mindstream.planning.arguments import Reference, Text, parse_part
from mindstream.planning.formats.inputs import (
    INPUT,
    find_spec,
    properties,
    read_json,
    read_literal,
    read_typed,
    scan_json,
    split_arguments,
)
from mindstream.planning.formats.reader import Findings
from mindstream.planning.plan import PlannedStep

HEAD = re.compile(r"(?<![\w$.])([1-9][0-9]{0,3})\s{0,4}[.):]\s{0,4}[*`]{0,3}(\w[\w./:-]{0,127})\(")
NAMED = re.compile(r"\s*+([A-Za-z_]\w{0,99})\s*+=(?!=)")
ALONE = re.compile(r"\s*+\$(?:\{([1-9][0-9]{0,3})\}|([1-9][0-9]{0,3}))\s*+")
AMOUNT = r"\s*+(?:hundred|thousand|[mbtr]+illion|dollar|bucks|USD|[百千万亿]|美?元)"
REFERENCE = re.compile(
    rf"(?<![A-Za-z0-9$\\])\$(?:\{{([1-9][0-9]{{0,3}})\}}|([1-9][0-9]{{0,3}})(?![0-9A-Za-z_]|[.,][0-9])(?!{AMOUNT}))"
)
THOUGHT = re.compile(r"[\s*]*+Thought[*]*+\s*+:[*]*+")
END = "<END_OF_PLAN>"


class Compiler:
    """Reads LLMCompiler's form line by line."""

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
            at = end + (line[end : end + 1] == ")")  # the published examples leave it away
            if head[2] == "join":
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

    def _read_arguments(self, parts: Sequence[str], spec: ToolSpec | None, number: int) -> dict[str, JsonValue]:
        def scan(text: str) -> JsonValue:
            return self._scan(text, number)

        known = properties(spec)
        if len(parts) == 1 and parts[0].strip()[:1] == "{":
            value = read_json(parts[0])
            if isinstance(value, dict) and value and value.keys() <= known.keys() and not parse_part(value):
                return {name: scan_json(each, scan) for name, each in value.items()}
        if len(known) == 1 and len(parts) > 1:  # commas in a text that should stand in quotes
            parts = [",".join(parts)]
        found: dict[str, JsonValue] = {}
        names = [*known, *([] if known else [INPUT])]
        for position, part in enumerate(parts):
            named = NAMED.match(part)
            if named and (named[1] in known or not spec):
                found[named[1]] = read_typed(part[named.end() :], known.get(named[1]), scan)
            else:
                name = names[position] if position < len(names) else f"argument{position + 1}"
                found[name] = read_literal(part, scan)
        return found

    def _scan(self, text: str, number: int) -> JsonValue:
        """Return a text with the earlier steps that it refers to; one that is a reference alone is that reference."""
        if alone := ALONE.fullmatch(text):
            step = f"E{alone[1] or alone[2]}"
            if self._is_earlier(step, number):
                return Reference(step).as_json()
            self.found.note("names no step before it, and stays text", text)
        pieces: list[str | Reference] = []
        at = 0
        for found in REFERENCE.finditer(text):
            step = f"E{found[1] or found[2]}"
            if self._is_earlier(step, number):
                pieces += [text[at : found.start()], Reference(step)]
                at = found.end()
        return Text((*pieces, text[at:])).as_json()

    def _is_earlier(self, step: str, number: int) -> bool:
        return step in self.found.steps and int(step[1:]) < number

    def _read_words(self, words: str) -> None:
        if thought := THOUGHT.match(words):
            self._why = words[thought.end() :].strip()
        else:
            self.found.note("no step", words.strip(" \t*`)].,;-#"))
