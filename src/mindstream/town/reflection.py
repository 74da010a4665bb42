"""A resident reflects when enough that matters has gathered: the ground's reflection, written with its step."""

from __future__ import annotations

from mindstream.reasoners.reflect.reflect import reflection_entry
from mindstream.town.turn import Turn


async def reflect(turn: Turn) -> None:
    """Reflect where it is time."""
    if not turn.profile.reflects or turn.state.gathered < turn.profile.reflect_at:
        return
    await turn.resident.written()
    entry = await reflection_entry(turn.resident.stream, turn.resident.models.of("reasoner"))
    turn.write(entry.event, entry.records)
