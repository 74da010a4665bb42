"""REST: data is stored, recalled with receipts, and forgotten."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from fake_endpoint import FakeEndpoint, Says, Stalls
from served import Served

from mindstream.memory.store.record import MAX_TEXT, MAX_UTTERANCE


def test_a_retained_memory_is_recalled_with_a_receipt(client: httpx.Client) -> None:
    made = client.post("/api/v1/users/ann/memories", json={"text": "The spare key hangs behind the door."})
    assert made.status_code == 201
    found = client.post("/api/v1/users/ann/memories/recall", json={"query": "where is the key?", "k": 1}).json()
    (memory,) = found["memories"]
    assert memory["id"] == made.json()["id"] and memory["kind"] == "note"
    receipt = memory["receipt"]
    assert receipt["parts"]["words"] > 0 and receipt["ranks"]["words"] == 1 and receipt["source"] == "user"


@pytest.mark.parametrize("name", ["team/ann", "Ann Smith/..", "a/memories/recall", "ann/" + "b/" * 48])
def test_a_user_with_a_slash_in_the_name_is_reached(client: httpx.Client, name: str) -> None:
    user = f"/api/v1/users/{quote(name, safe='')}"
    made = client.post(f"{user}/memories", json={"text": f"Of {name}."}).json()
    assert client.get(f"{user}/memories/{made['id']}").json()["text"] == f"Of {name}."
    assert client.get(f"{user}/memories/", follow_redirects=True).json()["memories"][0]["id"] == made["id"]
    sent = client.post(f"{user}/send", json={"text": "Hello!", "session": "day/1"})
    assert sent.status_code == 202
    listed = client.get(f"{user}/sessions").json()
    assert [each["session"] for each in listed["sessions"]] == ["day/1"]
    assert name in client.get("/api/v1/users").json()["users"]
    again = name.replace("/", "%252F").replace(" ", "%20")  # encoded twice: not the same name
    assert client.get(f"/api/v1/users/{again}/memories").status_code == 422


@pytest.mark.parametrize(
    ("body", "detail"),
    [
        ('{"text": "Tea", "txt": "Tea"}', "txt: there is no such field; did you mean 'text'?"),
        ('{"text": "Tea", "colour": "red"}', "colour: there is no such field"),
        ('{"text": "Tea",', "the body is not JSON: Expecting property name enclosed in double quotes at character 15"),
        ("{'text': 'Tea'}", "the body is not JSON: Expecting property name enclosed in double quotes at character 1"),
    ],
)
def test_a_body_with_mistakes_is_described(client: httpx.Client, body: str, detail: str) -> None:
    sent = client.post("/api/v1/users/ann/memories", content=body, headers={"content-type": "application/json"})
    assert sent.json()["detail"] == detail


def test_an_unknown_field_an_address_and_a_method_lead_to_the_right_one(client: httpx.Client) -> None:
    user = "/api/v1/users/ann/memories"
    asked = client.post(f"{user}/recall", json={"query": "key", "limit": 1})
    assert (asked.status_code, asked.json()["detail"]) == (422, "limit: there is no such field; did you mean 'k'?")
    assert client.get(user, params={"k": 1}).json()["detail"] == "k: there is no such field; did you mean 'limit'?"
    lost = client.get("/api/v1")
    named = re.findall(r"/[/\w.]+", lost.json()["detail"])
    assert lost.status_code == 404 and len(named) == 4
    assert [client.get(each).status_code for each in named] == [200, 200, 200, 405], "only MCP needs POST"
    put = client.put(user, json={})
    assert (put.status_code, put.json()["detail"]) == (405, f"this address accepts {put.headers['allow']}")


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (b'{"text": "a cut \\ud83d face"}', "a cut \ufffd face"),
        (b'{"text": "a cut \\uDE00 face"}', "a cut \ufffd face"),
        (b'{"text": "a whole \\ud83d\\ude00 \\ud55c \\\\ud83d face"}', "a whole \U0001f600 \ud55c \\ud83d face"),
        (b'\xef\xbb\xbf{"text": "a mark"}', "a mark"),
        (b'{"text": "' + b"long " * 17_000 + b'\\ud83d"}', "long " * 17_000 + "\ufffd"),
    ],
    ids=["first half", "second half", "whole", "byte order mark", "long"],
)
def test_half_a_character_is_replaced(client: httpx.Client, body: bytes, text: str) -> None:
    json_type = {"content-type": "application/json"}
    made = client.post("/api/v1/users/ann/memories", content=body, headers=json_type)
    assert made.status_code == 201, made.text
    assert client.get(f"/api/v1/users/ann/memories/{made.json()['id']}").json()["text"] == text
    given = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"retain","arguments":%s}}'
    call = given % body.removeprefix(b"\xef\xbb\xbf").replace(b"text", b"content")
    accepted = {**json_type, "accept": "application/json, text/event-stream"}
    assert made.json()["id"] in client.post("/mcp/ann", content=call, headers=accepted).text


@pytest.mark.parametrize(
    "body", [b'{"text": "gr\xfcn"}', b"[" * 100_000, b'{"text": "a", "importance": ' + b"9" * 5_000 + b"}"]
)
def test_a_body_that_cannot_be_parsed_says_what_is_expected(client: httpx.Client, body: bytes) -> None:
    sent = client.post("/api/v1/users/ann/memories", content=body, headers={"content-type": "application/json"})
    assert sent.status_code == 400 and "JSON" in sent.json()["detail"]


@pytest.mark.parametrize("limit", [2, 4, 7])
def test_pages_show_each_memory_once_although_others_are_forgotten(client: httpx.Client, limit: int) -> None:
    memories = "/api/v1/users/ann/memories"
    ids = [client.post(memories, json={"text": f"Box {number}."}).json()["id"] for number in range(20)]
    seen, cursor, number = list[str](), "", 0
    while number == 0 or cursor:
        page = client.get(memories, params={"limit": limit, "cursor": cursor}).json()
        seen, cursor = [*seen, *(each["id"] for each in page["memories"])], page["next"]
        if number == 0:
            gone = [seen[0], ids[0], ids[3]]
            for each in gone:
                client.delete(f"{memories}/{each}")
            client.post(memories, json={"text": "A new box."})
        number += 1
    assert sorted(seen) == sorted(each for each in ids if each not in gone[1:])


def test_pages_show_each_conversation_once_although_a_new_one_begins(client: httpx.Client) -> None:
    ann = "/api/v1/users/ann"
    for name in "abcde":
        client.post(f"{ann}/send", json={"text": "Hello!", "session": name})
    first = client.get(f"{ann}/sessions", params={"limit": 2}).json()
    client.post(f"{ann}/send", json={"text": "Hello!", "session": "f"})
    second = client.get(f"{ann}/sessions", params={"limit": 2, "cursor": first["next"]}).json()
    third = client.get(f"{ann}/sessions", params={"limit": 2, "cursor": second["next"]}).json()
    shown = [each["session"] for page in (first, second, third) for each in page["sessions"]]
    assert shown == ["e", "d", "c", "b", "a"] and third["next"] == ""


@pytest.mark.parametrize("letter", ["q", "森", "🦊", "\n-"])
def test_a_text_of_maximum_length_is_accepted_in_any_script(client: httpx.Client, letter: str) -> None:
    ann, times = "/api/v1/users/ann", MAX_TEXT // len(letter)
    made = client.post(f"{ann}/memories", json={"text": letter * times})
    assert made.status_code == 201
    assert client.post(f"{ann}/memories", json={"text": letter * times + "!"}).status_code == 422
    correction = client.post(f"{ann}/memories/{made.json()['id']}/correct", json={"text": "?" + letter * (times - 1)})
    assert correction.status_code == 200
    assert client.post(f"{ann}/send", json={"text": letter * (1 + MAX_UTTERANCE // len(letter))}).status_code == 422


def test_a_message_is_acknowledged_once_it_is_on_disk(client: httpx.Client) -> None:
    sent = client.post("/api/v1/users/ann/send", json={"text": "Hello!", "session": "monday"})
    assert sent.status_code == 202 and sent.json()["session"] == "monday"
    assert sent.json()["seq"] > 0
    held = client.get("/api/v1/users/ann/memories").json()["memories"]
    assert "Hello!" in [each["text"] for each in held]


def test_a_pack_is_chosen_and_a_session_names_its_first_row(client: httpx.Client) -> None:
    answers = client.get("/api/v1/answers").json()
    assert answers["pack"] == "sleep" and {"sleep", "tutor"} <= set(answers["packs"])
    sent = client.post("/api/v1/users/ann/send", json={"text": "Hello!", "session": "monday", "pack": "tutor"}).json()
    opened = client.get("/api/v1/users/ann/log", params={"kinds": "opened"}).json()["rows"]
    assert [row["pack"] for row in opened] == ["tutor"]
    (session,) = client.get("/api/v1/users/ann/sessions").json()["sessions"]
    assert (session["session"], session["seq"]) == ("monday", sent["seq"])
    refused = client.post("/api/v1/users/ann/send", json={"text": "Hello!", "pack": "nobody"})
    assert refused.status_code == 404


def test_a_stopped_answer_can_be_given_again(client: httpx.Client, door: FakeEndpoint) -> None:
    door.otherwise = Stalls("")
    sent = client.post("/api/v1/users/ann/send", json={"text": "How do I sleep better?"}).json()
    ann = "/api/v1/users/ann"
    until(lambda: any(each.body["messages"] for each in door.asked))
    until(lambda: client.post(f"{ann}/cancel", json={}).json()["stopped"] > 0)
    until(lambda: client.get(f"{ann}/log", params={"kinds": "model_called"}).json()["rows"])
    door.otherwise = Says("Go to bed when you are sleepy.")
    assert client.post(f"{ann}/answer-again", json={"seq": sent["seq"]}).json() == sent
    said = until(lambda: client.get(f"{ann}/log", params={"kinds": "said"}).json()["rows"])
    assert [(row["answers"], row["text"]) for row in said] == [(sent["seq"], "Go to bed when you are sleepy.")]
    assert len(client.get(f"{ann}/log", params={"kinds": "heard"}).json()["rows"]) == 1
    assert client.post(f"{ann}/answer-again", json={"seq": sent["seq"] + 1}).status_code == 404


def until(look: Callable[[], Any]) -> Any:
    """Wait for results and return them."""
    for _ in range(4_000):
        if found := look():
            return found
        time.sleep(0.05)
    raise AssertionError("it did not come")


def test_a_user_sees_no_memory_of_another(client: httpx.Client) -> None:
    made = client.post("/api/v1/users/ann/memories", json={"text": "Ann likes tea."}).json()
    assert client.get(f"/api/v1/users/bob/memories/{made['id']}").status_code == 404
    assert client.delete(f"/api/v1/users/bob/memories/{made['id']}").status_code == 404
    assert client.get(f"/api/v1/users/ann/memories/{made['id']}").json()["text"] == "Ann likes tea."


def test_a_dry_run_forgets_nothing(client: httpx.Client) -> None:
    made = client.post("/api/v1/users/ann/memories", json={"text": "A secret."}).json()
    path = f"/api/v1/users/ann/memories/{made['id']}"
    shown = client.delete(path, params={"dry_run": "true"})
    assert shown.json()["asked"] == [made["id"]] and not shown.json()["forgotten"]
    assert client.get(path).status_code == 200
    assert client.delete(path).json()["forgotten"]
    assert client.get(path).status_code == 404


def test_forget_names_but_keeps_memories_that_are_only_similar(client: httpx.Client) -> None:
    memories = "/api/v1/users/ann/memories"
    made = client.post(memories, json={"text": "Rudi's party is on Friday."}).json()["id"]
    asked = {"about": "Lena's party", "dry_run": False}
    told = client.post(f"{memories}/forget", json=asked).json()
    assert (told["asked"], told["drawn"], told["similar"], told["pending"]) == ([], [], [made], False)
    assert client.get(f"{memories}/{made}").status_code == 200


def test_a_tenant_sees_no_memory_of_another(served: Served, client: httpx.Client) -> None:
    acme, other = served.token("acme"), served.token("other")
    made = client.post("/api/v1/users/ann/memories", json={"text": "Acme's plan."}, headers=acme).json()
    path = f"/api/v1/users/ann/memories/{made['id']}"
    assert client.get(path, headers=acme).status_code == 200
    assert client.get(path, headers=other).status_code == 404
    assert client.get(path).status_code == 404


def test_times_are_numbers_or_text_and_weak_results_are_marked(client: httpx.Client) -> None:
    memories = "/api/v1/users/ann/memories"
    kept = {"text": "The well was dug.", "created": "2025-03-02T13:00+01:00", "valid_until": 9e9}
    assert client.post(memories, json=kept).status_code == 201
    for since, until in ((1740916800, "2025-03-02"), ("2025-03-02", 1740916800.0), ("1740916800", "2025-03-02T12:00")):
        asked = {"query": "what was dug?", "since": since, "until": until}
        found = client.post(f"{memories}/recall", json=asked).json()
        assert [each["text"] for each in found["memories"]] == ["The well was dug."] and not found["low_confidence"]
    found = client.post(f"{memories}/recall", json={"query": "which bank gave the mortgage"}).json()
    assert found["low_confidence"] and found["certainty"] < 0.1 and len(found["memories"]) == 1
    for wrong in ("soon", "2025-13-01", 1.7e12, True):
        refused = client.post(f"{memories}/recall", json={"query": "well", "since": wrong})
        assert refused.status_code in (400, 422) and "since" in refused.text


def test_a_time_span_that_ends_before_it_begins_is_refused(client: httpx.Client) -> None:
    span: dict[str, Any] = {"since": "2026-03-02", "until": "2026-03-01"}
    recalled = client.post("/api/v1/users/ann/memories/recall", json={"query": "key", **span})
    calls = client.get("/api/v1/users/ann/calls", params=span)
    for refused in (recalled, calls):
        assert refused.status_code in (400, 422) and "ends before it begins" in refused.text
