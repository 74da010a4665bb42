"""What somebody does with the rest of a day of which a person has lived a part."""

from __future__ import annotations

from mindstream.town.events import Block, TasksPlanned
from mindstream.town.prompts.plan_rest import PlanRest
from mindstream.town.residents.places import known_places, words_of
from mindstream.town.residents.plan import Stretch, fill
from mindstream.town.residents.turn import ResidentTurn
from mindstream.town.world.hours import DAY_MINUTES, clock, minute_of

DONE = 12
"""So much of what was done last is shown."""


async def plan_rest(turn: ResidentTurn) -> None:
    """Plan what is left of the day; where nothing is to change, and without a model, the plan stays."""
    minute, state = turn.setting.minute(turn.step), turn.state
    ahead = [each for each in state.blocks if each.end > minute]
    known = known_places(turn.setting, turn.person, state.knows, turn.setting.when(turn.step))
    await turn.resident.written()
    newest = await turn.resident.memory.latest("observation", DONE)
    reply = await turn.ask(
        PlanRest(
            who=turn.name,
            identity=turn.identity,
            when=turn.date_and_time,
            done=tuple(each.text for each in newest),
            planned=tuple(map(_line, ahead)),
            places=tuple(place for _, place in known),
        )
    )
    asleep = next((each.start for each in ahead if each.asleep and each.start > minute), DAY_MINUTES)
    items = list[Stretch]()
    for item in reply.items:
        start = minute_of(item.start)
        place = known[item.place - 1][0] if 0 < item.place <= len(known) else turn.person.home
        if minute < start + item.minutes and start < asleep:
            items.append(Stretch(start, start + item.minutes, item.what, place))
    if items:
        blocks = [each for each in fill(turn, items, minute, asleep) if each.minutes > 0]
        turn.write(TasksPlanned(step=turn.step, blocks=tuple(blocks)))


def _line(block: Block) -> str:
    where = f" ({words_of(block.place)})" if block.place else ""
    return f"{clock(block.start % DAY_MINUTES)} {block.what}{where}"
