"""Other parts of the REST API: plans, lives, pools, operations, cost."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from fake_endpoint import FakeEndpoint, Says
from served import Served

from mindstream.identifiers import StreamName
from mindstream.log.events import BeliefChanged, PolicySet
from mindstream.memory.memory import Memory
from mindstream.memory.store.record import RecordDraft
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.memory.store.store import Entry
from mindstream.sharing import growth
from mindstream.sharing.admission import Pair, lay_in
from mindstream.sharing.grading import Criterion, Rubric
from mindstream.sharing.pool import Pool

USER = "/api/v1/users/ann"


def ended(client: httpx.Client, id_: str) -> dict[str, Any]:
    """Poll an operation until it has ended, or waits for a person."""
    for _ in range(4_000):
        found: dict[str, Any] = client.get(f"/api/v1/operations/{id_}").json()
        if found["state"] != "running":
            return found
        time.sleep(0.05)
    raise AssertionError(found)


PLAN = {
    "task": "what is 6 times 7?",
    "steps": [{"id": "E1", "tool": "calculator", "arguments": {"expression": "6*7"}}],
}


def test_a_plan_is_run_as_an_operation(client: httpx.Client, door: FakeEndpoint) -> None:
    door.otherwise = Says("It is 42.")
    begun = client.post(f"{USER}/plans/run", json={"plan": PLAN})
    assert begun.status_code == 202, begun.text
    done = ended(client, begun.json()["id"])
    assert done["state"] == "done", done
    assert "42" in str(done["result"]["evidence"])
    run = done["result"]["run"]
    assert client.get(f"{USER}/plans/{run}").json()["task"] == PLAN["task"]
    assert [each["run"] for each in client.get(f"{USER}/plans").json()["runs"]] == [run]
    assert client.get(f"/api/v1/users/bob/plans/{run}").status_code == 404


def test_a_plan_with_an_unavailable_tool_is_refused_before_any_call(client: httpx.Client, door: FakeEndpoint) -> None:
    before = len(door.asked)
    steps = [*PLAN["steps"], {"id": "E2", "tool": "search_documents", "arguments": {"query": "tea"}}]
    begun = client.post(f"{USER}/plans/run", json={"plan": {"task": "look", "steps": steps}})
    failed = ended(client, begun.json()["id"])
    assert failed["state"] == "failed" and len(door.asked) == before
    assert "found 'search_documents'; use one of these tools" in str(failed)
    assert "start the server with --docs DIR" in str(failed)


def test_an_unavailable_tool_is_not_used(client: httpx.Client) -> None:
    begun = client.post(f"{USER}/plans", json={"task": "look", "tools": ["documents:/etc"]}).json()
    done = ended(client, begun["id"])
    assert done["state"] == "failed" and "no tool" in done["problem"]


def test_an_operation_of_another_tenant_is_not_found(served: Served, client: httpx.Client) -> None:
    acme, other = served.token("acme"), served.token("other")
    one = client.post(f"{USER}/memories/sleep", json={}, headers=acme).json()
    assert client.get(f"/api/v1/operations/{one['id']}", headers=acme).status_code == 200
    assert client.get(f"/api/v1/operations/{one['id']}", headers=other).status_code == 404
    assert client.post(f"/api/v1/operations/{one['id']}/cancel", headers=other).status_code == 404
    assert client.get("/api/v1/operations", headers=other).json()["operations"] == []


def test_a_correction_appears_in_the_lineage(client: httpx.Client) -> None:
    old = client.post(f"{USER}/memories", json={"text": "The key hangs behind the door."}).json()["id"]
    done = client.post(f"{USER}/memories/{old}/correct", json={"text": "The key lies under the mat."}).json()
    new = done["memory"]["id"]
    wordings = client.get(f"{USER}/memories/{old}/history").json()["memories"]
    assert [each["id"] for each in wordings] == [old, new]
    assert [each["status"] for each in wordings] == ["superseded", "holds"]
    lineage = client.get(f"{USER}/memories/{new}/lineage").json()
    assert [each["id"] for each in lineage["from"]] == [old] and lineage["into"] == []
    assert [each["id"] for each in client.get(f"{USER}/memories/{old}/lineage").json()["into"]] == [new]


def test_forget_removes_memories_that_mention_a_subject(client: httpx.Client) -> None:
    client.post(f"{USER}/memories", json={"text": "The red bicycle is in the cellar."})
    client.post(f"{USER}/memories", json={"text": "Tea is made at four."})
    shown = client.post(f"{USER}/memories/forget", json={"about": "red bicycle"}).json()
    assert len(shown["asked"]) == 1 and not shown["forgotten"]
    client.post(f"{USER}/memories/forget", json={"about": "red bicycle", "dry_run": False})
    left = [each["text"] for each in client.get(f"{USER}/memories").json()["memories"]]
    assert left == ["Tea is made at four."]


def test_a_sleep_can_be_undone(client: httpx.Client) -> None:
    client.post(f"{USER}/memories", json={"text": "Tea is made at four."})
    done = ended(client, client.post(f"{USER}/memories/sleep", json={"n": 5}).json()["id"])
    assert done["state"] == "done", done
    assert client.post(f"{USER}/memories/undo-sleep", json={}).status_code == 200


def test_lists_have_cursors(client: httpx.Client) -> None:
    for number in range(7):
        client.post(f"{USER}/memories", json={"text": f"note number {number}"})
    seen: list[str] = []
    cursor = ""
    while True:
        page = client.get(f"{USER}/memories", params={"limit": 3, "cursor": cursor}).json()
        seen += [each["text"] for each in page["memories"]]
        if not (cursor := page["next"]):
            break
    assert seen == [f"note number {number}" for number in reversed(range(7))]
    assert client.get(f"{USER}/memories", params={"cursor": "!"}).status_code == 422


def test_a_life_gets_a_goal_and_can_be_paused(client: httpx.Client) -> None:
    assert client.get(f"{USER}/life").status_code == 404
    begun = client.post(f"{USER}/life/goal", json={"goal": "Write a brief on tea"})
    assert begun.status_code == 200 and begun.json()["goal"] == "Write a brief on tea"
    assert client.post(f"{USER}/life/say", json={"text": "Keep it short."}).status_code == 200
    assert client.post(f"{USER}/life/pause", json={"because": "I am in a meeting"}).status_code == 200
    assert client.get(f"{USER}/life").json()["halted"].startswith("paused")
    assert client.post(f"{USER}/life/answer", json={"text": "yes"}).status_code == 422


def test_a_pool_is_open_only_to_its_members(client: httpx.Client) -> None:
    made = client.post(f"{USER}/pools/verse", json={"members": ["bob"]})
    assert made.status_code == 201 and made.json()["owner"] == "ann", made.text
    for user in ("ann", "eve"):
        taken = client.post(f"/api/v1/users/{user}/pools/verse", json={})
        assert taken.status_code == 409 and taken.json()["type"].endswith(":conflict"), taken.text
        assert "the name is taken: choose another" in taken.json()["detail"]
    assert client.get("/api/v1/users/bob/pools/verse").status_code == 200
    assert [each["pool"] for each in client.get("/api/v1/users/bob/pools").json()["pools"]] == ["verse"]
    assert client.get("/api/v1/users/eve/pools/verse").status_code == 404
    assert client.post("/api/v1/users/eve/pools/verse/recall", json={"query": "tea"}).status_code == 404
    assert client.get("/api/v1/users/eve/pools").json()["pools"] == []
    assert client.post("/api/v1/users/bob/pools/verse/recall", json={"query": "tea"}).json()["exemplars"] == []


@pytest.mark.parametrize("tenant", ["acme", "local", "acme.de"])
def test_each_tenant_has_its_own_pools(served: Served, client: httpx.Client, tenant: str) -> None:
    pool, other = f"{USER}/pools/verse", served.token("other")
    own = served.token(tenant)
    for headers, members in ((own, ["bob"]), (other, [])):
        made = client.post(pool, json={"domain": "verse", "members": members}, headers=headers)
        assert made.status_code == 201, made.text
        assert client.get(pool, headers=headers).json()["members"] == members
        asked = client.post(f"{pool}/recall", json={"query": "tea"}, headers=headers)
        assert (asked.status_code, asked.json()["exemplars"]) == (200, [])
    bobs = f"{pool.replace('ann', 'bob')}/recall"
    answers = [client.post(bobs, json={"query": "tea"}, headers=headers).status_code for headers in (own, other)]
    assert answers == [200, 404], "members of one tenant's pool are not members of the other's"
    assert client.get(pool, headers=served.token("third")).status_code == 404


def test_an_utterance_has_a_trace_and_a_cost(client: httpx.Client, door: FakeEndpoint) -> None:
    door.otherwise = Says("Hello, ann.")
    with client.stream(
        "POST", f"{USER}/send", json={"text": "Hello!"}, headers={"Accept": "text/event-stream"}
    ) as answer:
        list(answer.iter_lines())
    rows = client.get(f"{USER}/log", params={"kinds": "heard"}).json()["rows"]
    trace = client.get(f"{USER}/traces/{rows[0]['seq']}").json()["rows"]
    assert trace[0]["event"] == "heard" and "said" in {row["event"] for row in trace}
    assert client.get(f"{USER}/traces/{rows[0]['seq'] + 1}").status_code == 404
    assert client.get("/api/v1/cost").status_code == 200


def test_kinds_are_given_repeatedly_or_with_commas(client: httpx.Client, door: FakeEndpoint) -> None:
    door.otherwise = Says("Hello, ann.")
    client.post(f"{USER}/memories", json={"text": "Ann likes tea."})
    with client.stream(
        "POST", f"{USER}/send", json={"text": "Hello!"}, headers={"Accept": "text/event-stream"}
    ) as answer:
        list(answer.iter_lines())
    for query in ("kinds=heard&kinds=said", "kinds=heard,said", "kinds=heard,&kinds=%20said"):
        rows = client.get(f"{USER}/log?{query}").json()["rows"]
        assert [row["event"] for row in rows] == ["heard", "said"], query
    page = client.get(f"{USER}/memories?kinds=note&kinds=chat").json()["memories"]
    assert {each["kind"] for each in page} == {"note", "chat"}


def test_only_towns_offered_by_the_operator_exist(client: httpx.Client) -> None:
    assert client.get("/api/v1/towns").json() == {"towns": [], "forks": []}
    assert client.get("/api/v1/towns/ville").status_code == 404
    assert client.get("/api/v1/towns/..%2f..%2fetc").status_code == 404


def test_cancel_stops_the_answers_of_a_session(client: httpx.Client, door: FakeEndpoint) -> None:
    door.otherwise = Says("one two three", step=True)
    sent = client.post(f"{USER}/send", json={"text": "Hello!", "session": "s"})
    assert sent.status_code == 202
    assert client.post(f"{USER}/cancel", json={"session": "s"}).json()["stopped"] >= 1


def decaying(folder: Path, drawn: int = 20) -> None:
    """Configure ann's memory to archive unused records; `drawn`: the number of records that a sleep draws."""

    async def open_once() -> None:
        async with Memory.open(folder, "ann") as memory:
            await memory.commit(Entry(PolicySet(policy={"retention": "decay", "drawn": drawn}), "ann"))

    asyncio.run(open_once())


