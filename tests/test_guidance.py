"""Wrong uses of the public classes are answered by what to write instead."""

import asyncio
import gc
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

import mindstream
from mindstream import ChatBot, FakeModel, InputError, Memory, Mind, Planner, SettingsError, sync
from mindstream.planning.plan import Plan
from mindstream.server import app

# A type checker reports most of these mistakes as well; here they are made on purpose.
AnyMemory: Any = Memory
AnyBot: Any = ChatBot
AnyMind: Any = Mind
AnyPlanner: Any = Planner
AnySync: Any = sync.Memory
AnySyncBot: Any = sync.ChatBot
AnyApp: Any = app


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[Memory]:
    async with Memory(tmp_path, "ann") as memory:
        yield memory


async def test_a_memory_is_opened_by_its_constructor_as_by_open(tmp_path: Path) -> None:
    described = Memory(tmp_path, "ann")
    async with described as memory:
        assert memory is described
        note = await memory.retain("The key is under the mat.")
    async with Memory.open(tmp_path, "ann") as memory:
        assert [each.id for each in await memory.list()] == [note.id]


def test_a_memory_without_asyncio_is_opened_both_ways(tmp_path: Path) -> None:
    with sync.Memory(tmp_path, "ann") as memory:
        note = memory.retain("The key is under the mat.")
    with sync.Memory.open(tmp_path, "ann") as memory:
        assert [each.id for each in memory.list()] == [note.id]


@pytest.mark.parametrize("make", [Memory, Memory.open])
async def test_a_memory_can_be_opened_again_after_its_end(tmp_path: Path, make: Any) -> None:
    described = make(tmp_path, "ann")
    for number in range(1, 3):
        async with described as memory:
            await memory.retain(f"Key {number}.")
            assert len(await memory.list()) == number
            with pytest.raises(InputError, match="is open already: use the object that it returned"):
                await described.__aenter__()
    await described.__aexit__(None, None, None)


def test_the_same_memory_or_bot_without_asyncio_can_be_opened_again(tmp_path: Path) -> None:
    memory = sync.Memory(tmp_path, "ann")
    bot = sync.ChatBot(tmp_path / "bot", user="ann", model=FakeModel(["Hello!", "Hello again!"]), settle_s=0)
    for number, words in enumerate(["Hello!", "Hello again!"], 1):
        with memory, bot:
            memory.retain(f"Key {number}.")
            assert len(memory.list()) == number and bot.send("Hi") == words
            with pytest.raises(InputError, match="is open"), memory:
                pass


def test_a_memory_is_closed_on_another_loop(tmp_path: Path) -> None:
    first, second = asyncio.new_event_loop(), asyncio.new_event_loop()
    opening = Memory.open(tmp_path, "ann")
    memory = first.run_until_complete(opening.__aenter__())
    first.run_until_complete(asyncio.sleep(0))
    for task in asyncio.all_tasks(first):
        task.cancel()
    first.run_until_complete(asyncio.sleep(0))
    first.close()
    second.run_until_complete(memory.retain("The key is under the mat."))
    second.run_until_complete(opening.__aexit__(None, None, None))
    second.close()
    with sync.Memory(tmp_path, "ann") as again:
        assert len(again.list()) == 1


@pytest.mark.parametrize("open_bot", [ChatBot, ChatBot.open])
async def test_a_bot_is_opened_by_its_constructor_as_by_open(tmp_path: Path, open_bot: Any) -> None:
    async with open_bot(tmp_path, user="ann", model=FakeModel(["Hello!", "Bach."])) as bot:
        assert await bot.send("Hi") == "Hello!"
        assert "".join([piece async for piece in bot.stream("My cat?")]) == "Bach."


@pytest.mark.parametrize(
    ("use", "error", "advice"),
    [
        (lambda memory: memory.recall("x")[0], TypeError, "`await memory.recall(…)`"),
        (lambda memory: memory.retain("x").id, TypeError, "`await memory.retain(…)`"),
        (lambda memory: list(memory.list()), TypeError, "`await memory.list(…)`"),
        (lambda memory: memory.recall("x", top_k=3), TypeError, "did you mean 'limit'"),
        (lambda memory: memory.retain("x", metadata={}), TypeError, "did you mean 'data'"),
        (lambda memory: memory.add("x"), AttributeError, "did you mean 'retain'"),
        (lambda memory: memory.search("x"), AttributeError, "did you mean 'recall'"),
    ],
)
async def test_a_guess_about_an_open_memory_is_explained(
    memory: Memory, use: Callable[[Memory], object], error: type[Exception], advice: str
) -> None:
    with pytest.raises(error, match=advice.replace("(", r"\(").replace(")", r"\)")):
        use(memory)


@pytest.mark.parametrize("use", [Memory.get, Memory.history, Memory.forget])
async def test_a_record_in_place_of_its_id_is_explained(memory: Memory, use: Callable[..., Awaitable[object]]) -> None:
    note = await memory.retain("The key is under the mat.")
    with pytest.raises(InputError, match=r"the id of a record, such as note\.id"):
        await use(memory, note)
    with pytest.raises(InputError, match=r"the id of a record, such as note\.id"):
        await memory.correct(note, "It is gone.")  # type: ignore[arg-type]


def enter(opening: Any) -> None:
    with opening:
        pass


