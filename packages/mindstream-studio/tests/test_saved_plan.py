"""A task saved to a file: its strategies side by side, step by step, the costs; and no request."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from fake_endpoint import KEY, FakeEndpoint
from mindstream_studio.recorded import save_plan
from saving import held_in, look_at, save
from served import Served
from solving import TASK, answer, ended, solve
from studio import HOSTILE, NARROW, WIDE, Studio, serve_studio

from mindstream.errors import InputError
from mindstream.settings import Settings

OpenStudio = Callable[..., Studio]
OTHER = "What is left of ten after three?"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that logs prompts, with the double of an endpoint as its models."""
    with FakeEndpoint() as door, pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        door.otherwise = answer
        settings = Settings(model=f"{door.url}#any", keep_prompts=True)
        with serve_studio(tmp_path_factory.mktemp("plan") / "data", settings=settings) as server:
            yield server


@pytest.fixture(scope="module")
def files(served: Served, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A task of ann solved with three strategies, without calls and with them, as files."""
    folder = tmp_path_factory.mktemp("files")
    solve(served, "ann", "rewoo", task=OTHER)
    runs = [each["run"] for each in solve(served, "ann", "rewoo", "react", "plan-execute")]
    settings = served.api_app.runtime.settings.model_copy(update={"user": "ann"})
    return {
        "plan": save(settings, folder / "plan.html", partial(save_plan, run=runs[1])),
        "calls": save(settings, folder / "calls.html", partial(save_plan, run=runs[1], with_calls=True)),
    }


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
def test_a_saved_task_shows_the_page_without_requests(
    studio: OpenStudio, node_tools: None, files: dict[str, Path], dark: bool, size: tuple[int, int]
) -> None:
    seen = studio(dark=dark, size=size, url=files["plan"].parent.as_uri())
    asked = look_at(seen, files["plan"])
    took = seen.page.get_by_role("region", name="Cost of each strategy")
    took.get_by_text("960").nth(1).wait_for()
    for way in ("rewoo", "react", "plan-execute"):
        part = seen.page.get_by_role("region", name=f"Run of the strategy {way}", exact=True)
        assert part.locator(".card").inner_text() == "84"
    took.get_by_role("button", name="Why rewoo cost this").click()
    bill = seen.page.get_by_role("dialog", name="What rewoo cost").get_by_role("table", name="The model calls")
    bill.wait_for()
    assert bill.get_by_role("link").count() == 0
    assert seen.axe() == []
    seen.page.keyboard.press("Escape")
    graph = seen.page.get_by_role("figure", name="Plan of the strategy rewoo")
    graph.get_by_role("button", name="E3").click()
    seen.page.get_by_role("dialog", name="E3 · calculator").get_by_text("42 + 42").wait_for()
    seen.page.keyboard.press("Escape")
    seen.page.get_by_role("slider", name="The moment that is shown").focus()
    seen.page.keyboard.press("Home")
    seen.page.get_by_text("planning", exact=True).first.wait_for()
    seen.page.get_by_role("button", name="Go to the newest moment").click()
    graph.get_by_text("3 of 3 steps done, answered.").wait_for()
    assert seen.page.get_by_role("button", name="Solve it again").count() == 0
    assert seen.axe() == [] and seen.fits()
    assert {url.partition("#")[0] for url in asked} == {files["plan"].as_uri()}


def test_a_saved_task_contains_no_other_tasks_or_calls(files: dict[str, Path]) -> None:
    words = str(held_in(files["plan"]))
    assert TASK in words and OTHER not in words and "Plan the task" not in words
    assert "Plan the task" in str(held_in(files["calls"]))


def test_a_cost_links_to_its_model_call_and_back(studio: OpenStudio, node_tools: None, files: dict[str, Path]) -> None:
    seen = studio(url=files["calls"].parent.as_uri())
    look_at(seen, files["calls"])
    took = seen.page.get_by_role("region", name="Cost of each strategy")
    took.get_by_role("button", name="Why rewoo cost this").click()
    seen.page.get_by_role("dialog", name="What rewoo cost").get_by_role("link").first.click()
    opened = seen.page.get_by_role("complementary", name="The opened call")
    opened.get_by_text("#E3 = calculator[#E1 + #E2]").first.wait_for()
    assert seen.axe() == [] and seen.fits()
    opened.get_by_role("link", name="the plan").click()
    seen.page.get_by_role("region", name="Run of the strategy rewoo", exact=True).wait_for()
    seen.page.go_back()
    opened.get_by_text("#E3 = calculator[#E1 + #E2]").first.wait_for()
    seen.page.get_by_role("link", name="Plan", exact=True).click()
    seen.page.get_by_role("region", name="Tasks").get_by_role("button", name=TASK).click()
    took.wait_for()


def test_hostile_texts_are_shown_as_text(studio: OpenStudio, served: Served, tmp_path: Path) -> None:
    with served.client() as client:
        step = {"id": "E1", "tool": "calculator", "arguments": {"expression": HOSTILE[1]}, "why": HOSTILE[3]}
        begun = client.post("/api/v1/users/eve/plans/run", json={"plan": {"task": HOSTILE[0], "steps": [step]}})
        run = ended(client, begun.json()["id"])["run"]
    settings = served.api_app.runtime.settings.model_copy(update={"user": "eve"})
    file = save(settings, tmp_path / "eve.html", partial(save_plan, run=run, with_calls=True))
    assert "<img" not in file.read_text("utf-8")
    seen = studio(size=NARROW, url=tmp_path.as_uri())
    look_at(seen, file)
    seen.page.get_by_role("figure", name="Plan of the strategy rewoo").get_by_role("button", name="E1").click()
    sheet = seen.page.get_by_role("dialog", name="E1 · calculator")
    assert sheet.get_by_role("paragraph").first.inner_text() == HOSTILE[3]
    assert HOSTILE[0] in seen.page.locator("main").inner_text()
    assert seen.fits() and seen.page.title().startswith("Plan")
    assert seen.page.locator("main img, main script, aside img").count() == 0


def test_a_missing_run_is_named_in_the_error(served: Served, tmp_path: Path, files: dict[str, Path]) -> None:
    settings = served.api_app.runtime.settings.model_copy(update={"user": "ann"})
    with pytest.raises(InputError, match="there is no run 'none'"):
        save(settings, tmp_path / "none.html", partial(save_plan, run="none"))
