"""Towns that pages look at: what was read of them is kept, and only what is new is read again."""

from __future__ import annotations

from collections import OrderedDict
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mindstream.town.replay.growing import GrowingRecording

MOST = 4
"""So many towns are kept in memory at a time."""


class WatchedTowns:
    """The towns that were looked at last."""

    def __init__(self) -> None:
        self._towns: OrderedDict[Path, GrowingRecording] = OrderedDict()

    def of(self, folder: Path) -> GrowingRecording:
        """Return what is kept of the town in a folder."""
        from mindstream.town.replay.growing import GrowingRecording

        found = self._towns.setdefault(folder, GrowingRecording(folder))
        self._towns.move_to_end(folder)
        if len(self._towns) > MOST:
            self._towns.popitem(last=False)
        return found
