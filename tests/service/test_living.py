"""A life with user settings: end times, the time zone of the machine, and its cost."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest
from fake_endpoint import Asked, Behaviour, Calls, FakeEndpoint, Says
from keys import key_of

from mindstream.clock import MachineZone
from mindstream.errors import InputError
from mindstream.service.calling import open_user_memory
from mindstream.service.living import LifeSettings, open_life, read_end
from mindstream.settings import Settings

NOON = 1_794_787_200.0 + 43_200


@pytest.fixture
def berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.mark.parametrize(
    ("words", "seconds"),
    [("2h", 7200), ("1h30m", 5400), ("1 h 30 min", 5400), ("90 minutes", 5400), ("1.5h", 5400), ("20 s", 20),
     ("3 days", 259_200), ("2 weeks", 1_209_600), ("in 2h", 7200)],
)  # fmt: skip
def test_end_times_are_parsed(words: str, seconds: float) -> None:
    assert read_end(words, NOON) - NOON == seconds


@pytest.mark.usefixtures("berlin")
def test_a_time_of_day_is_in_the_zone_of_the_machine() -> None:
    assert read_end("until 18:00", NOON) - NOON == 5 * 3600, "noon UTC is one o'clock in Berlin"


@pytest.mark.parametrize("words", ["long", "2 moons", "h", "2h and more", "-3h"])
def test_no_time_is_refused(words: str) -> None:
    with pytest.raises(InputError, match="is not a time, such as 2h"):
        read_end(words, NOON)


@pytest.mark.usefixtures("berlin")
def test_the_machine_zone_handles_summer_time_and_the_repeated_hour() -> None:
    zone = MachineZone()
    for moment in range(1_792_886_400, 1_792_886_400 + 6 * 3600, 900):  # from 25 October 2026, 00:00 UTC
        assert datetime.fromtimestamp(moment, zone).timestamp() == moment
    twice = [datetime.fromtimestamp(1_792_888_200 + hours * 3600, zone) for hours in (0, 1)]
    assert [each.strftime("%H:%M") for each in twice] == ["02:30", "02:30"] and [each.fold for each in twice] == [0, 1]
    assert datetime(2026, 7, 1, 12, tzinfo=zone).utcoffset() != datetime(2026, 1, 1, 12, tzinfo=zone).utcoffset()


async def test_model_calls_of_tools_are_charged_and_within_the_budget(folder: Path) -> None:
    def behave(asked: Asked) -> Behaviour:
        names = {each["function"]["name"] for each in asked.body.get("tools", ())}
        if "finish_task" in names:
            return Calls((("M1", '{"task": "ask somebody", "context": ""}'),))
        return Calls((("LLM", '{"instruction": "How are you?"}'),)) if names else Says("Well.")

    with FakeEndpoint() as door:
        door.otherwise = behave
        settings = Settings(data=folder, model=f"{door.url}#m", budget_calls=5)
        wanted = LifeSettings(goal="Ask somebody", tools=("llm",))
        async with open_user_memory(settings, new=True) as opened:
            async with open_life(settings, wanted, opened) as life:
                assert await life.run() == "halted"
                assert life.state.spent.calls == 5 == len(door.chats)
            asked = await opened.store.events(key_of(opened.name), kinds=["asked"])
            assert {getattr(row.event, "role", "") for row in asked} >= {"M2", "M1", "worker"}
