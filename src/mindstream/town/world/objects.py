"""What changes in a world: the states of objects, and the events on its spots. In order, so that runs agree."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass

from mindstream.errors import InputError
from mindstream.town.world.address import Address, parse_address
from mindstream.town.world.world import Spot

IDLE = "idle"
LONGEST_STATE = 500


@dataclass(frozen=True, slots=True)
class ObjectState:
    """How an object is: "occupied", "leaking", any words; who made it so, and at which step."""

    words: str
    by: str
    step: int


@dataclass(frozen=True, slots=True)
class SpotEvent:
    """What can be perceived on a spot: subject, predicate, object, and a description in words (Park 2023)."""

    subject: str
    predicate: str
    object: str
    description: str


class ObjectStates:
    """The states of objects that are not idle, in the order in which they left idleness."""

    def __init__(self) -> None:
        self._states: dict[Address, ObjectState] = {}

    def __iter__(self) -> Iterator[tuple[Address, ObjectState]]:
        return iter(self._states.items())

    def words(self, address: Address) -> str:
        """Return an object's state in words; IDLE where nobody changed it."""
        state = self._states.get(address)
        return state.words if state else IDLE

    def get(self, address: Address) -> ObjectState | None:
        """Return an object's state with who made it so; None while it is idle."""
        return self._states.get(address)

    def change(self, address: Address, words: str, by: str, step: int) -> None:
        """Give an object a state; IDLE, or nothing, makes it idle again.

        Raises:
            InputError: longer than LONGEST_STATE.
        """
        words = " ".join(words.split())
        if len(words) > LONGEST_STATE:
            raise InputError(f"the state of {address} has {len(words)} characters: at most {LONGEST_STATE} are wanted")
        if words in ("", IDLE):
            self._states.pop(address, None)
        else:
            self._states[address] = ObjectState(words, by, step)

    def release(self, by: str) -> list[Address]:
        """Make idle again what somebody changed, and return it in order."""
        released = [address for address, state in self._states.items() if state.by == by]
        for address in released:
            del self._states[address]
        return released

    def dump(self) -> list[dict[str, str | int]]:
        """Return the states as plain data, in order."""
        return [{"address": str(address), **asdict(state)} for address, state in self._states.items()]

    def load(self, rows: Iterable[dict[str, str | int]]) -> None:
        """Take the states that `dump` returned."""
        self._states = {
            parse_address(str(row["address"])): ObjectState(str(row["words"]), str(row["by"]), int(row["step"]))
            for row in rows
        }


class SpotEvents:
    """The events on spots, each at most once on a spot, in the order in which they came there."""

    def __init__(self) -> None:
        self._on: dict[Spot, dict[SpotEvent, None]] = {}

    def put(self, spot: Spot, event: SpotEvent) -> None:
        """Put an event on a spot; one that is there already keeps its place."""
        self._on.setdefault(spot, {}).setdefault(event)

    def clear(self, spot: Spot, subject: str) -> None:
        """Take the events of a subject off a spot."""
        here = self._on.get(spot, {})
        for event in [event for event in here if event.subject == subject]:
            del here[event]
        if not here:
            self._on.pop(spot, None)

    def at(self, spot: Spot) -> tuple[SpotEvent, ...]:
        """Return what stands on a spot."""
        return tuple(self._on.get(spot, ()))

    def among(self, spots: Iterable[Spot]) -> list[tuple[Spot, SpotEvent]]:
        """Return what stands on some spots, in their order."""
        return [(spot, event) for spot in spots if spot in self._on for event in self._on[spot]]

    def __len__(self) -> int:
        return sum(map(len, self._on.values()))
