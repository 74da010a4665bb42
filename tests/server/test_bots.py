"""Chat bots of one's own on a server: listed as models, answering OpenAI's client, each with its own model."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import openai
import pytest
from chat_talks import Talk, talker
from fake_endpoint import FakeEndpoint
from openai import OpenAI
from served import Served

from mindstream import ChatBot
from mindstream.errors import InputError
from mindstream.server import app


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
    assert {"support", "modelless", "companion"} <= {each.id for each in ask.models.list().data}
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
