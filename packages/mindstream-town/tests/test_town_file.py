"""A custom town in one file."""

from __future__ import annotations

import asyncio
import difflib
import re
from datetime import UTC, datetime
from pathlib import Path

import pytest
from hamlet import live
from mindstream_town.formats.maps import save_map
from mindstream_town.formats.saves import read_whispers
from mindstream_town.formats.town_file import (
    ConditionsTable,
    DayTable,
    MapTable,
    Place,
    RelationTable,
    Resident,
    RoadTable,
    SeedTable,
    TownTable,
    load_town,
    parse_town,
)
from mindstream_town.opened import begin
from mindstream_town.packs import find_pack
from mindstream_town.residents.person import Appointment
from mindstream_town.source import missing_keys, setting_of
from mindstream_town.town import Town
from mindstream_town.world.tiles import TileWorld
from mindstream_town.world.tree import parse_address

from mindstream.errors import InputError
from mindstream.location import Location
from mindstream.settings import Settings

TABLES = (
    TownTable, MapTable, RoadTable, Place, ConditionsTable, RelationTable, DayTable, SeedTable, Resident,
)  # fmt: skip
MAP = '''
[map]
rows = """
########
#kkk#bb#
#kkkkbb#
##.#####
#......#
########
"""
things = """
........
.s....1.
...w....
........
........
........
"""
[map.places]
k = "Lin family's house:kitchen"
b = "Lin family's house:bedroom"
[map.objects]
s = "stove"
w = "cupboard"
[map.spawns]
1 = "sp-A"
'''
TOWN = (
    '[town]\nname = "the Ville"\nstart = 2023-02-13T06:00:00\n'
    + MAP
    + """
[[places]]
address = "Lin family's house"
owners = ["Mei Lin", "Eddy Lin"]
[conditions]
danger = ["on fire"]
fine = ["decorated"]

[[places]]
address = "the Ville:Lin family's house:kitchen"
purpose = ["eat"]
hours = "06:00-22:00"
capacity = 3

[[residents]]
name = "Mei Lin"
age = 43
innate = "kind"
about = "Mei Lin teaches philosophy."
home = "Lin family's house:bedroom"
relations = [{ who = "Eddy Lin", as = "son" }]
day = [
    { from = "07:00", to = "08:00", what = "cooking", where = "kitchen:stove", on = ["monday", "friday"] },
    { from = "08:00", to = "01:00", what = "writing", duty = true },
]
seeds = [
    "Eddy writes music.",
    { text = "Tea at five.", weight = 7, what = "having tea", where = "kitchen", host = "Eddy Lin",\
 from = 2023-02-13T17:00:00, to = 2023-02-13T18:00:00 },
]

[[residents]]
name = "Eddy Lin"
age = 19
home = "Lin family's house:bedroom"
start = "Lin family's house:kitchen:stove"
"""
)
ROADS = """
[town]
name = "the Ville"
[[roads]]
from = "cafe"
to = "flat"
steps = 12
[[places]]
address = "flat:room"
objects = ["bed"]
[[residents]]
name = "Ann"
age = 30
home = "flat:room:bed"
"""


def test_a_town_is_read_from_one_file(tmp_path: Path) -> None:
    (tmp_path / "town.toml").write_text(TOWN)
    town = load_town(tmp_path / "town.toml")
    assert isinstance(town.world, TileWorld) and (town.world.width, town.world.height) == (8, 6)
    assert (town.name, town.start) == ("the Ville", datetime(2023, 2, 13, 6))
    mei, eddy = town.residents
    assert mei.home == "the Ville:Lin family's house:bedroom" and mei.start == (6, 1)
    assert mei.relations[0].what == "son"
    cooking, writing = mei.day
    assert (cooking.place, cooking.on, cooking.duty) == (f"{mei.home[:-7]}kitchen:stove", (0, 4), False)
    assert (writing.start, writing.end, writing.place, writing.duty) == (480, 60, mei.home, True)
    news, tea = mei.memories
    assert (mei.about, news.text, tea.weight) == ("Mei Lin teaches philosophy.", "Eddy writes music.", 7)
    agreed = Appointment(
        what="having tea", place=f"{mei.home[:-7]}kitchen", start=datetime(2023, 2, 13, 17), host="Eddy Lin",
        end=datetime(2023, 2, 13, 18),
    )  # fmt: skip
    assert tea.appointment == agreed and agreed.start.tzinfo is UTC
    assert town.conditions.danger == ("on fire",) and town.conditions.is_fine(" Decorated")
    assert not town.conditions.is_fine("decorated badly")
    assert eddy.bed == "" and eddy.day == ()
    assert eddy.start == (1, 1) == town.world.spots(parse_address("the Ville:Lin family's house:kitchen:stove"))[0]
    kitchen = parse_address(eddy.home).upto(2).child("kitchen")
    assert town.rules.capacity(kitchen.child("stove")) == 3 and town.rules.owners(kitchen) == {"Mei Lin", "Eddy Lin"}
    assert not town.rules.is_open(kitchen, datetime(2023, 2, 13, 23))
    save_map(town.world, tmp_path / "map.tmx")
    other = TOWN.replace(MAP, '[map]\nfile = "map.tmx"\n')
    assert parse_town(other, tmp_path).world == town.world


