"""The tree of places: what there is, or what a resident has seen of it (it may be less, and out of date)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from mindstream.errors import InputError
from mindstream.town.world.address import ARENA, OBJECT, Address

Branch = dict[str, "Branch"]


class PlaceTree:
    """Places by their names, in the order in which they were added. A resident's spatial memory is one (Park 2023)."""

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
        """Add a place and those around it; tell whether anything of it is new."""
        branch, new = self._root, False
        for name in address.names:
            new = new or name not in branch
            branch = branch.setdefault(name, {})
        return new

    def to_json(self) -> dict[str, object]:
        """Return it as `spatial_memory.json` has it: {world: {sector: {arena: [objects]}}}."""
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
    """Read the tree of a `spatial_memory.json`.

    Raises:
        InputError: it is none; the message begins with `where` and names the place in it.
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
        wanted = "a list of objects" if len(names) == ARENA else "an object of places"
        raise InputError(f"{where}: {':'.join(names) or 'the tree'} should be {wanted}, not {type(data).__name__}")
    for name, below in children.items():
        try:
            address = Address((*names, str(name) if isinstance(name, str) else ""))
        except InputError as error:
            raise InputError(f"{where}: {error}") from None
        tree.add(address)
        if address.level < OBJECT:
            _parse(tree, below, address.names, where)


def _walk(branch: Branch, names: tuple[str, ...]) -> Iterator[Address]:
    for name, below in branch.items():
        yield Address((*names, name))
        yield from _walk(below, (*names, name))
