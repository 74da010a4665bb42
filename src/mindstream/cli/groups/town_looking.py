"""`mindstream town`: commands that look at what happened; none of them leaves a trace in the town."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from mindstream.cli.flags import AsJson, Embedder, TownData, town_settings
from mindstream.cli.groups.town import Model, Role
from mindstream.cli.groups.town_files import town

__all__ = ["town"]

Name = Annotated[str, typer.Argument(metavar="NAME", help="A resident; the first name is enough.")]
At = Annotated[str, typer.Option("--at", metavar="TIME", help='When: "Feb 13 10:00", "day 2", "yesterday 10am" [now].')]
From = Annotated[str, typer.Option("--from", metavar="TIME", help="Only since then.")]
To = Annotated[str, typer.Option("--to", metavar="TIME", help="Only until then.")]


@town.command(
    epilog="\b\nExamples:\n  mindstream town status --data ./ville\n"
    '  mindstream town status --data ./ville --resident isabella --at "Feb 13 10:00"'
)
def status(
    resident: Annotated[str, typer.Option(metavar="NAME", help="One resident's mind: plan, newest memories.")] = "",
    at: At = "",
    limit: Annotated[int, typer.Option("-n", min=0, max=1_000, metavar="N", help="How many memories are shown.")] = 10,
    data: TownData = None,
    json: AsJson = False,
) -> int:
    """Say what time it is, who is where and does what.

    At home, out, on the way to another room, talking or asleep is told by where they are, not by what they do there.
    What is not as it should be is said, too.
    """
    from mindstream.cli import town_looking

    if resident:
        return town_looking.show_mind(town_settings(data=data), resident, at, limit, json)
    return town_looking.show_status(town_settings(data=data), at, json)


@town.command(
    epilog="\b\nExamples:\n  mindstream town places --data ./ville\n  mindstream town places cafe --data ./ville --json"
)
def places(
    place: Annotated[str, typer.Argument(metavar="PLACE", help="Only this place; the end of its address.")] = "",
    at: At = "",
    data: TownData = None,
    json: AsJson = False,
) -> int:
    """List places, what is in them, and who is there."""
    from mindstream.cli import town_places

    return town_places.show_places(town_settings(data=data), place, at, json)


@town.command(epilog='\b\nExample:\n  mindstream town why "John Lin" --at "Feb 13 08:10" --data ./ville')
def why(name: Name, at: At = "", data: TownData = None, json: AsJson = False) -> int:
    """Say why somebody does what they do.

    What they saw, what came to mind, what they decided and had planned.
    """
    from mindstream.cli import town_looking

    return town_looking.explain(town_settings(data=data), name, at, json)


@town.command(epilog='\b\nExample:\n  mindstream town timeline "John Lin" --to "Feb 13 12:00" --data ./ville')
def timeline(
    name: Name,
    since: From = "",
    until: To = "",
    about: Annotated[str, typer.Option(metavar="WORDS", help="Only what names this.")] = "",
    full: Annotated[bool, typer.Option("--full", help="Each act by itself, and every word.")] = False,
    data: TownData = None,
    json: AsJson = False,
) -> int:
    """Tell what somebody did, said and thought, day by day.

    What belongs together is one line. A --to without a day is of the day of --from.
    """
    from mindstream.cli import town_looking

    asked = town_looking.Stretch(since, until, about, full)
    return town_looking.show_timeline(town_settings(data=data), name, asked, json)


@town.command(
    epilog='\b\nExamples:\n  mindstream town interview isabella "What are you planning?" --data ./ville\n'
    '  mindstream town interview sam "Who are you?" --at "Feb 13 12:00" --condition no_reflection'
)
def interview(
    name: Name,
    question: Annotated[str, typer.Argument(metavar="QUESTION", help="What is asked.")],
    at: At = "",
    condition: Annotated[
        Literal["full", "no_reflection", "no_reflection_no_plan", "none"],
        typer.Option(
            help="Which memory the resident may use: all, no thoughts, no plans either, or only the description.",
            show_default=True,
        ),
    ] = "full",
    model: Model = None,
    role: Role = None,
    data: TownData = None,
    embedder: Embedder = None,
    json: AsJson = False,
) -> int:
    """Ask somebody something, at any time of their life.

    They do not remember it afterwards.
    """
    from mindstream.cli import town_looking

    chosen = town_settings(data=data, model=model, roles=role, embedder=embedder)
    return town_looking.interview(chosen, name, question, at, condition, json)


@town.command(
    epilog="\b\nExamples:\n  mindstream town metrics --data ./ville\n"
    '  mindstream town metrics --data ./ville --fact "there is a Valentine\'s Day party at Hobbs Cafe" \\\n'
    '      --event "Hobbs Cafe" --from "Feb 14 17:00" --to "Feb 14 19:00" --plot ./plots'
)
def metrics(
    fact: Annotated[
        list[str] | None,
        typer.Option(
            metavar="WORDS", help="Who knows this, since when, from whom; other wordings after |; repeatable."
        ),
    ] = None,
    event: Annotated[
        str,
        typer.Option(
            metavar="PLACE",
            help="A place: who was there between --from and --to, and who of them knew the first --fact.",
        ),
    ] = "",
    since: Annotated[str, typer.Option("--from", metavar="TIME", help="When the event begins.")] = "",
    until: Annotated[str, typer.Option("--to", metavar="TIME", help="When it ends.")] = "",
    at: At = "",
    odd: Annotated[
        bool, typer.Option("--odd", help="Also list acts at a place that was closed, or not theirs.")
    ] = False,
    csv: Annotated[Path | None, typer.Option(metavar="DIR", help="Also as tables, into this folder.")] = None,
    plot: Annotated[Path | None, typer.Option(metavar="DIR", help="Also as curves (SVG), into this folder.")] = None,
    data: TownData = None,
    json: AsJson = False,
) -> int:
    """Count what happened: talks, reflections, who knows what.

    Who knows whom, who keeps to plans, and what was done where or when one may not.
    """
    from mindstream.cli import town_metrics

    asked = town_metrics.Asked(tuple(fact or ()), event, since, until, at, odd, csv, plot)
    return town_metrics.show(town_settings(data=data), asked, json)


@town.command(
    epilog="\b\nExamples:\n  mindstream town replay --data ./ville\n"
    '  mindstream town replay --data ./ville --from "Feb 14 16:00" --to "Feb 14 20:00" --out party.html'
)
def replay(
    out: Annotated[
        Path, typer.Option(metavar="FILE", help="The page that is written, in the place of an older one.")
    ] = Path("replay.html"),
    since: Annotated[str, typer.Option("--from", metavar="TIME", help="Where it begins.")] = "",
    until: Annotated[str, typer.Option("--to", metavar="TIME", help="Where it ends.")] = "",
    data: TownData = None,
    json: AsJson = False,
) -> int:
    """Write a web page that plays what happened.

    One HTML file: the map, the residents, their minds; it needs no network and no key.
    """
    from mindstream.cli import town_files

    return town_files.replay(town_settings(data=data), out, since, until, json)
