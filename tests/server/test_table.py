"""The table of operations, from which REST, MCP and commands are built."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from mindstream.server.admission import A_MINUTE, AT_ONCE
from mindstream.server.api_app import app
from mindstream.service.operations import operation as table
from mindstream.service.operations.operation import MODULES, Operation, operations

TABLE = operations()
CLI = Path(__file__).parents[2] / "docs" / "cli.md"  # checked against the command line by its tests
VERBS = re.findall(r"^## mindstream (.+)$", CLI.read_text("utf-8"), re.MULTILINE)


@pytest.mark.parametrize("each", TABLE, ids=lambda each: each.name)
def test_every_operation_is_documented(each: Operation) -> None:
    assert each.summary and each.request.__doc__ and each.result.__doc__
    assert set(each.path_names) - {"user"} <= set(each.request.model_fields)
    if each.cli:
        assert each.cli.split(" --")[0] in VERBS


def test_operations_follow_the_order_of_their_modules(monkeypatch: pytest.MonkeyPatch) -> None:
    by_name = {each.name: each for each in reversed(TABLE)}
    monkeypatch.setattr(table, "_table", by_name)
    modules = dict.fromkeys(each.run.__module__ for each in operations())
    assert [*modules][: len(MODULES)] == [*MODULES]


def test_rest_has_a_route_for_each_operation(tmp_path: object) -> None:
    paths = app(str(tmp_path)).api.openapi()["paths"]
    for each in TABLE:
        assert paths[f"/api/v1{each.path}"][each.method.lower()]["operationId"] == each.name


def test_the_help_names_the_default_limits_of_a_token() -> None:
    page = " ".join(CLI.read_text("utf-8").split())
    assert f"requests a minute [{A_MINUTE:,}]" in page and f"parallel requests [{AT_ONCE:,}]" in page


def test_tool_names_are_unique() -> None:
    names = [each.mcp for each in TABLE if each.mcp]
    assert len(names) == len(set(names))
