"""The models of roles, with all wrappers around a real endpoint."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from asking import Grade, Judge, Talk, parts_of, text_of
from fake_endpoint import Fails, FakeEndpoint, Says

from mindstream import FakeModel, Mind
from mindstream.clock import ManualClock
from mindstream.errors import BudgetSpent, ModelRefused, SettingsError
from mindstream.models.prompt import RULES, ask, rule, speak
from mindstream.models.providers.adapter import Waits
from mindstream.models.roles import AnyModels, Models, open_models
from mindstream.models.wrappers.meter import Budget, Metered


class Patient(ManualClock):
    async def sleep(self, seconds: float) -> None:
        self.advance(seconds)


@pytest.fixture
def graded_by_rule() -> Iterator[None]:
    rule(Judge)(lambda _: Grade(score=1))
    yield
    del RULES[Judge]


async def test_without_configured_models_the_rules_answer(graded_by_rule: None) -> None:
    calls = list[Metered]()
    async with Models.named({}, on_call=calls.append) as models:
        assert models.only_rules
        assert (await ask(models.of("scorer"), Judge())).score == 1
    assert [(call.model, call.prompt, call.error) for call in calls] == [("rules", "judge", None)]


def test_a_role_without_a_model_is_reported() -> None:
    models = Models.named({"talker": "http://127.0.0.1:9/v1#m"})
    assert models.of("facts", "talker").name == "http://127.0.0.1:9/v1#m" and not models.only_rules
    with pytest.raises(SettingsError, match=r"no model is configured for the role 'reasoner': .*--role reasoner=MODEL"):
        models.of("reasoner")
    assert models.waits("reasoner") == Waits()


async def test_each_model_has_its_own_patience() -> None:
    slow, quick = "ollama:slow", "https://models.example.org/v1#quick"
    async with Models.named({"default": slow, "talker": quick}, patience_s={slow: 900}) as models:
        assert models.waits("reasoner").first_s == 900 and models.waits("talker") == Waits()
        shared = models.with_listener(lambda _: None)
        assert shared.waits("reasoner") == models.waits("reasoner") and shared.names == models.names


async def test_only_a_configured_fallback_replaces_a_failing_model(door: FakeEndpoint, graded_by_rule: None) -> None:
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


async def test_each_attempt_is_metered(door: FakeEndpoint) -> None:
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


async def test_text_is_streamed_through_all_wrappers(door: FakeEndpoint, tmp_path: Path) -> None:
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


async def test_all_models_share_one_budget(door: FakeEndpoint) -> None:
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


async def test_models_are_accepted_in_every_form(tmp_path: Path) -> None:
    mine = FakeModel({})
    cases: list[tuple[AnyModels, dict[str, str]]] = [
        (mine, {"default": "scripted"}),
        ("rules", {"default": "rules"}),
        ({}, {"default": "rules"}),
        ({"default": "rules", "planner": mine}, {"default": "rules", "planner": "scripted"}),
        (Models(mine), {"default": "scripted"}),
    ]
    for given, names in cases:
        async with open_models(given) as models:
            assert models.names == names
    for wrong in (7, [mine], {"default": None}):
        with pytest.raises(SettingsError, match="model= takes the name of a model"):
            async with open_models(wrong):  # type: ignore[arg-type]
                raise AssertionError
    with pytest.raises(SettingsError, match="model= takes"):
        async with Mind.open(tmp_path, model=7):  # type: ignore[arg-type]
            raise AssertionError
