"""`mindstream studio`: open the studio's pages in a browser, starting a server if needed; save pages as files."""

from __future__ import annotations

import asyncio
import shlex
import urllib.error
import urllib.request
import webbrowser
from http.client import HTTPException
from json import loads as load_json
from pathlib import Path
from typing import Annotated, Any

import typer

from mindstream.cli.shell.flags import PLAIN, AsJson, Docs, Mcp, bare, command, flag, flags_given, split_names, switch
from mindstream.cli.shell.output import complain, progress, say, tell, warn_if_unpriced
from mindstream.errors import InputError
from mindstream.settings import Settings

app = typer.Typer(**PLAIN)
NOTES = """A saved conversation includes its messages, thoughts and tool calls. It also includes all beliefs and plans
that the mind formed up to the end of the conversation, with the thoughts that produced them. It includes no messages of
other conversations. --with-calls adds the prompts and replies of model calls, in full if the log stores them; these may
contain text from other conversations."""


@bare(
    app,
    "model roles fallback patience_s data pack gate timezone deadline_s prompts embedder"
    " budget_calls budget_tokens budget_usd",
    "mindstream studio",
    "mindstream studio --model openai:gpt-5-mini --town ville=./ville",
    "mindstream studio export --town ./ville --out ville.html",
    model="The model of all roles [rules].",
)
def studio(
    context: typer.Context,
    settings: Settings,
    port: Annotated[int, flag("N", "The server's port; 0: a free one.", min=0, max=65_535)] = 8377,
    tools: Annotated[
        str, flag("A,B", "Tools for solving tasks; the names are those of solve --tools.")
    ] = "calculator,recall",
    docs: Docs = None,
    mcp: Mcp = None,
    town: Annotated[list[str] | None, flag("NAME=DIR", "A town to show, by name and folder; repeatable.")] = None,
    no_open: Annotated[bool, switch("--no-open", "Print the address of the page, without opening a browser.")] = False,
) -> None:
    """Open the studio in a browser; start a server if none runs on --port.

    If a server runs there already, it must hold the same data, and only the flags --port, --data and --no-open are
    accepted.

    By default the server contacts no other machine. Models, tools, MCP servers and a database that you name may be on
    other machines. While the server runs, prompts and replies of models are stored in full in the log (keep_prompts),
    for the page Traces.
    """
    from mindstream.server import require_server

    require_server()

    def show(address: str) -> None:
        say(f"the studio: {address}/studio/")
        if not no_open:
            webbrowser.open(f"{address}/studio/")

    if port and (served := find_studio(address := f"http://127.0.0.1:{port}")) is not None:
        require_same(
            served,
            address,
            settings,
            [each for each in flags_given(context) if each not in ("--port", "--data", "--no-open")],
        )
        show(address)
        return
    from mindstream.server.api_app import app as make
    from mindstream.server.run import new_loop, serve
    from mindstream.service.operations.offered import Offered, read_towns
    from mindstream_studio.serve import add_studio

    warn_if_unpriced(settings)
    settings = settings.model_copy(update={"keep_prompts": True})
    offered = Offered(split_names([tools]) or (), tuple(docs or ()), tuple(mcp or ()), read_towns(town or ()))
    api_app = make(settings.data, settings=settings, offered=offered)
    add_studio(api_app)
    with asyncio.Runner(loop_factory=new_loop()) as runner:
        runner.run(serve(api_app, "127.0.0.1", port, show))


def find_studio(address: str) -> dict[str, Any] | None:
    """Return what the server at an address says about its studio; None: no server answers.

    Raises:
        InputError: a server without the studio answers.
    """
    try:
        with urllib.request.urlopen(f"{address}/studio/about.json", timeout=5) as answer:
            about = load_json(answer.read())
    except (urllib.error.HTTPError, ValueError):
        about = None
    except (OSError, HTTPException):
        return None
    if not isinstance(about, dict):
        raise InputError(
            f"the server at {address} has no studio: start it with --studio, or name another port with --port"
        )
    return about


