"""A chat bot on an endpoint that speaks OpenAI's protocol: memory, streams, tools with approval, failures."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from chat_talks import talker
from fake_endpoint import Asked, Behaviour, Calls, Fails, FakeEndpoint, Says, Stalls

from mindstream import ChatBot, FakeModel, Mind, ToolRequest, tool
from mindstream.errors import InputError, ModelUnavailable, PromptBlocked, ReplyInvalid, SettingsError
from mindstream.models.model import Part, Piece, Request


@pytest.fixture
def door() -> Iterator[FakeEndpoint]:
    with FakeEndpoint() as made:
        yield made


def shown(asked: Asked) -> str:
    return "\n".join(str(message["content"]) for message in asked.body["messages"])


def talks(door: FakeEndpoint) -> list[Asked]:
    """Return the requests for answers; the others extract facts."""
    return [asked for asked in door.chats if "You keep notes" not in shown(asked)]


def first(*behaviours: Behaviour) -> Callable[[Asked], Behaviour]:
    """Answer requests for an answer one after the other; note no facts."""
    coming = list(behaviours)

    def answer(asked: Asked) -> Behaviour:
        return Says('{"facts": []}') if "You keep notes" in shown(asked) else coming.pop(0)

    return answer


async def test_it_remembers_in_the_next_conversation_and_keeps_facts(folder: Path, door: FakeEndpoint) -> None:
    door.otherwise = talker("I see.", {"peanuts": "The user is allergic to peanuts."})
    async with ChatBot.open(folder, user="ann", model=f"{door.url}#any", instructions="You are a cook.") as bot:
        assert await bot.send("I am allergic to peanuts.") == "I see."
    async with ChatBot.open(folder, user="ann", model=f"{door.url}#any") as bot:
        assert [note.text for note in await bot.memory.list(kinds=["note"])] == ["The user is allergic to peanuts."]
        await bot.send("What shall I cook?")
    cook, other = talks(door)
    assert "You are a cook." in shown(cook) and "companion" not in shown(cook)
    assert "The user is allergic to peanuts." in shown(other) and "companion" in shown(other)
    async with ChatBot.open(folder, user="ben", model=f"{door.url}#any") as bot:
        await bot.send("What shall I cook?")
    assert "peanuts" not in shown(talks(door)[-1])


async def test_words_come_as_the_model_says_them(folder: Path, door: FakeEndpoint) -> None:
    said = " ".join(f"word{number}" for number in range(60))
    door.otherwise = first(Says(said, step=True))
    async with ChatBot.open(folder, model=f"{door.url}#any") as bot:
        pieces = bot.stream("Count.")
        coming = asyncio.ensure_future(anext(pieces))
        for _ in range(40):
            door.go()
        begun = await coming
        assert begun and said.startswith(begun) and "word59" not in begun
        for _ in range(20):
            door.go()
        assert begun + "".join([piece async for piece in pieces]) == said
        assert [line.text for line in await bot.memory.latest("chat", 2)] == ["Count.", said]


def weather(city: str) -> str:
    """Return today's weather in a city."""
    return f"rain in {city}"


async def test_it_calls_tools_and_says_what_they_gave(folder: Path, door: FakeEndpoint) -> None:
    door.otherwise = first(Calls((("weather", '{"city": "Ghent"}'),), text="I look."), Says("It rains in Ghent."))
    async with ChatBot.open(folder, model=f"{door.url}#any", tools=[weather]) as bot:
        pieces = [piece async for piece in bot.stream("How is the weather in Ghent?")]
        rows = [row.event.kind async for row in bot.memory.log(kinds=["tool_called", "observed", "said"])]
    assert "".join(pieces) == "I look.\n\nIt rains in Ghent." and rows == ["tool_called", "observed", "said"]
    assert "rain in Ghent" in shown(talks(door)[-1])


@pytest.mark.parametrize(
    ("approve", "sent"),
    [((), []), (["send_mail"], ["hello"]), (lambda call: call.values["text"] == "hello", ["hello"])],
    ids=["by default", "by name", "by a function"],
)
async def test_what_changes_the_world_needs_approval(
    folder: Path,
    door: FakeEndpoint,
    approve: list[str] | Callable[[ToolRequest], bool],
    sent: list[str],
) -> None:
    mails = list[str]()

    @tool(changes=True)
    def send_mail(text: str) -> str:
        """Send a mail."""
        mails.append(text)
        return "sent"

    door.otherwise = first(Calls((("send_mail", '{"text": "hello"}'),)), Says("Done or not."))
    async with ChatBot.open(folder, model=f"{door.url}#any", tools=[send_mail], approve=approve) as bot:
        assert await bot.send("Send a mail that says hello.") == "Done or not."
    assert mails == sent
    assert ("not approved" in shown(talks(door)[-1])) == (not sent)


