"""Who somebody is, as the prompts of scenes say it."""

from __future__ import annotations

from mindstream.town.residents.places import words_of
from mindstream.town.residents.surroundings import household
from mindstream.town.residents.turn import ResidentTurn
from mindstream.town.world.address import sector_of


def identity(turn: ResidentTurn, currently: str | None = None) -> str:
    """Return who a resident is, with its life so far and its household.

    Args:
        currently: what its days are about; None: as it sees it itself.
    """
    person = turn.person
    home = words_of(sector_of(person.home))
    with_whom = household(turn.setting, person)
    lives = f"Home: {home}, {'with ' + ', '.join(with_whom) if with_whom else 'alone'}"
    now = turn.state.currently if currently is None else currently
    return "\n".join(each for each in (person.identity(now), person.about, lives) if each)


def public_identity(turn: ResidentTurn, keeps_secrets: bool) -> str:
    """Return who a resident is, as a talk may show it: of who keeps a secret nothing that it has written of itself."""
    return identity(turn, turn.person.currently if keeps_secrets else None)
