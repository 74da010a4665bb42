"""Trees of places and their words, rules of places, states of objects."""

from __future__ import annotations

from datetime import datetime

import pytest
from mindstream_town.world.rules import PlaceRule, PlaceRules, parse_days, parse_hours
from mindstream_town.world.tree import PlaceTree, parse_address, parse_tree

from mindstream.errors import InputError

KITCHEN = parse_address("the Ville:Lin family's house:kitchen")
BATH = parse_address("the Ville:Lin family's house:bathroom")
CAFE = parse_address("the Ville:Hobbs Cafe:cafe")
PUB = parse_address("the Ville:The Rose and Crown Pub:pub")


def test_seen_places_are_added_to_the_tree() -> None:
    tree = PlaceTree([KITCHEN.child("stove"), CAFE])
    assert KITCHEN in tree and KITCHEN.child("sink") not in tree and BATH not in tree
    assert tree.add(KITCHEN.child("sink")) and not tree.add(KITCHEN)
    data = tree.to_json()
    assert data == {"the Ville": {"Lin family's house": {"kitchen": ["stove", "sink"]}, "Hobbs Cafe": {"cafe": []}}}
    assert parse_tree(data, "spatial_memory.json") == tree


@pytest.mark.parametrize(
    ("data", "wrong"),
    [
        (
            {"the Ville": {"cafe": ["counter"]}},
            "the Ville:cafe: expected a JSON object whose keys are names of places, found list",
        ),
        ({"the Ville": {"cafe": {"bar": {"counter": 1}}}}, "the Ville:cafe:bar: expected a list of names of objects"),
        ({"the Ville": {"": {}}}, "cannot be a name"),
    ],
)
def test_an_invalid_tree_is_refused_with_its_position(data: object, wrong: str) -> None:
    with pytest.raises(InputError, match=f"^memory.json: .*{wrong}"):
        parse_tree(data, "memory.json")


def test_place_rules_define_hours_owners_and_access() -> None:
    rules = PlaceRules(
        {
            CAFE.upto(2): PlaceRule(hours=parse_hours("08:00-20:00"), days=parse_days(["Monday", "tuesday"])),
            PUB: PlaceRule(hours=parse_hours("11:30-14:00, 18:00-02:00"), days=parse_days(["friday"])),
            KITCHEN.upto(2): PlaceRule(owners=frozenset({"Mei Lin"})),
            BATH: PlaceRule(capacity=1),
        }
    )
    monday, saturday = datetime(2023, 2, 13, 8), datetime(2023, 2, 18, 1, 59)
    assert rules.is_open(CAFE.child("piano"), monday) and not rules.is_open(CAFE, monday.replace(hour=20))
    assert not rules.is_open(CAFE, monday.replace(day=15)), "a Wednesday"
    assert rules.is_open(PUB, saturday), "Friday's opening hours pass midnight"
    assert not rules.is_open(PUB, saturday.replace(day=17)), "closed on Thursday"
    assert rules.is_open(KITCHEN, monday)
    assert rules.capacity(BATH.child("shower")) == 1 and rules.counted_at(BATH.child("shower")) == BATH
    assert rules.capacity(KITCHEN) is None
    assert rules.may_enter("Mei Lin", BATH, monday) and not rules.may_enter("Tom Moreno", BATH, monday)
    assert rules.may_enter("Tom Moreno", CAFE, monday)
    for wrong in ("8-20", "08:00-25:00", "", "08:00-20:00,"):
        with pytest.raises(InputError, match="expected opening hours"):
            parse_hours(wrong)
    with pytest.raises(InputError, match="unknown weekday"):
        parse_days(["Caturday"])
