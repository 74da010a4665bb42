"""Who may get into a scene with whom: by what is seen, and by rules. Nobody is asked for it."""

from __future__ import annotations

from collections.abc import Mapping

from mindstream.town.profile import Profile
from mindstream.town.residents.places import may_use
from mindstream.town.residents.turn import ResidentTurn
from mindstream.town.setting import Setting
from mindstream.town.state import ResidentState
from mindstream.town.world.address import ARENA, SECTOR, sector_of

REST_AT_HOME, REST = 240, 100
"""So many minutes lie between two scenes of two who live together, and of two others."""
AN_HOUR, MOST_AN_HOUR = 60, 2
RESERVED = 2
"""So many calls of a day are kept for its evening."""
TALK_TOKENS = 2_500
"""So much a talk takes at most, about."""
LATEST_HOUR = 23


def may_meet(setting: Setting, step: int, state: ResidentState, other: ResidentState) -> bool:
    """Tell whether a resident and one whom it sees may get into a scene now."""
    if not setting.profile.talks or setting.when(step).hour >= LATEST_HOUR:
        return False
    if not all(is_free(each, setting, step) and _is_guest_or_home(each, setting, step) for each in (state, other)):
        return False
    last = max(state.scenes.get(other.name, -1), other.scenes.get(state.name, -1))
    return last < 0 or step - last >= _rest(setting, state.name, other.name)


def is_free(state: ResidentState, setting: Setting, step: int) -> bool:
    """Tell whether somebody can be spoken to, on the way too: awake, not talking, not bound, with something left."""
    act = state.act
    if act is None or act.asleep or act.why not in ("plan", "wait") or act.busy or state.is_talking(step):
        return False
    minute = setting.profile.a_minute
    lately = [each for each in state.scenes.values() if step - each < AN_HOUR * minute]
    return len(lately) < MOST_AN_HOUR and has_left(state, setting.profile)


def _is_guest_or_home(state: ResidentState, setting: Setting, step: int) -> bool:
    """Tell whether somebody is where it may be, or means to be: who only passes through the rooms of others is not."""
    act, here = state.act, setting.world.address_at(state.spot(step))
    if act is None or act.has_arrived(step) or here.level < SECTOR:
        return act is not None
    return may_use(setting, setting.people[state.name], str(here.upto(min(here.level, ARENA))))


def has_left(state: ResidentState, profile: Profile) -> bool:
    """Tell whether a day's budget has something left for a talk."""
    calls, tokens = state.asked
    return calls < profile.day_calls - RESERVED and tokens < profile.day_tokens - TALK_TOKENS


def _rest(setting: Setting, one: str, other: str) -> int:
    homes = {sector_of(setting.people[name].home) for name in (one, other)}
    return (REST_AT_HOME if len(homes) == 1 else REST) * setting.profile.a_minute


def whom_to_meet(turn: ResidentTurn, others: Mapping[str, ResidentState]) -> str:
    """Return whom of those in sight a resident meets now: who was not met for longest, then the nearest; "" nobody."""
    where = turn.setting, turn.step, turn.state
    seen = [each.who for each in turn.percepts if each.who in others and may_meet(*where, others[each.who])]
    return min(seen, key=lambda name: turn.state.scenes.get(name, -1), default="")
