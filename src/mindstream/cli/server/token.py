"""`mindstream token`: the tokens of a server."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

from mindstream.cli.shell.flags import AsJson, command, flag, group, word
from mindstream.cli.shell.output import complain, print_json, print_table, say, tell
from mindstream.clock import SystemClock, format_iso
from mindstream.memory.opening import open_store
from mindstream.server.tokens import Tokens
from mindstream.service.privacy.audit import note_in
from mindstream.settings import Settings

app = group("Create, list and revoke the tokens of a server.")


@asynccontextmanager
async def _tokens(settings: Settings) -> AsyncIterator[Tokens]:
    async with open_store(settings.data) as store:
        yield Tokens(lambda: store, SystemClock())


@command(
    app,
    "data",
    "mindstream token new --tenant acme --scope read,write --days 90",
    "mindstream token new --tenant acme --scope memory.read --user ann",
)
async def new(
    settings: Settings,
    tenant: Annotated[
        str,
        flag("NAME", "The token's tenant, isolated from all others; `local` means the users of this machine."),
    ],
    scope: Annotated[
        str, flag("A,B,…", "read, write, admin; for one group of operations only: GROUP.read, such as memory.read.")
    ] = "read,write",
    days: Annotated[float, flag("N", "The token's lifetime in days.")] = 90.0,
    user: Annotated[str, flag("NAME", "The only user whose data the token opens [all users of the tenant].")] = "",
    a_minute: Annotated[int | None, flag("N", "Maximum number of requests a minute.", min=1)] = None,
    at_once: Annotated[int | None, flag("N", "Maximum number of parallel requests.", min=1)] = None,
    bytes_a_day: Annotated[int | None, flag("N", "Maximum total size of a day's requests, in bytes.", min=1)] = None,
    max_tokens: Annotated[int | None, flag("N", "Maximum number of model tokens a day.", min=1)] = None,
    max_usd: Annotated[float | None, flag("X", "Maximum model cost a day in US dollars.", min=0.0)] = None,
    json: AsJson = False,
) -> None:
    """Create a token and print it. It is shown only this once; only its hash is stored."""
    async with _tokens(settings) as kept:
        token, made = await kept.new(
            tenant,
            scope,
            days,
            user=user,
            a_minute=a_minute,
            at_once=at_once,
            tokens=max_tokens,
            usd=max_usd,
            bytes_a_day=bytes_a_day,
        )
    await note_in(settings.data, "token_made", {"token": made.id, "scopes": " ".join(made.scopes)}, tenant)
    tell(json, {"token": token, **made.shown()}, token)
    if not json:
        say(
            f"the token expires on {format_iso(made.ends)}; its id is {made.id}; the token is not shown again",
            sys.stderr,
        )
    if max_usd is not None and max_tokens is None:
        complain(
            "models without a known price are refused with this token; --max-tokens instead of --max-usd allows them"
        )


@command(app, "data", "mindstream token list", name="list")
async def list_(settings: Settings, json: AsJson = False) -> None:
    """List tokens, without their secrets."""
    async with _tokens(settings) as kept:
        found = await kept.each()
    if json:
        print_json(*(each.shown() for each in found))
    elif not found:
        say("there are no tokens yet: `mindstream token new` creates one", sys.stderr)
    else:
        rows = [(each.id, each.tenant, each.user, ",".join(each.scopes), format_iso(each.ends)) for each in found]
        print_table(("id", "tenant", "user", "scopes", "ends"), rows, words=5)


@command(app, "data", "mindstream token revoke 8r1c0v2m4x")
async def revoke(
    settings: Settings,
    id: Annotated[str, word("ID", "A token's id, as `mindstream token list` shows it.")],
    json: AsJson = False,
) -> None:
    """Revoke a token, with immediate effect."""
    async with _tokens(settings) as kept:
        gone = await kept.revoke(id)
    await note_in(settings.data, "token_revoked", {"token": gone.id}, gone.tenant)
    tell(json, gone.shown(), f"the token {gone.id} of {gone.tenant} is revoked")
