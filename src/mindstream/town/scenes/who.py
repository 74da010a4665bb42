"""Who somebody is, as the prompts of scenes say it."""

from __future__ import annotations

from mindstream.town.residents.places import words_of
from mindstream.town.residents.surroundings import household, housemates
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
    alone = person.model_copy(update={"relations": ()})
    return "\n".join(each for each in (alone.identity(now), person.about, lives, *_knows(turn)) if each)


def _knows(turn: ResidentTurn) -> tuple[str, ...]:
    """Say whom somebody knew when the town began, and whom it has met since."""
    known = {each.name: each.what for each in turn.person.relations}
    at_home = housemates(turn.setting, turn.person)
    before = [f"{name} ({what})" for name, what in known.items() if name not in at_home]
    since = sorted({*turn.state.scenes, *turn.state.met} - {*known, *at_home})
    return (
        f"Knew at first: {'; '.join(before)}" if before else "",
        f"Has met since: {', '.join(since)}" if since else "",
    )


def public_identity(turn: ResidentTurn, keeps_secrets: bool) -> str:
    """Return who a resident is, as a talk may show it: of who keeps a secret nothing that it has written of itself."""
    return identity(turn, turn.person.currently if keeps_secrets else None)
