"""The Town page in a real browser: watched and explained by mouse and keys; changes are previewed first."""

from __future__ import annotations

import asyncio
import shutil
import signal
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest
from hamlet import HAMLET
from mindstream_town.formats.town_file import parse_town
from mindstream_town.source import setting_of
from mindstream_town.town import Town
from served import Served, ServerProcess
from studio import HOSTILE, NARROW, WIDE, Studio, serve_studio

from mindstream.location import Location
from mindstream.service.operations.offered import Offered

OpenStudio = Callable[..., Studio]
NINE = 9 * 360
FOX = "There is a fox in the garden."
TEN_PAST_EIGHT = "2023-02-13T08:10"
QUOTED = [each.replace('"', '\\"') for each in HOSTILE]
SPOILT = (
    HAMLET.replace("student of history", f"student of {QUOTED[0]} and {QUOTED[1]} and {QUOTED[2]}")
    .replace("Elm House", "Elm <script>alert(1)</script>")
    .replace("calm", QUOTED[3])
)


async def lived(folder: Path, text: str = HAMLET) -> None:
    async with Town.open(folder, setting_of(parse_town(text, Path()), seed=1)) as town:
        await town.run(until=NINE)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that offers a hamlet at nine o'clock, and one with hostile texts."""
    folder = tmp_path_factory.mktemp("towns")
    with ThreadPoolExecutor(1) as apart:  # Playwright has its own event loop in this thread
        apart.submit(asyncio.run, lived(folder / "hamlet")).result()
        apart.submit(asyncio.run, lived(folder / "spoilt", SPOILT)).result()
    towns = {("local", name): folder / name for name in ("hamlet", "spoilt")}
    with serve_studio(folder / "data", model="rules", offered=Offered(towns=towns)) as server:
        yield server


def watch(seen: Studio, **params: str) -> Any:
    """Open a town; return Playwright's page when it is drawn."""
    seen.open("town", **{"town": "hamlet", **params})
    seen.page.locator(".town .transport").wait_for()
    return seen.page


def clock(page: Any) -> str:
    return str(page.locator(".clock .now").inner_text())


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_a_moment_of_a_resident_is_shown(
    studio: OpenStudio, node_tools: None, dark: bool, size: tuple[int, int]
) -> None:
    seen = studio(dark=dark, size=size)
    page = watch(seen, t=TEN_PAST_EIGHT, who="Ada Brook")
    assert page.locator(".town h2").inner_text() == "Ada Brook" and clock(page) == "08:10"
    page.get_by_role("button", name="Why: Ada Brook").click()
    page.get_by_role("dialog").get_by_text("Ada Brook is ").first.wait_for()
    page.keyboard.press("Escape")
    assert seen.fits() and seen.axe() == []


def test_a_town_that_lives_is_opened_at_its_newest_moment(studio: OpenStudio) -> None:
    assert clock(watch(studio())) == "09:00"


def test_the_page_can_be_used_with_the_keyboard(studio: OpenStudio) -> None:
    seen = studio()
    page = watch(seen, t=TEN_PAST_EIGHT)
    page.keyboard.press("ArrowRight")
    assert clock(page) == "08:11"
    seen.tab_to("button", "Cleo Marsh:")
    page.keyboard.press("Enter")
    assert page.locator(".town h2").inner_text() == "Cleo Marsh"
    page.wait_for_function("() => location.hash.includes('who=Cleo+Marsh')")
    page.locator("main").focus()
    page.keyboard.press(" ")
    page.wait_for_function("() => document.querySelector('.clock .now').textContent > '08:11'")
    page.keyboard.press(" ")
    page.keyboard.press("Escape")
    assert page.get_by_role("tab", name="Happenings").get_attribute("aria-selected") == "true"


def test_links_and_the_back_button_select_moments(studio: OpenStudio) -> None:
    seen = studio()
    page = watch(seen, t=TEN_PAST_EIGHT, place="Oak Cafe")
    assert page.locator(".town h2").inner_text() == "Oak Cafe"
    page.evaluate("location.hash = '#/town?town=hamlet&t=2023-02-13T07:30&who=Ben+Hale'")
    page.wait_for_function("() => document.querySelector('.town h2')?.textContent === 'Ben Hale'")
    assert clock(page) == "07:30"
    page.go_back()
    page.wait_for_function("() => document.querySelector('.town h2')?.textContent === 'Oak Cafe'")


