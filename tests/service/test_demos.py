from __future__ import annotations

from pathlib import Path

import pytest

from mindstream.errors import InputError
from mindstream.log.events import Heard, Said, Unknown
from mindstream.service import demos
from mindstream.service.demos import FOLDER, ORDER, demo_names, load_demo, write_demo


def test_every_room_has_one() -> None:
    assert demo_names() == list(ORDER)


@pytest.mark.parametrize("name", ORDER)
def test_every_row_is_of_a_kind_that_there_is(name: str) -> None:
    demo = load_demo(name)
    assert demo.head.demo == name and demo.head.who and demo.rows
    assert [row.event.named for row in demo.rows if isinstance(row.event, Unknown)] == []
    assert (FOLDER / f"{name}.jsonl").stat().st_size < 60_000


@pytest.mark.parametrize("name", ORDER)
def test_it_is_written_as_it_was_read(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    demo = load_demo(name)
    write_demo(demo, tmp_path / f"{name}.jsonl")
    monkeypatch.setattr(demos, "FOLDER", tmp_path)
    assert load_demo(name) == demo


def test_the_coachs_holds_a_turn_that_waits_and_one_that_does_not() -> None:
    events = [row.event for row in load_demo("coach").rows]
    answers = [event for event in events if isinstance(event, Said)]
    assert {answer.waited for answer in answers} == {True, False}
    assert len(answers) == sum(isinstance(event, Heard) for event in events)


def test_what_does_not_ship_is_refused() -> None:
    with pytest.raises(InputError, match="there are coach, plan"):
        load_demo("../coach")
