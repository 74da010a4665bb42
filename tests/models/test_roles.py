"""The table of roles, and everything wrapped around a real endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from asking import ADD, Grade, Judge, Talk, parts_of, talk, text_of
from fake_endpoint import WRONG_KEY, Breaks, Calls, Fails, FakeEndpoint, Says

from mindstream.clock import ManualClock
from mindstream.errors import BudgetSpent, ModelRefused, ModelUnavailable, SettingsError
from mindstream.models.ask import act, ask, speak
from mindstream.models.limits import Waits
from mindstream.models.model import Call, Request
from mindstream.models.prompt import RULES, rule
from mindstream.models.roles import Models
from mindstream.models.scripted import Scripted
from mindstream.models.wrappers.budget import Budget
from mindstream.models.wrappers.meter import Metered


class Patient(ManualClock):
    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)


@pytest.fixture
def door() -> Iterator[FakeEndpoint]:
    with FakeEndpoint() as door:
        yield door


@pytest.fixture
def graded_by_rule() -> Iterator[None]:
    rule(Judge)(lambda _: Grade(score=1))
    yield
    del RULES[Judge]


def test_a_role_without_a_model_gets_the_default() -> None:
    talker, other = Scripted({}, "talker"), Scripted({}, "other")
    models = Models(other, {"talker": talker})
    assert models.of("talker") is talker
    assert models.of("planner") is other
    assert models.names == {"default": "other", "talker": "talker"}


async def test_without_a_table_rules_answer(graded_by_rule: None) -> None:
    calls = list[Metered]()
    async with Models.named({}, on_call=calls.append) as models:
        assert models.only_rules
        assert (await ask(models.of("scorer"), Judge())).score == 1
    assert [(call.model, call.prompt, call.error) for call in calls] == [("rules", "judge", None)]


async def test_a_model_that_is_named_twice_is_built_once(door: FakeEndpoint) -> None:
    name = f"{door.url}#any"
    async with Models.named({"talker": name, "planner": name}) as models:
        assert models.of("talker") is models.of("planner")
        assert not models.only_rules


def test_a_role_without_a_model_is_named() -> None:
    models = Models.named({"talker": "http://127.0.0.1:9/v1#m"})
    assert models.of("facts", "talker").name == "http://127.0.0.1:9/v1#m" and not models.only_rules
    with pytest.raises(SettingsError, match=r"no model is named for the role 'reasoner': .*--role reasoner=MODEL"):
        models.of("reasoner")
    assert models.waits("reasoner") == Waits()


async def test_each_model_is_waited_for_as_long_as_is_said_of_it() -> None:
    slow, quick = "ollama:slow", "https://models.example.org/v1#quick"
    async with Models.named({"default": slow, "talker": quick}, patience_s={slow: 900}) as models:
        assert models.waits("reasoner").first_s == 900 and models.waits("talker") == Waits()
        shared = models.with_listener(lambda _: None)
        assert shared.waits("reasoner") == models.waits("reasoner") and shared.names == models.names


async def test_only_a_fallback_that_was_named_answers_for_a_model_that_fails(
    door: FakeEndpoint, graded_by_rule: None
) -> None:
    door.otherwise = Fails(400, "no")
    name = f"{door.url}#any"
    for fallback in ("", "rules"):
        calls = list[Metered]()
        async with Models.named({"default": name}, on_call=calls.append, fallback=fallback) as models:
            model = models.with_listener(lambda _: None).of("scorer")
            assert model.name == name
            if not fallback:
                with pytest.raises(ModelRefused):
                    await ask(model, Judge())
                continue
            assert (await ask(model, Judge())).score == 1
            assert [call.model for call in calls] == [name, "rules"] and model.name == "rules"


async def test_the_fallback_may_be_another_model(door: FakeEndpoint) -> None:
    down, up = "http://127.0.0.1:9/v1#down", f"{door.url}#up"
    async with Models.named({"default": down}, retry=1, fallback=up) as models:
        assert (text_of(await parts_of(models.of("talker"))), models.of("talker").name) == ("ok", up)


async def test_each_attempt_is_measured(door: FakeEndpoint) -> None:
    calls = list[Metered]()
    door.will(Fails(429, "slow", {"Retry-After": "5"}), Fails(503), Says("not JSON"), Says('{"score": 4}'))
    clock = Patient()
    async with Models.named({"default": f"{door.url}#any"}, clock=clock, on_call=calls.append) as models:
        assert (await ask(models.of("scorer"), Judge(), "scorer")).score == 4
    assert [(call.error or "fine").split(":")[0] for call in calls] == [
        "RateLimited",
        "ModelUnavailable",
        "fine",
        "fine",
    ]
    assert {(call.role, call.prompt, call.model) for call in calls} == {("scorer", "judge", f"{door.url}#any")}
    assert calls[1].at - calls[0].at == 5.0
    assert calls[3].usage is not None
    assert [message["role"] for message in door.chats[3].body["messages"]] == ["user", "assistant", "user"]


async def test_a_wrong_call_is_mended_through_the_endpoint(door: FakeEndpoint) -> None:
    door.will(Calls((("add", '{"a": 1'),)), Calls((("add", '{"a": 1, "b": 2}'),)))
    async with Models.named({"default": f"{door.url}#any"}) as models:
        said = await act(models.of("planner"), Talk(), (ADD,))
    assert said == ("", (Call("add", '{"a": 1, "b": 2}', "call_0"),))
    turns = door.chats[1].body["messages"][-2:]
    assert turns[0]["tool_calls"][0]["id"] == turns[1]["tool_call_id"] == "call_0"
    assert "not JSON" in turns[1]["content"]


async def test_words_still_come_piece_by_piece_through_all_wrappers(door: FakeEndpoint, tmp_path: Path) -> None:
    door.will(Says("one two", step=True))
    async with Models.named(
        {"default": f"{door.url}#any"},
        budget=Budget(calls=9),
        cache_dir=tmp_path / "cache",
        record=tmp_path / "run.jsonl",
        words_dir=tmp_path,
    ) as models:
        pieces = speak(models.of("talker"), Talk())
        door.go()
        assert await anext(pieces) == "one "
        door.go()
        assert [piece async for piece in pieces] == ["two"]


async def test_a_broken_stream_is_not_said_twice(door: FakeEndpoint) -> None:
    door.will(Breaks("half"))
    async with Models.named({"default": f"{door.url}#any"}, clock=Patient()) as models:
        with pytest.raises(ModelUnavailable):
            await parts_of(models.of("talker"))
    assert len(door.asked) == 1


async def test_a_wrong_key_is_not_tried_again(door: FakeEndpoint) -> None:
    door.will(WRONG_KEY)
    async with Models.named({"default": f"{door.url}#any"}, clock=Patient()) as models:
        with pytest.raises(ModelRefused):
            await parts_of(models.of("talker"))
    assert len(door.asked) == 1


async def test_all_models_draw_on_one_budget(door: FakeEndpoint) -> None:
    table = {"talker": f"{door.url}#small", "planner": f"{door.url}#large"}
    async with Models.named(table, budget=Budget(calls=1)) as models:
        await parts_of(models.of("talker"))
        with pytest.raises(BudgetSpent):
            await parts_of(models.of("planner"))
    assert len(door.asked) == 1


async def test_a_recorded_run_needs_no_endpoint(door: FakeEndpoint, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    door.will(Fails(503), Says("Hello."), Says("no"), Says('{"score": 4}'))
    async with Models.named({"default": f"{door.url}#any"}, clock=Patient(), record=path) as models:
        said = [text_of(await parts_of(models.of("talker"))), (await ask(models.of("scorer"), Judge())).score]
    async with Models.named({"default": f"playback:{path}"}) as models:
        assert [text_of(await parts_of(models.of("talker"))), (await ask(models.of("scorer"), Judge())).score] == said
    assert len(door.asked) == 4


async def test_rules_are_recorded_too(graded_by_rule: None, tmp_path: Path) -> None:
    path = tmp_path / "run.jsonl"
    await parts_of(Models.named({}, record=path).of("scorer"), Request(Judge()))
    assert (await ask(Models.named({"default": f"playback:{path}"}).of("scorer"), Judge())).score == 1


async def test_the_cache_spares_the_endpoint(door: FakeEndpoint, tmp_path: Path) -> None:
    for _ in range(2):
        async with Models.named({"default": f"{door.url}#any"}, cache_dir=tmp_path) as models:
            assert text_of(await parts_of(models.of("talker"))) == "ok"
    assert len(door.asked) == 1


async def test_own_words_reach_the_endpoint(door: FakeEndpoint, tmp_path: Path) -> None:
    (tmp_path / "talk.md").write_text("# user\nArr: {{ text }}")
    async with Models.named({"default": f"{door.url}#any"}, words_dir=tmp_path) as models:
        await parts_of(models.of("talker"), talk("hi"))
    assert door.chats[0].body["messages"] == [{"role": "user", "content": "Arr: hi"}]


@pytest.mark.parametrize("name", ["gpt-5", "rule", "playback:", "mistral:large"])
def test_an_unknown_name_lists_the_forms(name: str) -> None:
    with pytest.raises(
        SettingsError, match=r"rules, playback:PATH, local, gguf:FILE, openai:NAME.*http://host:port/v1#NAME"
    ):
        Models.named({"talker": name})


def test_what_is_missing_is_found_before_anything_begins() -> None:
    models = Models.named({"talker": "ollama:a", "reasoner": "ollama:b"})
    models.check("talker", "reasoner")
    with pytest.raises(SettingsError, match="'planner'"):
        models.check("talker", "planner", "reasoner")
