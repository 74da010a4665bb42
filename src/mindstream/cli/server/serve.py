"""`mindstream serve`: REST, events, the OpenAI-compatible endpoint and MCP for a data location."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from mindstream.cli.shell.flags import PLAIN, Docs, Mcp, command, flag, split_names, switch
from mindstream.cli.shell.output import warn_if_unpriced
from mindstream.clock import SystemClock
from mindstream.errors import InputError
from mindstream.paths import read_text, variable
from mindstream.plugins import registered
from mindstream.settings import Settings

if TYPE_CHECKING:
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
        Path | None, flag("FILE", "The file with the secret that signs these posts [MINDSTREAM_WEBHOOK_SECRET].")
    ] = None,
    studio: Annotated[bool, switch("--studio", "Also serve the studio's pages, at /studio/.")] = False,
    no_thinking: Annotated[
        bool, switch("--no-thinking", "Only answer messages; leave background thinking to `mindstream work`.")
    ] = False,
) -> None:
    """Serve REST, events, an OpenAI-compatible endpoint and MCP, until a signal stops the server."""
    import gc

    from mindstream.server.asgi import require_server

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
            raise InputError("--studio: the pages are in another distribution: pip install mindstream-studio")
    with asyncio.Runner(loop_factory=new_loop()) as runner:
        runner.run(run(api_app, host, port))


def _receiver(url: str, file: Path | None) -> Receiver:
    from mindstream.server.webhook import SECRET, Receiver

    try:
        secret = read_text(file, 10_000) if file else variable(SECRET)
    except InputError as error:
        raise InputError(f"--webhook-secret {file} {error}") from None
    return Receiver(url, secret)
