"""A replay in a real browser: links lead to moments, mouse and keys control it, and texts never run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from chromium import PROGRAM, BrowserPage, browser_page
from hamlet import HAMLET, hamlet
from mindstream_studio.recorded import write_replay
from mindstream_town.formats.town_file import parse_town
from mindstream_town.setting import Setting
from mindstream_town.source import setting_of
from mindstream_town.town import Town

pytestmark = [pytest.mark.slow, pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed")]
NOON = 12 * 360
MARKUP = "</script><img src=x onerror=alert(1)>"
BACKWARDS = "\u202egnirts"
HOSTILE = (
    HAMLET.replace("Ben Hale", "בן " + "ה" * 90)
    .replace("student of history", f"student of {MARKUP} and {BACKWARDS}")
    .replace("Elm House", f"Elm {MARKUP}")
    .replace("calm", f"calm\u2028{MARKUP}" + "x" * 3_000)
)


@pytest.fixture
async def page(tmp_path: Path) -> AsyncIterator[BrowserPage]:
    async with browser_page(tmp_path / "browser") as opened:
        yield opened


async def lived(folder: Path, setting: Setting) -> str:
    """Run a town up to noon; return the address of its replay."""
    async with Town.open(folder / "town", setting) as town:
        await town.run(until=NOON)
        await town.set_object(next(place for place in town.setting.addresses if place.count(":") == 3), MARKUP)
        return (await write_replay(town.store, town.setting, folder / "replay.html")).as_uri()


async def test_links_mouse_and_keys_select_moments(tmp_path: Path, page: BrowserPage) -> None:
    await page.open(f"{await lived(tmp_path, hamlet())}#t=2023-02-13T09:30&who=Ada+Brook")
    state = "[document.querySelector('h2').textContent, document.querySelector('.clock .now').textContent]"
    assert await page.evaluate(state) == ["Ada Brook", "09:30"]
    await page.press("ArrowRight")
    assert await page.evaluate(state) == ["Ada Brook", "09:31"]
    assert await page.evaluate("document.querySelector('.plan .present').textContent")
    await page.click(
        "[...document.querySelectorAll('.dot')].find((dot) => dot.ariaLabel.startsWith('Cleo')).firstChild"
    )
    assert await page.evaluate(state) == ["Cleo Marsh", "09:31"]
    assert await page.evaluate("location.hash") == "#t=2023-02-13T09%3A31%3A00&who=Cleo+Marsh"
    await page.press(" ")
    await page.until("document.querySelector('.clock .now').textContent > '09:31'")
    await page.press(" ")
    assert await page.evaluate("document.querySelector('.play').ariaLabel") == "Play"
    await page.evaluate("location.hash = 't=1440&place=Oak+Cafe'")
    await page.until("document.querySelector('h2').textContent === 'Oak Cafe'")
    assert await page.evaluate("document.querySelector('.clock .now').textContent") == "04:00"
    colours = """(async () => {
      for (let i = 0; i < 3; i++) await new Promise(requestAnimationFrame);
      const pixel = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
      pixel.drawImage(document.querySelector("canvas"), 2, 2, 1, 1, 0, 0, 1, 1);
      return [getComputedStyle(document.body).backgroundColor, pixel.getImageData(0, 0, 1, 1).data.join()];
    })()"""
    light = await page.evaluate(colours)
    await page.press("d")
    dark = await page.evaluate(colours)
    assert all(one != other for one, other in zip(light, dark, strict=True)), "the page and its map"
    await page.press("d")
    assert await page.evaluate(colours) == light
    assert page.complaints == []


async def test_texts_are_never_executed(tmp_path: Path, page: BrowserPage) -> None:
    await page.open(await lived(tmp_path, setting_of(parse_town(HOSTILE, Path()), seed=1)))
    look_everywhere = """(async () => {
      const rest = () => new Promise(requestAnimationFrame), buttons = (where) => [...document.querySelectorAll(where)];
      document.querySelector(".slider").value = 4319;
      document.querySelector(".slider").dispatchEvent(new Event("input"));
      let seen = "";
      const open = async (where) => {
        for (const button of buttons(where)) {
          button.click();
          await rest();
          seen += document.querySelector(".panel").textContent;
        }
      };
      await open("[role=tab]");
      await open(".place");
      for (const dot of buttons(".dot")) {
        dot.click();
        await open(".switch button");
        await open("[role=tab]");
      }
      return [document.images.length, document.scripts.length, seen];
    })()"""
    images, scripts, seen = await page.evaluate(look_everywhere)
    assert (images, scripts) == (0, 2)
    assert seen.count(MARKUP) > 10 and BACKWARDS in seen, "everything was shown as text"
    refused = "(() => { try { document.body.innerHTML = '<b>'; return false; } catch { return true; } })()"
    assert await page.evaluate(refused), "its policy forbids markup from texts"
    dialogs = [each for each in page.complaints if each["method"] == "Page.javascriptDialogOpening"]
    assert dialogs == []
