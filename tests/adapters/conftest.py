"""Shared helpers of adapter tests: run programs with one line replaced, skip where a package is missing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from foreign_programs import Run, absent, run_python

PROGRAMS = Path(__file__).parent / "programs"


def pytest_ignore_collect(config: pytest.Config) -> bool | None:
    """Skip the folder in the quick tier: importing the frameworks takes seconds in each worker."""
    return True if "not slow" in config.option.markexpr else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark all tests of frameworks as slow, and ignore the frameworks' own deprecation warnings."""
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.slow)
            item.add_marker(pytest.mark.filterwarnings("default"))


@pytest.fixture
def needs() -> Callable[..., None]:
    """Skip with a reason if one of these modules is not installed."""

    def look(*modules: str) -> None:
        for module in modules:
            if absent(module):
                pytest.skip(f"{module} is not installed: `make adapters` has it")

    return look


@pytest.fixture
def run_program(tmp_path: Path) -> Run:
    """Run a program with lines replaced (each occurs once), and check that it prints ok at the end."""

    def run(name: str, replaced: Mapping[str, str]) -> None:
        source = (PROGRAMS / f"{name}.py").read_text("utf-8")
        for line, ours in replaced.items():
            assert source.count(line) == 1, f"{line!r} stands {source.count(line)} times in {name}"
            source = source.replace(line, ours)
        program = tmp_path / f"{name}.py"
        program.write_text(source, "utf-8")
        assert run_python(program, tmp_path).endswith("ok\n")

    return run
