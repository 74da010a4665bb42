"""`mindstream town`: a town begins, lives, is changed from outside, comes from files and goes into them."""

from __future__ import annotations

from typing import Annotated

import typer

from mindstream.cli.flags import AsJson, Embedder, Fallback, Patience, TownData, Yes, group, town_settings
from mindstream.cli.flags_solving import split_names
from mindstream.cli.groups.hints import TownGroup

town = group(
    "A town of residents who perceive, remember, plan, talk and reflect: let one live, look into it.\n\n"
    "A town is a data folder. Rules think for its residents until you name a model. "
    "Begin with new, then run, then status.",
    TownGroup,
)

Seed = Annotated[
    int,
    typer.Option(
        "--seed", metavar="N", help="Start of the random numbers; the same seed gives the same days.", show_default=True
    ),
]
ProfileOf = Annotated[
    list[str] | None,
    typer.Option(
        "--profile",
        metavar="KEY=VALUE",
        help="Change a constant, as vision=4; compat: behave as the published code; repeatable.",
    ),
]
Model = Annotated[
    str | None, typer.Option("--model", metavar="NAME", help="The model that thinks for the residents [rules].")
]
Role = Annotated[
    list[str] | None,
    typer.Option(
        "--role", metavar="ROLE=NAME",
        help="Who thinks in one role: planner, decider, talker, reasoner, importance; repeatable.",
    ),
]  # fmt: skip
Days = Annotated[
    float | None, typer.Option(min=0, max=36_500, metavar="D", help="Live so many days of the town's time.")
]
Hours = Annotated[float | None, typer.Option(min=0, max=876_000, metavar="H", help="Live so many hours.")]
Until = Annotated[str, typer.Option(metavar="TIME", help='Up to a time of the town: "Feb 14 19:00", "tomorrow noon".')]
Steps = Annotated[
    int | None,
    typer.Option(
        min=0,
        max=2**40,
        metavar="N",
        help="Live so many steps (10 seconds each, where the town does not say otherwise).",
    ),
]
Usd = Annotated[float | None, typer.Option(min=0, metavar="X", help="Stop when this run has cost so many US dollars.")]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Tell what happens, a line each.")]

LIMITS = """With a model, the cost is estimated first, and you are asked (--yes: you are
not). After Ctrl-C, a model that fails or a limit, all steps that are done are
kept; the one that was broken off is lived again next time.

Exit code: 0; 1 where a model failed or nothing more may be spent; 2 a mistake;
130 after Ctrl-C.

"""


@town.command(
    epilog="\b\nExamples:\n  mindstream town new --data ./ville\n"
    "  mindstream town new ./mine.toml --data ./mine --seed 7 --profile vision=4\n"
    "  mindstream town new --data ./blind --without observation,reflection"
)
def new(
    source: Annotated[
        str, typer.Argument(metavar="TOWN", help="A shipped town, or FILE.toml.", show_default=True)
    ] = "smallville",
    seed: Seed = 0,
    profile: ProfileOf = None,
    without: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", help="Switch off: observation, reflection, planning, recall, talk."),
    ] = None,
    data: TownData = None,
    embedder: Embedder = None,
    json: AsJson = False,
) -> int:
    """Begin a town in a data folder."""
    from mindstream.cli import town as commands

    chosen = town_settings(data=data, embedder=embedder)
    return commands.begin(chosen, source, seed, profile or (), split_names(without) or (), json)


@town.command(
    epilog=LIMITS + "\b\nExamples:\n  mindstream town run --data ./ville --days 2\n"
    '  mindstream town run --data ./ville --until "Feb 14 19:00" -v\n'
    "  mindstream town run --data ./ville --hours 3 --model openai:gpt-5-mini --usd 2"
)
def run(
    days: Days = None,
    hours: Hours = None,
    until: Until = "",
    steps: Steps = None,
    model: Model = None,
    role: Role = None,
    fallback: Fallback = None,
    patience: Patience = None,
    usd: Usd = None,
    yes: Yes = False,
    verbose: Verbose = False,
    data: TownData = None,
    embedder: Embedder = None,
    json: AsJson = False,
) -> int:
    """Let the town live: one day, or as long as you say."""
    from mindstream.cli import town as commands

    chosen = town_settings(
        data=data, model=model, roles=role, fallback=fallback, patience_s=patience, embedder=embedder
    )
    span = commands.Span(days, hours, until, steps)
    return commands.run(chosen, span, commands.Wishes(usd, yes, verbose, json))