def test_the_strength_of_a_memory_is_reported_with_its_decay_laws(folder: Path, client: httpx.Client) -> None:
    decaying(folder, drawn=1)
    new = client.post(f"{USER}/memories", json={"text": "Tea is made at four."}).json()["id"]
    held = client.get(f"{USER}/memories/{new}/strength").json()
    assert held["fades"] and held["level"] == 0 and held["laws"]["first_s"] == 3600 and held["nights"] == []
    kept = [chance for _, chance in held["curve"]]
    assert kept[0] == 1 and kept == sorted(kept, reverse=True) and kept[-1] < 0.01
    assert held["rehearsals_s"][0] == 0 and len(held["rehearsals_s"]) == held["laws"]["lasting_level"]
    client.post(f"{USER}/memories/recall", json={"query": "tea at four"})
    again = client.get(f"{USER}/memories/{new}/strength").json()
    assert again["level"] == 1 and again["returned"] > held["returned"]
    assert again["counts_again"] == pytest.approx(again["returned"] + 2 * 3600)
    said = client.post(f"{USER}/memories", json={"text": "Hello.", "kind": "chat"}).json()["id"]
    never = client.get(f"{USER}/memories/{said}/strength").json()
    assert not never["fades"] and never["curve"] == []
    client.post(f"{USER}/memories", json={"text": "Coffee is made at eight."})
    drawn = client.get(f"{USER}/memories/{new}/strength").json()["drawn"]
    assert (again["drawn"], drawn) == (1, 0.5), "a sleep draws one of two"
    bob = client.post("/api/v1/users/bob/memories", json={"text": "Tea is made at five."}).json()["id"]
    kept = client.get(f"/api/v1/users/bob/memories/{bob}/strength").json()
    assert not kept["fades"] and kept["curve"] == [], "nothing decays under the policy keep"
    assert client.get(f"/api/v1/users/bob/memories/{new}/strength").status_code == 404


