"""Measure the speed of the studio's Town page, in headless Chromium without a graphics card.

    python benchmarks/replay.py [--town smallville] [--copies 40] [--until 8640] [--seconds 5] [--json]

`25`: a day of 8,640 steps. `1000`: copies of the town's residents and map side by side, up to a step (simulating them
takes two or three minutes). For each: seconds until the page is usable; frames per second during replay, with the whole
map and with one resident followed; the longest frame in ms while the slider is moved over the whole recording in 600
frames, and the longest task in CPU ms; megabytes of the page's heap before and after. The machine's load is reported
too: other processes delay frames, but do not lengthen tasks.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import shutil
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

from mindstream_studio.recorded import write_replay
from mindstream_town.packs import open_setting
from mindstream_town.setting import Setting
from mindstream_town.town import Town
from town_copies import copied_in_one

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PLAYED = """(seconds) => new Promise((done) => {
  const gaps = []; let before = performance.now(); const end = before + 1000 * seconds;
  const look = (now) => {
    gaps.push(now - before); before = now;
    now < end ? requestAnimationFrame(look) : done(gaps);
  };
  requestAnimationFrame(look);
})"""
SCRUBBED = """(frames) => new Promise((done) => {
  const slider = document.querySelector(".slider"), [from, to] = [Number(slider.min), Number(slider.max)], gaps = [];
  let i = 0, before = performance.now();
  const draw = (now) => {
    gaps.push(now - before); before = now;
    slider.value = from + ((to - from) * i) / frames;
    slider.dispatchEvent(new Event("input"));
    i++ < frames ? requestAnimationFrame(draw) : done(gaps);
  };
  requestAnimationFrame(draw);
})"""
HEAP = "() => (window.gc?.(), performance.memory.usedJSHeapSize / 1e6)"


async def write_page(setting: Setting, until: int, folder: Path) -> Path:
    """Run a town up to a step; return its page."""
    async with Town.open(folder / "town", setting) as town:
        await town.run(until=until)
        return await write_replay(town.store, town.setting, folder / "town.html", until=until)


def frames(gaps: list[float]) -> dict[str, float]:
    """Return frames per second and the longest frame, from the times between frames in ms."""
    gaps = gaps[2:]
    return {
        "a_second": round(1_000 * len(gaps) / sum(gaps), 1),
        "p99_ms": round(sorted(gaps)[int(0.99 * len(gaps))], 1),
        "longest_ms": round(max(gaps), 1),
    }


def longest_task(trace: bytes) -> float:
    """Return the longest task of the page's main thread in a trace, in CPU ms."""
    told = json.loads(trace)["traceEvents"]
    busy = Counter((each["pid"], each["tid"]) for each in told if each["name"] == "FireAnimationFrame")
    own = busy.most_common(1)[0][0]
    tasks = [each for each in told if each["name"].endswith("RunTask") and (each["pid"], each["tid"]) == own]
    longest: float = max(each.get("tdur", 0) for each in tasks)
    return round(longest / 1_000, 1)


def look(browser: Any, page_file: Path, seconds: float, moment: int, who: str) -> dict[str, Any]:
    """Replay and scrub a page; return the measurements."""
    page = browser.new_page(viewport={"width": 1280, "height": 800})
    page.goto(f"{page_file.as_uri()}#t={moment}")
    page.wait_for_selector("html[data-ready]", timeout=120_000)
    ready = page.evaluate("performance.now() / 1000")
    page.wait_for_timeout(1_500)
    heap = page.evaluate(HEAP)
    page.keyboard.press(" ")
    whole = page.evaluate(PLAYED, seconds)
    page.evaluate(f"location.hash = 't={moment}&who={who}&follow='")
    followed = page.evaluate(PLAYED, seconds)
    page.keyboard.press(" ")
    page.keyboard.press("Escape")
    page.keyboard.press("0")
    page.wait_for_timeout(500)
    browser.start_tracing(page=page, categories=["toplevel", "devtools.timeline"])
    scrubbed = page.evaluate(SCRUBBED, 600)
    drawn = frames(scrubbed) | {"longest_task_ms": longest_task(browser.stop_tracing())}
    return {
        "page_kb": round(page_file.stat().st_size / 1_000), "ready_s": round(ready, 2), "whole": frames(whole),
        "followed": frames(followed), "scrubbed": drawn, "heap_mb": round(heap, 1),
        "heap_mb_after": round(page.evaluate(HEAP), 1),
    }  # fmt: skip


def measure(given: argparse.Namespace) -> dict[str, Any]:
    """Measure both towns."""
    from playwright.sync_api import sync_playwright

    setting, report = open_setting(given.town, seed=1), dict[str, Any](load=os.getloadavg()[0], cores=os.cpu_count())
    who = next(iter(setting.people)).replace(" ", "+")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        day = asyncio.run(write_page(setting, setting.profile.a_day, folder / "25"))
        many = asyncio.run(write_page(copied_in_one(replace(setting), given.copies), given.until, folder / "1000"))
        with sync_playwright() as playwright:  # Playwright leaves an event loop running, so the towns were run before
            browser = playwright.chromium.launch(
                executable_path=CHROMIUM,
                args=["--no-sandbox", "--enable-precise-memory-info", "--js-flags=--expose-gc"],
            )
            report["25"] = look(browser, day, given.seconds, 12 * 360, who)
            report["1000"] = look(browser, many, given.seconds, given.until - 300, f"{who}+1")
            browser.close()
    return report | {"load_after": os.getloadavg()[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--town", default="smallville", help="a bundled town, or a file [%(default)s]")
    parser.add_argument("--copies", type=int, default=40, help="number of copies in one town [%(default)s]")
    parser.add_argument("--until", type=int, default=8_640, help="last step of the simulation [%(default)s]")
    parser.add_argument("--seconds", type=float, default=5, help="seconds of replay [%(default)s]")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    given = parser.parse_args()
    print(json.dumps(measure(given), indent=None if given.json else 1))


if __name__ == "__main__":
    main()
