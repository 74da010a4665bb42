"""A life as a model: it receives the messages, and the text of its next turn is the answer."""

from __future__ import annotations

import httpx
import openai
import pytest
from chat_talks import Talk
from fake_endpoint import FakeEndpoint, Says
from openai import OpenAI
from served import Served


@pytest.fixture
def ask(served: Served) -> OpenAI:
    return OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0, timeout=100)


def test_life_is_a_model_for_users_who_have_one(ask: OpenAI, client: httpx.Client, door: FakeEndpoint) -> None:
    with pytest.raises(openai.NotFoundError):
        Talk(ask, "life", user="ann").say("How is it going?")
    client.post("/api/v1/users/ann/life/goal", json={"goal": "Learn Danish"}).raise_for_status()
    headers = {"X-OpenWebUI-User-Id": "ann"}
    assert "life" in {each.id for each in ask.models.list(extra_headers=headers).data}
    assert "life" not in {each.id for each in ask.models.list().data}
    answer = Talk(ask, "life", user="ann").say("How is it going?")
    assert "Learn Danish" in answer and "The life is not running" in answer
    rows = client.get("/api/v1/users/ann/log", params={"kinds": "heard"}).json()["rows"]
    assert [row["text"] for row in rows] == ["How is it going?"]


def test_a_running_life_answers_in_its_next_turn(ask: OpenAI, client: httpx.Client, door: FakeEndpoint) -> None:
    door.otherwise = Says("I have learnt ten words today.")
    client.post("/api/v1/users/ann/life/goal", json={"goal": "Learn Danish"}).raise_for_status()
    client.post("/api/v1/users/ann/life/live", json={"stay": True}).raise_for_status()
    assert "ten words" in Talk(ask, "life", user="ann").say("How is it going?")
