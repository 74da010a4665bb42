"""Signals: what they wait for, and for how long."""

from __future__ import annotations

import asyncio

import pytest

from mindstream.log.events import Signal


async def test_a_signal_is_waited_for_until_it_is_set_or_the_time_is_over() -> None:
    signal = Signal()
    assert not await signal.wait(0.001)
    asyncio.get_running_loop().call_soon(signal.set)
    assert await signal.wait()
    assert await signal.wait(0)
    signal.clear()
    assert not signal.is_set()
    assert not await signal.wait(0)


async def test_a_cancelled_wait_leaves_the_signal_usable() -> None:
    signal = Signal()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.001):
            await signal.wait()
    signal.set()
    assert await signal.wait(0)
