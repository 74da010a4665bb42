"""A world of tiles or places: positions, neighbourhood, routes."""

from __future__ import annotations

import itertools
from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mindstream_town.world.graph import Road, build_places
from mindstream_town.world.tiles import TileWorld, build_tiles
from mindstream_town.world.tree import Address, Spot, parse_address
from mindstream_town.world.world import World

from mindstream.errors import InputError

VILLE = Address(("the Ville",))


def draw(rows: list[str], things: dict[Spot, str] | None = None) -> TileWorld:
    """Make a world of drawn rows: # is a wall, a letter is the arena of that name in the house, a dot is outside."""
    house = VILLE.child("house")
    size = (len(rows[0]), len(rows))
    narrowest = []
    for y, row in enumerate(rows):
        for x, mark in enumerate(row):
            arena = house.child(mark) if mark.isalpha() else None
            thing = (things or {}).get((x, y))
            narrowest.append(house.child("a").child(thing) if thing else arena)
    return build_tiles(VILLE, size, bytes(mark == "#" for row in rows for mark in row), narrowest)


HOUSE = draw(["aaa#bb", "aaa#bb", "aa#.bb", "......"], {(0, 0): "stove", (2, 2): "oven", (3, 0): "bell"})


def test_an_address_survives_parsing_and_printing() -> None:
    bed = parse_address("the Ville:Lin family's house:bedroom: bed")
    assert str(bed) == "the Ville:Lin family's house:bedroom:bed"
    assert bed.parent == bed.upto(3) and bed.is_within(bed.upto(2))
    for wrong in ("", "a::b", "a:b:c:d:e", "a:\0"):
        with pytest.raises(InputError, match="name"):
            parse_address(wrong)


def test_positions_map_to_addresses_and_back() -> None:
    world: World = HOUSE
    assert str(world.address_at((0, 0))) == "the Ville:house:a:stove"
    assert (
        world.places[world.arena_of((0, 0))]
        == world.places[world.arena_of((1, 1))]
        == parse_address("the Ville:house:a")
    )
    assert world.arena_of((0, 3)) == 0 and world.address_at((0, 3)) == VILLE
    assert world.distance((0, 0), (2, 3)) == 3
    assert world.near((0, 0), 1) == [(0, 0), (1, 0), (0, 1), (1, 1)]
    for spot, radius in (((0, 0), 1), ((4, 2), 2), ((1, 3), 9)):
        assert world.places_around(spot, radius) == {world.address_at(each) for each in world.near(spot, radius)}
    assert world.visible((1, 1), 1) == ((0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1), (0, 2), (1, 2), (2, 2))
    assert world.visible((4, 2), 1) == ((4, 1), (5, 1), (4, 2), (5, 2)), "neither the wall next to it, nor outside"
    assert not world.walkable((3, 0)) and not world.walkable((-1, 0)) and not world.walkable((0, 4))
    with pytest.raises(InputError, match=r"no place 'the Ville:house:a:stov'; did you mean 'the Ville:house:a:stove'"):
        world.spots(parse_address("the Ville:house:a:stov"))


def test_an_object_in_a_wall_is_used_from_a_neighbouring_tile_of_its_arena() -> None:
    oven = parse_address("the Ville:house:a:oven")
    assert HOUSE.tiles(oven) == ((2, 2),)
    assert HOUSE.spots(oven) == ((2, 1), (1, 2))
    assert [spot for spot, _ in HOUSE.objects_in(HOUSE.arena_of((1, 1)))] == [(0, 0), (3, 0), (2, 2)]


def test_a_blocked_route_names_both_ends() -> None:
    shut = draw(["a#b", "a#b"])
    assert not shut.routes.is_reachable((0, 0), parse_address("the Ville:house:b"))
    with pytest.raises(InputError, match=r"'the Ville:house:b' cannot be reached from \(0, 0\) \(the Ville:house:a\)"):
        shut.routes.path((0, 0), parse_address("the Ville:house:b"))
    with pytest.raises(InputError, match=r"\(1, 0\) \(the Ville, a wall\) cannot be reached"):
        shut.routes.distance((0, 0), (1, 0))


def breadth_first(world: TileWorld, start: Spot, goal: Spot) -> int | None:
    steps, queue = {start: 0}, deque([start])
    while queue:
        x, y = spot = queue.popleft()
        if spot == goal:
            return steps[spot]
        for there in ((x + 1, y), (x, y + 1), (x - 1, y), (x, y - 1)):
            if world.walkable(there) and there not in steps:
                steps[there] = steps[spot] + 1
                queue.append(there)
    return None


@given(st.lists(st.text("#..a", min_size=7, max_size=7), min_size=2, max_size=7), st.randoms(use_true_random=False))
def test_routes_are_shortest_and_avoid_walls(rows: list[str], random) -> None:  # type: ignore[no-untyped-def]
    world = draw(rows)
    free = [(x, y) for y in range(world.height) for x in range(world.width) if world.walkable((x, y))]
    if len(free) < 2:
        return
    start, goal = random.sample(free, 2)
    expected = breadth_first(world, start, goal)
    assert world.routes.is_reachable(start, goal) == (expected is not None)
    if expected is not None:
        path = world.routes.path(start, goal)
        assert len(path) == world.routes.distance(start, goal) == expected
        assert path[-1] == goal
        assert all(world.walkable(spot) for spot in path)
        assert all(abs(a[0] - b[0]) + abs(a[1] - b[1]) == 1 for a, b in itertools.pairwise((start, *path)))


def test_places_without_tiles_are_connected_by_roads() -> None:
    cafe, pub, park = (parse_address(f"the Ville:{name}") for name in ("cafe", "pub", "park"))
    roads = [Road(cafe, pub, 3), Road(pub, park, 2), Road(cafe, park, 9)]
    world: World = build_places(VILLE, [cafe.child("counter")], roads)
    (start,), (end,) = world.spots(cafe), world.spots(park)
    assert world.spots(cafe.child("counter")) == (start,)
    path = world.routes.path(start, park)
    assert len(path) == world.distance(start, end) == 5
    assert [str(world.address_at(spot)) for spot in path[2:]] == ["the Ville:pub", "the Ville", "the Ville:park"]
    assert set(world.near(start, 1)) == {start, (1, 1), (1, 3)} and world.arena_of((1, 1)) == 0
    assert all(abs(world.distance(a, end) - world.distance(b, end)) == 1 for a, b in itertools.pairwise((start, *path)))
    assert world.visible(start, 9) == (start,)
    office = build_places(VILLE, [cafe.child("bar").child("counter")], roads)
    assert office.objects_in(office.number(cafe.child("bar"))) == (
        ((0, 0), office.number(cafe.child("bar").child("counter"))),
    )
    with pytest.raises(InputError, match="no place 'the Ville:zoo'"):
        office.number(parse_address("the Ville:zoo"))
    with pytest.raises(InputError, match="'the Ville:shop' cannot be reached: add a road"):
        build_places(VILLE, [parse_address("the Ville:shop")], roads)
