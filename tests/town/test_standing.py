"""Where residents stand at what is anybody's: not all on one spot."""

from __future__ import annotations

from pathlib import Path

from hamlet import hamlet

from mindstream.town.percept import Percept
from mindstream.town.standing import ASIDE, stand_at
from mindstream.town.town import Town
from mindstream.town.turn import Turn


async def test_who_sees_a_spot_taken_stands_beside_it_in_the_same_room(tmp_path: Path) -> None:
    async with Town.open(tmp_path / "data", hamlet()) as town:
        setting, cleo = town.setting, town.residents["Cleo Marsh"]
        piano, bed = setting.addresses["Hamlet:Oak Cafe:cafe:piano"], setting.addresses["Hamlet:Mill House:room:bed"]
        (spot,) = setting.world.spots(piano)
        from_afar = {stand_at(Turn(cleo, step, setting, cleo.state), piano, spot) for step in range(40)}
        assert spot in from_afar
        assert len(from_afar) > 3
        assert all(setting.world.distance(each, spot) <= ASIDE for each in from_afar)
        assert len({setting.world.arena_of(each) for each in from_afar}) == 1

        there = cleo.state.model_copy(update={"home": (spot[0] - 2, spot[1])})
        turn = Turn(cleo, 0, setting, there)
        assert stand_at(turn, piano, spot) == spot, "it is free, as it sees"
        turn.percepts = [Percept("Ada Brook", "is", "playing", spot, who="Ada Brook", place=str(piano))]
        assert stand_at(turn, piano, spot) != spot

        ada = town.residents["Ada Brook"]
        (home,) = setting.world.spots(bed)
        turn = Turn(ada, 0, setting, ada.state)
        turn.percepts = [Percept("Ben Hale", "is", "sleeping", home, who="Ben Hale")]
        assert stand_at(turn, bed, home) == home, "at home there is room"
