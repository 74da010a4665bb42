"""`mindstream memory curve`: what forgetting will do."""

from __future__ import annotations

import asyncio
from pathlib import Path

from mindstream.cli.clean import say
from mindstream.cli.files import open_writer
from mindstream.cli.json_lines import print_json
from mindstream.cli.plot import Axes, plot, svg
from mindstream.service.memory import memory
from mindstream.service.upkeep import Forgetting, Habit, Prediction, predict_forgetting
from mindstream.settings import Settings


def curve(settings: Settings, habit: Habit, file: Path | None, json: bool) -> int:
    """Print the predicted forgetting curve, and draw it."""

    async def foretold() -> Prediction:
        async with memory(settings) as opened:
            return await predict_forgetting(opened, habit)

    found = asyncio.run(foretold())
    title = f"What {settings.user} will still hold of what is not returned any more"
    if file:
        with open_writer(file) as write:
            curves = {_name(each): _shares(each) for each in found.levels}
            for line in svg(curves, Axes(habit.days), title).splitlines():
                write(line)
    if json:
        for each in found.levels:
            points = [{"day": point.day, "kept": round(point.kept, 4)} for point in each.points]
            print_json({"level": each.level, "lasting": each.lasting, "records": each.records, "points": points})
        return 0
    say(f"{title}, by days since it was last returned\n")
    say("\n".join(plot({str(each.level): _shares(each) for each in reversed(found.levels)}, Axes(habit.days))))
    say(f"\nEach sleep draws a record with a chance of {found.drawn:.0%}; {habit.sleeps:g} a day.")
    for each in found.levels:
        say(f"  {_name(each):16} {each.records:5,} records now; after {habit.days} days {each.points[-1].kept:.0%}")
    if file:
        say(f"the picture is in {file}")
    return 0


def _name(each: Forgetting) -> str:
    return f"{each.level} (lasting)" if each.lasting else f"level {each.level}"


def _shares(each: Forgetting) -> list[float]:
    return [point.kept for point in each.points]
