"""Recorded runs are replayed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from asking import ADD, Judge, parts_of, talk, text_of
from fake_endpoint import WRONG_KEY, FakeEndpoint, Says

from mindstream.errors import ModelRefused, RateLimited, SettingsError
from mindstream.models.model import Call
from mindstream.models.prompt import ask
from mindstream.models.providers.provider import provider
from mindstream.models.recording import Playback, Recorder
from mindstream.models.rules import FakeModel, Line


async def recorded(path: Path, *lines: Line) -> Recorder:
    return Recorder(FakeModel({"talk": lines, "judge": ['{"score": 3}']}), path)


async def test_a_recorded_run_is_replayed(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    model = await recorded(path, "Hello.", [Call("add", '{"a": 1}', "c1")])
    first = [await parts_of(model, talk("a")), await parts_of(model, talk("b", tools=(ADD,)))]
    grade = await ask(model, Judge())
    for strict in (False, True):
        again = Playback(path, strict=strict)
        assert again.name == f"playback:{path}"
        assert [await parts_of(again, talk("a")), await parts_of(again, talk("b", tools=(ADD,)))] == first
        assert await ask(again, Judge()) == grade


async def test_errors_are_replayed(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    model = await recorded(path, RateLimited("busy", 7.0), "Hello.")
    for said in (lambda: model, lambda: Playback(path)):
        with pytest.raises(RateLimited, match="busy") as caught:
            await parts_of(said())
        assert caught.value.retry_after_s == 7.0


async def test_a_slightly_different_run_is_replayed_in_order(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    model = await recorded(path, "first", "second")
    await parts_of(model, talk("a"))
    await parts_of(model, talk("b"))
    again = Playback(path)
    assert [text_of(await parts_of(again, talk(text))) for text in ("x", "y")] == ["first", "second"]


async def test_a_similar_request_gets_the_answer_of_the_closest_one(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    model = await recorded(path, "to Ann", "to Ben")
    await parts_of(model, talk("I am Ann.\nIt is nine."))
    await parts_of(model, talk("I am Ben.\nIt is nine."))
    again = Playback(path)
    later = [talk(f"I am {name}.\nIt is ten.") for name in ("Ben", "Ann")]
    assert [text_of(await parts_of(again, each)) for each in later] == ["to Ben", "to Ann"]


async def test_an_identical_request_gets_its_own_answer_in_any_order(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    model = await recorded(path, "to a", "to b")
    await parts_of(model, talk("a"))
    await parts_of(model, talk("b"))
    again = Playback(path)
    assert [text_of(await parts_of(again, talk(text))) for text in ("b", "a")] == ["to b", "to a"]


async def test_strict_playback_reports_where_the_run_diverges(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    await parts_of(await recorded(path, "Hello."), talk("good morning"))
    with pytest.raises(
        ModelRefused, match=r"'talk'.*message 2 is 'good night', but the recorded one is 'good morning'"
    ):
        await parts_of(Playback(path, strict=True), talk("good night"))


async def test_an_exhausted_recording_is_reported(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    await parts_of(await recorded(path, "Hello."))
    again = Playback(path)
    await parts_of(again)
    with pytest.raises(ModelRefused, match=r"after 1 call: all its calls of this prompt are used"):
        await parts_of(again)


async def test_a_recording_holds_no_key(tmp_path: Path) -> None:
    path, key = tmp_path / "run.jsonl", "sk-very-secret-0123456789"
    with FakeEndpoint() as door:
        door.will(Says("Hello."), WRONG_KEY)
        real = provider(f"{door.url}#any", api_key=key)
        await parts_of(Recorder(real, path))
        with pytest.raises(ModelRefused):
            await parts_of(Recorder(real, path))
        await real.aclose()
    text = path.read_text()
    assert len(text.splitlines()) == 2
    assert key not in text
    assert "Bearer" not in text


def test_an_invalid_recording_is_reported_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    with pytest.raises(SettingsError, match="cannot be read"):
        Playback(path)
    path.write_text('{"prompt": "talk"}\n')
    with pytest.raises(SettingsError, match=r"run\.jsonl:1"):
        Playback(path)


def test_special_files_are_refused_as_recordings(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path / "fifo", Path("/dev/zero"), tmp_path):
        with pytest.raises(SettingsError, match="is not a regular file"):
            Playback(path)