def test_decisions_of_another_day_show_the_day(studio: OpenStudio) -> None:
    seen = studio()
    page = watch(seen, t=TEN_PAST_EIGHT, who="Ada Brook")
    seen.offer_modules()
    time = """async (now) => {
      const { timeSeenFrom } = await import('./source/town/times.js');
      return timeSeenFrom({ start: 0, seconds: 60 }, 600, now);
    }"""
    assert [page.evaluate(time, now) for now in (600, 1439, 1440, 2030)] == ["10:00", "10:00", "Thu 10:00", "Thu 10:00"]


def test_knowledge_of_facts_and_acquaintances_are_shown(studio: OpenStudio) -> None:
    page = watch(studio(), t=TEN_PAST_EIGHT)
    page.get_by_role("tab", name="Who knows").click()
    page.get_by_role("button", name="Ada Brook is planning a reading evening").click()
    page.locator(".town .panel .list").get_by_text("from the beginning").wait_for()
    page.get_by_role("tab", name="Relations").click()
    page.get_by_text("from the beginning").first.wait_for()


def test_changes_of_a_town_are_confirmed_first(studio: OpenStudio, served: Served) -> None:
    page = watch(studio(), t="2023-02-13T09:00", who="Ben Hale")
    page.get_by_label("Whisper to Ben Hale").fill(FOX)
    page.get_by_role("button", name="Whisper", exact=True).click()
    shown = page.get_by_role("dialog")
    assert FOX in shown.inner_text() and "cannot be undone" in shown.inner_text()
    with served.client() as client:
        assert FOX not in client.get("/api/v1/towns/hamlet/recording").text
        shown.get_by_role("button", name="Whisper").click()
        shown.wait_for(state="detached")
        assert FOX in client.get("/api/v1/towns/hamlet/recording").text
    page.get_by_label("Moment of the recording").press("End")
    page.get_by_role("tab", name="Memory").click()
    page.get_by_label("Search memories").fill("fox")
    page.get_by_text(FOX).first.wait_for()


def test_the_page_follows_a_running_town(studio: OpenStudio) -> None:
    page = watch(studio(), t="2023-02-13T09:00")
    page.get_by_role("button", name="1 hour").click()
    page.wait_for_function("() => document.querySelector('.clock .now').textContent >= '09:59'")


def steps(page: Any, spot: list[int]) -> list[int]:
    """Press arrow keys until one leads to another tile; return it."""
    page.locator("main").focus()
    for key in ("ArrowRight", "ArrowLeft", "ArrowUp", "ArrowDown"):
        page.locator(".around[aria-busy=false]").wait_for()
        with page.expect_response(lambda told: told.url.endswith("/act")) as told:
            page.keyboard.press(key)
        if told.value.ok:
            there: list[int] = told.value.json()["spot"]
            assert abs(there[0] - spot[0]) + abs(there[1] - spot[1]) == 1, "a single tile"
            return there
    raise AssertionError(f"no way leads from {spot}")


def test_a_resident_can_be_controlled_with_arrow_keys(studio: OpenStudio, served: Served) -> None:
    seen = studio()
    page = watch(seen)
    page.get_by_label("Control a resident").select_option("Cleo Marsh")
    page.get_by_role("button", name="Begin").click()
    mine = page.get_by_role("region", name="You are Cleo Marsh")
    mine.locator(".where").wait_for()
    with served.client() as client:
        steps(page, client.get("/api/v1/towns/hamlet/embody/Cleo%20Marsh").json()["spot"])
    mine.get_by_role("button", name="Leave").click()
    page.get_by_label("Control a resident").wait_for()
    seen.forgive("422")  # a wall is there


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_a_visitor_can_enter_walk_look_and_speak(
    studio: OpenStudio, served: Served, node_tools: None, size: tuple[int, int]
) -> None:
    with served.client() as client:
        town = client.post("/api/v1/towns/hamlet/fork", json={"step": 8 * 360 + 60}).json()["town"]
        seen = studio(size=size, dark=size == NARROW)
        page = watch(seen, town=town)
        page.get_by_label("Control a resident").select_option("a visitor …")
        page.get_by_role("dialog").get_by_text("you are no longer in the town").wait_for()
        page.get_by_label("Your name").fill("Maya")
        page.get_by_label("You enter at").select_option("Oak Cafe, cafe")
        assert seen.axe() == []
        page.keyboard.press("Tab")
        seen.tab_to("button", "Enter")
        page.keyboard.press("Enter")
        mine = page.get_by_role("region", name="You are Maya")
        mine.get_by_text("Ada Brook sees you.").wait_for()
        page.locator(".town h2", has_text="Maya").wait_for()
        spot = client.get(f"/api/v1/towns/{town}/embody/Maya", params={"visitor": True}).json()["spot"]
        again = steps(page, steps(page, spot))
        page.locator(".around[aria-busy=false]").wait_for()
        mine.get_by_text("Look around").click()
        mine.get_by_text("piano").first.wait_for()
        mine.get_by_label("Say something").fill(f"Good morning! {HOSTILE[0]}")
        mine.get_by_role("button", name="Say", exact=True).click()
        mine.get_by_role("log").get_by_text("Ada Brook").first.wait_for()
        assert mine.get_by_role("log").get_by_text(HOSTILE[0]).count() == 1 and page.locator("img").count() == 0
        assert seen.fits() and seen.axe() == []
        told = client.get(f"/api/v1/towns/{town}/embody/Maya", params={"visitor": True}).json()
        assert told["spot"] == again and told["people"][0]["name"] == "Ada Brook"
        mine.get_by_role("button", name="Leave").click()
        page.get_by_label("Control a resident").wait_for()
        assert "Maya" not in [each["name"] for each in client.get(f"/api/v1/towns/{town}").json()["residents"]]
        seen.leave()
        client.delete(f"/api/v1/towns/{town}").raise_for_status()
    seen.forgive("422")  # a wall is there


