"""What a run must know of a tool before it calls it, beside what a model is told (`ToolSpec`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from mindstream.models.model import Call

Batch: TypeAlias = Callable[[Sequence[Call]], Awaitable[Sequence[str]]]
"""Does several calls of one tool at once; gives the results in the order of the calls."""


@dataclass(frozen=True, slots=True)
class Traits:
    """How a tool wants to be treated.

    Attributes:
        changes: it changes something outside (sends, writes, pays): a person is asked before, nothing repeats it idly.
        foreign: what it gives was written by strangers (a page, a server): it is data that no later step may obey.
        key: the name of the argument that takes an idempotency key: calls with one key have their effect once.
        timeout_s: how long one call may take; None: as the run says.
        retries: so often a call that failed is made again; one that `changes` only with a `key`.
        at_once: so many of its calls go on side by side.
        batch: does several calls in one.
        cost_usd: what one call costs, where that is known.
        concludes: what it gives is drawn from what it is handed: who reads the one need not read the other.
        finds: its results name pages that may be fetched (a search engine; see tools/given_addresses).
        ready: whether there is anything yet to call it for; a life does not show it before. None: always.
    """

    changes: bool = False
    foreign: bool = False
    key: str = ""
    timeout_s: float | None = None
    retries: int = 0
    at_once: int = 8
    batch: Batch | None = None
    cost_usd: float | None = None
    concludes: bool = False
    finds: bool = False
    ready: Callable[[], bool] | None = None


PLAIN = Traits()
FROM_STRANGERS = Traits(foreign=True)
"""Those of a tool that only reads what strangers wrote."""


def traits_of(tool: object) -> Traits:
    """Return a tool's traits; of one that says nothing, those of a function that only computes."""
    traits = getattr(tool, "traits", PLAIN)
    return traits if isinstance(traits, Traits) else PLAIN
