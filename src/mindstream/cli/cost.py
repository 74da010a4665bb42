"""`mindstream cost`: tokens, seconds and cost of model calls."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Annotated

import typer

from mindstream.cli.shell.flags import PLAIN, AsJson, OneUser, command
from mindstream.cli.shell.output import print_json, print_table, say, say_lines
from mindstream.service.calling import calling
from mindstream.service.cost import BYS, Bill, By, Total
from mindstream.settings import Settings
from mindstream.text.words import count_of

SHOWN: tuple[By, ...] = ("day", "user", "role")
"""The totals that are shown without --by."""
app = typer.Typer(**PLAIN)
COLUMNS = ("calls", "failed", "tokens in", "of them cached", "tokens out", "seconds", "US dollars")


@command(app, "data user", "mindstream cost", "mindstream cost --by model --user ann")
async def cost(
    settings: Settings,
    by: Annotated[
        By | None, typer.Option(help="Show only the totals by this field [totals by day, user and role].")
    ] = None,
    user: OneUser = None,
    json: AsJson = False,
) -> None:
    """Show tokens, seconds and US dollars of model calls.

    The figures come from the log, with the prices at the time of each call. Calls without a known price are counted,
    but are not in the cost. Days are UTC days. Seconds are added up call by call, though calls may run in parallel.
    """
    async with calling(settings, known=bool(user), all_users=not user) as call:
        found: Bill = (await call("log.cost")).local
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
        print_table(("", *COLUMNS), [*rows, ("total", *_row(found.total)[1:])])
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
        notes.append("rules or recordings answered all calls, at no cost")
    if total.unpriced:
        notes.append(f"calls without a known price, which are not in the total: {total.unpriced:,} of {total.calls:,}")
    if total.broken_off:
        notes.append(f"{count_of(total.broken_off, 'cancelled call')}, whose usage is mostly unknown")
    return notes
