"""What an open town is to a person in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from mindstream.memory.store.record import Record
from mindstream.memory.store.store import Store
from mindstream.town.embody.deeds import Deed
from mindstream.town.residents.turn import Resident
from mindstream.town.setting import Setting
from mindstream.town.world.whereabouts import Condition


class OpenTown(Protocol):
    """A town that can be lived in: `Town`, as far as a person in it needs it."""

    setting: Setting
    store: Store
    residents: dict[str, Resident]

    @property
    def step(self) -> int:
        """The last step that is done."""

    @property
    def conditions(self) -> Mapping[str, Condition]:
        """The conditions of objects that are not as they should be, by address."""

    async def live_with(
        self, deeds: Mapping[str, Deed], until: int, stop: Callable[[], bool], on_step: Callable[[int], None]
    ) -> None:
        """Let people do something in the next step, and live up to a step, or to one after which it is to stop."""

    async def save(self) -> None:
        """Write the state of all."""

    async def whisper(self, name: str, text: str) -> Record:
        """Put a thought into somebody's memory."""

    async def set_object(self, place: str, condition: str, by: str = "", danger: bool | None = None) -> bool:
        """Put an object into a condition, in words."""
