"""Random faults of every kind at every stage (benchmarks/chaos.py has a thousand): the guarantees hold."""

from __future__ import annotations

import asyncio
from pathlib import Path

import chaos
import pytest

from mindstream import Timeouts
from mindstream.minds import mind
from mindstream.reasoners.background import Background
from mindstream.reasoners.reasoner import Run, Slot

QUICKLY = Timeouts(deadline_s=1.0, filler_s=0.4, silence_s=1.0, thinking_s=0.6, lease_s=1.0, retry_s=0.05)


async def held(folder: Path, seed: int) -> tuple[dict[str, bool], str]:
    faults = chaos.Faults(seed, allowed=150, rate=0.08)
    seen, settled, lives = await chaos.talk(folder, 36, faults, QUICKLY)
    rows = [row async for row in chaos.judge(folder, seen, settled, lives)]
    assert faults.made.total() > 30, "there were faults"
    return {name: so for name, so, _ in rows if "memory" not in name}, "\n".join(map(str, rows))


@pytest.mark.parametrize("seed", [3, 4])
async def test_guarantees_hold_under_random_faults(folder: Path, seed: int) -> None:
    found, report = await held(folder, seed)
    assert all(found.values()), report


class Fragile(Background):
    """The runner without its outermost handler: an exception of a run is not caught."""

    async def _serve(self, slot: Slot) -> None:
        while True:
            while work := await self._claim(slot):
                run = Run(work)
                context = await self._context(slot, run)
                await self._conclude(run, context, await slot.reasoner.think(context))
                self._notify()
            await self._rest(slot)


async def test_guarantees_fail_without_error_handling(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mind, "Background", Fragile)
    reports = list[str]()
    for seed in (3, 4, 5):  # which calls the faults meet depends on the machine's speed
        found, report = await held(folder / str(seed), seed)
        reports.append(report)
        if not found["the runner lives"] and not found["sleep: each utterance once, or set aside"]:
            return
    pytest.fail("\n\n".join(reports))


class Forgetful(Background):
    """The runner, except that utterances which are left for the next run are never processed."""

    def defer(self, heard: int, slot: str) -> None:
        super().defer(heard, slot)
        ended = self.memory.store.release_work(self.memory.key, heard, self.owner, (slot,))
        self._releasing.add(asyncio.ensure_future(ended))


async def test_guarantees_fail_if_left_utterances_are_lost(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mind, "Background", Forgetful)
    found, report = await held(folder, 3)
    assert not found["sleep: each utterance once, or set aside"], report
    assert found["own: each utterance once, or set aside"], report