@pytest.mark.parametrize(
    ("town", "dark", "size"), [("hamlet", False, WIDE), ("spoilt", True, NARROW)], ids=["wide", "narrow-hostile"]
)
def test_a_fork_and_its_origin_play_in_step(
    studio: OpenStudio, served: Served, node_tools: None, town: str, dark: bool, size: tuple[int, int]
) -> None:
    seen = studio(dark=dark, size=size)
    page = watch(seen, town=town, t=TEN_PAST_EIGHT)
    seen.tab_to("button", "Fork here")
    page.keyboard.press("Enter")
    shown = page.get_by_role("dialog")
    shown.get_by_text("the same people and memories").wait_for()
    with served.client() as client:
        assert f"{town}-2" not in client.get("/api/v1/towns").json()["towns"]
        seen.tab_to("button", "Make the fork")
        page.keyboard.press("Enter")
        page.locator(".town.pair canvas").nth(1).wait_for()
        page.get_by_text(
            "At this moment, the residents’ places, activities and memories are the same in both towns."
        ).wait_for()
        assert "town=" + town + "-2" in page.url and clock(page) == "08:10"
        text = f"{FOX} {HOSTILE[0]} {HOSTILE[2]} {HOSTILE[3][:900]}"
        whisper = {"resident": "Cleo Marsh", "text": text}
        client.post(f"/api/v1/towns/{town}-2/whisper", json=whisper).raise_for_status()
        page.get_by_role("button", name="1 hour").click()
        page.wait_for_function("() => document.querySelector('.clock .now').textContent >= '09:09'")
        page.get_by_role("tab", name="Differences").click()
        only = page.locator(".differences details", has_text=f"Only in {town}-2").first
        only.locator("summary").click()
        only.get_by_text(FOX).wait_for()
        assert seen.fits() and seen.axe() == []
        seen.tab_to("button", "Cleo Marsh")
        page.keyboard.press("Enter")
        assert page.locator(".town h2").inner_text() == "Cleo Marsh"
        page.get_by_label("Show next to another town, at the same moment").select_option("")
        page.wait_for_function("() => document.querySelectorAll('.town canvas').length === 1")
        page.get_by_role("button", name="Delete this fork").click()
        shown.get_by_role("button", name="Delete it").click()
        shown.wait_for(state="detached")
        page.wait_for_function(f"() => location.hash.includes('town={town}&') || location.hash.endsWith('town={town}')")
        assert f"{town}-2" not in client.get("/api/v1/towns").json()["towns"]
        seen.forgive("404")  # a request sent at the moment of dropping


@pytest.mark.parametrize(("origin", "ending"), [("hamlet", " hamlet stays."), ("gone", "")], ids=["there", "deleted"])
def test_deleting_a_fork_names_the_town_that_stays(studio: OpenStudio, origin: str, ending: str) -> None:
    seen = studio()
    towns = {"towns": ["hamlet"], "forks": [{"town": "hamlet", "of": origin, "step": 0}]}
    seen.page.route("**/api/v1/towns", lambda route: route.fulfill(json=towns))
    watch(seen).get_by_role("button", name="Delete this fork").click()
    effect = seen.page.get_by_role("dialog").get_by_text("This cannot be undone.")
    assert effect.inner_text().endswith(f"This cannot be undone.{ending}")


