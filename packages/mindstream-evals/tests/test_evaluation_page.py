"""The page of pairs in a real browser: keys and mouse judge, verdicts are stored and saved, no condition is shown."""

from __future__ import annotations

import csv
import io
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from chromium import PROGRAM, BrowserPage, browser_page
from mindstream_evals.town.evaluate import Pair
from mindstream_evals.town.questions import Answer, Facts, Item, Question, read_verdicts
from mindstream_evals.town.report import build_page
from mindstream_town.residents.interview import CONDITIONS

pytestmark = [pytest.mark.slow, pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed")]
MARKUP = "</script><img src=x onerror=alert(1)>"


def pair(at: int) -> Pair:
    item = Item(f"Ada {MARKUP}", Question(f"self-{at}", "self-knowledge", f"Who are you, the {at}th time? {MARKUP}"))
    said = (f"I am “Ada”, {at}. {MARKUP}", "רק שאלה " * 40)
    one, two = (Answer(item, condition, text, condition) for condition, text in zip(CONDITIONS[1:3], said, strict=True))
    return Pair(one, two)


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[BrowserPage]:
    async with browser_page(tmp_path / "browser") as opened:
        yield opened


def written(folder: Path) -> tuple[list[Pair], str]:
    pairs = [pair(at) for at in range(4)]
    file = folder / "pairs.html"
    text = build_page(f"Hamlet {MARKUP}", [(each, Facts("Monday, 12:00", (f"Ada bakes. {MARKUP}",))) for each in pairs])
    assert not any(condition in text for condition in CONDITIONS[1:3])
    file.write_text(text, "utf-8")
    return pairs, file.as_uri()


async def test_pairs_can_be_judged_by_keys_or_mouse_and_saved(tmp_path: Path, page: BrowserPage) -> None:
    pairs, address = written(tmp_path)
    await page.open(address)
    downloads = tmp_path / "downloads"
    await page.ask("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(downloads))
    count = "document.getElementById('count').textContent"
    assert await page.evaluate(count) == "Pair 1 of 4, 0 judged"
    assert await page.evaluate("document.getElementById('one').lastChild.textContent") == pairs[0].first.text
    await page.press("1")
    await page.click("document.getElementById('two')")
    await page.press("=")
    assert await page.evaluate(count) == "Pair 4 of 4, 3 judged"
    await page.press("ArrowLeft")
    assert await page.evaluate("document.getElementById('equal').ariaPressed") == "true"
    await page.press("2")  # judged again
    await page.open(address)
    assert await page.evaluate(count) == "Pair 4 of 4, 3 judged", "a reopened page continues"
    await page.press("ArrowRight")
    assert "Pairs left open: 1" in await page.evaluate("document.getElementById('open').textContent")
    await page.press("s")
    saved = downloads / "judged.csv"
    for _ in range(400):
        if saved.is_file() and saved.stat().st_size:
            break
        await page.evaluate("new Promise((done) => setTimeout(done, 50))")
    assert read_verdicts([saved]) == [(pairs[0].id, 1.0), (pairs[1].id, 0.0), (pairs[2].id, 0.0)]
    assert next(csv.DictReader(io.StringIO(saved.read_text("utf-8"))))["resident"] == pairs[0].item.resident
    assert page.complaints == [], "texts are never executed"


async def test_the_page_fits_a_phone_and_has_light_and_dark_modes(tmp_path: Path, page: BrowserPage) -> None:
    _, address = written(tmp_path)
    phone = {"width": 360, "height": 740, "deviceScaleFactor": 1, "mobile": True}
    await page.ask("Emulation.setDeviceMetricsOverride", **phone)
    await page.open(address)
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert await page.evaluate("!document.getElementById('evidence').open"), "the answers come first"
    colour = "getComputedStyle(document.body).backgroundColor"
    light = await page.evaluate(colour)
    await page.press("d")
    dark = await page.evaluate(colour)
    await page.press("d")
    assert light != dark and await page.evaluate(colour) == light
