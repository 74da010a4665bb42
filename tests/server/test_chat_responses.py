"""The endpoint /v1/responses, through OpenAI's own client."""

from __future__ import annotations

from typing import Any

import openai
import pytest
from chat_talks import heard, talker
from fake_endpoint import FakeEndpoint
from openai import OpenAI
from served import Served


@pytest.fixture
def ask(served: Served) -> OpenAI:
    return OpenAI(base_url=f"{served.url}/v1", api_key="none", max_retries=0, timeout=100)


def test_a_response_is_complete_and_the_next_continues_it(ask: OpenAI, served: Served, door: FakeEndpoint) -> None:
    door.otherwise = talker("I see.")
    first = ask.responses.create(model="companion", input="My cat is ill.", user="ann", instructions="Be short.")
    assert first.output_text == "I see." and first.status == "completed" and first.usage
    assert (first.usage.input_tokens, first.usage.output_tokens, first.usage.total_tokens) == (7, 3, 10)
    second = ask.responses.create(
        model="companion", input="She is called Mimi.", user="ann", previous_response_id=first.id
    )
    assert second.output_text == "I see." and second.id != first.id
    assert heard(served, "ann") == ["My cat is ill.", "She is called Mimi."]
    shown = [each["content"] for each in door.chats[-1].body["messages"]]
    asked = shown if "My cat is ill." in shown else [each["content"] for each in door.chats[-2].body["messages"]]
    assert asked[1:3] == ["My cat is ill.", "I see."]


def test_a_response_is_streamed_as_events(ask: OpenAI, door: FakeEndpoint) -> None:
    door.otherwise = talker("Good morning to you.")
    events = list(ask.responses.create(model="companion", input="Good morning!", user="ann", stream=True))
    kinds = [each.type for each in events]
    assert kinds[:4] == [
        "response.created", "response.in_progress", "response.output_item.added", "response.content_part.added"
    ]  # fmt: skip
    assert kinds[-4:] == [
        "response.output_text.done", "response.content_part.done", "response.output_item.done", "response.completed"
    ]  # fmt: skip
    deltas = [each.delta for each in events if each.type == "response.output_text.delta"]
    assert "".join(deltas) == "Good morning to you."
    assert [each.sequence_number for each in events] == list(range(len(events)))
    with ask.responses.stream(model="companion", input="And again!", user="ann") as stream:
        assert stream.get_final_response().output_text == "Good morning to you."


def test_a_response_id_of_another_model_is_refused(ask: OpenAI, door: FakeEndpoint) -> None:
    door.otherwise = talker("I see.")
    first = ask.responses.create(model="companion", input="Hello!", user="ann")
    for wrong in (first.id, "resp_xx", "x" * 50):
        with pytest.raises(openai.BadRequestError):
            ask.responses.create(model="sleep", input="Hello!", user="ann", previous_response_id=wrong)


def test_a_conversation_is_sent_as_items(ask: OpenAI, served: Served, door: FakeEndpoint) -> None:
    door.otherwise = talker("I see.")
    items: Any = [
        {"role": "user", "content": [{"type": "input_text", "text": "Who wrote Emma?"}]},
        {"type": "function_call_output", "call_id": "c", "output": "x"},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Jane Austen."}]},
        {"role": "user", "content": "When?"},
    ]
    assert ask.responses.create(model="companion", input=items, user="ann").output_text == "I see."
    assert heard(served, "ann") == ["When?"]


def test_responses_with_the_same_beginning_are_told_apart(ask: OpenAI, served: Served, door: FakeEndpoint) -> None:
    door.otherwise = talker("Hello!")
    last = ""
    for name in ("Mimi", "Rex"):
        first = ask.responses.create(model="companion", input="Hi", user="ann")
        last = ask.responses.create(
            model="companion", input=f"I think of {name}.", user="ann", previous_response_id=first.id
        ).id  # fmt: skip
    ask.responses.create(model="companion", input="And now?", user="ann", previous_response_id=last)
    talks = [each.body["messages"] for each in door.chats if "And now?" in each.body["messages"][-1]["content"]]
    assert [each["content"] for each in talks[0][1:-1]] == ["Hi", "Hello!", "I think of Rex.", "Hello!"]
