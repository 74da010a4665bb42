"""The recording of a running town: incremental parts equal a complete reading; erased text is removed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hamlet import hamlet
from mindstream_town.replay import GrowingRecording
from mindstream_town.town import Town

from mindstream.identifiers import StreamName
from mindstream.memory.store.sqlite import SqliteStore

HOUR = 360
CAFE = "Hamlet:Oak Cafe:cafe"


def with_additions(whole: dict[str, Any], part: dict[str, Any]) -> dict[str, Any]:
    """Return a recording with added parts: steps count from the entry before, so entries follow the others."""
    people = [
        old | {name: old[name] + new[name] for name in new if name != "name"}
        for old, new in zip(whole["people"], part["people"], strict=True)
    ]
    added = {name: whole[name] + part[name] for name in ("texts", "blocks", "things")}
    return whole | added | {"people": people, "last": part["last"]}


def with_texts(recording: dict[str, Any]) -> dict[str, Any]:
    """Return a recording with texts instead of their numbers, which depend on the reading order."""
    texts = recording["texts"]
    blocks = [[*block[:2], texts[block[2]], *block[3:]] for block in recording["blocks"]]
    return {"things": [[*each[:2], texts[each[2]], each[3]] for each in recording["things"]]} | {
        each["name"]: [
            [[*act[:2], texts[act[2]], act[3], texts[act[5]]] for act in each["acts"]],
            [[step, [blocks[block] for block in plan]] for step, plan in each["plans"]],
            [[step, kind, texts[text], *more] for step, kind, text, *more in each["records"]],
            [[step, other, place, texts[what]] for step, other, place, what in each["seen"]],
            [[*talk, [[by, texts[text]] for by, text in lines]] for *talk, lines in each["talks"]],
            [[step, texts[about], *more] for step, about, *more in each["decisions"]],
            [[step, texts[text]] for step, text in each["lived"]],
            each["reflections"], each["places"], len(each["days"]),
        ]
        for each in recording["people"]
    }  # fmt: skip


def as_json(recording: dict[str, object]) -> dict[str, Any]:
    """Return it as JSON, as a page gets it."""
    found: dict[str, Any] = json.loads(json.dumps(recording))
    return found


async def test_incremental_reading_equals_reading_at_once(tmp_path: Path) -> None:
    seen, recording = GrowingRecording(tmp_path), dict[str, Any]()
    async with Town.open(tmp_path, hamlet()) as town:
        mark = ""
        for hours in (0, 7, 8, 9, 12, 18):
            await town.run(until=hours * HOUR)
            if hours == 9:
                await town.set_object(f"{CAFE}:piano", "out of tune")
                await town.whisper("Ada Brook", "The piano is out of tune.")
            if hours == 12:
                me = await town.embody("Ben Hale", by="Maya")
                await me.do("dancing", 5)
            found = await seen.since(mark)
            assert found.whole == (not mark) and found.step == town.step
            recording = as_json(found.recording) if found.whole else with_additions(recording, as_json(found.recording))
            mark = found.mark
        nothing = await seen.since(mark)
        assert nothing.mark == mark and all(each["acts"] == [] for each in as_json(nothing.recording)["people"])
    at_once = await GrowingRecording(tmp_path).since("")
    assert with_texts(recording) == with_texts(as_json(at_once.recording))
    lived = [[recording["texts"][text] for _, text in each["lived"]] for each in recording["people"]]
    assert lived == [[], ["Maya", ""], []]


async def test_visitors_and_erasures_cause_a_complete_reading(tmp_path: Path) -> None:
    seen = GrowingRecording(tmp_path)
    async with Town.open(tmp_path, hamlet()) as town:
        await town.run(until=8 * HOUR)
        mark = (await seen.since("")).mark
        me = await town.embody("Maya", as_visitor=True, at=CAFE)
        found = await seen.since(mark)
        assert found.whole and [each["name"] for each in as_json(found.recording)["people"]][-1] == "Maya"
        await me.leave()
        secret = await town.whisper("Ada Brook", "The key is under the third stone.")
        assert "third stone" in json.dumps((await seen.since("")).recording)
    mark = (await seen.since("")).mark
    async with SqliteStore(tmp_path) as store:
        await store.erase(store.key(StreamName("resident", "Ada Brook")), [secret.id])
    found = await seen.since(mark)
    assert found.whole and "third stone" not in json.dumps(found.recording)


async def test_a_history_is_cached_until_the_town_changes(tmp_path: Path) -> None:
    seen = GrowingRecording(tmp_path)
    async with Town.open(tmp_path, hamlet()) as town:
        await town.run(until=8 * HOUR)
        first = await seen.history()
        assert await seen.history() is first and first.step == town.step
        await town.run(until=9 * HOUR)
        assert (await seen.history()).step == town.step