def test_nights_are_listed_with_their_changes(folder: Path, client: httpx.Client) -> None:
    decaying(folder)
    assert client.get(f"{USER}/nights").json() == {"nights": [], "next": ""}
    for text in ("Tea is made at four.", "tea is made at four o'clock", "The red bicycle is in the cellar."):
        client.post(f"{USER}/memories", json={"text": text})
    for _ in range(2):
        assert ended(client, client.post(f"{USER}/memories/sleep", json={}).json()["id"])["state"] == "done"
    first = client.get(f"{USER}/nights", params={"limit": 1}).json()
    (last,) = first["nights"]
    assert last["looked_at"] >= 2 and last["forgotten"] == [] and last["dream"] == "" and not last["undone"]
    (before,) = client.get(f"{USER}/nights", params={"cursor": first["next"]}).json()["nights"]
    assert before["sleep"] < last["sleep"]
    client.post(f"{USER}/memories/undo-sleep", json={"sleep": last["sleep"]})
    assert client.get(f"{USER}/nights").json()["nights"][0]["undone"]


def test_a_plan_is_edited_before_it_is_approved(client: httpx.Client, door: FakeEndpoint) -> None:
    door.otherwise = Says("Plan: multiply them.\n#E1 = calculator[6*8]")
    one = client.post(f"{USER}/plans", json={"task": "what is 6 times 7?", "approve": True}).json()
    (waits,) = ended(client, one["id"])["waits_for"]
    plan = waits["data"]["plan"]
    assert waits["what"] == "plan" and list(plan["steps"][0]["arguments"].values()) == ["6*8"]
    url = f"{USER}/plans/{one['id']}/approve"
    wrong = plan | {"steps": [plan["steps"][0] | {"tool": "crystal_ball"}]}
    refused = client.post(url, json={"plan": wrong})
    assert refused.status_code == 422 and "crystal_ball" in refused.json()["detail"]
    assert ended(client, one["id"])["state"] == "waiting", "the plan still waits for approval"
    door.otherwise = Says("It is 42.")
    right = plan | {"steps": [plan["steps"][0] | {"arguments": dict.fromkeys(plan["steps"][0]["arguments"], "6*7")}]}
    assert client.post(url, json={"plan": right}).status_code == 200
    done = ended(client, one["id"])
    assert done["state"] == "done", done
    assert done["result"]["evidence"][0]["text"].endswith("42") and done["result"]["plan"]["steps"] == right["steps"]
    kept = client.get(f"{USER}/plans/{done['result']['run']}").json()
    assert kept["spent"]["tool_calls"] == 1 and kept["spent"]["model_calls"] >= 1 and kept["spent"]["tokens"] > 0


