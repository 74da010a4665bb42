"""Where people of any town work, by the plain words for what they do."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindstream.town.formats.town_file import parse_town
from mindstream.town.places import find_home
from mindstream.town.prompts.plan_day import Place, PlanDay
from mindstream.town.rules.appointments import read_appointment
from mindstream.town.rules.currently import without_news
from mindstream.town.rules.day import plan_by_habit
from mindstream.town.rules.habits import activity
from mindstream.town.source import setting_of

PLACES = (
    Place(words="kitchen of Ash cottage", things=("stove", "table", "loom"), home=True),
    Place(words="nave of the church", things=("altar", "organ")),
    Place(words="pier of the ferry landing", things=("ferry boat", "ticket booth")),
    Place(words="store of the shop", things=("shop counter", "shelf"), hours="07:00-15:00"),
    Place(words="consulting room of the surgery", things=("medicine cabinet", "desk")),
    Place(words="hall of the brewery", things=("copper kettle", "barrels")),
    Place(words="classroom of the village school", things=("blackboard", "desks")),
    Place(words="front hall of the Heron Hotel", things=("reception desk",)),
    Place(words="taproom of the Old Bell", things=("bar",), own=True, hours="16:00-23:00"),
)


def work_of_day(told: str, age: int = 40) -> list[tuple[str, str, str]]:
    ask = PlanDay(who="Jo Kim", identity=f"Jo Kim, {age} years old\n{told}", date="Monday May 6, 2024", places=PLACES)
    return [(each.start, each.what, PLACES[each.place - 1].words if each.place else "home")
            for each in plan_by_habit(ask).items]  # fmt: skip


@pytest.mark.parametrize(
    ("told", "start", "place"),
    [
        ("Jo Kim is the village doctor.", "09:00", "consulting room of the surgery"),
        ("Jo Kim runs the ferry.", "09:00", "pier of the ferry landing"),
        ("Jo Kim is a night porter.", "22:00", "front hall of the Heron Hotel"),
        ("Jo Kim is a monk who brews ale.", "09:00", "hall of the brewery"),
        ("Jo Kim teaches the children.", "09:00", "classroom of the village school"),
        ("Jo Kim owns the pub.", "16:00", "taproom of the Old Bell"),
    ],
)
def test_work_is_where_its_words_say(told: str, start: str, place: str) -> None:
    plain = [each for each in work_of_day(told) if each[2] == place]
    assert plain and plain[0][0] == start


def test_a_schoolboy_goes_to_school_and_who_is_retired_does_not_work() -> None:
    assert any(what == "taking classes" for _, what, _ in work_of_day("Jo Kim is a schoolboy.", 10))
    assert not any("working" in what for _, what, _ in work_of_day("Jo Kim is retired.", 70))


def test_work_at_home_is_done_at_home() -> None:
    assert ("09:00", "weaving cloth at home", "home") in work_of_day("Jo Kim weaves cloth at home.")


def test_who_lives_in_a_town_knows_its_places_but_not_the_homes_of_others() -> None:
    text = """
[town]
name = "Skerry"
[[places]]
address = "Ash cottage:room"
objects = ["bed"]
[[places]]
address = "Elm cottage:room"
objects = ["bed"]
[[places]]
address = "the shop:store"
objects = ["shelf"]
[[roads]]
from = "Ash cottage:room"
to = "the shop:store"
steps = 5
[[roads]]
from = "Elm cottage:room"
to = "the shop:store"
steps = 5
[[residents]]
name = "Jo Kim"
age = 40
home = "Ash cottage:room"
[[residents]]
name = "Al Day"
age = 40
home = "Elm cottage:room"
"""
    setting = setting_of(parse_town(text, Path()), seed=1)
    _, knows = find_home(setting, setting.people["Jo Kim"])
    assert "Skerry:the shop:store:shelf" in knows and not any("Elm" in each for each in knows)


def test_what_was_heard_is_nobody_s_own_work_and_no_word_is_made_of_it() -> None:
    assert without_news("Jo is well. Since yesterday: Al is sketching a badger.") == "Jo is well."
    assert [activity(each, "Jo Kim") for each in ("since yesterday she", "talked with Al", "with Al")] == [""] * 3


def test_a_host_stays_the_host_whomever_it_told() -> None:
    told = "Jo Kim talked with Al Day about how Jo Kim is hosting a dance at the Old Bell from 7pm to 9pm today"
    own, others = (read_appointment(who, told, PLACES) for who in ("Jo Kim", "Al Day"))
    assert own is not None and own.role == "host" and others is not None and others.role == "guest"
