"""Let a resident reflect with mindstream's reflection; the result is written with the step."""

from __future__ import annotations

from mindstream.errors import ReplyInvalid
from mindstream.log.events import Reflected
from mindstream.models.rules import Rules
from mindstream.reasoners.reflect.reflect import reflection_entry
from mindstream_town.events import StoodIn
from mindstream_town.paper.people import renew_identity
from mindstream_town.profile import Profile
from mindstream_town.residents.turn import MAX_REASON, ResidentTurn
from mindstream_town.state import ResidentState


def is_due(state: ResidentState, profile: Profile) -> bool:
    """Return whether the importance of new memories since the last reflection has reached the threshold; False if
    residents do not reflect."""
    return profile.reflects and state.gathered >= profile.reflect_at


async def reflect(turn: ResidentTurn) -> None:
    """Reflect if a reflection is due; without a model there is no reflection."""
    model = turn.resident.models.of("reasoner")
    if not is_due(turn.state, turn.profile) or model.name == Rules.name:
        return
    await turn.resident.written()
    with turn.failing("reflect"):
        try:
            entry = await reflection_entry(turn.resident.memory, model)
        except ReplyInvalid as error:  # no insights this time; the next memories lead to another reflection
            turn.write(StoodIn(step=turn.step, prompt="reflect", reason=str(error)[:MAX_REASON]))
            turn.write(
                Reflected(
                    upto=(await turn.resident.memory.columns()).ids[-1], questions=(), thoughts=(), model=model.name
                )
            )
            return
    turn.write(entry.event, entry.records)
    if turn.is_paper():
        await renew_identity(turn, entry.records)
