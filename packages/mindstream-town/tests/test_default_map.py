"""A town of residents and places, without a file and without a drawn map."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest
from mindstream_town.formats.town_file import build_town, parse_town
from mindstream_town.source import missing_keys, setting_of
from mindstream_town.world.tiles import TileWorld

import mindstream
from mindstream import Place, Resident, Town
from mindstream.errors import InputError

ADA = Resident(name="Ada Brook", home="Mill House", work="Bakery", seeds=[{"text": "The ferry rests.", "weight": 8}])
BEN = Resident(name="Ben Brook", home="Mill House", work="Bakery")


async def test_a_morning_without_a_model_in_which_news_is_told() -> None:
    ben = Resident(name="Ben Marsh", home="Mill House", work="School")
    bakery = Place(name="Bakery", objects=["oven", "counter"], purpose=["eat"])
    async with Town(residents=[ADA, ben], places=[bakery]) as town:
        await town.run(until="12:30")
        lines = await town.timeline("ben")
        knowers = await town.knowers("the ferry rests")
        with pytest.raises(InputError, match="has half of the words"):
            await town.knowers("a whale in the harbour")
        found = await town.residents["Ben Marsh"].memory.find()
        told = [each.text for each in found]
    assert any("having lunch, at" in each and each.endswith("Bakery") for each in lines)
    assert any("The ferry rests." in each for each in told)
    assert [(each.name, each.by) for each in knowers] == [("Ada Brook", ""), ("Ben Marsh", "Ada Brook")]
    assert knowers[0].step == 0 < knowers[1].step


def test_a_town_is_not_opened_without_asyncio() -> None:
    town: Any = Town([ADA])
    with pytest.raises(InputError, match="async with Town"), town:
        pass
    with pytest.raises(TypeError, match="pass the other arguments by name, such as data="):
        Town([ADA], [], "skerry")  # type: ignore[call-arg]


async def test_the_same_program_continues_the_town_of_its_folder(tmp_path: Path) -> None:
    for until, step in (("06:00", 6 * 360), ("07:00", 7 * 360)):
        async with Town([ADA, BEN], data=tmp_path, seed=3) as town:
            await town.run(until=until)
            assert town.step == step
    async with Town.open(tmp_path) as town:
        assert (town.step, town.setting.seed) == (7 * 360, 3)
    with pytest.raises(InputError, match="has another description"):
        async with Town([ADA], data=tmp_path):
            pass


async def test_a_town_that_is_not_open_says_how_it_is_opened() -> None:
    with pytest.raises(AttributeError, match="open the town first, with `async with"):
        await Town([ADA]).run(until="12:00")
    assert not hasattr(Town([ADA]), "mayor")


def test_houses_have_walls_and_furniture_and_squares_have_neither() -> None:
    places = [
        Place(name="Square", objects=["well", "bench", "stall"]),
        Place(name="Inn:taproom", objects=["counter"]),
        Place(name="Inn:kitchen", objects=["hob"]),
        Place(name="Inn", hours="11:00-23:00"),
    ]
    cleo = Resident(name="Cleo Marsh", home="Inn:attic", age=30)
    town = build_town("Skerry", [ADA, cleo], places)
    assert isinstance(town.world, TileWorld)
    objects = {str(each) for each in town.world.places if each.level == 4}
    assert objects == {
        "Skerry:Square:grounds:well", "Skerry:Square:grounds:bench", "Skerry:Square:grounds:stall",
        "Skerry:Inn:taproom:counter", "Skerry:Inn:kitchen:hob",
        *(f"Skerry:{home}:{each}" for home in ("Mill House:room", "Inn:attic")
          for each in ("bed", "stove", "table", "washbasin")),
    }  # fmt: skip
    square, inn = (town.world.spots(next(a for a in town.world.places if a.last == name)) for name in ("Square", "Inn"))
    around = {(x + dx, y + dy) for x, y in square for dx in (-1, 0, 1) for dy in (-1, 0, 1)}
    assert all(town.world.walkable(spot) for spot in around)
    assert not town.world.walkable((min(x for x, _ in inn) - 1, min(y for _, y in inn)))
    assert [person.bed for person in town.residents] == ["Skerry:Mill House:room:bed", "Skerry:Inn:attic:bed"]


def test_a_hundred_places_can_all_be_reached() -> None:
    people = [Resident(name=f"Resident {n}", home=f"House {n}", work=f"Shop {n}") for n in range(100)]
    town = build_town("City", people)  # which checks the ways
    assert isinstance(town.world, TileWorld) and 1 / 3 < town.world.width / town.world.height < 3


def test_a_file_without_a_map_has_the_same_one() -> None:
    text = """
[town]
name = "Skerry"
[[places]]
name = "Bakery"
objects = ["oven"]
[[residents]]
name = "Ada Brook"
home = "Mill House"
work = "Bakery"
day = [["08:00", "12:00", "baking bread", "Bakery:oven"]]
"""
    with pytest.raises(InputError, match=r"line 11: residents: Ada Brook: day: .*'Skerry:Bakery:over'"):
        parse_town(text.replace("Bakery:oven", "Bakery:over"), Path())
    town = parse_town(text, Path())
    assert [(each.what, each.place) for each in town.residents[0].day] == [
        ("baking bread", "Skerry:Bakery:grounds:oven")
    ]
    same = build_town(
        "Skerry", [Resident(name="Ada Brook", home="Mill House")], [Place(name="Bakery", objects=["oven"])]
    )
    assert isinstance(town.world, TileWorld) and isinstance(same.world, TileWorld)
    assert (town.world.here, town.world.walls) == (same.world.here, same.world.walls)


def test_work_makes_the_usual_day_with_lunch_where_one_can_eat() -> None:
    inn = Place(name="Inn", hours="11:00-23:00", purpose=["eat"])
    town = build_town("Skerry", [ADA, Resident(name="Cleo Marsh", home="Inn")], [inn])
    ada, cleo = town.residents
    day = [(each.what, each.place.partition(":")[2], each.duty, len(each.on)) for each in ada.day[1:4]]
    assert day == [("working", "Bakery", True, 5), ("having lunch", "Inn", False, 0), ("working", "Bakery", True, 5)]
    assert cleo.day == () and missing_keys(setting_of(town))[0] == "day of Cleo Marsh"


def test_mistakes_are_reported_together() -> None:
    places = [Place(name="Bakery", hours="8-15", owners=["Ada Book"])]
    with pytest.raises(InputError) as caught:
        Town([ADA, Resident(name="Ben Brook", home="Mill House", day=[("08:00", "08:00", "baking")])], places)
    said = str(caught.value).split("\n")
    assert len(said) == 2 and "did you mean 'Ada Brook'" in said[0] and "same time" in said[1]
    with pytest.raises(InputError, match="the town has no place"):
        Town([])


def test_the_names_are_loaded_from_this_distribution_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mindstream_town", None)
    for name in ("Town", "Resident", "Place"):
        with pytest.raises(ImportError, match=f"{name} is in another distribution: pip install mindstream-town"):
            getattr(mindstream, name)


def test_a_missing_package_that_the_town_needs_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(_: str) -> None:
        raise ModuleNotFoundError("No module named 'leather'", name="leather")

    monkeypatch.setattr(importlib, "import_module", missing)
    for name in ("Town", "Resident", "Place"):
        with pytest.raises(ModuleNotFoundError, match="leather"):
            getattr(mindstream, name)
