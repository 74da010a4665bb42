"""What tests of the server share: one that runs, with a double of a model behind it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fake_endpoint import KEY, FakeEndpoint
from served import Served


@pytest.fixture
def served(folder: Path, door: FakeEndpoint, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A server whose minds are answered for by the double of an endpoint (`door`), in all roles."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Served(folder, model=f"{door.url}#any") as running:
        yield running


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    """A client of that server, from this machine, without a token."""
    with served.client() as asking:
        yield asking
