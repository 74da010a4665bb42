"""`mindstream cost`: what calls of models came to."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from mindstream.cli.shell.flags import PLAIN, AsJson, OneUser, command
from mindstream.cli.shell.output import print_json, print_table, say, say_lines
from mindstream.service.cost import BYS, By, Total, bill
from mindstream.service.memory import open_user_memory
from mindstream.settings import Settings

SHOWN: tuple[By, ...] = ("day", "user", "role")
"""What is shown where nothing else is asked for."""
app = typer.Typer(**PLAIN)
COLUMNS = ("calls", "failed", "tokens in", "of them cached", "tokens out", "seconds", "US dollars")


@command(app, "data user", "mindstream cost", "mindstream cost --by model --user ann")
async def cost(
    settings: Settings,
    by: Annotated[By | None, typer.Option(help="Add up by this alone [day, user and role].")] = None,
    user: OneUser = None,
    json: AsJson = False,
) -> None:
    """Say what calls of models came to: tokens, seconds, US dollars.

    From the log. Prices are those that were known at the time of the call; a call without one is said to have none.
    Days are those of UTC. Seconds are counted call by call, though calls may run side by side.
    """
    async with open_user_memory(settings) as opened:
        found = await bill(opened.store, opened.key if user else None)
        if user and not found.total.calls:
            await opened.require_known()
    if json:
        for kind in [by] if by else BYS:
            print_json(*({"by": kind, **total.plain()} for total in found.by[kind]))
        print_json({"by": "all", **found.total.plain()})
    elif not found.total.calls:
        say(f"no model was called{f' for {user}' if user else ''} yet", sys.stderr)
    else:
        rows: list[Sequence[str]] = []
        for kind in [by] if by else SHOWN:
            rows += [(f"by {kind}",), *(_row(total) for total in found.by[kind])]
        print_table(("", *COLUMNS), [*rows, ("in all", *_row(found.total)[1:])])
        say_lines(_notes(found.total))


def _row(total: Total) -> tuple[str, ...]:
    return (
        f"  {total.name}",
        f"{total.calls:,}",
        f"{total.failed:,}",
        f"{total.input_tokens:,}",
        f"{total.cached_tokens:,}",
        f"{total.output_tokens:,}",
        f"{total.seconds:,.1f}",
        _dollars(total),
    )


def _dollars(total: Total) -> str:
    if total.unpriced and not total.cost_usd:
        return "not known"
    return f"{total.cost_usd:,.4f}" + (" + ?" if total.unpriced else "")


def _notes(total: Total) -> list[str]:
    notes = []
    if total.free == total.calls:
        notes.append("all of them were answered by rules or recordings, which cost nothing")
    if total.unpriced:
        notes.append(f"{total.unpriced:,} of {total.calls:,} calls have no known price and are not in the sum")
    if total.broken_off:
        notes.append(f"{total.broken_off:,} were broken off; what those used is mostly not known")
    return notes
