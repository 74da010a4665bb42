"""Measure the studio in a browser: the bytes that each page transfers, and the time until it is usable.

    PYTHONPATH=src python tools/measure_studio.py --times 10

Start a server with the recordings on an empty data folder, and open each page several times, in turn, in a browser with
an empty cache. A page is usable when its main content is visible: the first line of a conversation, the map of a town.
Times start with the request of the page, by the browser's clock.
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import statistics
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from mindstream_studio.serve import add_studio, read_pages

from mindstream.server.api_app import app
from mindstream.server.run import Server, configure, listen

PAGES = {
    "first": ("", "main .empty a"),
    "talk": ("talk?from=recorded&user=ann", ".lines .line"),
    "memory": ("memory?from=recorded&user=ann", "main .day li"),
    "town": ("town?from=recorded&town=hamlet", "main canvas"),
    "plan": ("plan?from=recorded&user=dora", "main .list li"),
    "pools": ("pools?from=recorded&user=olga&pool=tongues", "main .list li"),
    "life": ("life?from=recorded&user=museum", "main .list li"),
    "traces": ("traces?from=recorded&user=museum", "main .calls li"),
}
"""The pages to open, and the element that shows that a page is usable."""
WATCH = """(what) => {
  const look = () => {
    if (document.querySelector(what)) window.usable_ms = performance.now();
    else requestAnimationFrame(look);
  };
  look();
}"""


@contextmanager
def serving(data: Path) -> Iterator[str]:
    """Serve the studio from a thread; yield its address."""
    api_app = app(data, model="rules")
    add_studio(api_app)
    socket = listen("127.0.0.1", 0)
    server = Server(api_app, configure(api_app))
    thread = threading.Thread(target=lambda: asyncio.run(server.serve_app([socket])), daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{socket.getsockname()[1]}"
    server.should_exit = True
    thread.join(timeout=60)


def measure(browser: Any, url: str, page: str) -> tuple[float, int, int]:
    """Open a page; return the seconds until it was usable, the number of responses, and their transferred bytes."""
    link, what = PAGES[page]
    context = browser.new_context()
    tab = context.new_page()
    wire = context.new_cdp_session(tab)
    sizes: list[int] = []
    wire.on("Network.loadingFinished", lambda told: sizes.append(int(told["encodedDataLength"])))
    wire.send("Network.enable")
    tab.add_init_script(f"({WATCH})({what!r})")
    tab.goto(f"{url}/studio/#/{link}")
    while not (usable_ms := tab.evaluate("window.usable_ms")):
        tab.wait_for_timeout(50)
    tab.wait_for_timeout(500)
    found = usable_ms / 1000, len(sizes), sum(sizes)
    context.close()
    return found


def main() -> None:
    from playwright.sync_api import sync_playwright

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=10)
    parser.add_argument("--url", help="URL of a running server [start one]")
    times = (args := parser.parse_args()).times
    chromium = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
    whole, packed = (sum(len(getattr(each, size)) for each in read_pages().values()) for size in ("body", "packed"))
    print(f"all files: {whole:,} bytes, {packed:,} packed")
    with tempfile.TemporaryDirectory() as made, serving(Path(made) / "data") as own, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        found: dict[str, list[tuple[float, int, int]]] = {page: [] for page in PAGES}
        for _ in range(times):
            for page in PAGES:
                found[page].append(measure(browser, args.url or own, page))
        browser.close()
    print("| page | files | kB on the wire | usable after: median | slowest |\n|---|---|---|---|---|")
    for page, each in found.items():
        seconds = sorted(one for one, _, _ in each)
        files, size = max(count for _, count, _ in each), max(size for _, _, size in each)
        print(f"| {page} | {files} | {size / 1000:.0f} | {statistics.median(seconds):.2f} s | {seconds[-1]:.2f} s |")


if __name__ == "__main__":
    main()
