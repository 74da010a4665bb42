"""The studio in a real browser: a server on a data folder, and a page that reports all faults."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Coroutine, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from mindstream_studio.serve import STATIC, add_studio
from served import Served

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NPM = shutil.which("npm")
TOOLS = Path(__file__).parents[3] / "tools" / "studio"
WIDE, NARROW = (1280, 860), (390, 844)
HOSTILE = (
    "<img src=x onerror=\"document.title='taken'\">",
    "</script><script>document.title='taken'</script>",
    "\u202eright to left \u2067mixed\u2069 مرحبا שלום",
    "w" * 10_000,
    "${7*7} {{7*7}} [a](javascript:alert(1))",
)
"""Texts that must stay text."""


def run_apart(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine in a separate thread, since the browser's event loop runs in this one."""
    with ThreadPoolExecutor(1) as pool:
        pool.submit(asyncio.run, work).result()


def serve_studio(data: Path, **more: Any) -> Served:
    """Return a server with the studio; a context manager."""
    served = Served(data, **more)
    add_studio(served.api_app)
    return served


class Held:
    """Requests of a page that are held until they are released."""

    def __init__(self, page: Any, address: str) -> None:
        self._page, self._address, self._routes = page, address, list[Any]()
        page.route(address, self._keep)

    def _keep(self, route: Any) -> None:
        self._routes.append(route)

    def wait(self) -> None:
        """Wait until a request is held."""
        while not self._routes:
            self._page.evaluate("new Promise(requestAnimationFrame)")  # process the browser's events

    def release(self) -> None:
        """Release all held and later requests."""
        self._page.unroute(self._address, self._keep)  # which releases the held requests


@dataclass
class Studio:
    """A page of the studio, for one test.

    Attributes:
        page: Playwright's page. url: the server's address.
        faults: errors of the console, of the policy and of scripts, and requests to other machines; a test that ends
            with one fails.
    """

    page: Any
    url: str
    faults: list[str] = field(default_factory=list)
    forgiven: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        self.page.on("console", self._listen)
        self.page.on("pageerror", lambda error: self.faults.append(str(error)))
        self.page.on("request", self._look)

    def _listen(self, told: Any) -> None:
        if told.type in ("error", "warning"):
            self.faults.append(told.text)

    def _look(self, request: Any) -> None:
        if not request.url.startswith((f"{self.url}/", "data:", "about:")):
            self.faults.append(f"asked off the machine: {request.url}")

    def open(self, page: str = "", **params: str | int) -> None:
        """Open a page, and wait until it is ready."""
        self.page.goto(f"{self.url}/studio/#/{page}?{urlencode(params)}")
        self.page.get_by_role("heading", level=1).wait_for()
        self.draw()

    def offer_modules(self) -> None:
        """Serve the pages' modules below source/, unbundled, so that a test can import one of them."""
        root = f"{self.url}/studio/source/"
        self.page.route(
            f"{root}**",
            lambda route: route.fulfill(
                path=STATIC / route.request.url.removeprefix(root), content_type="text/javascript"
            ),
        )

    def draw(self) -> None:
        """Wait until the page has drawn its current state."""
        self.page.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")

    def hold(self, address: str) -> Held:
        """Hold the page's requests to an address until they are released."""
        return Held(self.page, address)

    def leave(self) -> None:
        """Leave the page before the server stops."""
        self.page.goto("about:blank")

    def forgive(self, *words: str) -> None:
        """Ignore expected faults, such as those of a stopped server, including later ones."""
        self.forgiven += words

    def found(self) -> list[str]:
        """Return the faults that are not forgiven."""
        self.page.evaluate("0")  # process the browser's events
        return [each for each in self.faults if not any(word in each for word in self.forgiven)]

    def fits(self) -> bool:
        """Return whether no element is wider than the page."""
        return bool(self.page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"))

    def tab_to(self, role: str, name: str, most: int = 60) -> None:
        """Reach an element with the Tab key only."""
        wanted = self.page.get_by_role(role, name=name).first
        wanted.wait_for()
        for _ in range(most):
            self.page.keyboard.press("Tab")
            if wanted.evaluate("each => each === document.activeElement"):
                return
        raise AssertionError(f"Tab does not come to the {role} {name!r}")

    def axe(self, passing_over: Sequence[str] = ()) -> list[str]:
        """Return the serious faults found by axe."""
        source = TOOLS / "node_modules" / "axe-core" / "axe.min.js"
        self.page.evaluate(source.read_text("utf-8"))  # the policy blocks scripts, except those of a debugger
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [
            f"{each['id']}: {each['help']} at {each['nodes'][0]['html'][:200]}"
            for each in found["violations"]
            if each["impact"] in ("serious", "critical") and each["id"] not in passing_over
        ]