def test_differences_between_fork_and_origin_are_marked(studio: OpenStudio) -> None:
    page = watch(studio())
    found = page.evaluate("""async () => {
      const { modules } = await import("/studio/pages/town.js");
      const { differences } = modules["pages/town/differences.js"], { parted } = modules["pages/town/fork.js"];
      const told = await (await fetch("/api/v1/towns/hamlet/recording")).text();
      const { prepare } = modules["town/recording.js"];
      const read = () => prepare(JSON.parse(told).recording);
      const [here, there] = [read(), read()], last = here.last;
      const same = differences(here, there, last, last, 0);
      const fork = (town, of, step) => ({ town, of, step });
      const towns = { towns: [], forks: [fork("a-2", "a", 50), fork("a-3", "a-2", 20), fork("a-4", "a", 30)] };
      const pairs = [["a", "a-2"], ["a-3", "a"], ["a-3", "a-4"], ["a-2", "a-4"], ["a", "b"]];
      const since = pairs.map((two) => parted(towns, ...two));
      there.people[0].records.push([last, "note", there.texts.push("The mill is for sale.") - 1, 5, -1]);
      here.people[1].acts = here.people[1].acts.slice(0, 1);
      return [same, differences(here, there, last, last, 0), differences(here, there, last, last, last + 1), since];
    }""")
    same, different, later, since = found
    assert same == [] and since == [50, 20, 20, 30, -1]
    assert [each["name"] for each in different] == ["Ada Brook", "Ben Hale"]
    assert different[0]["lacking"] == ["The mill is for sale."] and not different[0]["moved"]
    assert different[1]["moved"] and different[1]["now"]["where"] != different[1]["then"]["where"]
    assert [each["name"] for each in later] == ["Ben Hale"]


def test_a_lost_connection_is_restored(studio: OpenStudio, served: Served) -> None:
    seen = studio()
    page = watch(seen, t="2023-02-13T09:00", who="Ada Brook")
    page.context.set_offline(True)
    page.wait_for_timeout(1_000)
    with served.client() as client:
        whisper = {"resident": "Ada Brook", "text": "The gate is open."}
        client.post("/api/v1/towns/hamlet/whisper", json=whisper).raise_for_status()
    page.context.set_offline(False)
    page.wait_for_timeout(2_500)
    page.get_by_label("Moment of the recording").press("End")
    page.get_by_role("tab", name="Memory").click()
    page.get_by_text("The gate is open.").first.wait_for()
    seen.forgive("ERR_INTERNET_DISCONNECTED")


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_after_a_server_restart_the_page_shows_the_same_and_new_events(
    studio: OpenStudio, served: Served, tmp_path: Path, how: signal.Signals
) -> None:
    shutil.copytree(Location.of(served.api_app.runtime.offered.towns["local", "hamlet"]).beside, tmp_path / "hamlet")
    flags = ("--studio", "--model", "rules", "--town", f"hamlet={tmp_path / 'hamlet'}")
    with ServerProcess(tmp_path / "data", *flags) as server:
        port = int(server.url.rpartition(":")[2])
        seen = studio(url=server.url)
        page = watch(seen, t="2023-02-13T09:00", who="Ada Brook")
        page.get_by_role("tab", name="Memory").click()
        page.get_by_label("Moment of the recording").press("End")
        server.end(how)
        page.get_by_text("The server cannot be reached.").first.wait_for()
    with ServerProcess(tmp_path / "data", *flags, port=port) as server:
        whisper = {"resident": "Ada Brook", "text": "The lamp on the stairs is out."}
        url = f"{server.url}/api/v1/towns/hamlet/whisper"
        httpx.post(url, json=whisper, timeout=30).raise_for_status()
        page.get_by_text("The lamp on the stairs is out.").first.wait_for()
        assert page.locator(".town h2").inner_text() == "Ada Brook"
        assert page.get_by_role("tab", name="Memory").get_attribute("aria-selected") == "true"
        seen.leave()
    seen.forgive("ERR_", "Failed to load resource")


def test_the_recorded_hamlet_can_be_viewed(studio: OpenStudio) -> None:
    seen = studio()
    seen.open("town", **{"from": "recorded", "t": "2025-09-26T16:00", "who": "Sava Danilov"})
    seen.page.get_by_role("button", name="Why: Sava Danilov").click()
    seen.page.get_by_role("dialog").get_by_text("based on memories recalled for the plan of the day").first.wait_for()
    seen.page.keyboard.press("Escape")
    assert seen.page.locator(".how.recorded").first.is_visible()
    assert seen.page.get_by_role("button", name="1 hour").count() == 0


