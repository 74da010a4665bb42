"""Tools found by what is needed, among many: a model is shown the few that fit, and can ask for more within a run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from mindstream.models.embedders.embedder import Embedder
from mindstream.models.model import JsonSchema, ToolSpec
from mindstream.text.lexical import Lexical
from mindstream.text.words import terms
from mindstream.tools.tool import FunctionTool, Tool, Words, checked_tools, tool

Floats = NDArray[np.float32]

FOUND = 6
WORDS = 0.3
"""What words that are the same count beside the cosine, both in standard deviations: a rare one alone still decides."""
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_.\-/]+")
LONGEST, SHOWN = 1_000, 200


class ToolIndex:
    """Many tools, found by a need in words: by the cosine and BM25 of their names, descriptions and arguments.

    Raises:
        InputError: two tools have one name.
    """

    def __init__(self, tools: Sequence[Tool], embedder: Embedder) -> None:
        self.tools = checked_tools(tools)
        self._embedder = embedder
        self._index = Lexical()
        for each in self.tools:
            self._index.add(terms(_described(each.spec)))
        self._vectors: Floats | None = None

    async def find(self, need: str, k: int = FOUND) -> tuple[Tool, ...]:
        """Return the k tools that fit a need best, the best first; all of them, as they stand, where there are no more.

        Raises:
            ModelError: the embedder's endpoint failed.
        """
        if len(self.tools) <= k:
            return self.tools
        need = need[:LONGEST]
        if self._vectors is None:
            self._vectors = await self._embedder.embed([_described(each.spec) for each in self.tools])
        cosines = self._vectors @ (await self._embedder.embed([need]))[0]
        scores = _standardised(cosines) + np.float32(WORDS) * _standardised(self._index.scores(terms(need)))
        best = np.argsort(-scores, kind="stable")[:k]
        return tuple(self.tools[at] for at in best)


def _standardised(values: Floats) -> Floats:
    """Return how many standard deviations each value lies above the mean: embedders' cosines differ in their range."""
    spread = values.std()
    return (values - values.mean()) / spread if spread > 1e-9 else np.zeros_like(values)


def find_tools_tool(shelf: ToolIndex, attached: list[Tool], k: int = FOUND) -> FunctionTool:
    """Make the tool `find_tools`, by which a model has more tools attached to its own run.

    Args:
        attached: what the run's loop was given as its tools (`tools/loop.solve`): what is found is added to it, and can
            be called from the next step on.
    """

    async def find_tools(need: Words) -> str:
        """Look for more tools that you can call, by what you need to do; those that fit can be called next.

        Args:
            need: what you want to get done, in a short sentence.
        """
        found = await shelf.find(need, k)
        here = {each.spec.name for each in attached}
        attached.extend(each for each in found if each.spec.name not in here)
        lines = (f"{each.spec.name}: {each.spec.description.strip()}".split("\n", 1)[0] for each in found)
        return "\n".join(line[:SHOWN] for line in lines) or "there are no tools"

    return replace(tool(find_tools), in_run=True)


def _described(spec: ToolSpec) -> str:
    """Return a tool in words: its name taken apart, what it does, what it takes."""
    arguments: JsonSchema = spec.parameters.get("properties") or {}
    taken = (f"{name} {_words_of(node)}" for name, node in arguments.items())
    return " ".join(CAMEL.sub(" ", each) for each in (spec.name, spec.description[:LONGEST], *taken))


def _words_of(node: object) -> str:
    return str(node.get("description", ""))[:SHOWN] if isinstance(node, dict) else ""