@pytest.mark.parametrize(
    ("use", "error", "advice"),
    [
        (lambda: Memory("data", "ann").recall, None, ""),
        (lambda: Memory("data", "ann").store, InputError, "async with Memory"),
        (lambda: AnyMemory.open("data", "ann").retain, InputError, "async with Memory.open"),
        (lambda: enter(Memory("data", "ann")), InputError, "async with Memory"),
        (lambda: enter(Mind.open("data", user="ann")), InputError, "async with Mind.open"),
        (lambda: ChatBot("data", model="rules").mind, InputError, "async with ChatBot"),
        (lambda: AnyMemory("data", user="ann"), TypeError, "did you mean 'name'"),
        (lambda: AnyMemory.open(path="data", user="ann"), TypeError, "did you mean 'data'"),
        (lambda: AnyBot("data", system="Be brief."), TypeError, "did you mean 'instructions'"),
        (lambda: AnyMind.open("data", user_id="ann"), TypeError, "did you mean 'user'"),
        (lambda: AnyPlanner(strategy="react"), TypeError, "did you mean 'how'"),
        (lambda: AnySync("data", user="ann"), TypeError, "did you mean 'name'"),
        (lambda: mindstream.Chatbot, AttributeError, "did you mean ChatBot"),
        (lambda: FakeModel("Hello!"), InputError, "a list of answers"),
        (lambda: Memory("data", "ann")._recaller, InputError, "async with Memory"),
        (
            lambda: AnyBot("data", "ann"),
            TypeError,
            "takes data by position; pass the other arguments by name, such as user=",
        ),
        (lambda: AnyBot.using(user="ann"), TypeError, r"ChatBot.using\(\) has no argument 'user'"),
        (lambda: AnyBot.using(tools=len), InputError, "a list of tools, such as"),
        (lambda: AnyApp("data", {"a": 1}), TypeError, "takes data by position; pass the other arguments by name"),
        (lambda: AnyApp("data", bot={}), TypeError, "did you mean 'bots'"),
        (lambda: AnyPlanner(functions=[len]), TypeError, "did you mean 'tools'"),
        (lambda: AnyPlanner().invoke("x"), AttributeError, "did you mean 'solve'"),
        (lambda: AnyPlanner(model="rules").execute, AttributeError, "did you mean 'solve'"),
        (lambda: AnySync("data", "ann").add, AttributeError, "did you mean 'retain'"),
        (lambda: AnySync("data", "ann").search, AttributeError, "did you mean 'recall'"),
        (lambda: AnySyncBot("data", model="rules").ask, AttributeError, "did you mean 'send'"),
        (lambda: AnySyncBot("data", "ann"), TypeError, "pass the other arguments by name, such as user="),
    ],
)
def test_a_guess_before_opening_is_explained(use: Any, error: type[Exception] | None, advice: str) -> None:
    if error is None:
        assert callable(use())
        return
    with pytest.raises(error, match=advice):
        use()


@pytest.mark.parametrize(
    ("name", "advice"),
    [("gpt-5-mini", "openai:gpt-5-mini"), ("claude-haiku-4-5", "anthropic:"), ("openai/gpt-5-mini", "openai:gpt")],
)
async def test_a_model_without_its_vendor_is_explained(tmp_path: Path, name: str, advice: str) -> None:
    with pytest.raises(SettingsError, match=f"did you mean '{advice}"):
        async with ChatBot(tmp_path, model=name):
            pass


@pytest.mark.parametrize("model", [FakeModel(["4"]), {"worker": FakeModel(["4"])}, mindstream.Models(FakeModel(["4"]))])
async def test_model_takes_a_model_a_table_of_roles_or_models(model: Any) -> None:
    assert (await Planner(model=model, how="direct").solve("2 + 2")).answer == "4"


async def test_the_earlier_word_for_model_warns(tmp_path: Path) -> None:
    with pytest.warns(DeprecationWarning, match="model="):
        assert AnyPlanner(models="rules").model == "rules"
    with pytest.warns(DeprecationWarning, match="model="):
        opening = AnyMind.open(tmp_path, user="ann", models="rules")
    async with opening as mind:
        assert mind.models.only_rules


async def test_wrong_uses_of_a_stream_and_of_a_plan_are_explained(tmp_path: Path) -> None:
    async with ChatBot(tmp_path, model=FakeModel(["Hello!"])) as bot:
        with pytest.raises(TypeError, match=r"async for piece in bot\.stream"):
            list(bot.stream("Hi"))  # type: ignore[call-overload]
    with pytest.raises(InputError, match="solve"):
        await Planner(model="rules").run("What is 2 + 2?")  # type: ignore[arg-type]
    planner: Any = Planner(model="rules")
    with pytest.raises(InputError, match="await it first"):
        await planner.run(planner.plan("What is 2 + 2?"))
    with pytest.raises(InputError, match=r"run\(plan\)"):
        await planner.solve(Plan(task="What is 2 + 2?"))


async def test_results_explain_the_names_of_other_libraries(memory: Memory) -> None:
    await memory.retain("The key is under the mat.")
    hit: Any = (await memory.recall("Where is the key?"))[0]
    solution: Any = await Planner(model=FakeModel(["4"]), how="direct").solve("2 + 2")
    for found, name, advice in ((hit, "content", "text"), (solution, "result", "answer")):
        with pytest.raises(AttributeError, match=f"did you mean '{advice}'"):
            getattr(found, name)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
async def test_the_warning_about_a_forgotten_await_names_the_call(memory: Memory) -> None:
    with pytest.warns(RuntimeWarning, match=r"memory\.retain"):
        memory.retain("The key is under the mat.")  # type: ignore[unused-coroutine]
        gc.collect()