async def test_a_town_can_have_roads_instead_of_tiles(tmp_path: Path) -> None:
    town = parse_town(ROADS, Path())
    (ann,) = town.residents
    assert ann.start is not None and town.world.routes.distance(ann.start, parse_address("the Ville:cafe")) == 12
    await live(tmp_path, setting_of(town), 9 * 360)


@pytest.mark.parametrize(
    ("old", "new", "wrong"),
    [
        ("#......#", "#.....#", "map: rows: row 5: expected 8 characters, found 7"),
        ("#......#", "#..?...#", r"map: row 5, column 4: the character '\?' has no meaning"),
        (
            ".s....1.",
            ".s..w.1.",
            "row 2, column 5: the object 'cupboard' is drawn outside of all places: draw it inside a room",
        ),
        (".s....1.", "..z...1.", "row 2, column 3: the character 'z' has no meaning"),
        ("#kkkkbb#", "#kkk#bb#", "map: .*kitchen.* cannot be reached"),
        ('name = "Eddy Lin"\nage', 'name = "Mei Lin"\nage', "residents: 'Mei Lin' occurs twice"),
        (
            'home = "Lin family\'s house:bedroom"\nrel',
            'home = "Lin family\'s flat"\nrel',
            "Mei Lin: .*no place .*did you mean",
        ),
        (
            'who = "Eddy Lin"',
            'who = "Eddie Lin"',
            "Mei Lin: there is no resident 'Eddie Lin'; did you mean 'Eddy Lin'",
        ),
        ("kitchen:stove", "kitchen:oven", "Mei Lin: day: 07:00 cooking: .*no place"),
        ('what = "having tea", ', "", "seeds: Tea at five.: an appointment needs three keys: `what`, `from` and `to`"),
        ("weight = 7", "wight = 7", "residents.1.seeds.2.wight: .*did you mean 'weight'"),
        ("06:00-22:00", "six", "places.2 .*expected opening hours .*'six'"),
        ("age = 43", "age = 43\nshoe = 40", "residents.1.shoe: "),
        (MAP, "[map]\nfile = '../map.tmx'\n", "map: '../map.tmx' must be a relative path"),
        ("[map]", "[map", "is not valid TOML: .*line 5"),
    ],
)
def test_an_invalid_town_is_refused_with_line_and_reason(tmp_path: Path, old: str, new: str, wrong: str) -> None:
    assert old in TOWN
    (tmp_path / "town.toml").write_text(TOWN.replace(old, new, 1))
    with pytest.raises(InputError, match=f"town.toml:([0-9]+:)? .*{wrong}"):
        load_town(tmp_path / "town.toml")


def test_a_map_with_neither_rows_nor_file_is_refused_with_one_prefix() -> None:
    with pytest.raises(InputError, match=r"line 3: map: expected either rows \(a drawing\) or file, found neither"):
        parse_town('[town]\nname = "Ayre"\n[map]\nwall = "#"\n[[residents]]\nname = "Ann"\n', Path())


def test_valid_names_cause_no_search_for_similar_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(difflib, "get_close_matches", lambda *_: pytest.fail("a like name was looked for"))
    assert find_pack("smallville").residents
    with pytest.raises(pytest.fail.Exception, match="like name"):
        parse_town(TOWN.replace("kitchen:stove", "kitchen:oven", 1), Path())


def test_whispers_are_read(tmp_path: Path) -> None:
    path = tmp_path / "history.csv"
    path.write_text('Name,Whisper\nMei Lin,"You like tea, a lot; You teach"\nAnn,\n')
    assert read_whispers(path) == {"Mei Lin": ("You like tea, a lot", "You teach"), "Ann": ()}
    path.write_text("Mei Lin,You like tea, and cake; You teach\n")
    assert read_whispers(path) == {"Mei Lin": ("You like tea, and cake", "You teach")}, "an unquoted comma"
    path.write_text("Mei Lin\n")
    with pytest.raises(InputError, match="row 1: expected a name and memories"):
        read_whispers(path)


