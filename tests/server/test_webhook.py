"""The webhook: follow-ups are posted signed and in order, and repeated until accepted."""

from __future__ import annotations

import asyncio
import signal
from pathlib import Path

import httpx
import postgres_server
import pytest
from chat_talks import Talk
from fake_endpoint import Asked, Behaviour, FakeEndpoint, Says
from hooked import SECRET, LocalReceiver, add, forget_all
from openai import OpenAI
from served import Served, ServerProcess

from mindstream.errors import InputError
from mindstream.server import webhook
from mindstream.server.webhook import Receiver

USER = "/api/v1/users/ann"
LATER = (
    '{"thought": "a plan", "plan": [{"title": "Dim the lights", "do": "Dim at nine", "state": "now"}],'
    ' "follow_up": "Dim the lights at nine."}'
)


def late(asked: Asked) -> Behaviour:
    """Answer at once and start a thought."""
    return Says("I see.") if "Begin with a mark where one fits" in asked.body["messages"][0]["content"] else Says(LATER)


@pytest.fixture(autouse=True)
def soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhook, "POLL_S", 0.05)
    monkeypatch.setattr(webhook, "FIRST_PAUSE_S", 0.01)
    monkeypatch.setenv(webhook.SECRET, SECRET)


def test_follow_ups_of_all_tenants_are_posted_in_order(folder: Path) -> None:
    with LocalReceiver() as receiver, Served(folder, webhook=Receiver(receiver.url, SECRET)) as served:
        with served.client() as client:
            client.post(f"{USER}/memories", json={"text": "a note is not a follow-up"})
        seqs = [
            asyncio.run(add(folder, "one")), asyncio.run(add(folder, "two", "acme", "bob")),
            asyncio.run(add(folder, "three", is_said=False)),
        ]  # fmt: skip
        came = [receiver.next() for _ in seqs]
        assert [(each["seq"], each["id"]) for each in came] == [(seq, f"mindstream-{seq}") for seq in seqs]
        assert [(each["text"], each["tenant"], each["user"], each["event"]) for each in came] == [
            ("one", "local", "ann", "follow_up"), ("two", "acme", "bob", "follow_up"),
            ("three", "local", "ann", "left_unsaid"),
        ]  # fmt: skip


def test_a_post_is_repeated_until_it_is_accepted(folder: Path) -> None:
    with (
        LocalReceiver(503, 302, 429, 404) as receiver, Served(folder, webhook=Receiver(receiver.url, SECRET)) as served,
    ):  # fmt: skip
        asyncio.run(add(folder, "one"))
        asyncio.run(add(folder, "two"))
        assert [receiver.next()["text"] for _ in range(6)] == ["one"] * 5 + ["two"]
        with served.client() as client:
            told = client.get("/metrics").text
        assert 'mindstream_webhook_posts_total{result="failed"} 4' in told


def test_a_post_that_is_never_accepted_does_not_block_the_next(folder: Path) -> None:
    with LocalReceiver(*[422] * 8) as receiver, Served(folder, webhook=Receiver(receiver.url, SECRET)):
        asyncio.run(add(folder, "one"))
        asyncio.run(add(folder, "two"))
        assert [receiver.next()["text"] for _ in range(9)] == ["one"] * 8 + ["two"]


def test_posting_resumes_after_the_last_accepted_row_across_restarts(folder: Path) -> None:
    with LocalReceiver() as receiver:
        flags = ("--webhook", receiver.url)
        with ServerProcess(folder, *flags) as server:
            asyncio.run(add(folder, "one"))
            assert receiver.next()["text"] == "one"
            receiver.statuses = [503] * 1_000
            asyncio.run(add(folder, "two"))
            assert receiver.next()["text"] == "two"
            server.end(signal.SIGKILL)
        receiver.take_anything()
        asyncio.run(add(folder, "three"))
        with ServerProcess(folder, *flags) as server:
            assert [receiver.next()["text"] for _ in range(2)] == ["two", "three"]
            assert server.end() == 0
        with ServerProcess(folder, *flags) as server:
            asyncio.run(add(folder, "four"))
            assert receiver.next()["text"] == "four"
            assert server.end() == 0


