"""Shared fixtures: a temporary data folder, and no access to a paid model."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import httpx
import postgres_server
import pytest
from fake_endpoint import KEY, FakeEndpoint
from hypothesis import settings
from world import World

from mindstream import SqliteStore
from mindstream.models.providers.provider import Provider, provider

if TYPE_CHECKING:
    from served import Served

KEYS = (
    "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GOOGLE_API_KEY", "GEMINI_API_KEY", "OPENAI_BASE_URL", "TAVILY_API_KEY",
    "WOLFRAM_APP_ID",
)  # fmt: skip

SLOW = Path(__file__).parent / "tests/slow.txt"
IN_MEMORY, ROOM = Path("/dev/shm"), 3 << 30


def has_room(folder: Path) -> bool:
    """Return whether the tests' files fit into a folder, and programs may be run there."""
    return folder.is_dir() and shutil.disk_usage(folder).free > ROOM and not os.statvfs(folder).f_flag & os.ST_NOEXEC


if "TMPDIR" not in os.environ and has_room(IN_MEMORY):
    os.environ["TMPDIR"] = tempfile.tempdir = str(
        IN_MEMORY
    )  # tests need no crash safety, so no commit waits for a disk

# no deadline: machines are shared, and the duration of an example means nothing
settings.register_profile("quick", deadline=None, max_examples=20)
settings.register_profile("thorough", deadline=None)


def pytest_configure(config: pytest.Config) -> None:
    """Generate fewer examples if the slow tests are not run either."""
    settings.load_profile("quick" if "not slow" in config.option.markexpr else "thorough")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of tests/slow.txt as slow (`python tools/slow_tests.py` writes that list)."""
    slow = frozenset(SLOW.read_text("utf-8").split())
    for item in items:
        if item.nodeid.partition("[")[0] in slow:
            item.add_marker(pytest.mark.slow)


@pytest.fixture(autouse=True)
def no_paid_model(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Remove keys and settings from the environment: a test cannot spend money or read its owner's memory."""
    for key in KEYS:
        monkeypatch.delenv(key, raising=False)
    home = tmp_path_factory.mktemp("home")
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(home))
    yield
    with contextlib.suppress(OSError):  # a test left files there
        home.rmdir()


@pytest.fixture
def door() -> Iterator[FakeEndpoint]:
    """A double of a model endpoint."""
    with FakeEndpoint() as opened:
        yield opened


@pytest.fixture
async def model(door: FakeEndpoint) -> AsyncIterator[Provider]:
    """A provider connected to the double."""
    opened = provider(f"{door.url}#any", api_key=KEY, patience_s=5)
    yield opened
    await opened.aclose()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A temporary data folder."""
    return tmp_path / "data"


@pytest.fixture(params=["folder", "database"])
def data(request: pytest.FixtureRequest, folder: Path) -> str:
    """A value for --data: a temporary data folder, or a database with a password in its URL."""
    return str(folder) if request.param == "folder" else postgres_server.fresh_url()


@pytest.fixture
async def world(folder: Path) -> AsyncIterator[World]:
    """A stream in its own store, with a manual clock."""
    made = World(folder)
    yield made
    await made.close()


@pytest.fixture
async def store(folder: Path) -> AsyncIterator[SqliteStore]:
    """An empty store."""
    made = SqliteStore(folder)
    yield made
    await made.close()


@pytest.fixture
def served(folder: Path, door: FakeEndpoint, monkeypatch: pytest.MonkeyPatch) -> Iterator[Served]:
    """A server with the double of an endpoint (`door`) as its model, in all roles."""
    from served import Served  # imported here: most tests need no server

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setattr("mindstream.server.run.DRAIN_S", 0.5)  # a life that a test began does not end by itself
    with Served(folder, model=f"{door.url}#any") as running:
        yield running


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    """A client of that server on this machine, without a token."""
    with served.client() as asking:
        yield asking
