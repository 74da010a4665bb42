"""The scripted model streams like a language model, and takes tool calls in every natural form."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from mindstream import Call, ChatBot, FakeModel, InputError

SCRIPT: Any = FakeModel


def weather(city: str) -> str:
    """Return the weather in a city."""
    return f"rain in {city}"


@pytest.mark.parametrize(
    ("line", "pieces"),
    [("It rains today.", ["It ", "rains ", "today."]), (["It ra", "ins."], ["It ra", "ins."]), ("雨", ["雨"])],
)
async def test_an_answer_is_streamed_in_pieces(tmp_path: Path, line: Any, pieces: list[str]) -> None:
    async with ChatBot(tmp_path, model=FakeModel([line])) as bot:
        assert [piece async for piece in bot.stream("How is the weather?")] == pieces


@pytest.mark.parametrize(
    "call",
    [
        Call("weather", {"city": "Bern"}),
        [Call("weather", '{"city": "Bern"}')],
        lambda _: Call("weather", {"city": "Bern"}),
    ],
)
async def test_a_tool_call_is_scripted(tmp_path: Path, call: Any) -> None:
    model = FakeModel([call, "It rains."])
    async with ChatBot(tmp_path, model=model, tools=[weather]) as bot:
        assert await bot.send("How is the weather in Bern?") == "It rains."
    assert any("rain in Bern" in str(turn) for asked in model.asked for turn in asked.turns)


@pytest.mark.parametrize("line", [3, [], {"tool": "weather"}, ["It rains.", 3]])
def test_a_line_that_is_no_answer_is_refused_at_once(line: Any) -> None:
    with pytest.raises(InputError, match="answers that are texts, Call"):
        SCRIPT([line])
