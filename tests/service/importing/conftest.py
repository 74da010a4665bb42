from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from mindstream import SqliteStore


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[SqliteStore]:
    made = SqliteStore(tmp_path / "data")
    yield made
    await made.close()
