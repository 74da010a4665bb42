"""Draw a map from a list of places: houses and squares in rows, along streets."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from math import isqrt

from mindstream.errors import InputError
from mindstream_town.formats.maps import Drawing
from mindstream_town.world.tree import ARENA, OBJECT, SECTOR, Address

BED = "bed"
"""Name of the object that is the bed of residents who have no key `bed`."""
FURNITURE = (BED, "stove", "table", "washbasin")
"""Objects of a home for which no objects are listed."""
ROOM, GROUNDS = "room", "grounds"
"""Name of the only room of a house without listed rooms, and of the area of a square without listed rooms."""
HEIGHT, NARROWEST = 4, 4
"""Height and minimum width of rooms, in tiles."""
STREET, WALL, GROUND, BLANK = 2, "#", ".", " "
FIRST_MARK = 0x100
"""Code point of the first character that represents a place or an object in the drawing."""

Rooms = dict[Address, list[str]]


def draw_places(
    places: Mapping[Address, Sequence[str]], homes: Iterable[Address], walled: Collection[Address]
) -> Drawing:
    """Draw a map of places.

    Args:
        places: objects by place; a place is a house or square, or a room of it.
        homes: places where residents live; they get a bed, and furniture if no objects are listed for them.
        walled: further places with walls. Homes and places with several rooms always have walls; others are open
            squares.

    Raises:
        InputError: the list of places is empty.
    """
    lived_in = [home for home in dict.fromkeys(homes) if home.level >= SECTOR]
    houses: dict[Address, Rooms] = {}
    every: dict[Address, Sequence[str]] = dict(places) | {home: places.get(home, ()) for home in lived_in}
    closed = {each.upto(SECTOR) for each in (*lived_in, *walled)}
    for place in sorted(every, key=lambda each: -each.level):  # rooms before the houses around them
        if place.level < SECTOR:
            continue
        sector = place.upto(SECTOR)
        rooms = houses.setdefault(sector, {})
        if place.level == SECTOR and (every[place] or not rooms):
            room = next(iter(rooms), sector.child(ROOM if sector in closed else GROUNDS))
        else:
            room = next(iter(rooms)) if place.level == SECTOR else place.upto(ARENA)
        things = [place.last] if place.level == OBJECT else every[place]
        rooms.setdefault(room, []).extend(each for each in things if each not in rooms[room])
    for home in lived_in:
        rooms = houses[home.upto(SECTOR)]
        room = home.upto(ARENA) if home.level >= ARENA else next(iter(rooms))
        if not rooms[room]:
            rooms[room] += FURNITURE
        elif not any(BED in things for things in rooms.values()):
            rooms[room].append(BED)
    if not houses:
        raise InputError("the town has no place: give residents a home, or list places")
    order = dict.fromkeys(each.upto(SECTOR) for each in every if each.level >= SECTOR)
    return _draw([(houses[each], each in closed or len(houses[each]) > 1) for each in order])


def _draw(houses: Sequence[tuple[Rooms, bool]]) -> Drawing:
    """Draw houses in rows; a street runs below each row."""
    place_marks: dict[Address, str] = {}
    object_marks: dict[str, str] = {}
    blocks = [_draw_house(rooms, closed, place_marks, object_marks) for rooms, closed in houses]
    widest = max(len(block[0][0]) for block in blocks)
    area = sum(len(block[0][0]) + 1 for block in blocks) * (HEIGHT + 2 + STREET)
    width = max(widest, isqrt(2 * area))
    rows, things = list[str](), list[str]()
    line: list[tuple[list[str], list[str]]] = []
    for number, block in enumerate(blocks):
        line.append(block)
        ahead = len(blocks[number + 1][0][0]) if number + 1 < len(blocks) else width
        if sum(len(each[0][0]) + 1 for each in line) + ahead > width:
            for y in range(HEIGHT + 2):
                rows.append(GROUND.join(each[0][y] for each in line))
                things.append(BLANK.join(each[1][y] for each in line))
            rows += [""] * STREET
            things += [""] * STREET
            line = []
    full = max(map(len, rows)) + 2
    return Drawing(
        rows=(GROUND * full, *(f"{GROUND}{row}".ljust(full, GROUND) for row in rows)),
        things=(BLANK * full, *(f"{BLANK}{row}".ljust(full) for row in things)),
        wall=WALL,
        ground=GROUND,
        places={mark: place for place, mark in place_marks.items()},
        objects={mark: thing for thing, mark in object_marks.items()},
    )


def _draw_house(
    rooms: Rooms, closed: bool, place_marks: dict[Address, str], object_marks: dict[str, str]
) -> tuple[list[str], list[str]]:
    """Draw the rooms of a house side by side, each with a door to the street; an open square has no walls."""
    edge = WALL if closed else GROUND
    rows = [edge] * (HEIGHT + 2)
    things = [BLANK] * (HEIGHT + 2)
    for room, objects in rooms.items():
        mark = place_marks.setdefault(room, chr(FIRST_MARK + len(place_marks)))
        for each in objects:
            object_marks.setdefault(each, chr(FIRST_MARK + len(object_marks)))
        width = max(NARROWEST, len(objects) | 1)
        upper, lower = objects[: (len(objects) + 1) // 2], objects[(len(objects) + 1) // 2 :]
        inside = [upper, [], lower, []]
        bottom = edge * (width // 2) + GROUND + edge * (width - width // 2 - 1)
        for y, drawn in enumerate([edge * width, *[mark * width] * HEIGHT, bottom]):
            rows[y] += drawn + edge
        for y, items in enumerate([[], *inside, []]):
            things[y] += BLANK.join(object_marks[each] for each in items).ljust(width) + BLANK
    return rows, things
