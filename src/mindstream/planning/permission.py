"""Permission to change the world: nothing is sent, written or paid before somebody has said yes to it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import TypeAlias

from mindstream.planning.plan import PlannedStep
from mindstream.tools.given_addresses import refusal_of


@dataclass(frozen=True, slots=True)
class Wish:
    """A call that changes the world, and wants leave.

    Attributes:
        arguments: what the tool would be called with, as JSON, evidence filled in.
        foreign: words of strangers stand in the arguments.
        address: why approval is needed for a call that only reads: nobody trusted gave this address.
    """

    step: PlannedStep
    arguments: str
    foreign: bool
    address: str = ""


Approver: TypeAlias = Callable[[Wish], Awaitable[bool]]
"""Says whether a call may be made."""


def refusal(wish: Wish) -> str:
    """Say that a call was not made, and what would let it."""
    if wish.address:
        return refusal_of(wish.address)
    if wish.foreign:
        return "not called: it changes the world, words of strangers fill its arguments, and nobody gave leave for it"
    return f"not called: it changes the world, and nobody gave leave for it (--allow {wish.step.tool} does)"


async def refuse(_: Wish) -> bool:
    """Give no leave: what stands in where there is nobody to ask."""
    return False


def allow(tools: Collection[str], otherwise: Approver = refuse) -> Approver:
    """Give leave to these tools, except where words of strangers fill their arguments; ask `otherwise` for the rest."""

    async def leave(wish: Wish) -> bool:
        return (wish.step.tool in tools and not wish.foreign) or await otherwise(wish)

    return leave


def one_at_a_time(leave: Approver) -> Approver:
    """Ask for the next call when the one before is answered: a person reads one question at a time."""
    asking = asyncio.Lock()

    async def ask(wish: Wish) -> bool:
        async with asking:
            return await leave(wish)

    return ask
