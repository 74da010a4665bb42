"""Writing beside the town's life: the next step does not wait; steps that wait together are written together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from mindstream.log.names import StreamKey
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
        self._in_flight: list[Commit] = []
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
            self._in_flight, self._waiting = self._waiting, []
            commits = self._in_flight
            held = [Commit(mind=self.store.key(JOURNAL), at=commits[0].at, fence=self.fence)] if self.fence else []
            await self.store.commit(*held, *commits)
            self._in_flight = []

    async def written(self, stream: StreamKey | None = None) -> None:
        """Return when all commits, or those to one stream, are written; cancelling this does not stop the writing.

        Raises:
            StorageError: a step could not be written.
        """
        task = self._task
        if task is not None and (stream is None or task.done() or self._is_pending(stream)):
            await asyncio.shield(task)

    def _is_pending(self, stream: StreamKey) -> bool:
        return any(commit.mind == stream for commits in (self._in_flight, self._waiting) for commit in commits)
