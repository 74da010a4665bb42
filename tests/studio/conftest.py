"""One browser a worker; a server over a small data folder a module; a page a test."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from served import Served
from studio import CHROMIUM, NPM, TOOLS, WIDE, Studio, serve_studio

OpenStudio = Callable[..., Studio]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium without a window; it ends with its module, since Playwright's loop keeps any other out of the thread."""
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed: the studio's pages are not looked at")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="session")
def node_tools() -> None:
    """TypeScript and axe, as tools/studio/package-lock.json has them."""
    if NPM is None:
        pytest.skip("npm is not installed: types and accessibility of the studio's pages are not checked")
    if not (TOOLS / "node_modules" / ".package-lock.json").exists():
        subprocess.run([NPM, "ci", "--prefer-offline"], cwd=TOOLS, check=True, capture_output=True)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with the studio over a data folder of the module's; a test's own fixture fills it."""
    with serve_studio(tmp_path_factory.mktemp("studio") / "data") as server:
        yield server


@pytest.fixture
def studio(browser: Any, served: Served) -> Iterator[OpenStudio]:
    """Open pages: `studio(dark=True, size=NARROW)`; at the end none of them has anything to complain of."""
    opened: list[tuple[Any, Studio]] = []

    def open_page(*, dark: bool = False, size: tuple[int, int] = WIDE, url: str = served.url) -> Studio:
        context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme="dark" if dark else "light",
            reduced_motion="reduce",
        )  # fmt: skip
        context.set_default_timeout(15_000)
        opened.append((context, Studio(context.new_page(), url)))
        return opened[-1][1]

    yield open_page
    faults = [fault for _, each in opened for fault in each.found()]
    for context, _ in opened:
        context.close()
    assert faults == []
