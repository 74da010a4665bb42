"""The Plan page: the cost of a task is visible, a plan is edited before it runs, strategies are compared."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from fake_endpoint import KEY, Behaviour, FakeEndpoint, Says, Stalls
from served import Served
from solving import TASK, USAGE, answer, ended, solve
from studio import HOSTILE, NARROW, WIDE, Studio, serve_studio

OpenStudio = Callable[..., Studio]


@pytest.fixture(scope="module")
def door() -> Iterator[FakeEndpoint]:
    with FakeEndpoint() as opened:
        yield opened


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory, door: FakeEndpoint) -> Iterator[Served]:
    """A server with the double of an endpoint as planner, worker and solver."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        door.otherwise = answer
        with serve_studio(tmp_path_factory.mktemp("plan") / "data", model=f"{door.url}#any") as server:
            yield server


@pytest.fixture(scope="module")
def three(served: Served) -> str:
    """The names of three runs of one task of ann, in the form of a link."""
    return ",".join(each["run"] for each in solve(served, "ann", "rewoo", "react", "plan-execute"))


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_three_strategies_are_compared_with_their_costs(
    studio: OpenStudio, three: str, node_tools: None, dark: bool, size: tuple[int, int]
) -> None:
    seen = studio(dark=dark, size=size)
    seen.open("plan", user="ann")
    line = seen.page.get_by_role("region", name="Tasks").get_by_role("listitem").first
    line.wait_for()
    assert "tokens" in line.inner_text() and "price not known" in line.inner_text()
    line.get_by_role("button", name=TASK).click()
    took = seen.page.get_by_role("region", name="Cost of each strategy")
    took.get_by_text("react", exact=True).wait_for()
    took.get_by_text("960").nth(1).wait_for()
    assert took.get_by_text("960").count() == 2 and took.get_by_text("least").count() == 2
    for way in ("rewoo", "react", "plan-execute"):
        part = seen.page.get_by_role("region", name=f"Run of the strategy {way}", exact=True)
        assert part.locator(".card").inner_text() == "84"
    took.get_by_role("button", name="Why rewoo cost this").click()
    sheet = seen.page.get_by_role("dialog", name="What rewoo cost")
    sheet.get_by_role("table", name="The model calls").wait_for()
    assert seen.axe() == []
    seen.page.keyboard.press("Escape")
    assert seen.axe() == [] and seen.fits()


def test_the_graph_shows_progress_at_the_selected_moment(studio: OpenStudio, served: Served, three: str) -> None:
    run = three.split(",")[0]
    with served.client() as client:
        rows = client.get(f"/api/v1/users/ann/plans/{run}/rows").json()["rows"]
    begun = next(row["seq"] for row in rows if row["event"] == "step_began")
    seen = studio()
    seen.open("plan", user="ann", runs=run, seq=begun)
    graph = seen.page.get_by_role("figure", name="Plan of the strategy rewoo")
    graph.get_by_text("running: E1.").wait_for()  # it starts while the rest is still being planned
    assert graph.locator("g.now").count() == 1 and graph.locator("g.ran").count() == 0
    seen.page.get_by_role("button", name="Go to the newest moment").click()
    graph.get_by_text("3 of 3 steps done, answered.").wait_for()
    assert graph.locator("g.ran").count() == 4
    graph.get_by_role("button", name="E3").click()
    sheet = seen.page.get_by_role("dialog", name="E3 · calculator")
    assert "42 + 42" in sheet.inner_text() and "Add what was found." in sheet.inner_text()
    assert sheet.get_by_text("E1, E2").is_visible()


def test_a_recorded_task_shows_no_cost_and_its_outcome(studio: OpenStudio) -> None:
    seen = studio()
    seen.open("plan", **{"from": "recorded", "user": "dora"})
    line = seen.page.get_by_role("listitem").filter(has_text="How high is K2")
    line.wait_for()
    assert "cost: recorded, not charged" in line.inner_text() and "answered in part" in line.inner_text()
    line.get_by_role("button", name="How high is K2").click()
    took = seen.page.get_by_role("region", name="Cost of each strategy")
    took.get_by_text("recorded, not charged").first.wait_for()
    way = seen.page.get_by_role("region", name="Run of the strategy rewoo")
    way.get_by_text("steps done, answered in part.").wait_for()
    assert way.get_by_text("answered in part").count() == 2
    way.get_by_role("button", name="E1").first.click()
    sheet = seen.page.get_by_role("dialog")
    sheet.get_by_text("Planned arguments").wait_for()
    assert "{" not in sheet.locator("dl.card").first.inner_text()


