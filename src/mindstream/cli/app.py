"""The commands and their flags; what they do is in the modules that they import when they run."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

import typer

import mindstream as package
from mindstream.cli.flags import (
    MOST,
    STYLE,
    AsJson,
    Data,
    Embedder,
    Fallback,
    OneUser,
    Patience,
    PoolName,
    User,
    choose,
    settings,
)
from mindstream.cli.groups.gate import gate
from mindstream.cli.groups.life import life
from mindstream.cli.groups.living import EPILOG as LIVING
from mindstream.cli.groups.living import live
from mindstream.cli.groups.memory import memory
from mindstream.cli.groups.mind import mind
from mindstream.cli.groups.model import model
from mindstream.cli.groups.pack import pack
from mindstream.cli.groups.plan import plan
from mindstream.cli.groups.pool import pool
from mindstream.cli.groups.pool_experiment import EPILOG as STUDIES
from mindstream.cli.groups.pool_experiment import experiment
from mindstream.cli.groups.prompts import prompts
from mindstream.cli.groups.solving import EPILOG, solve
from mindstream.cli.groups.town_looking import town

By = Literal["day", "user", "role", "model"]

EXAMPLES = """\b
Examples:
  mindstream chat                          rules answer until you name a model
  mindstream chat --model ollama:qwen3     a model on your own machine
  echo "I sleep badly" | mindstream chat   one utterance a line
  mindstream memory search what disturbs the sleep
  mindstream solve "17.5% of 2480"         tools, by a plan
  mindstream live --goal "…" --docs DIR    a goal, turn by turn
  mindstream town new --data ./ville       a town of residents
  mindstream doctor                        what is missing, how to mend it

Settings come from flags, from the environment (MINDSTREAM_DATA,
MINDSTREAM_MODEL, …), and from one TOML file (the one that --settings names,
else ~/.config/mindstream/settings.toml), in that order. Nothing that lies in
the working directory is read unless you name it."""

app = typer.Typer(
    rich_markup_mode=None, pretty_exceptions_enable=False, add_completion=False, context_settings=STYLE,
    epilog=EXAMPLES,
)  # fmt: skip
app.add_typer(memory, name="memory")
app.add_typer(mind, name="mind")
app.add_typer(model, name="model")
app.add_typer(gate, name="gate")
app.add_typer(prompts, name="prompts")
app.add_typer(pack, name="pack")
app.add_typer(plan, name="plan")
pool.command(epilog=STUDIES)(experiment)
app.add_typer(pool, name="pool")
app.add_typer(life, name="life")
app.add_typer(town, name="town")


def _print_version(wanted: bool) -> None:
    if wanted:
        print(f"mindstream {package.__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def mindstream(
    context: typer.Context,
    version: Annotated[  # noqa: ARG001
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show tracebacks.")] = False,  # noqa: ARG001 (see edge)
    settings: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="The settings file [~/.config/mindstream/settings.toml]."),
    ] = None,
) -> None:
    """A mind that answers at once and thinks behind, with a memory that lasts.

    --debug and --settings may stand anywhere in a command.
    """
    if settings is not None:
        os.environ["MINDSTREAM_SETTINGS"] = str(settings)  # the flag is the variable, for this process
    if context.invoked_subcommand is None:
        print(context.get_help())


@app.command(
    epilog="""Without a terminal one utterance a line is read from standard input, the
next one after the answer and all thinking. `mindstream demo` plays a
recorded talk with a model.

Exit code: 0; 1 where a line could not be taken; 2 where the conversation
could not be held; 130 after Ctrl-C, 143 after SIGTERM.

\b
Models:
  rules  local  gguf:FILE
  openai:NAME  anthropic:NAME  google:NAME  ollama:NAME
  http://host:port/v1#NAME (any OpenAI-compatible endpoint)
  playback:FILE (what --record kept)

\b
Examples:
  mindstream chat --model openai:gpt-5-mini
  mindstream chat --role talker=ollama:qwen3 reasoner=openai:gpt-5
  mindstream chat --user ann --session monday
  mindstream chat --json < utterances.txt"""
)
def chat(
    more_roles: Annotated[list[str] | None, typer.Argument(hidden=True, metavar="ROLE=NAME")] = None,
    pack: Annotated[
        str | None,
        typer.Option(
            metavar="PACK", help="A shipped pack by name, or a folder of your own by its path, as ./mine [sleep]."
        ),
    ] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="Who answers, in all roles [rules].")] = None,
    role: Annotated[
        list[str] | None,
        typer.Option(
            metavar="ROLE=NAME",
            help="Who answers in one role: talker, reasoner, facts, safety (listens for danger); repeatable.",
        ),
    ] = None,
    fallback: Fallback = None,
    patience: Patience = None,
    data: Data = None,
    user: User = None,
    session: Annotated[
        str | None, typer.Option(metavar="NAME", help="The conversation to go on with [a new one]; memory spans all.")
    ] = None,
    gate: Annotated[
        str | None,
        typer.Option(
            metavar="GATE", help="When the talker waits for the reasoner: talker or belief [talker with a model]."
        ),
    ] = None,
    deadline: Annotated[
        float | None, typer.Option(metavar="S", help="How long it waits at most, in seconds [30].")
    ] = None,
    no_wait: Annotated[
        bool, typer.Option("--no-wait", help="Without a terminal: read all lines at once; answers come in order.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="One event a line, as JSON; nothing else on standard output.")
    ] = False,
    prompts: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Your own words for prompts: DIR/talk.md, …")
    ] = None,
    embedder: Embedder = None,
    pool: PoolName = "",
    record: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep every call of a model, for playback:FILE.")
    ] = None,
    budget_tokens: Annotated[
        int | None, typer.Option(metavar="N", help="Stop asking models after so many tokens.")
    ] = None,
    budget_usd: Annotated[
        float | None, typer.Option(metavar="X", help="Stop asking models after so many US dollars.")
    ] = None,
) -> int:
    """Talk: it answers at once, thinks behind, remembers.

    A talker answers from memory; reasoners think about what was said, and write beliefs and a plan back.
    """
    from mindstream.cli.chat import chat
    from mindstream.cli.conversation import Wishes

    chosen = choose(
        {
            "pack": pack, "model": model, "roles": [*(role or []), *(more_roles or [])], "data": data, "user": user,
            "fallback": fallback, "patience_s": patience, "gate": gate, "deadline_s": deadline,
            "prompts": prompts, "embedder": embedder, "budget_tokens": budget_tokens, "budget_usd": budget_usd,
        }
    )  # fmt: skip
    return chat(chosen.settings, Wishes(session, not no_wait, json, record, pool))


@app.command(
    epilog="""Each is a log that was recorded with a language model, and says so.

