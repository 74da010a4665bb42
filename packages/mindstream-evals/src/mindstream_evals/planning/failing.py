"""Tools that fail at a given rate. The seed decides which calls of a question fail: the same ones in every strategy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from mindstream import chance
from mindstream.errors import InputError, ToolError
from mindstream.models.model import Call, ToolSpec
from mindstream.planning.formats.rewoo import IN_THE_PAPER
from mindstream.tools.tool import Tool, Traits, traits_of

NOTHING = "No evidence found."
"""The message of a failed call, as in the paper."""
NAMED = {"web": "web_search", "llm": "LLM", "docs": "search_documents", "documents": "search_documents", **IN_THE_PAPER}
"""Names of the tools in this package, by the names that users may type; these include the paper's."""


def read_failures(given: Sequence[str]) -> dict[str, float]:
    """Parse `web=0.3` as a tool and the probability that a call of it fails.

    Raises:
        InputError: a text is not a tool and a number from 0 to 1.
    """
    found = {}
    for each in given:
        name, _, share = each.partition("=")
        try:
            value = float(share)
        except ValueError:
            value = -1.0
        if not name.strip() or not 0 <= value <= 1:
            raise InputError(f"expected a tool and its failure rate, such as web=0.3, found {each[:80]!r}")
        found[NAMED.get(name.strip().casefold(), name.strip())] = value
    return found


def check_failures(failures: Mapping[str, float], names: Sequence[str]) -> None:
    """Refuse a failure rate for a tool that no strategy calls.

    Raises:
        InputError: a rate is given for such a tool.
    """
    for name in failures:
        if name not in names:
            there = f"use one of: {', '.join(names)}" if names else "the chosen strategies call no tools"
            raise InputError(f"--fail: no strategy calls a tool {name!r}; {there}")


@dataclass
class Failing:
    """A tool whose calls fail with a given probability (`share`)."""

    tool: Tool
    share: float
    seed: int
    question: str
    calls: int = 0
    failed: int = 0

    @property
    def spec(self) -> ToolSpec:
        return self.tool.spec

    @property
    def traits(self) -> Traits:
        return replace(traits_of(self.tool), batch=None)  # no batches: each call must pass through this wrapper

    async def __call__(self, call: Call) -> str:
        self.calls += 1
        if chance.fraction(self.seed, self.question, self.spec.name, self.calls) < self.share:
            self.failed += 1
            raise ToolError(NOTHING)
        return await self.tool(call)


def with_failures(
    tools: Sequence[Tool], failures: Mapping[str, float], seed: int, question: str
) -> tuple[tuple[Tool, ...], list[Failing]]:
    """Return the tools for a question, with failing tools wrapped, and the wrappers."""
    failing = {
        name: Failing(tool, failures[name], seed, question) for tool in tools if (name := tool.spec.name) in failures
    }
    return tuple(failing.get(tool.spec.name, tool) for tool in tools), list(failing.values())