def test_a_plan_can_be_edited_and_approved_before_it_runs(
    studio: OpenStudio, served: Served, node_tools: None, tmp_path: Path
) -> None:
    solve(served, "bob", "rewoo", approve=True)
    seen = studio()
    seen.open("plan", user="bob")
    waits = seen.page.get_by_role("region", name="A plan waits for your approval")
    first = waits.get_by_role("group", name="E1")
    given = first.get_by_role("textbox", name="Arguments")
    given.fill("{not json")
    waits.get_by_text("are not a JSON object").wait_for()
    assert waits.get_by_role("button", name="Run it").is_disabled()
    given.fill('{"expression": "2 * 3"}')
    with seen.page.expect_download() as saved:
        waits.get_by_role("button", name="Save to a file").click()
    saved.value.save_as(tmp_path / "plan.json")
    assert json.loads((tmp_path / "plan.json").read_text("utf-8"))["steps"][0]["arguments"] == {"expression": "2 * 3"}
    assert seen.axe() == []
    waits.get_by_role("button", name="Run it").click()
    dialog = seen.page.get_by_role("dialog", name="Run it?")
    dialog.get_by_text("E1 calls calculator").wait_for()
    assert seen.axe() == []
    dialog.get_by_role("button", name="Run it").click()
    seen.page.get_by_role("button", name=TASK).click()
    seen.page.get_by_text("3 of 3 steps done, answered.").wait_for()
    with served.client() as client:
        (run,) = client.get("/api/v1/users/bob/plans").json()["runs"]
    assert run["plan"]["steps"][0]["arguments"] == {"expression": "2 * 3"}


def test_a_task_can_be_solved_repeated_and_compared_with_the_keyboard(studio: OpenStudio, served: Served) -> None:
    seen = studio()
    seen.open("plan", user="cid")
    seen.tab_to("textbox", "A task")
    seen.page.keyboard.type(TASK)
    seen.tab_to("button", "Solve it")
    seen.page.keyboard.press("Enter")
    seen.page.get_by_text("3 of 3 steps done, answered.").wait_for()
    seen.tab_to("button", "Solve it again")
    seen.page.keyboard.press("Enter")
    seen.page.get_by_role("dialog", name="Solve it again?").get_by_text(TASK).wait_for()
    seen.tab_to("button", "Solve the task again")
    seen.page.keyboard.press("Enter")
    seen.page.get_by_role("dialog").wait_for(state="detached")
    others = seen.page.get_by_role("region", name="Other runs of this task")
    others.wait_for()
    seen.tab_to("button", "Compare with the rewoo run")
    seen.page.keyboard.press("Enter")
    seen.page.get_by_text("3 of 3 steps done, answered.").nth(1).wait_for()
    assert seen.page.get_by_role("region", name="Run of the strategy rewoo").count() == 2


@pytest.fixture
def solver(door: FakeEndpoint) -> Iterator[Callable[[Behaviour], None]]:
    """Change the solver's reply for one request; afterwards it replies as before."""

    def let(behaviour: Behaviour) -> None:
        door.otherwise = lambda asked: behaviour if "from the evidence" in json.dumps(asked.body) else answer(asked)

    yield let
    door.otherwise = answer


def test_a_stopped_run_can_be_resumed(studio: OpenStudio, served: Served, solver: Callable[[Behaviour], None]) -> None:
    solver(Stalls())
    seen = studio()
    seen.open("plan", user="fay")
    seen.page.get_by_role("textbox", name="A task").fill(TASK)
    seen.page.get_by_role("button", name="Solve it").click()
    way = seen.page.get_by_role("region", name="Run of the strategy rewoo", exact=True)
    way.get_by_text("3 of 3 steps done.").wait_for()
    way.get_by_role("button", name="Stop").click()
    way.get_by_role("button", name="Resume").wait_for()
    assert way.get_by_role("button", name="Stop").count() == 0 and way.locator(".answer").count() == 0
    seen.page.reload()
    solver(Says("84", USAGE))
    way.get_by_role("button", name="Resume").click()
    way.get_by_text("3 of 3 steps done, answered.").wait_for()
    assert way.locator(".answer").inner_text() == "84"
    way.get_by_role("button", name="Solve it again").wait_for()
    with served.client() as client:
        (run,) = client.get("/api/v1/users/fay/plans").json()["runs"]
        rows = client.get(f"/api/v1/users/fay/plans/{run['run']}/rows").json()["rows"]
    assert [row["step"] for row in rows if row["event"] == "step_found"] == ["E1", "E2", "E3"], "each step ran once"


