"""The files for people who install, deploy and report: they can be read, and name what is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from running import run

ROOT = Path(__file__).parents[1]
FILES = [ROOT / "compose.yaml", *sorted((ROOT / ".github").rglob("*.yml"))]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.name)
def test_they_are_yaml(file: Path) -> None:
    assert isinstance(yaml.safe_load(file.read_text("utf-8")), dict)


def test_the_commands_of_the_containers_exist(tmp_path: Path) -> None:
    services = yaml.safe_load((ROOT / "compose.yaml").read_text("utf-8"))["services"]
    entrypoint: list[str] = services["token"]["entrypoint"]
    words = [*entrypoint[1:], "--tenant", "app"]
    made = run(*(str(tmp_path) if word == "/data" else word for word in words))
    assert entrypoint[0] == "mindstream" and made.code == 0 and len(made.out.split()) > 0
    served = re.search(r"ENTRYPOINT (\[.*\])", (ROOT / "Dockerfile").read_text("utf-8"))
    assert served
    entry: list[str] = yaml.safe_load(served[1])
    flags = run(entry[1], "--help").out
    assert [word for word in entry[2:] if word.startswith("--") and word not in flags] == []


def test_the_workflow_runs_targets_that_exist() -> None:
    workflow = (ROOT / ".github" / "workflows" / "tests.yml").read_text("utf-8")
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    assert set(re.findall(r"run: make ([\w-]+)", workflow)) <= targets


@pytest.mark.parametrize("page", ["SECURITY.md", "CONTRIBUTING.md"])
def test_linked_pages_exist(page: str) -> None:
    for link in re.findall(r"\]\(([\w./-]+)\)", (ROOT / page).read_text("utf-8")):
        assert (ROOT / link).exists(), link