def test_the_documented_towns_can_be_read() -> None:
    page = (Path(__file__).parents[3] / "docs/own-town.md").read_text("utf-8")
    small, whole, roads = (
        parse_town(text, Path())
        for text in re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
        if text.startswith("[town]")
    )
    assert [resident.name for resident in small.residents] == ["Nora Vey", "Ilan Vey", "Gus Tarn"]
    assert whole.world.spots(parse_address("Lockport:Heron Inn:taproom:bar counter"))
    assert [resident.name for resident in roads.residents] == ["Odd Berg"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('w = "washbasin"\n', ""),
        ("###.########.#########.#####", "###.########.###############"),
        ('home = "Ferry House:room"', 'home = "Ferry House:bedroom"'),
        ("age = 58", 'age = "58"'),
    ],
)
def test_the_documented_mistakes_are_refused_with_the_documented_words(tmp_path: Path, old: str, new: str) -> None:
    page = (Path(__file__).parents[3] / "docs/own-town.md").read_text("utf-8")
    whole = next(each for each in re.findall(r"```toml\n(.*?)```", page, re.DOTALL) if "[conditions]" in each)
    assert old in whole
    (tmp_path / "lockport.toml").write_text(whole.replace(old, new, 1))
    with pytest.raises(InputError) as refused:
        load_town(tmp_path / "lockport.toml")
    said = str(refused.value).replace(f"{tmp_path}/", "").splitlines()
    assert any(line in said for line in re.findall(r"^lockport\.toml:.*$", page, re.MULTILINE)), said


async def test_the_residents_of_the_documented_town_come_to_the_inn_on_the_second_evening(tmp_path: Path) -> None:
    page = (Path(__file__).parents[3] / "docs/own-town.md").read_text("utf-8")
    whole = next(each for each in re.findall(r"```toml\n(.*?)```", page, re.DOTALL) if "[conditions]" in each)
    async with Town.open(tmp_path, setting_of(parse_town(whole, Path()), seed=1)) as town:
        await town.run(until=(24 + 20) * 360)
        acts = [each.state.act for each in town.residents.values()]
    assert all(act and act.what == "listening to the music" and "Heron Inn" in act.place for act in acts)


def test_every_key_of_a_town_file_is_in_the_documentation() -> None:
    page = (Path(__file__).parents[3] / "docs/own-town.md").read_text("utf-8")
    for table in TABLES:
        for name, field in table.model_fields.items():
            key = field.alias or name
            assert f"`{key}`" in page or f"`[map.{key}]`" in page, f"{table.__name__}: {key}"


def test_missing_keys_of_a_town_are_listed() -> None:
    lacking = missing_keys(setting_of(parse_town(ROADS, Path())))
    assert lacking == ("day of Ann", "danger of [conditions]", "purpose of places (eat, shop)")


def test_all_faults_of_a_file_are_reported_at_once_with_their_lines(tmp_path: Path) -> None:
    bad = TOWN
    for old, new in (
        ("age = 43", 'age = "old"\nshoe = 40'), ("06:00-22:00", "six"),
        ("age = 19", 'age = 19\nbed = "sofa"\nknows = ["attic", "cave"]'),
        ("...w....\n........\n........\n", "........\n........\n..w.....\n"),
    ):  # fmt: skip
        assert old in bad
        bad = bad.replace(old, new, 1)
    (tmp_path / "town.toml").write_text(bad)
    with pytest.raises(InputError) as refused:
        load_town(tmp_path / "town.toml")
    lines = bad.splitlines()
    said = {}
    for each in str(refused.value).splitlines():
        file, line, what = each.split(":", 2)
        assert file == str(tmp_path / "town.toml")
        said[what.strip()] = lines[int(line) - 1]
    wanted = {
        "residents.1.age: a whole number": 'age = "old"', "residents.1.shoe: unknown key": "shoe = 40",
        "found 'six'": "[[places]]", "no place 'the Ville:sofa'": 'bed = "sofa"',
        "no place 'the Ville:attic'": 'knows = ["attic", "cave"]',
        "no place 'the Ville:cave'": 'knows = ["attic", "cave"]',
        "the object 'cupboard' is drawn outside of all places": "things =",
    }  # fmt: skip
    for part, line in wanted.items():
        assert any(part in what and shown.startswith(line) for what, shown in said.items()), (part, said)


@pytest.mark.parametrize(
    ("key", "objects", "bed"),
    [('bed = "sofa"', ["sofa", "bed"], "sofa"), ("", ["stove", "bed"], "bed"), ("", ["stove", "sofa"], "")],
)
def test_a_resident_without_a_bed_is_refused(tmp_path: Path, key: str, objects: list[str], bed: str) -> None:
    text = ROADS.replace('objects = ["bed"]', f"objects = {objects}").replace(
        'home = "flat:room:bed"', f'home = "flat:room"\n{key}'
    )
    setting = setting_of(parse_town(text, Path()))
    assert setting.people["Ann"].bed.rpartition(":")[2] == bed
    settings = Settings(data=Location(tmp_path))
    if bed:
        asyncio.run(begin(settings, setting))
        return
    with pytest.raises(InputError, match=r"Ann: has no bed at room of flat, only stove, sofa: add bed = "):
        asyncio.run(begin(settings, setting))