def test_a_run_continues_while_another_page_is_open(
    studio: OpenStudio, door: FakeEndpoint, solver: Callable[[Behaviour], None]
) -> None:
    solver(Says("84", USAGE, step=True))
    seen = studio()
    seen.open("plan", user="gil")
    seen.page.get_by_role("textbox", name="A task").fill(TASK)
    seen.page.get_by_role("button", name="Solve it").click()
    way = seen.page.get_by_role("region", name="Run of the strategy rewoo", exact=True)
    way.get_by_text("3 of 3 steps done.").wait_for()
    seen.page.get_by_role("link", name="Memory").click()
    seen.page.get_by_role("heading", name="Memory", level=1).wait_for()
    seen.page.get_by_role("link", name="Plan", exact=True).click()
    line = seen.page.get_by_role("region", name="Tasks").get_by_role("listitem").first
    line.get_by_text("running", exact=True).wait_for()
    line.get_by_role("button", name=TASK).click()
    way.get_by_role("button", name="Stop").wait_for()
    assert way.get_by_text("3 of 3 steps done.").is_visible()
    seen.page.get_by_role("link", name="Memory").click()
    seen.page.get_by_role("heading", name="Memory", level=1).wait_for()
    door.go()
    seen.page.go_back()
    way.get_by_text("3 of 3 steps done, answered.").wait_for()
    assert way.locator(".answer").inner_text() == "84"
    way.get_by_role("button", name="Solve it again").wait_for()


@pytest.mark.parametrize("leave", ["back", "address", "page"])
def test_a_dialog_closes_when_its_page_is_left(studio: OpenStudio, three: str, leave: str) -> None:
    seen = studio()
    seen.open("plan", user="ann")
    seen.page.get_by_role("region", name="Tasks").get_by_role("button", name=TASK).first.click()
    way = seen.page.get_by_role("region", name="Run of the strategy rewoo", exact=True)
    way.get_by_role("button", name="Solve it again").press("Enter")  # a click can miss it while the drawing above grows
    dialog = seen.page.get_by_role("dialog", name="Solve it again?")
    dialog.wait_for()
    if leave == "back":
        seen.page.go_back()
    else:
        seen.page.evaluate(f"location.hash = '#/{'memory' if leave == 'page' else 'plan'}?user=ann'")
    dialog.wait_for(state="detached")
    assert seen.page.locator("dialog").count() == 0


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_the_editor_is_scrolled_into_view(studio: OpenStudio, three: str, size: tuple[int, int]) -> None:
    seen = studio(size=size)
    seen.open("plan", user="ann", runs=three.split(",")[0])
    seen.page.get_by_role("button", name="Edit and run this plan").click()
    tool = seen.page.get_by_role("textbox", name="Tool").first
    tool.wait_for()
    assert tool.evaluate("each => each.getBoundingClientRect().bottom <= window.innerHeight")


def test_a_plan_from_a_file_can_be_run(studio: OpenStudio, served: Served) -> None:
    plan = {
        "task": "Half of ten?",
        "steps": [{"id": "E1", "tool": "calculator", "arguments": {"expression": "10 / 2"}}],
    }
    seen = studio(size=NARROW)
    seen.open("plan", user="dan")
    file = {"name": "plan.json", "mimeType": "application/json", "buffer": json.dumps(plan).encode()}
    seen.page.get_by_label("Open a plan from a file").set_input_files(file)
    seen.page.get_by_role("region", name="The plan of the file").get_by_role("button", name="Run this plan").click()
    seen.page.get_by_role("dialog").get_by_role("button", name="Run this plan").click()
    seen.page.get_by_text("1 of 1 step done, answered.").wait_for()
    assert seen.fits()


@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_hostile_texts_are_shown_as_text(studio: OpenStudio, served: Served, size: tuple[int, int]) -> None:
    user = f"eve{size[0]}"
    with served.client() as client:
        for at, text in enumerate(HOSTILE):
            step = {"id": "E1", "tool": "calculator", "arguments": {"expression": text}, "why": text}
            plan = {"task": f"{at} {text}", "steps": [step]}
            ended(client, client.post(f"/api/v1/users/{user}/plans/run", json={"plan": plan}).json()["id"])
        runs = client.get(f"/api/v1/users/{user}/plans").json()["runs"]
    seen = studio(size=size)
    seen.open("plan", user=user)
    seen.page.get_by_role("region", name="Tasks").get_by_role("listitem").nth(len(HOSTILE) - 1).wait_for()
    assert seen.fits()
    for run in runs:
        seen.open("plan", user=user, runs=run["run"])
        graph = seen.page.get_by_role("figure", name="Plan of the strategy rewoo")
        graph.get_by_role("button", name="E1").click()
        sheet = seen.page.get_by_role("dialog", name="E1 · calculator")
        assert sheet.get_by_role("paragraph").first.inner_text() == run["plan"]["steps"][0]["why"]
        assert seen.fits()
    assert seen.page.title().startswith("Plan")
    assert seen.page.locator("main img, main script, aside img").count() == 0


def test_without_runs_the_page_explains_what_to_do(studio: OpenStudio, node_tools: None) -> None:
    seen = studio(size=NARROW)
    seen.open("plan", user="zoe")
    seen.page.get_by_role("heading", name="Nothing has been solved yet").wait_for()
    assert seen.axe() == [] and seen.fits()
