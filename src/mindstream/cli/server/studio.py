"""`mindstream studio`: the server with its pages, and a browser that shows them."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
import webbrowser
from typing import Annotated

import typer

from mindstream.cli.shell.flags import PLAIN, command, flag, switch
from mindstream.cli.shell.output import say
from mindstream.errors import InputError
from mindstream.settings import Settings

NOTES = """Where a server with the studio answers on that port already, its page is
opened, and nothing is started. Nothing is asked of any other machine, but of
the models that you name. What they are asked and answer while it runs is kept
in the log, word by word (keep_prompts), so that the page Traces can show it."""
app = typer.Typer(**PLAIN)


@command(
    app,
    "more_roles model roles fallback patience_s data pack gate timezone deadline_s prompts embedder"
    " budget_calls budget_tokens budget_usd",
    "mindstream studio",
    "mindstream studio --model openai:gpt-5-mini --town ville=./ville",
    notes=NOTES,
    model="Who answers, in all roles [rules].",
)
def studio(
    settings: Settings,
    port: Annotated[int, flag("N", "The server's port; 0 takes one that is free.", min=0, max=65_535)] = 8377,
    town: Annotated[list[str] | None, flag("NAME=DIR", "A town that is offered; repeatable.")] = None,
    no_open: Annotated[bool, switch("--no-open", "Only say where the page is.")] = False,
) -> None:
    """Open the studio in a browser; the server is started if none answers."""
    from mindstream.server.missing import require_server

    require_server()

    def show(address: str) -> None:
        say(f"the studio: {address}/studio/")
        if not no_open:
            webbrowser.open(f"{address}/studio/")

    if port and is_served(address := f"http://127.0.0.1:{port}"):
        show(address)
        return
    from mindstream.server.doors import app as make
    from mindstream.server.run import new_loop, serve
    from mindstream.service.operations.offered import Offered, read_towns
    from mindstream.studio.recorded import add_recorded
    from mindstream.studio.serve import add_studio

    settings = settings.model_copy(update={"keep_prompts": True})
    doors = make(settings.data, settings=settings, offered=Offered(towns=read_towns(town or ())))
    add_studio(doors.api)
    add_recorded(doors)
    with asyncio.Runner(loop_factory=new_loop()) as runner:
        runner.run(serve(doors, "127.0.0.1", port, show))


def is_served(address: str) -> bool:
    """Tell whether a server with the studio answers there.

    Raises:
        InputError: a server answers that has no studio.
    """
    try:
        with urllib.request.urlopen(f"{address}/studio/", timeout=5) as answer:
            return bool(answer.status == 200)
    except urllib.error.HTTPError:
        raise InputError(f"{address} answers, and has no studio: start it with --studio, or name a --port") from None
    except (OSError, ValueError):
        return False
