"""What somebody keeps to itself: marked in the town's file, or by itself when it thought about a day."""

from __future__ import annotations

from mindstream.town.residents.converse import OF_PEOPLE
from mindstream.town.residents.moving_in import SECRET
from mindstream.town.residents.turn import ResidentTurn

MOST = 6


async def secrets_of(turn: ResidentTurn) -> tuple[str, ...]:
    """Return the newest of what somebody keeps to itself."""
    found = await turn.recall_about([SECRET], MOST, kinds=OF_PEOPLE)
    return tuple(each.text for each in found if each.data.get(SECRET))