async def test_an_overloaded_endpoint_is_tried_again_and_then_reported(folder: Path, door: FakeEndpoint) -> None:
    busy = Fails(429, "slow down", {"Retry-After": "0"})
    door.otherwise = first(busy, Says("Here I am."), *[busy] * 9)
    async with ChatBot.open(folder, model=f"{door.url}#any") as bot:
        assert await bot.send("Hello?") == "Here I am."
        with pytest.raises(ModelUnavailable, match="slow down"):
            await bot.send("Hello again?")
        assert [line.text for line in await bot.memory.latest("chat", 1)] == ["Hello again?"]


async def test_the_end_waits_for_facts_unless_it_is_told_not_to(folder: Path, door: FakeEndpoint) -> None:
    noted = talker("Yes.", {"peanuts": "The user is allergic to peanuts."})
    waits = threading.Event()

    def slow(asked: Asked) -> Behaviour:
        return noted(asked) if "You keep notes" not in shown(asked) or waits.is_set() else Stalls()

    door.otherwise = slow
    async with ChatBot.open(folder, user="ann", model=f"{door.url}#any", settle_s=0.2) as bot:
        await bot.send("I am allergic to peanuts.")
    waits.set()
    async with ChatBot.open(folder, user="ann", model=f"{door.url}#any") as bot:
        await bot.settled()
        assert [note.text for note in await bot.memory.list(kinds=["note"])] == ["The user is allergic to peanuts."]


async def test_without_a_model_it_says_how_to_name_one(folder: Path) -> None:
    with pytest.raises(SettingsError, match="openai:gpt-5-mini"):
        async with ChatBot.open(folder):
            pass
    with pytest.raises(SettingsError, match="openai:gpt-5-mini"):
        async with Mind.open(folder, responder=ChatBot.using()):
            pass
    with pytest.raises(InputError, match="two tools"):
        ChatBot.using(tools=[weather, weather])


async def test_it_is_a_responder_of_a_mind(folder: Path, door: FakeEndpoint) -> None:
    door.otherwise = first(Says("Hello, Ann."), Says("Bye."))
    async with Mind.open(folder, user="ann", responder=ChatBot.using(model=f"{door.url}#any", name="host")) as mind:
        assert await mind.send("Hello!") == "Hello, Ann."
        assert (await mind.memory.latest("chat"))[0].by == "host"


@pytest.mark.parametrize(
    ("approve", "message"), [(True, "not True"), (["send_male"], "'send_male', which is none of the tools")]
)
def test_an_approval_that_names_no_tool_is_refused_at_once(approve: Any, message: str) -> None:
    @tool(changes=True)
    def send_mail(text: str) -> str:
        """Send a mail."""
        return "sent"

    with pytest.raises(InputError, match=message):
        ChatBot.using(tools=[send_mail], approve=approve)


@pytest.mark.parametrize("reply", ["\x07\x08", "\x1b", "\u200b\u2060", " \t\n", "\u3000\x00"])
async def test_a_reply_without_a_visible_character_is_invalid(folder: Path, door: FakeEndpoint, reply: str) -> None:
    door.otherwise = lambda _: Says(reply)
    async with ChatBot.open(folder, user="ann", model=f"{door.url}#any", instructions="Be kind.") as bot:
        with pytest.raises(ReplyInvalid):
            await bot.send("Hello")


@pytest.mark.parametrize(
    ("said", "answer"), [("给我讲讲这个。", "我用来思考的"), ("Tell me about it.", "The language model")]
)
async def test_a_refusal_is_told_in_the_users_language_even_after_invisible_pieces(
    tmp_path: Path, said: str, answer: str
) -> None:
    class Refusing(FakeModel):
        async def reply(self, request: Request) -> AsyncGenerator[Part]:
            yield Piece("\u200b")
            raise PromptBlocked("content filter")

    async with ChatBot.open(tmp_path, user="ann", model=Refusing({})) as bot:
        assert (await bot.send(said)).startswith(answer)
