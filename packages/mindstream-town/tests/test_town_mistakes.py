"""`mindstream town` answers mistyped input with a correction, and parses common time formats."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from mindstream_town.formats.town_file import Resident, parse_town
from mindstream_town.inspect.lookup import find_span, find_step
from mindstream_town.source import setting_of
from running import mistaken, run
from test_town import HAMLET, town

from mindstream.errors import InputError

__all__ = ["town"]
NOW = 8_640 + 3_600
"""Day 2 of the hamlet, 10:00."""


@pytest.mark.parametrize(
    ("typed", "minute"),
    [
        ("Feb 13", 0), ("day 2", 1_440), ("10am", 1_440 + 600), ("yesterday 10:30", 630), ("tomorrow noon", 3_600),
        ("now", 1_440 + 600), ("Tue Feb 14 at 7 pm", 1_440 + 1_140), ("2023-02-14T07:05", 1_440 + 425),
        ("14 February 2023 midnight", 1_440), ("day 1 12am", 0), ("24:00", 2_880),
    ],
)  # fmt: skip
def test_common_time_formats_are_parsed(typed: str, minute: int) -> None:
    assert find_step(setting_of(parse_town(HAMLET, Path())), typed, NOW) == minute * 6


@pytest.mark.parametrize(
    ("typed", "said"),
    [("Feb 30 10:00", "no Feb 30 in 2023"), ("25:00", "no time 25:00"), ("13pm", "must be 1 to 12"),
     ("day 0", "no day 0"),
     ("noonish", "is not a time"), ("", "is not a time"), ("13", "is not a time")],
)  # fmt: skip
def test_an_impossible_time_is_refused(typed: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        find_step(setting_of(parse_town(HAMLET, Path())), typed, NOW)


def test_a_mistake_in_a_table_made_in_python_is_described() -> None:
    wrong: Any = Resident
    with pytest.raises(InputError, match=r"Resident\(…\): job: unknown key; known keys: name, age"):
        wrong(name="Ada", home="Mill House", job="Bakery")
    with pytest.raises(InputError, match=r"seeds\.1\.importance: unknown key.* known keys: text, weight"):
        wrong(name="Ada", home="Mill House", seeds=[{"text": "The ferry is late.", "importance": 8}])
    with pytest.raises(InputError, match="did you mean 'home'"):
        wrong(name="Ada", homes="Mill House")


def test_the_end_of_a_span_is_on_the_day_of_its_start() -> None:
    setting = setting_of(parse_town(HAMLET, Path()))
    assert find_span(setting, "day 1 8am", "9am", NOW) == (2_880, 3_240)
    assert find_span(setting, "yesterday", "yesterday", NOW) == (0, 8_639), "a whole day"
    with pytest.raises(InputError, match=r"Tue Feb 14, 08:00.* is before"):
        find_span(setting, "day 2 9am", "8am", NOW)


def test_mistyped_words_are_answered_with_suggestions(town: tuple[str | Path, ...]) -> None:
    folder = town[1]
    assert "TEXT is empty" in mistaken(run("town", "talk", "ada", " ", *town))
    assert "is not the name of a model" in mistaken(run("town", "run", "--model", "nosuch:foo", *town))
    assert "a number is expected" in mistaken(run("town", "run", "--days", "two", *town))
    assert "rules answer everything" in run("town", "estimate", *town).out
    file = Path(folder).parent / "wrong.toml"
    file.write_text(HAMLET.replace("knows =", "know =", 1))
    said = mistaken(run("town", "new", file, "--data", file.parent / "fresh"))
    assert "residents.1.know: unknown key, did you mean 'knows'?" in said and "lifestyle" in said


def test_available_names_are_listed(town: tuple[str | Path, ...]) -> None:
    run("town", "run", "--steps", "1", *town)
    run("town", "set", "piano", "out of tune", *town)
    assert "cafe: counter, piano (out of tune)" in run("town", "places", *town).out
    (cafe,) = run("town", "places", "cafe", "--json", *town).rows
    assert [each["condition"] for each in cafe["objects"]] == ["", "out of tune"] and cafe["residents"] == []
    mill = run("town", "places", "Mill House", *town).out
    assert "there: Ada Brook, Ben Hale" in mill
