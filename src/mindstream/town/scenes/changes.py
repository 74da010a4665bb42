"""What a talk overtakes of the rest of a day: a part that is done, pointless or other by now becomes another one."""

from __future__ import annotations

from collections.abc import Mapping

from mindstream.town.events import Block, TasksPlanned
from mindstream.town.prompts.scenes.talk_scene import SceneChange
from mindstream.town.residents.places import known_places
from mindstream.town.residents.turn import ResidentTurn
from mindstream.town.scenes.naming import by_words, find_place
from mindstream.town.world.hours import DAY_MINUTES, clock

SHOWN, LONGEST = 8, 80
"""So many parts of a day are shown at most, and so many characters of each."""
WORTH = 5
"""What ends within so many minutes is not shown any more."""


def rest_of_day(turn: ResidentTurn) -> tuple[Block, ...]:
    """Return what somebody has before it today, what it is at first; sleep, and what was seen and is seen to, aside."""
    minute = turn.setting.minute(turn.step)
    ahead = (each for each in turn.state.blocks if each.end > minute + WORTH and each.why == "plan")
    return tuple(each for each in ahead if not each.asleep)[:SHOWN] if turn.lives_in_scenes else ()


def line_of(block: Block) -> str:
    """Say a part of a day: `16:00 fetching water`."""
    return f"{clock(block.start % DAY_MINUTES)} {block.what[:LONGEST]}"


def change_day(turn: ResidentTurn, changes: Mapping[int, SceneChange], blocks: Mapping[int, Block], why: str) -> None:
    """Let parts of a day become others, each in its hours.

    Args:
        changes: by the number under which a part was shown. blocks: the parts, by that number.
        why: what was heard.
    """
    minute, setting = turn.setting.minute(turn.step), turn.setting
    named = by_words(
        [address for address, _ in known_places(setting, turn.person, turn.state.knows, setting.when(turn.step))]
    )
    for number, change in changes.items():
        block = blocks.get(number)
        if block is None or change.becomes.strip() == block.what:
            continue
        start = max(block.start, minute)
        new = Block(
            start=start,
            minutes=block.end - start,
            what=change.becomes.strip(),
            fine=True,
            place=_place(turn, change.place, block.place, named),
        )
        turn.write(TasksPlanned(step=turn.step, blocks=(new,), because=why[:300]))


def _place(turn: ResidentTurn, said: str, before: str, named: Mapping[str, str]) -> str:
    """Return where a part is now: where it was where nothing is said, at home where no such place is known."""
    place = find_place(said, named) if said.strip() else before
    return before if f"{before}:".startswith(f"{place}:") and place else place or turn.person.home
