"""A user token is limited to that user in paths, bodies and queries, also for tenant-wide operations."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hamlet import hamlet
from mindstream_town.operations.towns import TownList
from mindstream_town.town import Town
from served import Served

from mindstream.location import Location
from mindstream.service.operations.offered import Offered
from mindstream.service.operations.operation import CALLER, NotFound, Operation, Principal, operations
from mindstream.service.operations.runtime import Runtime
from mindstream.settings import Settings

TABLE = operations()
TOWN = "/api/v1/towns/hamlet"
ADA = f"{TOWN}/embody/Ada Brook"
USER_LIKE = {
    "user",
    "person",
    "by",
    "owner",
    "writer",
    "reader",
    "agent",
    "author",
    "actor",
    "asked_by",
    "on_behalf_of",
}
NO_CALLER = {("towns.evaluate", "person"), ("log.cost", "by")}
"""Fields with such a name that name no user: a person's answer, a grouping."""
NOT_TENANT_WIDE = {"towns.embody", "towns.act", "towns.leave", "towns.evaluate", "operations.cancel"}
"""Operations without a user in the path that may change something and are the caller's own."""


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    async def live() -> None:
        async with Town.open(tmp_path / "hamlet", hamlet()) as town:
            await town.run(until=8 * 360)

    asyncio.run(live())
    offered = Offered(towns={("acme", "hamlet"): tmp_path / "hamlet"})
    with Served(tmp_path / "data", model="rules", offered=offered) as running:
        yield running


@pytest.mark.parametrize("each", TABLE, ids=lambda each: each.name)
def test_every_operation_declares_whether_it_is_bound_to_the_caller(each: Operation) -> None:
    for name, field in each.request.model_fields.items():
        if name in USER_LIKE and (each.name, name) not in NO_CALLER:
            assert CALLER in field.metadata, f"{each.name}.{name} names a user and is not checked"
    if each.scope != "read" and "user" not in each.path_names:
        assert each.tenant_wide or each.name in NOT_TENANT_WIDE, f"{each.name} changes what all users share"
    assert not (each.tenant_wide and "user" in each.path_names)


def test_a_user_token_reaches_no_other_user_by_any_route(served: Served) -> None:
    with served.client(headers=served.token("acme", "admin", user="bob")) as bob:
        for each in TABLE:
            path = each.path.replace("{user}", "ann").replace("{town}", "hamlet").replace("{resident}", "Ada Brook")
            for name in set(each.path_names) - {"user", "town", "resident"}:
                path = path.replace(f"{{{name}}}", "1")
            answer = bob.request(each.method, f"/api/v1{path}", json=None if each.method == "GET" else {})
            if "user" in each.path_names:
                assert answer.status_code in ((403,) if each.method == "GET" else (403, 422)), (each.name, answer.text)
            if each.tenant_wide:
                assert answer.status_code in (403, 422), (each.name, answer.text)
        assert bob.get("/api/v1/cost", params={"user": "ann"}).status_code == 403
        assert bob.get("/api/v1/cost", params={"user": "ＢＯＢ".lower()}).status_code == 200, (
            "the same name in full-width letters"
        )


ACT: dict[str, Any] = {"act": "wait", "minutes": 1}


def test_only_the_user_of_the_token_plays_a_resident(served: Served) -> None:
    ann, bob, anybody = (
        served.client(headers=served.token("acme", "read,write", **more))
        for more in ({"user": "ann"}, {"user": "bob"}, {})
    )
    with ann, bob, anybody:
        began = ann.post(ADA, json={})
        assert began.status_code == 200 and began.json()["person"] == "ann", "the token determines the user"
        asked: list[httpx.Response] = []
        for named in ("ann", "ａｎｎ", "Maya"):
            asked += [
                bob.post(f"{ADA}/act", json=ACT | {"person": named}), bob.get(ADA, params={"person": named}),
                bob.post(f"{ADA}/leave", json={"person": named}), bob.post(ADA, json={"person": named}),
            ]  # fmt: skip
        assert {each.status_code for each in asked} == {403}
        for more in ({}, {"person": "bob"}):
            asked = [bob.post(f"{ADA}/act", json=ACT | more), bob.post(f"{ADA}/leave", json=more)]
            assert {each.status_code for each in asked} == {422} and "ann already controls" in asked[0].text
        assert anybody.post(f"{ADA}/act", json=ACT | {"person": "ann"}).status_code == 200
        visitor = {"visitor": True}
        assert ann.post(f"{TOWN}/embody/Maya", json=visitor).json()["person"] == "ann"
        assert bob.post(f"{TOWN}/embody/Maya/leave", json=visitor).status_code == 422
        assert ann.post(f"{TOWN}/embody/Maya/leave", json=visitor).status_code == 200
        assert ann.post(f"{ADA}/leave", json={"person": "ann"}).status_code == 200


def test_tenant_wide_operations_require_a_token_without_a_user(served: Served) -> None:
    wide = [
        ("POST", f"{TOWN}/run", {"steps": 1}), ("POST", f"{TOWN}/fork", {"step": 0}), ("DELETE", TOWN, None),
        ("POST", f"{TOWN}/whisper", {"resident": "Ada Brook", "text": "Bob is owed a coin."}),
        ("POST", f"{TOWN}/set", {"object": "piano", "condition": "broken", "danger": False}),
    ]  # fmt: skip
    with served.client(headers=served.token("acme", "admin", user="bob")) as bob:
        for method, url, body in wide:
            answer = bob.request(method, url, json=body)
            assert answer.status_code == 403 and "without --user" in answer.json()["detail"], answer.text
    with served.client(headers=served.token("acme")) as anybody:
        answered = [anybody.request(method, url, json=body).status_code for method, url, body in wide]
    assert answered == [202, 201, 404, 200, 200]


@pytest.mark.parametrize("named", ["bob", "ｂｏｂ", "bob smith"])
async def test_only_the_user_who_started_an_operation_reads_and_cancels_it(tmp_path: Path, named: str) -> None:
    bob, ann = (Principal("acme", frozenset({"admin"}), only=each) for each in (named, "ann"))

    async def job(_: object) -> TownList:
        await asyncio.Event().wait()
        raise AssertionError

    async with Runtime(Settings(data=Location(tmp_path))) as runtime:
        one = await runtime.running.begin("towns.evaluate", bob, job, runtime.begin)
        assert [each.id for each in await runtime.running.of(bob)] == [one.id]
        assert await runtime.running.of(ann) == []
        with pytest.raises(NotFound):
            await runtime.running.find(ann, one.id)
        await runtime.running.cancel(await runtime.running.find(bob, one.id))
        assert one.state == "cancelled"
