"""Chat bots of one's own on a server: listed as models, answering OpenAI's client, each with its own model."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
from chat_talks import Talk, talker
from fake_endpoint import FakeEndpoint
from openai import OpenAI
from served import Served

from mindstream import ChatBot, FakeModel
from mindstream.errors import InputError, UserError
from mindstream.server import app
from mindstream.settings import Settings


@pytest.fixture
def door() -> Iterator[FakeEndpoint]:
    with FakeEndpoint() as made:
        yield made


@pytest.fixture
def ask(folder: Path, door: FakeEndpoint) -> Iterator[OpenAI]:
    bots = {
        "support": ChatBot.using(model=f"{door.url}#any", instructions="You sell kettles."),
        "modelless": ChatBot.using(instructions="You have no model."),
    }
    with (
        Served(folder, bots=bots) as served,
        OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0, timeout=100) as client,
    ):
        yield client


def test_a_bot_is_a_model_that_answers_by_its_own_model_and_instructions(ask: OpenAI, door: FakeEndpoint) -> None:
    door.otherwise = talker("The red one, Ann.", {"kettle": "The user wants a kettle."})
    assert [each.id for each in ask.models.list().data] == ["support", "modelless"]
    assert Talk(ask, "support", user="ann", system="Be short.").say("Which kettle shall I take?") == "The red one, Ann."
    prompt = "\n".join(each["content"] for each in door.chats[0].body["messages"])
    assert "You sell kettles." in prompt and "Be short." in prompt
    done = ask.chat.completions.create(model="support", user="ann", messages=[{"role": "user", "content": "And why?"}])
    assert done.choices[0].message.content == "The red one, Ann."


def test_a_bot_without_a_model_says_so(ask: OpenAI) -> None:
    with pytest.raises(openai.APIStatusError, match="needs a language model"):
        ask.chat.completions.create(model="modelless", user="ann", messages=[{"role": "user", "content": "Hi"}])


@pytest.mark.parametrize("name", ["companion", "life", "sleep", "a/b", ""])
def test_names_that_are_taken_or_no_names_are_refused(folder: Path, name: str) -> None:
    with pytest.raises(InputError, match="cannot be called"):
        app(folder, bots={name: ChatBot.using()})


@pytest.mark.parametrize(
    ("bots", "message"),
    [
        ([ChatBot.using()], "bots by name, such as"),
        ({"a": "openai:gpt-5-mini"}, "must be ChatBot.using"),
        ({"a": ChatBot.using(model="nowhere:gpt")}, "nowhere"),
    ],
)
def test_bots_that_cannot_answer_are_refused_at_once(folder: Path, bots: Any, message: str) -> None:
    with pytest.raises(UserError, match=message):
        app(folder, bots=bots)


def answer_of(served: Served, **fields: str) -> str:
    """Return the answer of POST /send."""
    with (
        served.client(headers={"accept": "text/event-stream"}) as client,
        client.stream("POST", "/api/v1/users/ann/send", json={"text": "Hello!", **fields}) as reply,
    ):
        assert reply.status_code == 200
        lines = list(reply.iter_lines())
    return str(json.loads(lines[lines.index("event: said") + 1].removeprefix("data: "))["text"])


def test_the_first_bot_answers_messages_that_name_none(folder: Path) -> None:
    bots = {"pirate": ChatBot.using(model=FakeModel(["Ahoy!"])), "cook": ChatBot.using(model=FakeModel(["Soup."] * 2))}
    with Served(folder, bots=bots) as served:
        assert answer_of(served) == "Ahoy!"
        assert answer_of(served, bot="cook") == answer_of(served, pack="cook") == "Soup."
        with served.client() as client:
            found = client.get("/api/v1/users/ann/memories").json()["memories"]
            listed = client.get("/api/v1/answers").json()
        assert {each["by"] for each in found if each["kind"] == "chat"} == {"ann", "pirate", "cook"}
        assert (listed["packs"], listed["pack"]) == (["pirate", "cook"], "pirate")


def test_a_client_that_forgot_a_part_is_told_which(folder: Path) -> None:
    with Served(folder) as served, served.client() as client:
        missing = client.get("/models", headers={"authorization": "Bearer none"})
        assert missing.status_code == 404 and "begin with /v1" in missing.text
        plain = client.post(
            "/api/v1/users/ann/send", content='{"text": "Hello!"}', headers={"content-type": "text/plain"}
        )
        assert plain.status_code == 422 and "header `content-type: application/json`" in plain.text


def test_a_named_pack_answers_before_the_bots(folder: Path) -> None:
    settings = Settings(data=folder, pack="tutor")
    with Served(folder, settings=settings, bots={"pirate": ChatBot.using(model=FakeModel([]))}) as served:
        with served.client() as client:
            listed = client.get("/api/v1/answers").json()
            models = {each["id"] for each in client.get("/v1/models").json()["data"]}
        assert listed["pack"] == "tutor" and {"pirate", "tutor", "sleep", "companion"} <= models
