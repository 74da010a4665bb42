"""`mindstream serve`, `work`, `mcp` and `token`: the server of a data location, its workers, one memory as an MCP
server, and the tokens of a server."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import json as jsons
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mindstream.cli.shell.flags import PLAIN, AsJson, Docs, Mcp, command, flag, group, split_names, switch, word
from mindstream.cli.shell.output import complain, print_json, print_table, say, tell, warn_if_unpriced
from mindstream.clock import SystemClock, format_iso
from mindstream.errors import InputError
from mindstream.guidance import LOCATED, unlocated
from mindstream.paths import read_text, variable
from mindstream.plugins import registered
from mindstream.settings import Settings

if TYPE_CHECKING:
    from mindstream.server.tokens import IssuedLimits, Tokens
    from mindstream.server.webhook import Receiver


NOTES = """Programs on this machine need no token unless --require-token, --public-url or a
--host other than loopback is given; all other clients need a token. No request
can change the models, packs and documents that the command names.

Exit code: 0 after SIGTERM or Ctrl-C, when answers have ended; 2 if it cannot
start."""
app = typer.Typer(**PLAIN)


@command(
    app,
    "more_roles model roles fallback patience_s data pack gate timezone deadline_s prompts embedder"
    " budget_calls budget_tokens budget_usd redact",
    "mindstream serve --model openai:gpt-5-mini",
    "mindstream serve --host 0.0.0.0 --allow-host mind.example.org",
    "curl -d '{\"text\": \"Hello\"}' -H 'content-type: application/json' localhost:8377/api/v1/users/ann/send",
    notes=NOTES,
    model="The model of all roles [rules].",
)
def serve(
    settings: Settings,
    host: Annotated[str, flag("ADDRESS", "The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, flag("N", "The port to listen on; 0 chooses a free port.", min=0, max=65_535)] = 8377,
    require_token: Annotated[
        bool, switch("--require-token", "Require a token of requests from this machine too.")
    ] = False,
    allow_host: Annotated[
        list[str] | None, flag("NAME", "A host name by which requests may address the server; repeatable.")
    ] = None,
    public_url: Annotated[
        str, flag("URL", "The address at which a proxy publishes the server, such as https://mind.example.org.")
    ] = "",
    tools: Annotated[
        str, flag("A,B", "Tools that plans and lives may call; the names are those of solve --tools.")
    ] = "calculator,recall",
    docs: Docs = None,
    mcp: Mcp = None,
    town: Annotated[
        list[str] | None, flag("NAME=DIR", "A town to offer; for a tenant, TENANT/NAME=DIR; repeatable.")
    ] = None,
    at_once: Annotated[int, flag("N", "Maximum number of parallel calls of each model.", min=1, max=10_000)] = 64,
    allow_origin: Annotated[
        list[str] | None, flag("URL", "A web origin whose pages may call the server from a browser; repeatable.")
    ] = None,
    issuer: Annotated[
        str, flag("URL", "An OIDC issuer whose tokens are accepted, in addition to those of `mindstream token`.")
    ] = "",
    audience: Annotated[
        list[str] | None, flag("NAME", "The audience that the issuer's tokens must have; repeatable.")
    ] = None,
    tenant_claim: Annotated[str, flag("NAME", "The claim of the issuer's tokens that names the tenant.")] = "tenant",
    user_claim: Annotated[
        str,
        flag(
            "NAME",
            "The claim of the issuer's tokens (such as sub) that names the only user whose data a token opens [none:"
            " all users of the tenant].",
        ),
    ] = "",
    issuer_max_tokens: Annotated[
        int | None,
        flag(
            "N",
            "Maximum number of model tokens a day for each user or application that signs in through the issuer.",
            min=1,
        ),
    ] = None,
    issuer_max_usd: Annotated[
        float | None,
        flag(
            "X",
            "Maximum model cost a day in US dollars for each user or application that signs in through the issuer.",
            min=0.0,
        ),
    ] = None,
    webhook: Annotated[
        str, flag("URL", "The address to which follow-ups (messages that a mind adds after its answer) are posted.")
    ] = "",
    webhook_secret: Annotated[
        Path | None,
        flag(
            "FILE",
            "The file with the secret that signs the posts to --webhook [the variable MINDSTREAM_WEBHOOK_SECRET].",
        ),
    ] = None,
    studio: Annotated[bool, switch("--studio", "Also serve the studio's pages, at /studio/.")] = False,
    no_thinking: Annotated[
        bool, switch("--no-thinking", "Only answer messages; leave background thinking to `mindstream work`.")
    ] = False,
) -> None:
    """Serve REST, events, an OpenAI-compatible endpoint and MCP, until a signal stops the server."""
    import gc

    from mindstream.server import require_server

    gc.disable()  # loading leaves no garbage; the server enables collection when it listens
    require_server()
    from mindstream.server.api_app import app as make
    from mindstream.server.run import new_loop
    from mindstream.server.run import serve as run
    from mindstream.service.operations.offered import Offered, read_towns

    if issuer:
        from mindstream.server.issuer import Issuer
    elif audience or issuer_max_tokens or issuer_max_usd is not None:
        raise InputError("--audience, --issuer-max-tokens and --issuer-max-usd apply only with --issuer")
    warn_if_unpriced(settings, issuer_max_usd)
    if webhook_secret and not webhook:
        raise InputError("--webhook-secret applies only with --webhook URL")
    api_app = make(
        settings.data,
        require_token=require_token,
        hosts=tuple(allow_host or ()),
        origins=tuple(allow_origin or ()),
        settings=settings,
        at_once=at_once,
        offered=Offered(split_names([tools]) or (), tuple(docs or ()), tuple(mcp or ()), read_towns(town or ())),
        issuer=Issuer(
            issuer,
            audience or (),
            SystemClock(),
            tenant_claim=tenant_claim,
            user_claim=user_claim,
            tokens=issuer_max_tokens,
            usd=issuer_max_usd,
        )
        if issuer
        else None,
        webhook=_receiver(webhook, webhook_secret) if webhook else None,
        public_url=public_url,
        thinks=not no_thinking,
    )
    if studio:
        added = [plugin.pages(api_app) for plugin in registered() if plugin.pages]
        if not added:
            raise InputError("--studio: the package with the pages is not installed: pip install mindstream-studio")
    LOCATED.set(unlocated)  # commands in messages to clients name neither this machine's folders nor its user
    with asyncio.Runner(loop_factory=new_loop()) as runner:
        runner.run(run(api_app, host, port))


def _receiver(url: str, file: Path | None) -> Receiver:
    from mindstream.server.webhook import SECRET, Receiver

    try:
        secret = read_text(file, 10_000) if file else variable(SECRET)
    except InputError as error:
        raise InputError(f"--webhook-secret {file} {error}") from None
    return Receiver(url, secret)


WORK_NOTES = """Run any number of workers, on any machines that reach the database; work of a
worker that died is taken over by another one. A worker serves no requests.

