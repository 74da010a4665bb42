"""openapi.json is kept in the repository, so that changes are visible; responses match it.

`python tests/server/test_openapi.py` rewrites it; `make soak` sends 5,000 cases to a server.
"""

from __future__ import annotations

import asyncio
import difflib
import json
import re
import sys
import tempfile
from collections import Counter
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import KEY, FakeEndpoint
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from served import Served

from mindstream.server.api_app import app

FILE = Path(__file__).parent.parent.parent / "docs" / "openapi.json"
WANTED = ("not_a_server_error", "status_code_conformance", "content_type_conformance", "response_schema_conformance")


def written(data: Path) -> str:
    """Return the content of the file as it should be."""
    return json.dumps(app(data).api.openapi(), indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def test_the_openapi_file_is_up_to_date(tmp_path: Path) -> None:
    kept, now = FILE.read_text("utf-8"), written(tmp_path)
    difference = "".join(difflib.unified_diff(kept.splitlines(True), now.splitlines(True), "docs/openapi.json", "now"))
    assert not difference, f"{difference}\nrewrite it: python {Path(__file__).name}"


def test_the_page_of_the_server_lists_each_operation() -> None:
    page = FILE.with_name("server.md").read_text("utf-8")
    table = page[page.index("## All operations") : page.index("Long-running operations (*)")]
    words = {word for part in re.findall("`([^`]+)`", table) for word in re.findall(r"[a-z][a-z-]+", part)}
    paths = [path for path in json.loads(FILE.read_text("utf-8"))["paths"] if path.startswith("/api/")]
    named = {path: [part for part in path.split("/") if not part.startswith("{")][-1] for path in paths}
    assert not [path for path, word in named.items() if word not in words]


@pytest.mark.parametrize(("mounted", "servers"), [("", []), ("/mind", ["/mind"]), ("/a/b", ["/a/b"])])
def test_the_document_is_encoded_once(tmp_path: Path, mounted: str, servers: list[str]) -> None:
    """The document is public, so many requests must not encode it again each time."""
    api = app(tmp_path).api
    scope = {
        "type": "http", "method": "GET", "path": mounted + "/openapi.json", "root_path": mounted,
        "headers": [], "query_string": b"",
    }  # fmt: skip
    bodies: list[bytes] = []

    async def send(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.body":
            bodies.append(message["body"])

    async def receive() -> dict[str, Any]:
        return {"type": "http.request"}

    for _ in range(3):
        asyncio.run(api(dict(scope), receive, send))
    assert bodies[0] is bodies[1] is bodies[2]
    answered = json.loads(bodies[0])
    assert [each["url"] for each in answered.pop("servers", [])] == servers
    assert answered == api.openapi()


def ask_cases(served: Served, cases: int) -> Counter[int]:
    """Send generated requests, spread over all operations; return the count of each status."""
    import schemathesis  # imported here because it is slow to load
    from schemathesis.checks import CHECKS, load_all_checks
    from schemathesis.core.result import Ok

    load_all_checks()
    schema = schemathesis.openapi.from_dict(json.loads(FILE.read_text("utf-8")))
    schema.config.update(base_url=served.url)
    found = [each.ok() for each in schema.get_all_operations() if isinstance(each, Ok)]
    found = [each for each in found if each.path != "/api/v1/events"]  # an endless stream; see test_events
    checks = [CHECKS.get_one(name) for name in WANTED]
    answers = Counter[int]()
    for operation in found:
        some = max(1, cases // len(found))

        @settings(
            max_examples=some,
            deadline=None,
            database=None,
            phases=[Phase.generate],
            suppress_health_check=list(HealthCheck),
            derandomize=True,
        )
        @given(case=st.one_of(*(operation.as_strategy(generation_mode=mode) for mode in schemathesis.GenerationMode)))
        def ask(case: Any) -> None:
            answer = case.call_and_validate(base_url=served.url, checks=checks, timeout=200)
            answers[answer.status_code] += 1

        try:
            ask()
        except BaseExceptionGroup as failed:
            # CPython before 3.11.9 can raise a SystemError if two threads parse code at the same time (gh-106905).
            if failed.split(SystemError)[1] is not None:
                raise
            ask()
    return answers


@pytest.fixture
def asked_server(folder: Path, monkeypatch: pytest.MonkeyPatch, door: FakeEndpoint) -> Any:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with Served(folder, model=f"{door.url}#any") as served:
        yield served


@pytest.mark.slow
@pytest.mark.filterwarnings("default")
def test_generated_requests_are_answered_as_documented(asked_server: Served) -> None:
    answers = ask_cases(asked_server, 150)
    assert answers[200] and answers[422] and not answers[500]


@pytest.mark.soak
@pytest.mark.timeout(3_600)
@pytest.mark.filterwarnings("default")
def test_five_thousand_cases_are_answered_as_documented(asked_server: Served) -> None:
    answers = ask_cases(asked_server, 5_800)
    print(dict(answers))
    assert answers.total() >= 5_000 and not answers[500]


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as nothing:
        FILE.write_text(written(Path(nothing)), "utf-8")
    print(f"wrote {FILE}", file=sys.stderr)