\b
Examples:
  mindstream demo
  mindstream demo town --speed 3
  mindstream demo coach --json"""
)
def demo(
    name: Annotated[
        Literal["coach", "plan", "life", "town", "pool"], typer.Argument(metavar="[NAME]", help="Which one.")
    ] = "coach",
    speed: Annotated[
        float | None,
        typer.Option(min=0.01, max=1000, metavar="X", help="So many times as fast [1; at once where nobody watches]."),
    ] = None,
    json: AsJson = False,
    talk: Annotated[bool, typer.Option("--talk", help="Then go on with you; Ctrl-C skips the recording.")] = False,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="With --talk: as for chat.")] = None,
    pack: Annotated[str | None, typer.Option(metavar="PACK", help="With --talk: as for chat.")] = None,
    data: Data = None,
    user: User = None,
) -> int:
    """Play a recording of the coach, a plan, a life, a town or a pool.

    No model is asked, no key is needed, and nothing of yours is touched.
    """
    from mindstream.cli.demo import demo
    from mindstream.cli.first_sight import first_sight

    if not talk:
        return demo(name, speed, json)
    return first_sight(choose({"model": model, "pack": pack, "data": data, "user": user}).settings, name, speed)


app.command(epilog=EPILOG)(solve)
app.command(epilog=LIVING)(live)


@app.command(epilog="\b\nExamples:\n  mindstream log -n 20\n  mindstream log --follow --all --json")
def log(
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as it grows, until Ctrl-C.")] = False,
    after: Annotated[int, typer.Option(min=0, max=2**53, metavar="SEQ", help="Only what comes after that row.")] = 0,
    limit: Annotated[
        int | None, typer.Option("--limit", "-n", min=1, max=MOST, metavar="N", help="Only the last N rows.")
    ] = None,
    all_users: Annotated[bool, typer.Option("--all", help="Of all users.")] = False,
    data: Data = None,
    user: User = None,
    json: AsJson = False,
) -> int:
    """Print the log: everything that happened to a mind, numbered."""
    from mindstream.cli.log import print_log

    return print_log(settings(data, user), follow, after, limit, all_users, json)


@app.command(epilog="\b\nExamples:\n  mindstream cost\n  mindstream cost --by model --user ann")
def cost(
    by: Annotated[By | None, typer.Option(help="Add up by this alone [day, user and role].")] = None,
    data: Data = None,
    user: OneUser = None,
    json: AsJson = False,
) -> int:
    """Say what calls of models came to: tokens, seconds, US dollars.

    From the log. Prices are those that were known at the time of the call; a call without one is said to have none.
    Days are those of UTC. Seconds are counted call by call, though calls may run side by side.
    """
    from mindstream.cli.cost import cost

    return cost(settings(data, user), user, by, json)


@app.command(epilog="\b\nExample:\n  mindstream doctor --model openai:gpt-5-mini")
def doctor(
    pack: Annotated[str | None, typer.Option(metavar="PACK", help="As for chat.")] = None,
    model: Annotated[str | None, typer.Option(metavar="NAME", help="As for chat.")] = None,
    role: Annotated[list[str] | None, typer.Option(metavar="ROLE=NAME", help="As for chat.")] = None,
    more_roles: Annotated[list[str] | None, typer.Argument(hidden=True, metavar="ROLE=NAME")] = None,
    prompts: Annotated[Path | None, typer.Option(metavar="DIR", help="As for chat.")] = None,
    data: Data = None,
    user: User = None,
    embedder: Embedder = None,
    context: Annotated[
        int | None, typer.Option(min=512, metavar="N", help="Also: which prompts fit into a window of N tokens.")
    ] = None,
    mend: Annotated[
        bool, typer.Option("--mend", help="First write the memory anew from all that can be read; keeps a copy.")
    ] = False,
    json: AsJson = False,
) -> int:
    """Say what is configured, reachable, missing, and how to mend it.

    Exit code 1 where something is broken.
    """
    from mindstream.cli.doctor import doctor

    flags = {"pack": pack, "model": model, "roles": [*(role or []), *(more_roles or [])], "prompts": prompts}
    return doctor(choose({**flags, "data": data, "user": user, "embedder": embedder}), json, context, mend)


@app.command(epilog="\b\nExample:\n  mindstream packs --json")
def packs(json: AsJson = False) -> int:
    """List the packs that come with mindstream."""
    from mindstream.cli.packs import show

    return show(json)
