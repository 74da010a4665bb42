"""What the published code of Park 2023 does where it is not what was meant, for a profile with `compat`.

Each function gives what was meant unless the profile asks for the other. The ranking is in town/residents/ranking.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from mindstream_town.profile import Profile
from mindstream_town.world.tiles import TileWorld
from mindstream_town.world.world import Spot, World

if TYPE_CHECKING:
    from mindstream_town.setting import Setting

LETTERS_A_MINUTE = 240
"""So fast people talk."""
NEVER = 1 << 40
"""A step that does not come."""


def lookup_words(words: Iterable[str], profile: Profile) -> list[str]:
    """Return the keywords to look up. The published code keeps them in lower case, and looks them up as they are."""
    return [word for word in words if not profile.compat or word == word.lower()]


def talk_end(setting: Setting, step: int, lines: Sequence[tuple[str, str]]) -> int:
    """Return the step at which a talk ends that begins at a step: by what is said (who, words).

    The published code counts the names too, and from the next whole minute on.
    """
    if not setting.profile.compat:
        letters = sum(len(text) for _, text in lines)
        return step + math.ceil(letters / LETTERS_A_MINUTE) * setting.profile.a_minute
    letters = sum(len(f"{name}: {text}\n") for name, text in lines)
    minute = -int(-setting.moment(step) // 60)
    end = (minute + math.ceil(letters // 8 / 30)) * 60
    return setting.step_at_moment(end)


def act_end(setting: Setting, day: int, minute: int) -> int:
    """Return the step at which an act ends that is planned until a minute of a day.

    The published code waits for a step whose time of the day is exactly that one, whatever the date.
    """
    step = setting.step_at(day, minute)
    if not setting.profile.compat:
        return step
    for later in range(setting.profile.step_s):
        step = setting.step_at(day + later, minute)
        if setting.moment(step) % 60 == 0 and setting.minute(step) == minute % 1_440:
            return step
    return NEVER


def is_unseen_edge(world: World, spot: Spot, profile: Profile) -> bool:
    """Tell whether a spot is one that nobody ever sees: in the published code the last column and row."""
    return (
        profile.compat and isinstance(world, TileWorld) and (spot[0] == world.width - 1 or spot[1] == world.height - 1)
    )


def sees_idle(profile: Profile) -> bool:
    """Tell whether what is as it should be is a percept ("the bed is idle"): in the published code."""
    return profile.compat


def renews_daily_goals(profile: Profile) -> bool:
    """Tell whether a new day has new broad strokes: in the published code the first day's stay."""
    return not profile.compat