def test_facts_are_filtered_while_typing_and_show_later_knowers(studio: OpenStudio) -> None:
    seen = studio()
    seen.open("town", **{"from": "recorded", "t": "2025-09-26T08:00"})
    seen.page.get_by_role("tab", name="Who knows").click()
    listed = seen.page.locator(".town .panel .list li")
    listed.nth(10).wait_for()
    seen.page.get_by_role("searchbox", name="A fact").press_sequentially("films chair")
    seen.page.get_by_text("at least one of these words").wait_for()
    assert "Mitea Halchin shows his father's films" in listed.first.inner_text(), "it contains both words"
    assert all("film" in each.lower() or "chair" in each.lower() for each in listed.all_inner_texts())
    seen.page.keyboard.press("Enter")
    seen.page.get_by_role("heading", name="Told later").wait_for()
    later = seen.page.get_by_role("listitem").filter(has_text="Nichifor Pahom from Sava Danilov")
    later.get_by_role("button", name="Fri 11:08").click()
    seen.page.get_by_text("of 6 know it by now").wait_for()
    assert later.locator("xpath=preceding::h3[text()='Told later']").count() == 0, "it has been told at that moment"


def test_hostile_texts_are_shown_as_text(studio: OpenStudio) -> None:
    seen = studio(size=NARROW)
    page = watch(seen, town="spoilt", t=TEN_PAST_EIGHT)
    for tab in ("People", "Places", "Who knows", "Relations", "Happenings"):
        page.get_by_role("tab", name=tab).click()
        page.wait_for_timeout(100)
        assert seen.fits(), tab
    for name in ("Ada Brook", "Cleo Marsh"):
        page.evaluate(f"location.hash = '#/town?town=spoilt&who={name.replace(' ', '+')}'")
        page.locator(".town h2", has_text=name).wait_for()
        for tab in ("Memory", "Talks", "About", "Now"):
            page.get_by_role("tab", name=tab).click()
            assert seen.fits(), tab
    page.get_by_role("tab", name="About").click()
    assert HOSTILE[0] in page.locator(".town .panel").inner_text()
    assert page.title() == "Town · mindstream" and page.locator("img").count() == 0


def test_residents_at_the_same_spot_are_all_visible(studio: OpenStudio) -> None:
    page = watch(studio())
    crowd = """async (count) => {
      const { spread } = (await import("/studio/pages/town.js")).modules["town/spread.js"];
      const put = () => spread(Array(count).fill(null).map(() => [100, 100]), 20);
      const far = (one, two) => Math.hypot(one[0] - two[0], one[1] - two[1]);
      const points = put(), again = put();
      const apart = points.flatMap((one, i) => points.slice(0, i).map((two) => far(one, two)));
      const most = Math.max(...points.map((point) => far(point, [100, 100])));
      return [Math.min(...apart), most, JSON.stringify(points) === JSON.stringify(again)];
    }"""
    for count in (2, 3, 6, 7, 25):
        nearest, farthest, same = page.evaluate(crowd, count)
        assert nearest > 19 and farthest < 20 * count**0.5 and same, count


def test_many_distinct_faces_fit_on_few_sprite_sheets(studio: OpenStudio) -> None:
    page = watch(studio())
    drawn = """async (count) => {
      const { Faces } = (await import("/studio/pages/town.js")).modules["town/faces.js"];
      const colours = { rim: "#fff", paper: "#fff", face: "0.6 0.2", asleep: "0.3 0.1", font: "serif" };
      const canvas = Object.assign(document.createElement("canvas"), { width: 16 * count, height: 16 });
      const context = canvas.getContext("2d", { willReadFrequently: true }), faces = new Faces();
      const hue = (number) => (number % 2 ? 30 : 210);
      const part = (number, asleep) => ({ person: { number, hue: hue(number), initials: "" }, asleep, how: "" });
      const look = (x) => [...context.getImageData(x, 8, 1, 1).data].join();
      const put = (asleep) => {
        const shown = Array.from({ length: count }, (_, i) => ({ part: part(i, asleep), x: 16 * i + 8, y: 8 }));
        faces.draw(context, shown, 10, 1, colours);
        return shown.map(({ x }) => look(x));
      };
      return [put(false), put(true), faces.sheets.length];
    }"""
    awake, asleep, sheets = page.evaluate(drawn, 1_000)
    assert sheets <= 2
    for seen in (awake, asleep):
        assert len(set(seen[::2])) == 1 and len(set(seen[1::2])) == 1, "two equal faces"
    assert len({awake[0], awake[1], asleep[0], asleep[1]}) == 4
