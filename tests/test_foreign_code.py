"""Failing foreign code is one failure, described in terms that its caller knows."""

from __future__ import annotations

import pytest

from mindstream.foreign_code import ForeignFailure, ForeignTask


async def test_a_timeout_of_foreign_code_has_a_clear_message() -> None:
    async def work() -> None:
        raise TimeoutError

    with pytest.raises(ForeignFailure, match=r"^timed out$"):
        await ForeignTask(work).result()
