from __future__ import annotations

import pytest
from mindstream_studio.commands.demo import FOLDER, ORDER, demo_names, load_demo

from mindstream.errors import InputError
from mindstream.log.events import Unknown


def test_every_demo_has_a_recording() -> None:
    assert demo_names() == list(ORDER)


@pytest.mark.parametrize("name", ORDER)
def test_every_row_has_a_known_kind(name: str) -> None:
    demo = load_demo(name)
    assert demo.head.demo == name and demo.head.who and demo.rows
    assert [row.event.named for row in demo.rows if isinstance(row.event, Unknown)] == []
    assert (FOLDER / f"{name}.jsonl").stat().st_size < 60_000


def test_an_unknown_demo_is_refused() -> None:
    with pytest.raises(InputError, match="use one of: coach, plan"):
        load_demo("../coach")
