"""A replay is one file that plays a town's log, and in which no text can become markup."""

from __future__ import annotations

import asyncio
import base64
import json
import re
import zlib
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hamlet import HAMLET, hamlet
from mindstream_studio.recorded import write_replay
from mindstream_town.formats.town_file import parse_town
from mindstream_town.setting import Setting
from mindstream_town.source import setting_of
from mindstream_town.town import Town

from mindstream.cli.app import app
from mindstream.errors import InputError

HOSTILE = "</script><img src=x onerror=alert(1)>"
NOON = 12 * 360


class Tags(HTMLParser):
    """The elements of a page, and the content of its recording."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.recording = ""
        self._inside = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self._inside = dict(attrs).get("id") == "recording"

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.recording += data

    def handle_endtag(self, tag: str) -> None:
        self._inside = False


async def page(folder: Path, setting: Setting, out: Path) -> str:
    async with Town.open(folder, setting) as town:
        await town.run(until=NOON)
        written = await write_replay(town.store, town.setting, out)
    return await asyncio.to_thread(written.read_text, "utf-8")


def read(text: str) -> tuple[Tags, dict[str, object]]:
    tags = Tags()
    tags.feed(text)
    return tags, json.loads(zlib.decompress(base64.b64decode("".join(tags.recording.split()))))


async def test_the_same_log_gives_the_same_page(tmp_path: Path) -> None:
    first = await page(tmp_path / "a", hamlet(), tmp_path / "a.html")
    assert await page(tmp_path / "b", hamlet(), tmp_path / "b.html") == first
    assert len(first) < 250_000
    tags, recording = read(first)
    assert {"main", "style", "script"} <= set(tags.tags)
    assert "Ada Brook" in json.dumps(recording)
    assert not re.search(r"""(?:src|href)=["'](?:https?:)?//""", first), "it loads nothing from the network"
    assert "default-src 'none'" in first


async def test_texts_of_residents_are_not_markup(tmp_path: Path) -> None:
    text = HAMLET.replace("Cleo Marsh is a student of history", f"Cleo Marsh says {HOSTILE} and is a student")
    hostile = setting_of(parse_town(text, Path()), seed=1)
    harmless = await page(tmp_path / "a", hamlet(), tmp_path / "a.html")
    written = await page(tmp_path / "b", hostile, tmp_path / "b.html")
    tags, recording = read(written)
    assert HOSTILE not in written and HOSTILE in json.dumps(recording, ensure_ascii=False)
    assert sorted(tags.tags) == sorted(read(harmless)[0].tags), "no additional element"


async def test_only_existing_steps_can_be_replayed(tmp_path: Path) -> None:
    whole = await page(tmp_path / "a", hamlet(), tmp_path / "a.html")
    async with Town.open(tmp_path / "a") as town:
        part = await write_replay(town.store, town.setting, tmp_path / "b.html", since=7 * 360, until=8 * 360)
        assert len(await asyncio.to_thread(part.read_text, "utf-8")) < len(whole)
        with pytest.raises(InputError, match="the end must be later than the beginning"):
            await write_replay(town.store, town.setting, tmp_path / "c.html", since=9 * 360, until=8 * 360)
        again = await write_replay(town.store, town.setting, tmp_path / "b.html")
        assert await asyncio.to_thread(again.read_text, "utf-8") == whole, "an older replay is replaced"
        diary = tmp_path / "diary.html"
        await asyncio.to_thread(diary.write_text, "<!doctype html>\n<p>Dear diary")
        with pytest.raises(InputError, match=r"diary\.html exists already: name another file"):
            await write_replay(town.store, town.setting, diary)


async def test_the_studio_saves_the_same_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    whole = await page(tmp_path / "a", hamlet(), tmp_path / "a.html")
    out = tmp_path / "b.html"
    command = ["studio", "export", "--town", str(tmp_path / "a"), "--out", str(out), "--json"]
    await asyncio.to_thread(app, command, standalone_mode=False)
    assert json.loads(capsys.readouterr().out) == {"out": str(out), "bytes": len(whole.encode())}
    assert await asyncio.to_thread(out.read_text, "utf-8") == whole
