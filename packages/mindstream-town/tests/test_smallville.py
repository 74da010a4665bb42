"""The shipped town: 25 people of Park 2023, on a map drawn for this project."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from pathlib import Path

import pytest
from draw_smallville import FILE, draw
from hamlet import HAMLET
from mindstream_town.formats.town_file import TownFile
from mindstream_town.packs import find_pack, shipped_packs
from mindstream_town.residents.person import Person
from mindstream_town.source import missing_keys, setting_of
from mindstream_town.world.tree import parse_address

from mindstream.errors import InputError


@pytest.fixture(scope="module")
def town() -> TownFile:
    return find_pack("smallville")


def texts(person: Person) -> list[str]:
    return [*(each.text for each in person.first_memories()), person.innate]


def test_a_town_is_found_only_by_name_or_path(tmp_path: Path) -> None:
    assert shipped_packs() == ["smallville"]
    with pytest.raises(
        InputError, match=r"no shipped town 'smalvile'; shipped towns: smallville \(did you mean 'smallville'\?\)"
    ):
        find_pack("smalvile")
    (tmp_path / "town.toml").write_text(HAMLET)
    assert find_pack(tmp_path).name == find_pack(str(tmp_path / "town.toml")).name == "Hamlet"
    with pytest.raises(InputError, match=r"nowhere.toml: cannot be read"):
        find_pack("./nowhere.toml")


def test_all_residents_have_a_bed_a_home_and_reachable_places(town: TownFile) -> None:
    assert len(town.residents) == 25 and missing_keys(setting_of(town)) == ()
    world = town.world
    beds = Counter(f"{person.home}:bed" for person in town.residents)
    tiles = {bed: len(world.spots(parse_address(bed))) for bed in beds}
    assert all(tiles[bed] >= count for bed, count in beds.items())
    assert max(beds.values()) == 2
    for person in town.residents:
        assert person.start in world.spots(parse_address(f"{person.home}:bed"))
        assert town.rules.owners(parse_address(person.home)) >= {person.name}
        for place in person.knows:
            assert world.routes.is_reachable(person.start, parse_address(place)), (person.name, place)


def test_initial_acquaintance_equals_the_paper(town: TownFile) -> None:
    knows = {person.name: {each.name for each in person.relations} for person in town.residents}
    mutual = [pair for pair in combinations(knows, 2) if pair[1] in knows[pair[0]] and pair[0] in knows[pair[1]]]
    assert len(mutual) == 50  # of 300 pairs: 0.167
    for person in town.residents:
        named = {name for name in knows if any(name in text for text in texts(person))} - {person.name}
        assert named <= knows[person.name], person.name


def test_each_story_is_known_to_one_resident_at_first(town: TownFile) -> None:
    for story, teller in (("Valentine", "Isabella Rodriguez"), ("mayor", "Sam Moore")):
        assert [each.name for each in town.residents if any(story in text for text in texts(each))] == [teller]
    for word in ("party", "election", "candida"):
        tellers = {each.name for each in town.residents if any(word in text.lower() for text in texts(each))}
        assert tellers <= {"Isabella Rodriguez", "Sam Moore"}


def test_the_picture_in_the_docs_matches_the_map(town: TownFile) -> None:
    picture = draw(town)
    assert len(picture) < 300_000
    assert FILE.read_text("utf-8") == picture, "run python packages/mindstream-town/tests/draw_smallville.py"
