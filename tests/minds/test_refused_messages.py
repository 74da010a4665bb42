"""A message refused by the provider's filter is left out of later prompts; the log shows it, and reasoning
continues.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fake_endpoint import Asked, Behaviour, Fails, FakeEndpoint, Says, Streams
from keys import key_of

from mindstream import Coach, Mind, Timeouts
from mindstream.clock import ManualClock
from mindstream.life import commands
from mindstream.life.life import Life
from mindstream.log.events import Event, Failed, MessageRefused, Said, Thought
from mindstream.memory.memory import Memory
from mindstream.minds.calls import MARKER
from mindstream.minds.chat_bot import ChatResponder as Companion
from mindstream.minds.responder import ResponderFactory

BAD = "My neighbour plays the saxophone at midnight"
GOOD = "And I drink coffee at nine."
OLD = "I wake at three."
TYPED = {
    "extract_facts": '{"facts": []}', "suggests_danger": "no",
    "phase": '{"phase": "understanding", "reason": "x"}',
}  # fmt: skip
REFUSALS: dict[str, Behaviour] = {
    "OpenAI": Fails(400, "Your prompt was flagged as potentially violating our usage policy.", code="invalid_prompt"),
    "Azure": Fails(400, "The response was filtered due to the prompt triggering Azure's content management policy.",
                   code="content_filter"),
    "OpenRouter": Fails(403, "This model requires moderation. Your input was flagged for \"harassment\"."),
    "DashScope": Fails(400, "Input data may contain inappropriate content.", code="data_inspection_failed"),
    "Gemini": Streams(('data: {"choices": null, "promptFeedback": {"blockReason": "PROHIBITED_CONTENT"}}',)),
    "finish reason": Streams(('data: {"choices": [{"delta": {}, "finish_reason": "content_filter"}]}', "data: [DONE]")),
}  # fmt: skip


THINKS, SAYS = '{"phase": "understanding", "thought": "t"}', "I hear you."


def filtering(refuses: Behaviour, *texts: str, with_tools: str = THINKS) -> Callable[[Asked], Behaviour]:
    """Refuse each prompt that contains one of these texts; answer the others."""

    def answer(asked: Asked) -> Behaviour:
        if any(text in json.dumps(asked.body["messages"]) for text in texts):
            return refuses
        name = asked.body.get("response_format", {}).get("json_schema", {}).get("name", "")
        return Says(with_tools if "tools" in asked.body else TYPED.get(name, THINKS if name else SAYS))

    return answer


def opened(folder: Path, door: FakeEndpoint, responder: ResponderFactory) -> Any:
    return Mind.open(
        folder, user="ann", model=f"{door.url}#m", responder=responder, session="s", timeouts=Timeouts(retry_s=0.01)
    )


async def say(mind: Mind, text: str) -> str:
    """Send an utterance, and wait until it was processed; return the answer."""
    said = [row.event async for row in mind.hear(text)][-1]
    async with asyncio.timeout(60):
        await mind.settled()
    assert isinstance(said, Said)
    return said.text


async def events(mind: Mind, kind: type[Event]) -> list[Any]:
    return [row.event for row in await mind.memory.store.events(key_of("ann"), kinds=[kind.kind], limit=1000)]


COACH = Coach.using(pack="sleep")
ASKED = [*((COACH, provider) for provider in REFUSALS), (Companion, "Azure"), (Companion, "Gemini")]


@pytest.mark.parametrize(("responder", "provider"), ASKED, ids=lambda each: getattr(each, "__name__", each))
async def test_a_message_refused_by_the_provider_is_left_out(
    folder: Path, door: FakeEndpoint, responder: ResponderFactory, provider: str
) -> None:
    door.otherwise = filtering(REFUSALS[provider], BAD)
    async with opened(folder, door, responder) as mind:
        assert "I hear you" in await say(mind, OLD)
        answer = await say(mind, BAD)
        assert "I hear you" not in answer
        assert "did not take that" in answer and "is kept" in answer
        (refused,) = await events(mind, MessageRefused)
        (record,) = await mind.memory.store.records(mind.memory.key, [refused.record])
        assert record.text == BAD, "the user's memory contains it"
        before = len(door.chats)
        assert "I hear you" in await say(mind, GOOD)
        later = [json.dumps(asked.body["messages"]) for asked in door.chats[before:]]
        assert later and not any(BAD in prompt for prompt in later), "it is not sent again"
        assert any(MARKER in prompt and OLD in prompt for prompt in later)
        thoughts = await events(mind, Thought)
        assert {event.slot for event in thoughts} == {"facts" if responder is Companion else "sleep"}
        assert any(refused.heard in event.about for event in thoughts), "it was processed nevertheless"
    before = len(door.chats)
    async with opened(folder, door, responder) as mind:
        assert "I hear you" in await say(mind, "Good evening."), "after a restart"
        assert not any(BAD in json.dumps(asked.body["messages"]) for asked in door.chats[before:])
        assert "I hear you" not in await say(mind, BAD), "repeated by the user, it is not sent"
        assert len(await events(mind, MessageRefused)) == 1


async def test_no_message_is_marked_if_every_request_is_refused(folder: Path, door: FakeEndpoint) -> None:
    door.otherwise = REFUSALS["Azure"]
    async with opened(folder, door, COACH) as mind:
        await say(mind, OLD)
        assert "did not take that" in await say(mind, GOOD)
        assert not await events(mind, MessageRefused)
        assert "content filter" in (await events(mind, Failed))[0].text
        assert len(door.chats) < 60
        door.otherwise = filtering(REFUSALS["Azure"], BAD)
        assert "I hear you" in await say(mind, "And now?")


async def test_older_refused_messages_are_identified(folder: Path, door: FakeEndpoint) -> None:
    """A session from before refusals were logged, or from another provider."""
    for bad in ([OLD], [OLD, BAD]):
        async with opened(folder / str(len(bad)), door, Companion) as mind:
            door.otherwise = filtering(REFUSALS["OpenAI"])
            for text in (OLD, BAD, "What now?"):
                await say(mind, text)
            door.otherwise = filtering(REFUSALS["OpenAI"], *bad)
            assert "I hear you" in await say(mind, GOOD)
            ids = [event.record for event in await events(mind, MessageRefused)]
            found = await mind.memory.store.records(mind.memory.key, ids)
            assert {record.text for record in found} == set(bad)


async def test_a_life_continues_without_a_refused_message(folder: Path, door: FakeEndpoint) -> None:
    door.otherwise = filtering(REFUSALS["OpenRouter"], BAD, with_tools=SAYS)
    async with Memory.open(folder, "keeper", clock=ManualClock(), seed=1) as memory:
        async with Life.open(memory, f"{door.url}#m", goal="Keep the lighthouse.") as life:
            await commands.say(memory, BAD)
            await life.run(turns=1)
            rows = await memory.store.events(memory.key, kinds=["message_refused", "turn_ended"])
            assert [row.event.kind for row in rows] == ["message_refused", "turn_ended"]
            assert getattr(rows[1].event, "words", "") == "I hear you."
        assert any(MARKER in json.dumps(asked.body["messages"]) for asked in door.chats)
