"""What a place is called: world, sector, arena, object, from the widest to the narrowest."""

from __future__ import annotations

from dataclasses import dataclass

from mindstream.errors import InputError

ALL = "<all>"
"""In a pattern: any name of this level ("the Ville:<all>:bed" is a bed wherever it stands)."""
LEVELS = ("world", "sector", "arena", "object")
WORLD, SECTOR, ARENA, OBJECT = 1, 2, 3, 4
"""How many names an address of each level has."""
LONGEST_NAME = 200


@dataclass(frozen=True, slots=True, order=True)
class Address:
    """A place by its path of one to four names; sorted by their names.

    Raises:
        InputError: too few or too many names, or one that is empty, too long or holds ":" or a control character.
    """

    names: tuple[str, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.names) <= OBJECT:
            raise InputError(
                f"{':'.join(self.names)!r:.99} has {len(self.names)} names: one to four are wanted, {':'.join(LEVELS)}"
            )
        for name in self.names:
            if not name.strip() or len(name) > LONGEST_NAME or ":" in name or not name.isprintable():
                raise InputError(
                    f"{name!r:.60} cannot be a name in the address {':'.join(self.names)!r:.99}: "
                    f"one to {LONGEST_NAME} printable characters without ':' are wanted"
                )

    def __str__(self) -> str:
        return ":".join(self.names)

    @property
    def level(self) -> int:
        """How many names it has: WORLD, SECTOR, ARENA or OBJECT."""
        return len(self.names)

    @property
    def last(self) -> str:
        """The narrowest name."""
        return self.names[-1]

    @property
    def parent(self) -> Address | None:
        """The place around it; None for the world."""
        return self.upto(len(self.names) - 1) if len(self.names) > 1 else None

    def child(self, name: str) -> Address:
        """Return the address of something in it."""
        return Address((*self.names, name))

    def upto(self, level: int) -> Address:
        """Return the place of that level around it, or itself where it does not go so deep."""
        if level >= len(self.names):
            return self
        around = object.__new__(Address)  # its names were checked with this address
        object.__setattr__(around, "names", self.names[:level])
        return around

    def is_within(self, other: Address) -> bool:
        """Tell whether it is `other` or lies in it."""
        return self.names[: len(other.names)] == other.names


def parse_address(text: str) -> Address:
    """Read "world:sector:arena:object" (one to four names); blanks around names are dropped.

    Raises:
        InputError: it is no address.
    """
    if len(text) > OBJECT * (LONGEST_NAME + 1):
        raise InputError(f"{text[:60]!r}… is too long for an address")
    return Address(tuple(name.strip() for name in text.split(":")))


def sector_of(place: str) -> str:
    """Return the house, in the widest sense, that the address of a place lies in."""
    return ":".join(place.split(":")[:2])