def test_log_rows_are_listed_newest_first_and_up_to_a_row(client: httpx.Client) -> None:
    for number in range(5):
        client.post(f"{USER}/memories", json={"text": f"note number {number}"})
    rows = client.get(f"{USER}/log", params={"kinds": "remembered"}).json()["rows"]
    seqs = [row["seq"] for row in rows]
    assert len(seqs) == 5
    newest: list[int] = []
    cursor = ""
    while True:
        asked: dict[str, str | int | bool] = {"kinds": "remembered", "newest": True, "limit": 2, "cursor": cursor}
        page = client.get(f"{USER}/log", params=asked).json()
        newest += [row["seq"] for row in page["rows"]]
        if not (cursor := page["next"]):
            break
    assert newest == seqs[::-1]
    for asked, wanted in (({"upto": seqs[2]}, seqs[:3]), ({"upto": seqs[2], "newest": True}, seqs[2::-1])):
        found = client.get(f"{USER}/log", params={"kinds": "remembered", **asked}).json()
        assert [row["seq"] for row in found["rows"]] == wanted and found["next"] == ""


async def believed(data: Path) -> list[int]:
    """Change a belief twice; return the rows."""
    async with SqliteStore(data) as store, Memory.open(store, StreamName("user", "ann")) as memory:
        seqs = []
        for version, text in ((1, "She sleeps badly."), (2, "She sleeps well.")):
            event = BeliefChanged(slot="sleep", version=version, patch={"sleep": text})
            draft = RecordDraft(text=text, kind="belief", slot="sleep", version=version, data={"value": {"is": text}})
            (row,) = await memory.commit(Entry(event, "sleep", tuple(await memory.build_records([draft]))))
            seqs.append(row.seq)
        return seqs


