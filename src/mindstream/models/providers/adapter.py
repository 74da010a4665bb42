"""The seam between a provider and a client library: what an endpoint sends, in the order in which it comes."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Literal, Protocol, TypeAlias

from mindstream.models.model import Call, Distribution, Logprobs, Request, TextLogprobs, Usage


@dataclass(frozen=True, slots=True)
class Delta:
    """Some more text: of the reply, of the model's thoughts before it, or of a call's arguments."""

    of: Literal["reply", "thought", "arguments"]
    text: str


@dataclass(frozen=True, slots=True)
class Withheld:
    """The endpoint keeps its answer back, and says why; `filtered`: a content filter did, not the model itself."""

    why: str
    filtered: bool = False


@dataclass(frozen=True, slots=True)
class Truncated:
    """The reply ends where the endpoint's limit of tokens was reached."""


Arrival: TypeAlias = Delta | Call | Logprobs | TextLogprobs | Distribution | Usage | Withheld | Truncated
"""What an endpoint sends. A call comes when it is whole; its arguments were counted as they came."""


class Arrivals(Protocol):
    """What an endpoint sends in answer to one request."""

    async def next(self, gap_s: float = 0.0) -> Sequence[Arrival]:
        """Wait for something; return all that came, in its order. Nothing: the answer is whole.

        It may be cancelled, and called again.

        Args:
            gap_s: seconds for more to come before anything is returned, unless the answer ends. To wake everything
                between an endpoint and its reader costs far more than the words do.

        Raises:
            ModelError: see failures; after all that came before it was returned.
        """


class Adapter(Protocol):
    """One client's way to one endpoint. Connections belong to one event loop; so does an adapter."""

    def stream(self, request: Request) -> AbstractAsyncContextManager[Arrivals]:
        """Ask once, and read the answer while the block runs."""

    async def aclose(self) -> None:
        """Close the connections that wait for the next request."""
