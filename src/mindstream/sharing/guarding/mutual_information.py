"""How much likelier is an answer after its own query than after others? Asked of a model in this process.

The pointwise mutual information of query and answer (Church 1990), by the answer's first tokens: what they gain from
the own query, over the mean of other queries that a person laid in. Two laid-in pairs stand before each query, so that
the model knows the form; the answer's own rarity is in all terms alike and falls out.
"""

from __future__ import annotations

import asyncio
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from mindstream.errors import ModelRefused, SettingsError
from mindstream.models.providers.address import Address, address
from mindstream.models.providers.given_text import checked_gguf, load, open_given_text

if TYPE_CHECKING:
    from mindstream.models.providers.gguf import Engine

TOKENS = 24
"""So many tokens of an answer are weighed."""
SHOTS, NEAR, FAR = 2, 2, 2
"""So many pairs stand before a query; and against so many others it is set, the most alike that are left and some."""
QUERY, SHOWN = 600, 200
"""So many characters of a query are read, and of a shot's query and answer each."""


class MutualInformation:
    """Measures pairs by a GGUF file's model."""

    def __init__(self, at: Address) -> None:
        """Take the file's address; it is loaded when it is first asked, and stays.

        Raises:
            ModelRefused: it is none.
        """
        self.name = at.name
        self._at = checked_gguf(at)
        self._engine: Engine | None = None

    async def measure(self, query: str, answer: str, alike: Sequence[tuple[str, str]]) -> float | None:
        """Return what the answer gains from its query, in nats a token times the root of the tokens.

        About 0 for an answer to another query, whichever model is asked. None: it cannot read it (see given_text).

        Args:
            alike: pairs that a person laid in, those with the most alike queries first; more than SHOTS + NEAR + FAR.

        Raises:
            ModelUnavailable: the model failed.
        """
        shots, others = alike[:SHOTS], alike[SHOTS:]
        before = "".join(f"{_asked(q, SHOWN)} {said[:SHOWN]}\n\n" for q, said in reversed(shots))
        apart = others[NEAR:]
        step = max(1, len(apart) // FAR)
        against = [q for q, _ in (*others[:NEAR], *apart[step // 2 :: step][:FAR])]
        if not against:
            return None
        try:
            own, *rest = await self._weigh(answer, [before + _asked(each, QUERY) for each in (query, *against)])
        except ModelRefused:
            return None
        gained = sum(own) - sum(map(sum, rest)) / len(rest)
        return gained / math.sqrt(len(own))

    async def _weigh(self, answer: str, prompts: Sequence[str]) -> list[list[float]]:
        self._engine = self._engine or await asyncio.to_thread(load, self._at)
        async with open_given_text(self._at, self._engine) as given:
            tokens = await given.tokens(" " + answer, TOKENS)
            return [await given.logprobs(each, tokens) for each in prompts]  # one by one: what they begin with is kept


def mutual_information(name: str) -> MutualInformation | None:
    """Return what measures by a model of this name; None where it is none in this process."""
    try:
        at = address(name)
    except SettingsError:
        return None
    return MutualInformation(at) if at.vendor == "gguf" else None


def _asked(query: str, most: int) -> str:
    return f"Question: {' '.join(query[:most].split())}\nAnswer:"
