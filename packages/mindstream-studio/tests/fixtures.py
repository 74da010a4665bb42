"""One browser per worker; per module a server with a small data folder; per test a page."""

from __future__ import annotations

import asyncio
import fcntl
import subprocess
from asyncio import events
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from served import Served
from studio import CHROMIUM, NPM, TOOLS, WIDE, Studio, serve_studio

OpenStudio = Callable[..., Studio]


class Browser:
    """Headless Chromium; its event loop runs in this thread, and counts as running only inside the block.

    Playwright leaves its loop running as long as it is open; other tests of the thread use their own loops.
    """

    def __init__(self, opened: Any, loop: asyncio.AbstractEventLoop) -> None:
        self.opened, self._loop = opened, loop

    def __enter__(self) -> Any:
        events._set_running_loop(self._loop)
        return self.opened

    def __exit__(self, *_: object) -> None:
        events._set_running_loop(None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Open the browser once per worker."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed: the studio's pages are not looked at")
    from playwright.sync_api import sync_playwright

    playwright = sync_playwright().start()
    made = Browser(
        playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"]), asyncio.get_running_loop()
    )
    events._set_running_loop(None)
    yield made
    with made as opened:
        opened.close()
        playwright.stop()


@pytest.fixture(scope="session")
def node_tools() -> None:
    """TypeScript and axe, in the versions of tools/studio/package-lock.json."""
    if NPM is None:
        pytest.skip("npm is not installed: types and accessibility of the studio's pages are not checked")
    with (TOOLS / ".fetching").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # one worker fetches, the others wait
        if not (TOOLS / "node_modules" / ".package-lock.json").exists():
            subprocess.run([NPM, "ci", "--prefer-offline"], cwd=TOOLS, check=True, capture_output=True)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with the studio on the module's data folder; a test module can override it to add data."""
    with serve_studio(tmp_path_factory.mktemp("studio") / "data") as server:
        yield server


@pytest.fixture
def studio(browser: Browser, served: Served) -> Iterator[OpenStudio]:
    """Open pages: `studio(dark=True, size=NARROW)`; at the end no page may have reported a fault."""
    opened: list[tuple[Any, Studio]] = []
    with browser as chromium:

        def open_page(*, dark: bool = False, size: tuple[int, int] = WIDE, url: str = served.url) -> Studio:
            context = chromium.new_context(
                viewport={"width": size[0], "height": size[1]}, color_scheme="dark" if dark else "light",
                reduced_motion="reduce",
            )  # fmt: skip
            context.set_default_timeout(100_000)
            opened.append((context, Studio(context.new_page(), url)))
            return opened[-1][1]

        yield open_page
        faults = [fault for _, each in opened for fault in each.found()]
        for context, _ in opened:
            context.close()
    assert faults == [], faults
