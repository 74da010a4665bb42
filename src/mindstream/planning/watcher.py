"""Who is told what a run does: the log, a terminal, a test."""

from __future__ import annotations

from collections.abc import Collection
from typing import Protocol

from mindstream.planning.evidence import Evidence
from mindstream.planning.plan import Plan, PlannedStep


class RunWatcher(Protocol):
    """Told of a run as it goes on. What one of them raises ends the run: a log that cannot be written must."""

    async def planned(self, plan: Plan, because: str) -> None:
        """A plan was made, or changed, because of something."""

    async def missed(self, steps: Collection[str]) -> None:
        """The answer was missing from what these steps found: the plan is about to be mended."""

    async def kept(self) -> None:
        """Nothing of the plan was mended."""

    async def began(self, step: PlannedStep, arguments: str) -> None:
        """A tool is about to be called, with these arguments as JSON: what stands here may have happened."""

    async def found(self, evidence: Evidence) -> None:
        """A step has its evidence, or failed."""


class Unwatched:
    """A watcher that does nothing; others inherit what they do not care about."""

    async def planned(self, plan: Plan, because: str) -> None:
        pass

    async def missed(self, steps: Collection[str]) -> None:
        pass

    async def kept(self) -> None:
        pass

    async def began(self, step: PlannedStep, arguments: str) -> None:
        pass

    async def found(self, evidence: Evidence) -> None:
        pass
