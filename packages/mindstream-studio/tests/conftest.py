"""Fixtures of this folder are defined in `fixtures`, where their types are checked."""

from __future__ import annotations

from pathlib import Path

import pytest
from fixtures import browser, node_tools, served, studio

QUICK = {"test_shell.py"}
"""Studio tests with a browser that run in the quick tier."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need a browser or Node as slow."""
    for item in items:
        needs = {"browser", "node_tools"} & set(getattr(item, "fixturenames", ()))
        if Path(__file__).parent in item.path.parents and needs and item.path.name not in QUICK:
            item.add_marker(pytest.mark.slow)


__all__ = ["browser", "node_tools", "served", "studio"]