def test_one_of_two_servers_posts_and_the_other_takes_over() -> None:
    data = postgres_server.fresh_url()
    with LocalReceiver() as receiver:
        flags = ("--webhook", receiver.url, "--no-thinking")
        with ServerProcess(data, *flags) as first, ServerProcess(data, *flags) as second:
            seqs = [asyncio.run(add(data, f"number {each}")) for each in range(5)]
            assert [receiver.next()["seq"] for _ in seqs] == seqs
            receiver.statuses = [503]
            seqs = [asyncio.run(add(data, "six"))]
            assert receiver.next()["seq"] == seqs[0]
            first.end(signal.SIGKILL)  # the first server posts
            seqs.append(asyncio.run(add(data, "seven")))
            came = [receiver.next() for _ in range(2)]
            while came[-1]["seq"] != seqs[1]:  # the first server may have posted once more before the kill
                came.append(receiver.next())
            assert [each["id"] for each in came][-2:] == [f"mindstream-{seq}" for seq in seqs]
            assert second.end() == 0
        assert receiver.posts.empty()


def test_rows_from_before_the_webhook_are_not_posted(folder: Path) -> None:
    asyncio.run(add(folder, "old"))
    with LocalReceiver() as receiver, Served(folder, webhook=Receiver(receiver.url, SECRET)):
        asyncio.run(add(folder, "new"))
        assert receiver.next()["text"] == "new"


def test_a_silent_receiver_blocks_no_other_client(folder: Path) -> None:
    with LocalReceiver(-204) as receiver:
        with Served(folder, webhook=Receiver(receiver.url, SECRET)) as served, served.client() as client:
            asyncio.run(add(folder, "one"))
            receiver.next()
            assert client.post(f"{USER}/memories", json={"text": "x"}).status_code == 201
        assert receiver.posts.empty()  # the server ended while the receiver was silent
    with Served(folder, webhook=Receiver(receiver.url, SECRET)) as served, served.client() as client:
        assert client.post(f"{USER}/memories", json={"text": "y"}).status_code == 201


def test_forgotten_text_is_not_posted(folder: Path) -> None:
    with LocalReceiver(-503) as receiver, Served(folder, webhook=Receiver(receiver.url, SECRET)):
        asyncio.run(add(folder, "She hides the key."))
        assert receiver.next()["text"] == "She hides the key."
        asyncio.run(forget_all(folder))
        receiver.go.set()
        asyncio.run(add(folder, "two", user="bob"))
        assert receiver.next()["text"] == "two"


def test_left_unsaid_text_is_posted_and_reaches_the_next_prompt(
    folder: Path, door: FakeEndpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "any")
    door.otherwise = late
    with (
        LocalReceiver() as receiver,
        Served(folder, model=f"{door.url}#any", webhook=Receiver(receiver.url, SECRET)) as served,
        OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0, timeout=100) as ask,
    ):
        talk = Talk(ask, "sleep", user="ann", chat="c-1")
        assert talk.say("I have a cat.") == "I see."
        told = receiver.next()
        assert (told["event"], told["text"], told["user"]) == ("left_unsaid", "Dim the lights at nine.", "ann")
        talk.say("Thanks.")
        asked = [each.body["messages"] for each in door.asked]
        talked = [messages for messages in asked if "Begin with a mark" in messages[0]["content"]]
        unsaid = "<left_unsaid>\nDim the lights at nine.\n</left_unsaid>"
        assert unsaid not in talked[0][-1]["content"] and unsaid in talked[-1][-1]["content"]


def test_invalid_receivers_are_refused(folder: Path) -> None:
    for url, secret in (
        ("ftp://x.example", SECRET), ("x.example", SECRET), ("https://", SECRET), ("https://x.example", "short"),
        ("https://x.example", ""), ("https://x.example", "whsec_not base64 at all"),
    ):  # fmt: skip
        with pytest.raises(InputError):
            Receiver(url, secret)
    assert SECRET not in repr(Receiver("https://x.example", SECRET))
    assert httpx.URL(Receiver("https://x.example", "whsec_" + "QUJD" * 8).url).host == "x.example"
