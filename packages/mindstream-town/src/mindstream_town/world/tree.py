"""Addresses of places, and the tree of places that a resident knows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from mindstream.errors import InputError, prefixed

Spot = tuple[int, int]
"""A position in a world. In a world of tiles, it is (x, y), with x from the left and y from the top."""
ALL = "<all>"
"""Wildcard for one level of an address ("the Ville:<all>:bed" is any bed)."""
LEVELS = ("world", "sector", "arena", "object")
WORLD, SECTOR, ARENA, OBJECT = 1, 2, 3, 4
"""The levels of places: each is the number of names in an address of that level."""
LONGEST_NAME = 200


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """The address of a place: one to four names, from the widest to the narrowest.

    Raises:
        InputError: the number of names is wrong, or a name is empty, too long or contains ":" or a control character.
    """

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.names) <= OBJECT:
            raise InputError(
                f"{':'.join(self.names)!r:.99} has {len(self.names)} names: expected one to four, {':'.join(LEVELS)}"
            )
        for name in self.names:
            if not name.strip() or len(name) > LONGEST_NAME or ":" in name or not name.isprintable():
                raise InputError(
                    f"{name!r:.60} cannot be a name in the address {':'.join(self.names)!r:.99}: "
                    f"expected one to {LONGEST_NAME} printable characters without ':'"
                )

    def __str__(self) -> str:
        return ":".join(self.names)

    @property
    def level(self) -> int:
        """The number of names: WORLD, SECTOR, ARENA or OBJECT."""
        return len(self.names)

    @property
    def last(self) -> str:
        """The last name: that of the place itself, without the places around it."""
        return self.names[-1]

    @property
    def parent(self) -> Address | None:
        """The place that contains it; None for the world."""
        return self.upto(len(self.names) - 1) if len(self.names) > 1 else None

    def child(self, name: str) -> Address:
        return Address((*self.names, name))

    def upto(self, level: int) -> Address:
        """Return the place of this level that contains the address; the address itself if it has no more levels."""
        if level >= len(self.names):
            return self
        around = object.__new__(Address)  # skips the check of names, which this address has passed
        object.__setattr__(around, "names", self.names[:level])
        return around

    def is_within(self, other: Address) -> bool:
        """Return whether the address is `other` or a place inside it."""
        return self.names[: len(other.names)] == other.names


def parse_address(text: str) -> Address:
    """Parse "world:sector:arena:object" (one to four names); blanks around names are removed.

    Raises:
        InputError: the text is not an address.
    """
    if len(text) > OBJECT * (LONGEST_NAME + 1):
        raise InputError(f"the address {text[:60]!r}… is too long")
    return Address(tuple(name.strip() for name in text.split(":")))


def sector_of(place: str) -> str:
    """Return the sector (such as a house or park) of an address."""
    return ":".join(place.split(":")[:2])


Branch = dict[str, "Branch"]


class PlaceTree:
    """A tree of places in the order of their addition, such as a resident's spatial memory in a save (Park 2023)."""

    def __init__(self, addresses: Iterable[Address] = ()) -> None:
        self._root: Branch = {}
        for address in addresses:
            self.add(address)

    def __contains__(self, address: Address) -> bool:
        return self._branch(address) is not None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PlaceTree) and self._root == other._root

    def __iter__(self) -> Iterator[Address]:
        return _walk(self._root, ())

    def add(self, address: Address) -> bool:
        """Add a place and its parents; return whether any of them is new."""
        branch, new = self._root, False
        for name in address.names:
            new = new or name not in branch
            branch = branch.setdefault(name, {})
        return new

    def to_json(self) -> dict[str, object]:
        """Return the tree in the form of `spatial_memory.json`: {world: {sector: {arena: [objects]}}}."""
        return {
            world: {
                sector: {arena: list(objects) for arena, objects in arenas.items()}
                for sector, arenas in sectors.items()
            }
            for world, sectors in self._root.items()
        }

    def _branch(self, address: Address) -> Branch | None:
        branch: Branch | None = self._root
        for name in address.names:
            branch = branch.get(name) if branch is not None else None
        return branch


def parse_tree(data: object, where: str) -> PlaceTree:
    """Parse the tree of a `spatial_memory.json`.

    Raises:
        InputError: the data have another form; the message begins with `where` and names the place.
    """
    tree = PlaceTree()
    _parse(tree, data, (), where)
    return tree


def _parse(tree: PlaceTree, data: object, names: tuple[str, ...], where: str) -> None:
    if len(names) == ARENA and isinstance(data, list):
        children: Mapping[object, object] = (
            dict.fromkeys(data) if all(isinstance(name, str) for name in data) else {0: 0}
        )
    elif len(names) < ARENA and isinstance(data, dict):
        children = data
    else:
        wanted = (
            'a list of names of objects, such as ["bed", "desk"]'
            if len(names) == ARENA
            else "a JSON object whose keys are names of places"
        )
        raise InputError(f"{where}: {':'.join(names) or 'the tree'}: expected {wanted}, found {type(data).__name__}")
    for name, below in children.items():
        with prefixed(f"{where}:"):
            address = Address((*names, str(name) if isinstance(name, str) else ""))
        tree.add(address)
        if address.level < OBJECT:
            _parse(tree, below, address.names, where)


def _walk(branch: Branch, names: tuple[str, ...]) -> Iterator[Address]:
    for name, below in branch.items():
        yield Address((*names, name))
        yield from _walk(below, (*names, name))