Exit code: 130 after Ctrl-C, 143 after SIGTERM, once its unfinished work is
released; 2 if it cannot start."""
work_app = typer.Typer(**PLAIN)
TOLD_S = 5.0
"""Minimum interval between progress lines, in seconds."""


@command(
    work_app,
    "more_roles model roles fallback patience_s data pack gate timezone deadline_s prompts embedder"
    " budget_calls budget_tokens budget_usd",
    "mindstream work --data postgresql://mind@db/mind --model openai:gpt-5-mini",
    "mindstream serve --data postgresql://mind@db/mind --model openai:gpt-5-mini --no-thinking",
    notes=WORK_NOTES,
    model="The model of all roles [rules].",
)
def work(
    settings: Settings,
    minds: Annotated[
        int, flag("N", "Maximum number of minds (users) whose messages are processed in parallel.", min=1, max=10_000)
    ] = 64,
    at_once: Annotated[int, flag("N", "Maximum number of parallel calls of each model.", min=1, max=10_000)] = 64,
    issuer_max_tokens: Annotated[
        int | None,
        flag(
            "N",
            "Maximum number of model tokens a day for each user or application that signs in through an OIDC issuer;"
            " give the same value as to `mindstream serve --issuer-max-tokens`.",
            min=1,
        ),
    ] = None,
    issuer_max_usd: Annotated[
        float | None,
        flag(
            "X",
            "Maximum model cost a day in US dollars for each user or application that signs in through an OIDC issuer;"
            " give the same value as to `mindstream serve --issuer-max-usd`.",
            min=0.0,
        ),
    ] = None,
    json: AsJson = False,
) -> int:
    """Run the reasoners (background thinking) on messages that servers received, until a signal ends this process."""
    from mindstream.cli.shell.stopping import run_until_stopped
    from mindstream.server.tokens import IssuedLimits

    warn_if_unpriced(settings, issuer_max_usd)
    teller, limits = _Teller(json), IssuedLimits(issuer_max_tokens, issuer_max_usd)
    return run_until_stopped(
        _work(settings, minds, at_once, teller, limits), lambda: f"{teller.words()}; unfinished work is released"
    )


class _Teller:
    """Prints the progress of the background thinking."""

    def __init__(self, json: bool) -> None:
        self._json = json
        self.going = self.done = self.failed = 0

    def words(self) -> str:
        from mindstream.text.words import count_of

        failed = f", {self.failed} failed" if self.failed else ""
        return f"{count_of(self.done, 'thought')}, {self.going} going on{failed}"

    def tell(self, event: str) -> None:
        if self._json:
            values = {"event": event, "thoughts": self.done, "going": self.going, "failed": self.failed}
            print(jsons.dumps(values), flush=True)
        else:
            print(f"{event}: {self.words()}" if event != "working" else self.words(), file=sys.stderr, flush=True)


async def _work(settings: Settings, minds: int, at_once: int, teller: _Teller, limits: IssuedLimits) -> int:
    from mindstream.minds.chat_bot import NAME, ChatResponder
    from mindstream.server.admission import Budgets
    from mindstream.server.run import allow_connections
    from mindstream.server.server_state import ServerState
    from mindstream.server.tokens import Tokens
    from mindstream.service.operations.orphaned_work import OrphanedWork
    from mindstream.service.operations.runtime import Runtime

    allow_connections()
    async with Runtime.open_reader(settings, at_once=at_once, part="thinks") as runtime:
        runtime.responders[NAME] = lambda: ChatResponder
        await runtime.check()
        state, tokens = ServerState(runtime.server_store, runtime.clock), Tokens(runtime.server_store, runtime.clock)
        budgets = Budgets(state, runtime.clock, tokens, limits)
        orphaned_work = OrphanedWork(runtime, answers=False, at_once=minds, budgets=budgets.of_id)
        async with contextlib.AsyncExitStack() as stack:
            await stack.enter_async_context(budgets.running())
            await stack.enter_async_context(orphaned_work.running())
            teller.tell("ready")
            gc.freeze()
            reported = 0
            while True:
                await asyncio.sleep(TOLD_S)
                teller.going, teller.done, teller.failed = (
                    len(orphaned_work.going),
                    orphaned_work.done,
                    orphaned_work.failed,
                )
                if teller.done != reported or teller.going:
                    reported = teller.done
                    teller.tell("working")


token_app = group("Create, list and revoke the tokens of a server.")


@asynccontextmanager
async def _tokens(settings: Settings) -> AsyncIterator[Tokens]:
    from mindstream.memory.opening import open_store
    from mindstream.server.tokens import Tokens

    async with open_store(settings.data) as store:
        yield Tokens(lambda: store, SystemClock())


@command(
    token_app,
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
        str,
        flag(
            "A,B,…",
            "The token's scopes: read, write or admin, each for all operations or for one group, such as memory.read.",
        ),
    ] = "read,write",
    days: Annotated[float, flag("N", "The token's lifetime in days.")] = 90.0,
    user: Annotated[str, flag("NAME", "The only user whose data the token opens [all users of the tenant].")] = "",
    a_minute: Annotated[int | None, flag("N", "Maximum number of requests a minute [6,000].", min=1)] = None,
    at_once: Annotated[int | None, flag("N", "Maximum number of parallel requests [2,000].", min=1)] = None,
    bytes_a_day: Annotated[
        int | None, flag("N", "Maximum total size of a day's request bodies, in bytes.", min=1)
    ] = None,
    max_tokens: Annotated[int | None, flag("N", "Maximum number of model tokens a day.", min=1)] = None,
    max_usd: Annotated[float | None, flag("X", "Maximum model cost a day in US dollars.", min=0.0)] = None,
    json: AsJson = False,
) -> None:
    """Create a token and print it. It is shown only this once; only its hash is stored."""
    from mindstream.service.privacy.audit import note_in

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


@command(token_app, "data", "mindstream token list", name="list")
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


@command(token_app, "data", "mindstream token revoke 8r1c0v2m4x")
async def revoke(
    settings: Settings,
    id: Annotated[str, word("ID", "A token's id, as `mindstream token list` shows it.")],
    json: AsJson = False,
) -> None:
    """Revoke a token, with immediate effect."""
    from mindstream.service.privacy.audit import note_in

    async with _tokens(settings) as kept:
        gone = await kept.revoke(id)
    await note_in(settings.data, "token_revoked", {"token": gone.id}, gone.tenant)
    tell(json, gone.shown(), f"the token {gone.id} of {gone.tenant} is revoked")


MCP_NOTES = """The MCP client starts this command; it ends when the client closes its input.
`mindstream serve` offers the same memory over HTTP, at /mcp and /mcp/USER.

Exit code: 0 when the input has ended; 2 if it cannot start."""
mcp_app = typer.Typer(**PLAIN)


@command(
    mcp_app,
    "more_roles model roles fallback patience_s data user pack timezone embedder budget_calls budget_tokens budget_usd"
    " redact",
    "mindstream mcp --user ann",
    "mindstream mcp --tools plan,pool --model openai:gpt-5-mini",
    notes=MCP_NOTES,
    model="The model of all roles [rules].",
)
def mcp(
    settings: Settings,
    tools: Annotated[
        str, flag("A,B,…", "Additional sets of tools that the client may call: care, plan, pool, town.")
    ] = "",
) -> None:
    """Serve one memory to an MCP client, on standard input and output."""
    from mindstream.server import require_server

    require_server()
    from mindstream.server.mcp.stdio import serve_stdio
    from mindstream.server.mcp.tools import checked_sets
    from mindstream.service.operations.runtime import runtime_for

    warn_if_unpriced(settings)
    LOCATED.set(unlocated)  # as in `serve`
    asyncio.run(serve_stdio(runtime_for(settings.data, settings), settings.user, checked_sets(tools)))