def test_beliefs_are_shown_as_of_a_log_row(served: Served, folder: Path, client: httpx.Client) -> None:
    first, second = asyncio.run(believed(folder))
    (now,) = client.get(f"{USER}/belief").json()["beliefs"]
    assert now["text"] == "She sleeps well." and now["seq"] == second and now["version"] == 2
    (then,) = client.get(f"{USER}/belief", params={"seq": second - 1}).json()["beliefs"]
    assert then["text"] == "She sleeps badly." and then["seq"] == first
    assert client.get(f"{USER}/belief", params={"seq": first - 1}).json()["beliefs"] == []


def test_a_life_says_when_its_standing_orders_are_due(client: httpx.Client) -> None:
    orders = ["every day at 8:00: ask me how I slept", "every 2 hours: look around"]
    client.post(f"{USER}/life/goal", json={"goal": "Sleep better", "orders": orders})
    due = client.get(f"{USER}/life").json()["due"]
    assert [each["order"] for each in due] == orders and all(each["at"] > time.time() for each in due)


RUBRIC = Rubric(
    domain="tea", threshold=50,
    criteria=(
        Criterion(name="true", points=60, asks="Is it true?"),
        Criterion(name="use", points=40, asks="Is it of use to others?", others=True),
    ),
)  # fmt: skip


async def filled(data: Path) -> None:
    """Fill a pool of ann's with two pairs and freeze its rubric."""
    async with SqliteStore(data) as store, Pool.open(store, "tea") as pool:
        await pool.freeze_rubric(RUBRIC, "ann")
        await lay_in(pool, [Pair("How hot is tea?", "Eighty degrees."), Pair("How long?", "Three minutes.")], "ann")


