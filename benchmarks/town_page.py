"""Measure the memory of the studio's Town page while a town runs: as many events as in an hour, in less time.

    python benchmarks/town_page.py [--town smallville] [--steps 21600] [--pieces 3600] [--minutes 10]
        [--looks 24] [--json]

The town runs without a model in several pieces. After each piece the page reads the new events; after every tenth
piece another resident is selected. An hour at 60 times the town's clock is 21,600 steps; a page that polls once a
second reads 3,600 times in it. Each measurement follows a garbage collection: megabytes of the page's heap, and the
number of its nodes, documents and listeners. `fresh`: the same for a page that is opened at the end and scrubbed once.
It holds the same recording and has drawn it, but not followed it, so any excess of the first page is a leak.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from mindstream_town.packs import open_setting
from mindstream_town.town import Town

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
REACHED = """(step) => Number(document.querySelector('.timeline .slider')?.max ?? -1) >= step
  && !document.querySelector('.town h2')"""
READ = "document.dispatchEvent(new Event('visibilitychange'))"
"""Act as if the page had become visible again: it polls at once."""
SCRUB = """async (frames) => {
  const slider = document.querySelector(".timeline .slider"), last = Number(slider.max);
  for (let i = 0; i <= frames; i++) {
    slider.value = (last * i) / frames;
    slider.dispatchEvent(new Event("input"));
    await new Promise(requestAnimationFrame);
  }
}"""
A_PERSON = 10


async def serve(folder: Path) -> tuple[asyncio.subprocess.Process, str]:
    """Serve the town in a separate process; return the process and its address."""
    words = ["-m", "mindstream", "serve", "--studio", "--port", "0", "--data", str(folder / "data")]
    served = await asyncio.create_subprocess_exec(
        sys.executable, *words, "--town", f"town={folder / 'town'}", stderr=asyncio.subprocess.PIPE
    )
    assert served.stderr is not None
    return served, (await served.stderr.readline()).decode().split()[-1]


async def open_page(browser: Any, url: str) -> tuple[Any, Any]:
    """Open the Town page; return it and a session with its debugger."""
    page = await browser.new_page(viewport={"width": 1280, "height": 860})
    await page.goto(f"{url}/studio/#/town?town=town")
    await page.locator(".town .transport").wait_for()
    return page, await page.context.new_cdp_session(page)


async def held(session: Any) -> dict[str, float]:
    """Return the page's memory figures after a garbage collection."""
    await session.send("HeapProfiler.collectGarbage")
    usage, counted = await session.send("Runtime.getHeapUsage"), await session.send("Memory.getDOMCounters")
    return {"heap_mb": round(usage["usedSize"] / 1e6, 2), "nodes": counted["nodes"]} | {
        "documents": counted["documents"], "listeners": counted["jsEventListeners"],
    }  # fmt: skip


async def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Run the town while the page follows it."""
    from playwright.async_api import async_playwright

    setting, looks, began = open_setting(given.town, seed=1), list[dict[str, float]](), time.monotonic()
    people = [name.replace(" ", "+") for name in setting.people]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        async with Town.open(folder / "town", setting) as town, async_playwright() as playwright:
            await town.run(until=setting.profile.a_day // 3)
            first, (served, url) = town.step, await serve(folder)
            browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            page, session = await open_page(browser, url)
            for piece in range(1, given.pieces + 1):
                until = first + given.steps * piece // given.pieces
                await town.live_with({}, until, lambda: False, lambda _: None)
                await page.evaluate(READ)
                await asyncio.sleep(began + given.minutes * 60 * piece / given.pieces - time.monotonic())
                if piece % A_PERSON == 0:
                    who = people[piece // A_PERSON % len(people)]
                    await page.evaluate(f"location.hash = '#/town?town=town&who={who}'")
                if piece % (given.pieces // given.looks) == 0:
                    await page.evaluate(f"{READ}; location.hash = '#/town?town=town'")
                    await page.wait_for_function(REACHED, arg=until)
                    looks.append(
                        {"step": until, "minutes": round((time.monotonic() - began) / 60, 1)} | await held(session)
                    )
                    print(json.dumps(looks[-1]), file=sys.stderr, flush=True)
            fresh, debugger = await open_page(browser, url)
            await fresh.wait_for_function(REACHED, arg=until)
            await fresh.evaluate(SCRUB, given.pieces)
            report = {"looks": looks, "fresh": await held(debugger), "load": os.getloadavg()[0]}
            await browser.close()
            served.terminate()
            await served.wait()
    return report


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--town", default="smallville", help="a bundled town, or a file [%(default)s]")
    parser.add_argument("--steps", type=int, default=21_600, help="number of steps [%(default)s]")
    parser.add_argument("--pieces", type=int, default=3_600, help="number of pieces [%(default)s]")
    parser.add_argument("--minutes", type=float, default=10, help="minimum duration in minutes [%(default)s]")
    parser.add_argument("--looks", type=int, default=24, help="number of measurements [%(default)s]")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    print(json.dumps(asyncio.run(measure(given)), indent=None if given.json else 1))


if __name__ == "__main__":
    main()
