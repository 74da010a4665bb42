"""Whether what somebody came for is taken: by those who are there already, as far as it sees them."""

from __future__ import annotations

from collections.abc import Mapping

from mindstream_town.events import Act
from mindstream_town.residents.percept import Percept
from mindstream_town.setting import Setting
from mindstream_town.state import ResidentState
from mindstream_town.world.world import Spot

OCCUPIED = "occupied"


def find_taken(
    setting: Setting, state: ResidentState, spot: Spot, others: Mapping[str, ResidentState], step: int
) -> list[Percept]:
    """Return the room or thing that somebody is about to use and that is full, if it is.

    Args:
        others: those whom it sees.
    """
    act = state.act
    place = _counted_place(setting, act) if act and others else None
    if act is None or place is None:
        return []
    where, most = place
    deeds = {name: other.act for name, other in others.items() if other.act and other.act.needs(where)}
    before = [name for name, deed in deeds.items() if _was_first(deed, name, act, state.name, step)]
    if len(before) < most:
        return []
    return [Percept(f"the {where.rpartition(':')[2]}", "is", OCCUPIED, spot, place=where, since=act.since)]


def _was_first(deed: Act, name: str, act: Act, own: str, step: int) -> bool:
    return deed.has_arrived(step) and (deed.arrives, name) < (act.arrives, own)


def _counted_place(setting: Setting, act: Act) -> tuple[str, int] | None:
    """Return the place whose users are counted where an act is done, and how many it takes; None: any number."""
    address = setting.addresses.get(act.place)
    if address is None or act.asleep:
        return None
    most = setting.rules.capacity(address)
    return None if most is None else (str(setting.rules.counted_at(address)), most)
