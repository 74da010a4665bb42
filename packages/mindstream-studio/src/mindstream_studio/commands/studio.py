"""`mindstream studio`: the server with its pages, and a browser that shows them; pages that are saved to a file."""

from __future__ import annotations

import asyncio
import urllib.error
import urllib.request
import webbrowser
from pathlib import Path
from typing import Annotated

import typer

from mindstream.cli.shell.flags import PLAIN, AsJson, Docs, Mcp, bare, command, flag, split_names, switch
from mindstream.cli.shell.output import complain, progress, say, tell, warn_if_unpriced
from mindstream.errors import InputError
from mindstream.settings import Settings

app = typer.Typer(**PLAIN)
NOTES = """A talk is saved with all that came of it: lines, thoughts, calls of tools, what was believed and planned from
the beginning, and why. Nothing goes with it that was said in other talks, or recalled from them; --with-calls adds what
models were asked and answered, word by word where that is kept, and that may hold anything."""


@bare(
    app,
    "model roles fallback patience_s data pack gate timezone deadline_s prompts embedder"
    " budget_calls budget_tokens budget_usd",
    "mindstream studio",
    "mindstream studio --model openai:gpt-5-mini --town ville=./ville",
    "mindstream studio export --town ./ville --out ville.html",
    model="Who answers, in all roles [rules].",
)
def studio(
    context: typer.Context,
    settings: Settings,
    port: Annotated[int, flag("N", "The server's port; 0 takes one that is free.", min=0, max=65_535)] = 8377,
    tools: Annotated[str, flag("A,B", "Tools that plans may call, as for solve.")] = "calculator,recall",
    docs: Docs = None,
    mcp: Mcp = None,
    town: Annotated[list[str] | None, flag("NAME=DIR", "A town that is offered; repeatable.")] = None,
    no_open: Annotated[bool, switch("--no-open", "Only say where the page is.")] = False,
) -> None:
    """Open the studio in a browser; the server is started if none answers.

    Where a server with the studio answers on that port already, its page is opened, and nothing is started. Nothing is
    asked of any other machine, but of the models that you name. What they are asked and answer while it runs is kept in
    the log, word by word (keep_prompts), so that the page Traces can show it.
    """
    if context.invoked_subcommand is not None:
        return
    from mindstream.server.asgi import require_server

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
    from mindstream_studio.recorded import add_recorded
    from mindstream_studio.serve import add_studio

    warn_if_unpriced(settings)
    settings = settings.model_copy(update={"keep_prompts": True})
    offered = Offered(split_names([tools]) or (), tuple(docs or ()), tuple(mcp or ()), read_towns(town or ()))
    doors = make(settings.data, settings=settings, offered=offered)
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
    out: Annotated[Path, flag("FILE", "The page that is written, in the place of an older one.")],
    talk: Annotated[str, flag("SESSION", "A talk; `memory sessions` lists them.")] = "",
    plan: Annotated[str, flag("RUN", "A run with all others of its task; `solve --list` lists them.")] = "",
    with_calls: Annotated[bool, switch("--with-calls", "With the calls of models behind it.")] = False,
    recorded: Annotated[bool, switch("--recorded", "Of the recordings that ship.")] = False,
    town: Annotated[Path | None, flag("DIR", "The folder of a town.")] = None,
    since: Annotated[str, flag("TIME", "Where a town begins.", "--from")] = "",
    until: Annotated[str, flag("TIME", "Where it ends.", "--to")] = "",
    json: AsJson = False,
) -> None:
    """Save a talk, a plan or a town as one HTML file, for a colleague: it needs no network, and asks nobody."""
    if sum(map(bool, (talk, plan, town))) != 1:
        raise InputError("say what is saved: --talk SESSION, --plan RUN or --town DIR, one of them")
    if town is None and (since or until):
        raise InputError("--from and --to are for a town: a talk and a task are saved whole")
    if town is None:
        write_studio_page(settings, out, talk, plan, with_calls, recorded, json)
        return
    if with_calls or recorded:
        raise InputError("--with-calls and --recorded are for a talk or a plan")
    from mindstream_town.commands.saves import write_page

    from mindstream.settings import choose

    write_page(choose({"data": town}).settings, out, since, until, json)


def write_studio_page(
    settings: Settings, out: Path, talk: str, plan: str, with_calls: bool, recorded: bool, json: bool
) -> None:
    """Write a talk or a plan to a file."""
    from mindstream.server.asgi import require_server

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
        complain("no call of a model is in the log of it")
    size = out.stat().st_size
    told = f"{out} shows it: open it in a browser ({size} bytes; it needs no network)"
    tell(json, {"out": str(out), "bytes": size}, told)
