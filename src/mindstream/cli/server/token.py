"""`mindstream token`: who may come in from elsewhere."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Annotated

from mindstream.cli.shell.flags import AsJson, command, flag, group, word
from mindstream.cli.shell.output import print_json, print_table, say, tell
from mindstream.clock import SystemClock, format_iso
from mindstream.server.tokens import FILE, Tokens
from mindstream.service.privacy.audit import note_in
from mindstream.settings import Settings

app = group("Make, list and revoke the tokens of a server.")
File = Annotated[Path | None, flag("FILE", "The file of tokens [tokens.json in the data folder].", "--tokens")]


def _tokens(settings: Settings, file: Path | None) -> Tokens:
    return Tokens(file or settings.data / FILE, SystemClock())


@command(
    app, "data", "mindstream token new --tenant acme --scope read,write --days 90",
    "mindstream token new --tenant acme --scope memory.read --user ann",
)  # fmt: skip
def new(
    settings: Settings,
    tenant: Annotated[str, flag("NAME", "Whose it is: a wall that nothing crosses; `local` is this machine's own.")],
    scope: Annotated[str, flag("A,B,…", "read, write, admin; of one room alone, as memory.read.")] = "read,write",
    days: Annotated[float, flag("N", "How long it lasts.")] = 90.0,
    user: Annotated[str, flag("NAME", "The one user that it is for [any of the tenant's].")] = "",
    a_minute: Annotated[int | None, flag("N", "So many requests a minute.", min=1)] = None,
    at_once: Annotated[int | None, flag("N", "So many requests at once.", min=1)] = None,
    bytes_a_day: Annotated[int | None, flag("N", "So many bytes of requests a day.", min=1)] = None,
    max_tokens: Annotated[int | None, flag("N", "So many tokens of models a day.", min=1)] = None,
    max_usd: Annotated[float | None, flag("X", "So many US dollars for models a day.", min=0.0)] = None,
    tokens: File = None,
    json: AsJson = False,
) -> None:
    """Make a token. It is shown this once; the file keeps its hash."""
    token, made = _tokens(settings, tokens).new(
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
    asyncio.run(note_in(settings.data, "token_made", {"token": made.id, "scopes": " ".join(made.scopes)}, tenant))
    tell(
        json, {"token": token, **made.shown()}, token,
    )  # fmt: skip
    if not json:
        say(f"it ends on {format_iso(made.ends)}; its id is {made.id}; it is not shown again", sys.stderr)


@command(app, "data", "mindstream token list", name="list")
def list_(settings: Settings, tokens: File = None, json: AsJson = False) -> None:
    """List tokens, without what opens anything."""
    found = _tokens(settings, tokens).each()
    if json:
        print_json(*(each.shown() for each in found))
    elif not found:
        say("there are no tokens yet: `mindstream token new` makes one", sys.stderr)
    else:
        rows = [(each.id, each.tenant, each.user, ",".join(each.scopes), format_iso(each.ends)) for each in found]
        print_table(("id", "tenant", "user", "scopes", "ends"), rows, words=5)


@command(app, "data", "mindstream token revoke 8r1c0v2m4x")
def revoke(
    settings: Settings,
    id: Annotated[str, word("ID", "A token's id, as `mindstream token list` shows it.")],
    tokens: File = None,
    json: AsJson = False,
) -> None:
    """Let a token open nothing any more, at once."""
    gone = _tokens(settings, tokens).revoke(id)
    asyncio.run(note_in(settings.data, "token_revoked", {"token": gone.id}, gone.tenant))
    tell(json, gone.shown(), f"the token {gone.id} of {gone.tenant} opens nothing any more")
