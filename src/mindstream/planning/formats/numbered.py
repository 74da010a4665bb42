"""A numbered list of plain sentences: each is an instruction for one tool, the model itself where nothing else is said.

A list is an order: each step comes after the one before it. Indented lines belong to the step above them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from mindstream.models.model import ToolSpec
from mindstream.planning.formats.inputs import find_spec, main_argument
from mindstream.planning.formats.reader import Findings
from mindstream.planning.formats.rewoo import scan_text
from mindstream.planning.plan import PlannedStep

NUMBER = r"(?:[0-9]{1,4}|[一二三四五六七八九十]{1,3})"
ITEM = re.compile(
    rf"[-*#>\s]{{0,8}}(?:(?:Step|STEP|步骤|第)\s*+{NUMBER}\s*+步?[*]*+\s*+[.)、:：．）,，–—-]|{NUMBER}\s*+[.)、:：．）])(?!\d)[*]*+"
)
MOST_LINES = 100


class Numbered:
    """Reads a numbered list line by line; `tool` is called with each sentence."""

    def __init__(self, tools: Sequence[ToolSpec] = (), tool: str = "LLM") -> None:
        self.found = Findings()
        spec = find_spec(tool, tools)
        self._tool, self._argument = (spec.name if spec else tool), main_argument(spec)
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
        self.found.note("no item of the list", line)
        return steps

    def end(self) -> list[PlannedStep]:
        """Return the item whose lines were being gathered; steps are numbered as they come."""
        words, self._lines = "\n".join(self._lines).strip(), []
        if not words:
            return []
        number = len(self.found.steps) + 1
        after = (f"E{number - 1}",) if number > 1 else ()
        return self.found.add(f"E{number}", self._tool, {self._argument: scan_text(words)}, after=after)
