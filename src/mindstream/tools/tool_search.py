"""Search among many tools: a model is offered the few that fit a need, and can search for more within a run."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from mindstream.arrays import Floats
from mindstream.models.embedders.embedder import Embedder
from mindstream.models.model import ToolSpec
from mindstream.moved import renamed
from mindstream.text.lexical import Lexical
from mindstream.text.words import terms
from mindstream.tools.tool import FunctionTool, Tool, Words, checked_tools, tool

FOUND = 6
"""Maximum number of tools that a search returns."""
WORDS = 0.3
"""Weight of shared words (BM25) relative to the cosine, both in standard deviations: one rare word can still decide."""
CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[_.\-/]+")
MAX_TEXT, MAX_SHOWN = 1_000, 200
"""MAX_TEXT: maximum number of compared characters of the need (what the model looks for), and of a tool's description.
MAX_SHOWN: maximum number of compared characters of an argument's description, and maximum length of the line about a
tool that the model sees."""


class ToolIndex:
    """Finds the tools that fit a need in words, by cosine and BM25 over their names, descriptions and arguments.

    Raises:
        InputError: two tools have the same name.
    """

    def __init__(self, tools: Sequence[Tool], embedder: Embedder) -> None:
        self.tools = checked_tools(tools)
        self._embedder = embedder
        self._index = Lexical()
        for each in self.tools:
            self._index.add(terms(_described(each.spec)))
        self._vectors: Floats | None = None

    async def find(self, need: str, k: int = FOUND) -> tuple[Tool, ...]:
        """Return the k tools that best fit a need, best first. If there are at most k tools, return all in their order.

        Raises:
            ModelError: the embedder's endpoint failed.
        """
        if len(self.tools) <= k:
            return self.tools
        need = need[:MAX_TEXT]
        if self._vectors is None:
            self._vectors = await self._embedder.embed([_described(each.spec) for each in self.tools])
        cosines = self._vectors @ (await self._embedder.embed([need]))[0]
        scores = _standardised(cosines) + np.float32(WORDS) * _standardised(self._index.scores(terms(need)))
        best = np.argsort(-scores, kind="stable")[:k]
        return tuple(self.tools[at] for at in best)


def _standardised(values: Floats) -> Floats:
    """Return values in standard deviations from their mean, since the range of cosines differs between embedders."""
    spread = values.std()
    return (values - values.mean()) / spread if spread > 1e-9 else np.zeros_like(values)


def find_tools_tool(index: ToolIndex, attached: list[Tool], k: int = FOUND) -> FunctionTool:
    """Make the tool `find_tools`, by which a model adds tools to its own run.

    Args:
        attached: the list of tools of the run (see `call.run_tool_loop`). Found tools are added to the list, and can be
            called from the next step on.
    """

    async def find_tools(need: Words) -> str:
        """Look for more tools that you can call, by what you need to do; those that fit can be called next.

        Args:
            need: what you want to get done, in a short sentence.
        """
        found = await index.find(need, k)
        here = {each.spec.name for each in attached}
        attached.extend(each for each in found if each.spec.name not in here)
        lines = (f"{each.spec.name}: {each.spec.description.strip()}".split("\n", 1)[0] for each in found)
        return "\n".join(line[:MAX_SHOWN] for line in lines) or "there are no tools"

    return replace(tool(find_tools), in_run=True)


def _described(spec: ToolSpec) -> str:
    """Return the words of a tool's name, description and arguments."""
    taken = (f"{name} {_words_of(node)}" for name, node in spec.arguments.items())
    return " ".join(CAMEL.sub(" ", each) for each in (spec.name, spec.description[:MAX_TEXT], *taken))


def _words_of(node: object) -> str:
    return str(node.get("description", ""))[:MAX_SHOWN] if isinstance(node, dict) else ""


__getattr__ = renamed(__name__, ToolShelf="ToolIndex")
