"""A resident reflects when enough that matters has gathered: the ground's reflection, written with its step."""

from __future__ import annotations

from mindstream.errors import ReplyInvalid
from mindstream.reasoners.reflect.reflect import reflection_entry
from mindstream.town.profile import Profile
from mindstream.town.state import ResidentState
from mindstream.town.turn import RULES, Turn


def is_due(state: ResidentState, profile: Profile) -> bool:
    """Tell whether enough has gathered since the last reflection; what was too much is dropped with it."""
    return profile.reflects and state.gathered >= profile.reflect_at


async def reflect(turn: Turn) -> None:
    """Reflect where it is time."""
    if not is_due(turn.state, turn.profile):
        return
    await turn.resident.written()
    stream = turn.resident.stream
    try:
        entry = await reflection_entry(stream, turn.resident.models.of("reasoner"))
    except ReplyInvalid as error:
        turn.stand_in("reflect", error)
        entry = await reflection_entry(stream, RULES)
    turn.write(entry.event, entry.records)
