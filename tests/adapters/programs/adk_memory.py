"""A travel agency's assistant that knows its travellers from earlier conversations (Google ADK, offline).

Conversations live in the session service; finished ones go into the memory service, which later
conversations search with ADK's load_memory tool or get preloaded by preload_memory. The model is a
scripted BaseLlm.
"""
import asyncio
from collections.abc import AsyncGenerator

from google.adk.agents import LlmAgent
from google.adk.events import Event
from google.adk.models import BaseLlm, LlmRequest, LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools import load_memory, preload_memory
from google.genai import types

from google.adk.memory import InMemoryMemoryService

memory_service = InMemoryMemoryService()  # <- here

APP = "travel_agency"
session_service = InMemorySessionService()


def text_of(content: types.Content | None) -> str:
    return " ".join(part.text for part in (content.parts or []) if part.text) if content else ""


class DeskModel(BaseLlm):
    """Looks into memory when asked something, and answers with the first memory of the traveller."""

    model: str = "desk"

    async def generate_content_async(
        self, llm_request: LlmRequest, stream: bool = False
    ) -> AsyncGenerator[LlmResponse, None]:
        last = llm_request.contents[-1]
        result = next((p.function_response for p in last.parts if p.function_response), None)
        preloaded = [t for t in map(text_of, llm_request.contents) if "<PAST_CONVERSATIONS>" in t]
        if result is not None:
            memories = result.response["result"]
            memories = memories.memories if hasattr(memories, "memories") else memories["memories"]
            found = [text_of(m.content) if hasattr(m, "content") else m["content"]["parts"][0]["text"] for m in memories]
            parts = [types.Part(text="I recall: " + " | ".join(found[:3]) if found else "I recall nothing.")]
        elif preloaded:
            parts = [types.Part(text="In mind: " + preloaded[-1])]
        elif text_of(last).endswith("?") and "load_memory" in llm_request.tools_dict:
            parts = [types.Part.from_function_call(name="load_memory", args={"query": text_of(last)})]
        else:
            parts = [types.Part(text="Noted, thank you.")]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def desk(*tools) -> Runner:
    agent = LlmAgent(name="desk", model=DeskModel(), instruction="Help travellers.", tools=list(tools))
    return Runner(app_name=APP, agent=agent, session_service=session_service, memory_service=memory_service)


async def talk(runner: Runner, user: str, session_id: str, *sentences: str) -> str:
    """Say the sentences in this session; give back the last answer."""
    if not await session_service.get_session(app_name=APP, user_id=user, session_id=session_id):
        await session_service.create_session(app_name=APP, user_id=user, session_id=session_id)
    answer = ""
    for sentence in sentences:
        message = types.Content(role="user", parts=[types.Part(text=sentence)])
        async for event in runner.run_async(user_id=user, session_id=session_id, new_message=message):
            if event.is_final_response():
                answer = text_of(event.content)
    return answer


async def keep(user: str, session_id: str) -> None:
    """A conversation is over (for now): into memory with it."""
    session = await session_service.get_session(app_name=APP, user_id=user, session_id=session_id)
    await memory_service.add_session_to_memory(session)


async def found(user: str, query: str) -> list[str]:
    response = await memory_service.search_memory(app_name=APP, user_id=user, query=query)
    assert all(m.content.parts for m in response.memories)
    return [text_of(m.content) for m in response.memories]


async def main() -> None:
    taking, asking, knowing = desk(), desk(load_memory), desk(preload_memory)
    assert await found("mia", "window seat") == []

    await talk(taking, "mia", "january", "I always want a window seat on trains.", "My passport expires in March.")
    await talk(taking, "mia", "february", "For hotels I need a quiet room facing the courtyard.")
    await talk(taking, "noah", "january", "I am allergic to peanuts.", "I love mountain huts.")
    # Nothing is in memory before it is added.
    assert await found("mia", "window seat trains") == []
    for user, session_id in [("mia", "january"), ("mia", "february"), ("noah", "january")]:
        await keep(user, session_id)

    # Search: the best match is among the first three; entries say who spoke, and when.
    assert any("window seat" in text for text in (await found("mia", "window seat trains"))[:3])
    assert any("courtyard" in text for text in (await found("mia", "quiet room hotels"))[:3])
    response = await memory_service.search_memory(app_name=APP, user_id="mia", query="passport expires March")
    entry = next(m for m in response.memories[:3] if "passport" in text_of(m.content))
    assert entry.author == "user" and entry.timestamp and entry.timestamp[:2] == "20", entry

    # Memory is per user and per app.
    assert not any("peanuts" in text for text in await found("mia", "allergic to peanuts"))
    assert any("peanuts" in text for text in await found("noah", "allergic to peanuts"))
    other = await memory_service.search_memory(app_name="another_app", user_id="mia", query="window seat")
    assert other.memories == []

    # In a new conversation the model searches through load_memory ...
    answer = await talk(asking, "mia", "march", "Which window seat do I want on trains?")
    assert answer.startswith("I recall: ") and "window seat" in answer, answer
    answer = await talk(asking, "noah", "march", "Am I allergic to peanuts?")
    assert "allergic to peanuts" in answer and "window" not in answer, answer
    assert await talk(asking, "olga", "march", "What do you know about me?") == "I recall nothing."
    # ... or gets it preloaded.
    answer = await talk(knowing, "mia", "april", "Please book a hotel with a quiet room")
    assert "courtyard" in answer and "peanuts" not in answer, answer

    # A grown session may be added again: old events are not doubled, new ones are found.
    await talk(taking, "noah", "january", "From now on I travel with my dog Bruno.")
    await keep("noah", "january")
    await keep("noah", "january")
    assert any("Bruno" in text for text in (await found("noah", "travel with dog Bruno"))[:3])
    assert sum("allergic to peanuts" in text for text in await found("noah", "allergic to peanuts")) == 1

    # Only some events (the newest turn) can be added, too.
    event = Event(author="user", content=types.Content(role="user", parts=[types.Part(text="My miles card is 4711.")]))
    for _ in range(2):
        await memory_service.add_events_to_memory(app_name=APP, user_id="noah", events=[event], session_id="phone")
    assert sum("4711" in text for text in await found("noah", "miles card")) == 1
    assert any("peanuts" in text for text in await found("noah", "allergic to peanuts"))

    # A memory can be deleted by its id, and does not come back with its session.
    await memory_service.delete_memory(app_name=APP, user_id="mia", memory_id=entry.id)
    assert not any("passport" in text for text in await found("mia", "passport expires March"))
    await keep("mia", "january")
    assert not any("passport" in text for text in await found("mia", "passport expires March"))
    assert any("window seat" in text for text in await found("mia", "window seat trains"))

    # Deleting a session leaves its memories.
    await session_service.delete_session(app_name=APP, user_id="mia", session_id="february")
    assert any("courtyard" in text for text in await found("mia", "quiet room hotels"))


asyncio.run(main())
print("ok")
