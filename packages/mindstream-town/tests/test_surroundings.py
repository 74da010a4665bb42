"""Residents know household, weather, light and opening hours, as set in the town's file."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from hamlet import HAMLET, hamlet
from mindstream_town.formats.town_file import parse_town
from mindstream_town.residents.prompt_context import household, light_on, weather_on
from mindstream_town.setting import Setting
from mindstream_town.source import dump_source, load_source, setting_of

from mindstream.errors import InputError

HOUR, DAY = 360, 8_640
START = "start = 2023-02-13T00:00:00\n"


def town(of_town: str = "", of_ada: str = "", seed: int = 1) -> Setting:
    text = HAMLET.replace(START, f"{START}{of_town}\n").replace("age = 34\n", f"age = 34\n{of_ada}\n")
    text = text.replace('purpose = ["eat"]', 'purpose = ["eat"]\nhours = "08:00-18:00"')
    return setting_of(parse_town(text, Path()), seed=seed)


def test_all_residents_of_a_home_know_its_household() -> None:
    setting = town(of_ada='household = ["a cat called Tom"]')
    people = setting.people
    assert household(setting, people["Ada Brook"]) == ("Ben Hale (husband)", "a cat called Tom")
    assert household(setting, people["Ben Hale"]) == ("Ada Brook (wife)", "a cat called Tom")
    assert household(setting, people["Cleo Marsh"]) == ()


def test_the_file_can_set_the_weather_by_day_or_date() -> None:
    by_day = town('weather = ["hail", "sun"]')
    assert [weather_on(by_day, day * DAY) for day in range(3)] == ["hail", "sun", "hail"]
    by_date = town('weather = { 2023-02-14 = "雨" }')
    assert weather_on(by_date, DAY) == "雨" and weather_on(by_date, 0) == weather_on(town(), 0)
    with pytest.raises(InputError, match="weather"):
        town('weather = { tomorrow = "sun" }')


def test_the_default_weather_is_drawn_by_the_seed() -> None:
    days = range(0, 20 * DAY, DAY)
    assert [weather_on(town(), day) for day in days] == [weather_on(town(), day) for day in days]
    assert len({weather_on(town(), day) for day in days}) > 3
    assert [weather_on(town(), day) for day in days] != [weather_on(town(seed=2), day) for day in days]


def test_weather_and_household_are_stored_with_the_town() -> None:
    setting = town('weather = { 2023-02-14 = "sleet" }', 'household = ["a cat"]')
    kept = load_source(dump_source(setting), seed=1, profile=setting.profile, start=setting.start)
    assert kept.weather.dates == {date(2023, 2, 14): "sleet"} and kept.people["Ada Brook"].household == ("a cat",)
    assert "weather" not in dump_source(hamlet()), "towns of earlier versions are unchanged"


def test_light_follows_the_hour() -> None:
    setting = town()
    assert [light_on(setting, hour * HOUR) for hour in (3, 6, 12, 19, 22)] == [
        "night", "dawn", "daylight", "dusk", "night",
    ]  # fmt: skip