def require_same(about: dict[str, Any], address: str, settings: Settings, flags: list[str]) -> None:
    """Compare a running server with the command line.

    A server that requires tokens does not name its data; it is accepted, with a note.

    Raises:
        InputError: the server holds other data, or flags would have no effect.
    """
    running, wanted = about.get("data"), str(settings.data.resolved())
    if running not in (None, wanted):
        raise InputError(
            f"a server with the data of {running} runs at {address}, and you asked for {wanted}: choose another port"
            f" with --port, or open that one with --data {shlex.quote(running)}"
        )
    if flags:
        raise InputError(
            f"a server runs at {address} already, and {', '.join(flags)} would have no effect on it: choose another"
            " port with --port, or stop that server first"
        )
    if running is None:
        complain(f"the server at {address} does not say whether it holds the data of {wanted}")


@command(
    app,
    "user data",
    "mindstream studio export --talk monday --user ann --out monday.html",
    "mindstream studio export --plan 8f3a91c2d4 --with-calls --out task.html",
    "mindstream studio export --talk evening --user ann --recorded --out talk.html",
    "mindstream studio export --town ./ville --out ville.html",
    'mindstream studio export --town ./ville --from "Feb 14 16:00" --to "Feb 14 20:00" --out party.html',
    notes=NOTES,
)
def export(
    settings: Settings,
    out: Annotated[Path, flag("FILE", "The HTML file to write; an earlier saved page is replaced.")],
    talk: Annotated[str, flag("SESSION", "Save this conversation; `memory sessions` lists them.")] = "",
    plan: Annotated[str, flag("RUN", "Save this run and all others of its task; `solve --list` lists them.")] = "",
    with_calls: Annotated[
        bool, switch("--with-calls", "Include the model calls, with their texts if they are stored.")
    ] = False,
    recorded: Annotated[bool, switch("--recorded", "Read the shipped recordings instead of your data.")] = False,
    town: Annotated[Path | None, flag("DIR", "Save the town whose data is in this folder.")] = None,
    since: Annotated[str, flag("TIME", "With --town: save from this time in the town on.", "--from")] = "",
    until: Annotated[str, flag("TIME", "With --town: save up to this time in the town.", "--to")] = "",
    json: AsJson = False,
) -> None:
    """Save a conversation, a plan or a town as one HTML file that needs no network."""
    if sum(map(bool, (talk, plan, town))) != 1:
        raise InputError("give exactly one of --talk SESSION, --plan RUN and --town DIR")
    if town is None and (since or until):
        raise InputError("--from and --to need --town: conversations and tasks are saved in full")
    if town is None:
        write_studio_page(settings, out, talk, plan, with_calls, recorded, json)
        return
    if with_calls or recorded:
        raise InputError("--with-calls and --recorded need --talk or --plan")
    from mindstream_town.commands.saves import write_page

    from mindstream.settings import choose

    write_page(choose({"data": town}).settings, out, since, until, json)


def write_studio_page(
    settings: Settings, out: Path, talk: str, plan: str, with_calls: bool, recorded: bool, json: bool
) -> None:
    """Save a conversation (`talk`) or a task's runs (`plan`) as an HTML file.

    Args:
        with_calls: whether the file contains the model calls. recorded: whether to read the shipped recordings.
    """
    from mindstream.server import require_server

    require_server()
    from mindstream_studio.recorded import build_studio_page, open_reading, save_plan, save_talk, write_saved_page

    async def run() -> int:
        async with open_reading(settings, recorded=recorded) as reading:
            make, named = (save_talk, talk) if talk else (save_plan, plan)
            saved = await make(reading, named, with_calls=with_calls)
            write_saved_page(out, build_studio_page(reading, saved))
        return len(saved.calls)

    with progress(f"writing {out}"):
        calls = asyncio.run(run())
    if with_calls and not calls:
        complain(f"the log has no model calls of this {'conversation' if talk else 'task'}")
    size = out.stat().st_size
    told = f"{out}: open it in a browser ({size} bytes; it needs no network)"
    tell(json, {"out": str(out), "bytes": size}, told)
