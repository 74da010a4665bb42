"""`mindstream plan export --solved`: runs of a log solved by the planner itself, in its prompt format."""

from __future__ import annotations

from pathlib import Path

from fake_endpoint import Asked, FakeEndpoint, Says
from running import run

PLAN = "Plan: Look.\n#E1 = search_documents[{}]"


def test_only_runs_solved_by_their_original_plan_are_exported(door: FakeEndpoint, folder: Path, tmp_path: Path) -> None:
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "rivers.txt").write_text("The Osk is 84 km long.")
    tools: list[str | Path] = ["--docs", docs, "--tools", "calculator"]

    def solve(task: str, *said: str, flags: tuple[str | Path, ...] = ()) -> None:
        door.will(*map(Says, said))
        run("solve", task, *tools, "--data", folder, "--model", f"{door.url}#m", *flags)

    solve("How long is the Osk?", PLAN.format("Osk km long"), "84 km")
    asked = next(each.body["messages"] for each in door.chats)
    solve("How long is the osk in miles?", PLAN.format("Osk"), "52 miles")
    lacks = "MISSING E1: it"
    solve("How deep is it?", PLAN.format("deep"), lacks, PLAN.format("depth"), lacks)
    solve("How wide is it?", PLAN.format("wide"), lacks, PLAN.format("width"), "12 m")  # planned again
    solve("Who knows?", "Nobody.")  # no plan
    solve("Which is it?", "The Osk.", flags=("--how", "react"))
    solve("Where is it?", "There.", flags=("--how", "direct"))
    solve("How long is the Osk?", "84 km")  # a reused plan
    given = tmp_path / "given.txt"
    given.write_text("Question: How far?\n#E1 = search_documents[far]\n")
    door.will(Says("84 km"))
    run("plan", "run", given, *tools, "--data", folder, "--model", f"{door.url}#m")
    run("solve", "How is the Osk?", *tools, "--data", folder)  # without a model: a quotation
    left = len(door.chats)
    assert left == 2 + 2 + 4 + 4 + 1 + 1 + 1 + 1 + 1, "the runs are the expected ones"

    done = run("plan", "export", "--solved", *tools, "--data", folder)
    tasks = [row["messages"][1]["content"] for row in done.rows]
    assert tasks == ["<task>\nHow long is the Osk?\n</task>", "<task>\nHow long is the osk in miles?\n</task>"]
    assert "2 plans of runs that answered their task" in done.err and len(door.chats) == left
    told, put, written = done.rows[0]["messages"]
    assert [told["content"], put["content"]] == [each["content"].rstrip("\n") for each in asked[:2]]
    assert written["content"] == PLAN.format("Osk km long")


def test_a_custom_planner_model_answers_for_its_role(door: FakeEndpoint, folder: Path, tmp_path: Path) -> None:
    def answers(asked: Asked) -> Says:
        planned = asked.body["model"] == "small"
        return Says("Plan: Reckon.\n#E1 = calculator[6 * 7]" if planned else "42")

    door.otherwise = answers
    roles = (
        "--role",
        f"planner={door.url}#small",
        "--role",
        f"solver={door.url}#large",
        "--role",
        f"worker={door.url}#large",
    )
    done = run("solve", "How many?", "--tools", "calculator", *roles, "--data", folder)
    assert (done.code, done.out) == (0, "42\n"), done.err
    assert [each.body["model"] for each in door.chats] == ["small", "large"]
