"""Writing beside the town's life: the next step does not wait; steps that wait together are written together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from mindstream.memory.store.store import Commit, Fence, Store
from mindstream.town.events import JOURNAL


class Writing:
    """Whole steps are written in order while the town goes on; whoever reads waits for them.

    After one that could not be written nothing is any more: the town is to be opened again.

    Args:
        fence: what must still be this process's for anything to be written.
    """

    def __init__(self, store: Store, fence: Fence | None = None) -> None:
        self.store, self.fence = store, fence
        self._waiting: list[Commit] = []
        self._task: asyncio.Task[None] | None = None

    def add(self, commits: Sequence[Commit]) -> None:
        """Let what happened in one step be written: all of it or nothing.

        Raises:
            StorageError: a step before it could not be.
        """
        if self._task is not None and self._task.done():
            self._task.result()
        self._waiting += commits
        if self._task is None or self._task.done():
            self._task = asyncio.ensure_future(self._write())

    async def _write(self) -> None:
        while self._waiting:
            commits, self._waiting = self._waiting, []
            held = [Commit(mind=self.store.key(JOURNAL), at=commits[0].at, fence=self.fence)] if self.fence else []
            await self.store.commit(*held, *commits)

    async def written(self) -> None:
        """Return when all of it is written; who gives up waiting does not stop the writing.

        Raises:
            StorageError: it could not be.
        """
        if self._task is not None:
            await asyncio.shield(self._task)
