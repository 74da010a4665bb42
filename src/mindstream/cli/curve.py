"""`mindstream memory curve`: what forgetting will do."""

from __future__ import annotations

from typing import Annotated

from mindstream.cli.clean import say
from mindstream.cli.files import write_text
from mindstream.cli.flags import MOST, AsJson, Svg, command, flag
from mindstream.cli.json_lines import print_json
from mindstream.cli.memory import app
from mindstream.cli.plot import Axes, picture, plot
from mindstream.service.memory import memory
from mindstream.service.upkeep import Forgetting, Habit, predict_forgetting
from mindstream.settings import Settings


@command(app, "data user", "mindstream memory curve --days 180 --svg curve.svg")
async def curve(
    settings: Settings,
    days: Annotated[int, flag("N", "How far.", min=1, max=3650)] = 90,
    sleeps: Annotated[float, flag("X", "Sleeps a day.", min=0, max=24)] = 1.0,
    n: Annotated[int, flag("N", "How many records a sleep draws.", "-n", min=0, max=MOST)] = 20,
    passed_over: Annotated[
        float, flag("X", "How often a day a record comes up while others are returned.", min=0, max=1000)
    ] = 0.0,
    file: Svg = None,
    json: AsJson = False,
) -> None:
    """Show how what is not returned any more will be forgotten.

    By the laws of docs/memory.md, for each level at which a record can be held, and by how many records a sleep can
    draw from this memory.
    """
    async with memory(settings, known=True) as opened:
        drawn, levels = await predict_forgetting(opened, Habit(days, sleeps, n, passed_over))
    title = f"What {settings.user} will still hold of what is not returned any more"
    if file:
        write_text(file, picture({title: ({_name(each): _shares(each) for each in levels}, Axes(days))}))
    if json:
        for each in levels:
            points = [{"day": point.day, "kept": round(point.kept, 4)} for point in each.points]
            print_json({"level": each.level, "lasting": each.lasting, "records": each.records, "points": points})
        return
    say(f"{title}, by days since it was last returned\n")
    say("\n".join(plot({str(each.level): _shares(each) for each in reversed(levels)}, Axes(days))))
    say(f"\nEach sleep draws a record with a chance of {drawn:.0%}; {sleeps:g} a day.")
    for each in levels:
        say(f"  {_name(each):16} {each.records:5,} records now; after {days} days {each.points[-1].kept:.0%}")
    if file:
        say(f"the picture is in {file}")


def _name(each: Forgetting) -> str:
    return f"{each.level} (lasting)" if each.lasting else f"level {each.level}"


def _shares(each: Forgetting) -> list[float]:
    return [point.kept for point in each.points]