@town.command(epilog=LIMITS + "\b\nExample:\n  mindstream town resume --data ./ville")
def resume(
    days: Days = None,
    hours: Hours = None,
    until: Until = "",
    steps: Steps = None,
    model: Model = None,
    role: Role = None,
    fallback: Fallback = None,
    patience: Patience = None,
    usd: Usd = None,
    yes: Yes = False,
    verbose: Verbose = False,
    data: TownData = None,
    embedder: Embedder = None,
    json: AsJson = False,
) -> int:
    """Go on to the end of that day, or as long as you say."""
    from mindstream.cli import town as commands

    chosen = town_settings(
        data=data, model=model, roles=role, fallback=fallback, patience_s=patience, embedder=embedder
    )
    span = commands.Span(days, hours, until, steps, to_midnight=True)
    return commands.run(chosen, span, commands.Wishes(usd, yes, verbose, json))


@town.command(
    epilog="\b\nExamples:\n  mindstream town estimate --data ./ville --days 2 --model openai:gpt-5-mini\n"
    "  mindstream town estimate --data ./ville --hours 6 --json"
)
def estimate(
    days: Days = None,
    hours: Hours = None,
    model: Model = None,
    role: Role = None,
    data: TownData = None,
    json: AsJson = False,
) -> int:
    """Say what a model would cost: calls, tokens, US dollars.

    A first day (or less, if you ask for less) is simulated with rules, nothing of it is kept, and what a model would be
    asked is counted. Rules say less than models do: tokens out are a lower bound.
    """
    from mindstream.cli import town as commands

    chosen = town_settings(data=data, model=model, roles=role)
    return commands.show_estimate(chosen, commands.Span(days, hours), json)


@town.command(
    "set",
    epilog='\b\nExamples:\n  mindstream town set "Isabella Rodriguez\'s apartment:bathroom:shower" leaking\n'
    '  mindstream town set cafe:piano ""        it is as it should be\n'
    '  mindstream town set kitchen:stove "on fire" --danger',
)
def set_(
    place: Annotated[
        str, typer.Argument(metavar="OBJECT", help="As house:room:object; its end is enough where only one fits.")
    ],
    condition: Annotated[
        str, typer.Argument(metavar="CONDITION", help='What is wrong with it, in words; "" puts it right again.')
    ],
    danger: Annotated[
        bool | None,
        typer.Option(
            "--danger/--no-danger",
            help="It wakes who sleeps beside it and comes before everything; else the town's file or a model says.",
        ),
    ] = None,
    data: TownData = None,
    json: AsJson = False,
) -> int:
    """Change an object: who sees it may do something about it."""
    from mindstream.cli import town as commands

    return commands.change_object(town_settings(data=data), place, condition, danger, json)


@town.command(epilog='\b\nExample:\n  mindstream town whisper "Sam Moore" "The lake will be drained on Friday."')
def whisper(
    name: Annotated[str, typer.Argument(metavar="NAME", help="A resident; the first name is enough.")],
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The thought, a whole sentence.")],
    data: TownData = None,
    embedder: Embedder = None,
    json: AsJson = False,
) -> int:
    """Put a thought into somebody's memory.

    They may plan by it, and tell others.
    """
    from mindstream.cli import town as commands

    return commands.whisper(town_settings(data=data, embedder=embedder), name, text, json)


@town.command(
    epilog='\b\nExamples:\n  mindstream town talk isabella "Is there a party?" --by Maya\n'
    "  mindstream town talk isabella --by Maya          typed, until Ctrl-D\n"
    "  mindstream town talk isabella < utterances.txt\n\n"
    "Exit code: 0; 1 where a model failed; 2 a mistake; 130 after Ctrl-C. What was\n"
    "heard is kept in any case, and thought about before the town goes on."
)
def talk(
    name: Annotated[str, typer.Argument(metavar="NAME", help="With whom; the first name is enough.")],
    text: Annotated[
        str | None,
        typer.Argument(metavar="TEXT", help="What you say; without it you type, or pipe, line by line."),
    ] = None,
    by: Annotated[str, typer.Option("--by", metavar="NAME", help="Who you are.", show_default=True)] = "a visitor",
    model: Model = None,
    role: Role = None,
    data: TownData = None,
    embedder: Embedder = None,
    json: AsJson = False,
) -> int:
    """Talk with somebody, while the town stands still.

    The resident answers at once and remembers it. Come again with the same --by before the next run, and the talk goes
    on. What you agree on for today comes into the resident's plan.
    """
    from mindstream.cli import town_talk

    chosen = town_settings(data=data, model=model, roles=role, embedder=embedder)
    return town_talk.talk(chosen, name, text, by, json)