def test_a_pool_reports_the_state_of_each_pair_and_trusted_sources(
    served: Served, folder: Path, client: httpx.Client, door: FakeEndpoint
) -> None:
    client.post(f"{USER}/pools/tea", json={"members": ["bob"], "domain": "tea"})
    asyncio.run(filled(folder))
    grades = [{"criterion": name, "points": 5, "reason": "It is no answer."} for name in ("true", "use")]
    door.otherwise = Says(json.dumps({"grades": grades}))
    ask = {"query": "Is it hot?", "answer": "Blue."}
    offered = ended(client, client.post("/api/v1/users/bob/pools/tea/offer", json=ask).json()["id"])
    assert offered["result"]["verdict"] == "rejected", offered
    found = client.get(f"{USER}/pools/tea/details").json()
    assert found["owner"] == "ann" and found["rubrics"][0]["threshold"] == 50 and found["versions"] == []
    assert [each["name"] for each in found["rubrics"][0]["criteria"]] == ["true", "use"]
    pairs = client.get(f"{USER}/pools/tea/pairs", params={"limit": 2}).json()
    more = client.get(f"{USER}/pools/tea/pairs", params={"limit": 2, "cursor": pairs["next"]}).json()
    listed = pairs["pairs"] + more["pairs"]
    by_hand = [each for each in listed if each["by_hand"]]
    assert [each["query"] for each in by_hand] == ["How long?", "How hot is tea?"] and more["next"] == ""
    assert all(each["served"] and each["verdict"] == "admitted" for each in by_hand)
    (rejected,) = client.get(f"{USER}/pools/tea/pairs", params={"verdict": "rejected"}).json()["pairs"]
    assert rejected["score"] == 10 and rejected["grades"] == {"true": 5, "use": 5} and rejected["by"].endswith("any")
    assert not rejected["served"] and "it was rejected" in rejected["unserved"] and rejected["reasons"]
    growth = client.get(f"{USER}/pools/tea/growth").json()
    assert growth["points"] == [] and "a curve needs at least 20" in growth["why"]
    body = {"query": "How hot is tea?", "k": 1}
    for untrained in (False, True):
        answer = client.post(f"{USER}/pools/tea/recall", json=body | {"untrained": untrained}).json()
        assert [each["answer"] for each in answer["exemplars"]] == ["Eighty degrees."]
    assert client.post("/api/v1/users/bob/pools/tea/trust", json={"source": "bob", "trusted": True}).status_code == 422
    assert client.post(f"{USER}/pools/tea/trust", json={"source": "asked by bob", "trusted": False}).status_code == 200
    (source,) = client.get(f"{USER}/pools/tea/details").json()["sources"]
    assert source["source"] == "asked by bob" and source["trusted"] is False and source["pairs"] == 1
    for room in ("details", "pairs", "growth"):
        assert client.get(f"/api/v1/users/eve/pools/tea/{room}").status_code == 404


async def grown(data: Path, pairs: range) -> None:
    """Seed pairs into a pool of ann's."""
    async with SqliteStore(data) as store, Pool.open(store, "sums") as pool:
        await lay_in(pool, [Pair(f"What is {at} plus {at}?", f"It is {2 * at}.") for at in pairs], "ann")
        await pool.retriever.settle()


def test_the_growth_curve_is_measured_once_per_pool_content(
    folder: Path, client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[str] = []
    measure = growth.growth_curve

    async def counted(pool: Pool, reader: str) -> list[growth.SizePoint]:
        measured.append(reader)
        return await measure(pool, reader)

    monkeypatch.setattr(growth, "growth_curve", counted)
    client.post(f"{USER}/pools/sums", json={"domain": "sums"})
    asyncio.run(grown(folder, range(20)))
    first, again = (client.get(f"{USER}/pools/sums/growth").json() for _ in range(2))
    assert first == again and first["points"][-1]["size"] == 20 and measured == ["ann"]
    asyncio.run(grown(folder, range(20, 24)))
    assert client.get(f"{USER}/pools/sums/growth").json()["points"][-1]["size"] == 24 and measured == ["ann", "ann"]


def test_a_user_with_a_log_is_listed(client: httpx.Client, served: Served, door: FakeEndpoint) -> None:
    door.otherwise = Says("It is 42.")
    client.post("/api/v1/users/bob/memories", json={"text": "Tea is made at four."})
    assert ended(client, client.post(f"{USER}/plans/run", json={"plan": PLAN}).json()["id"])["state"] == "done"
    assert client.get("/api/v1/users").json()["users"] == ["ann", "bob"]
    assert client.get("/api/v1/users", headers=served.token("acme")).json()["users"] == []
    (call, *_) = client.get(f"{USER}/calls").json()["calls"]
    whole = client.get(f"{USER}/calls/{call['seq']}").json()
    (began,) = whole["about"]
    assert began["event"] == "solving" and began["task"] == PLAN["task"]
    assert not call["kept"] and whole["messages"] == [] and whole["answered"] == "", (
        "texts are returned only on request"
    )
