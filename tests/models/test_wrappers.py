"""Each wrapper around a scripted model, on a manual clock."""

from __future__ import annotations

import asyncio
import gc
import weakref
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from pathlib import Path

import pytest
from asking import ADD, Grade, Judge, Patient, Talk, parts_of, talk, text_of
from fake_endpoint import FakeEndpoint, Streams, delta
from hypothesis import given
from hypothesis import strategies as st

from mindstream import Models, caches
from mindstream.clock import ManualClock
from mindstream.errors import BudgetSpent, ModelError, ModelRefused, ModelUnavailable, RateLimited, ReplyInvalid
from mindstream.models.model import Call, Message, Model, Part, Piece, Request, Sampling, ToolSpec, Usage
from mindstream.models.prompt import act, ask
from mindstream.models.recording import Cache
from mindstream.models.rules import FakeModel, Line
from mindstream.models.wrappers.meter import Budget, Budgeted, Meter, Metered, WithListener
from mindstream.models.wrappers.override import PromptOverride
from mindstream.models.wrappers.recovery import Fallback, Limit, Repair, Retry
from mindstream.service.operations.open_minds import Charge


def talks(*lines: Line) -> FakeModel:
    return FakeModel({"talk": lines, "judge": lines})


class Says:
    """A model that sends these parts and may then fail; it records whether it was closed early."""

    name = "says"

    def __init__(self, *parts: Part, error: ModelError | None = None, clock: ManualClock | None = None) -> None:
        self.parts, self.error, self.clock, self.closed_early = parts, error, clock, False

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        try:
            for part in self.parts:
                if self.clock:
                    self.clock.advance(1)
                yield part
        except GeneratorExit:
            self.closed_early = True
            raise
        if self.error:
            raise self.error


WRAPPERS: list[tuple[str, Callable[[Model, Path], Model]]] = [
    ("retry", lambda model, _: Retry(model)),
    ("repair", lambda model, _: Repair(model)),
    ("meter", lambda model, _: Meter(model, lambda _: None)),
    ("budget", lambda model, _: Budgeted(model, Budget())),
    ("cache", Cache),
    ("limit", lambda model, _: Limit(model)),
    ("fallback", lambda model, _: Fallback([model])),
    ("reworded", PromptOverride),
]


@pytest.mark.parametrize(("name", "wrap"), WRAPPERS, ids=[name for name, _ in WRAPPERS])
async def test_every_wrapper_streams_and_closes_its_model(
    name: str, wrap: Callable[[Model, Path], Model], tmp_path: Path
) -> None:
    inner = Says(Piece("one "), Piece("two"), Usage(1, 2, 0.5))
    model = wrap(inner, tmp_path)
    assert model.name == "says"
    async with aclosing(model.reply(talk())) as parts:
        assert await anext(parts) == Piece("one ")
    assert inner.closed_early
    assert await parts_of(wrap(inner, tmp_path)) == [Piece("one "), Piece("two"), Usage(1, 2, 0.5)]


LISTENING: list[tuple[str, Callable[[Model, Path], Model]]] = [
    *WRAPPERS,
    ("listener", lambda model, _: WithListener(Meter(model, None), lambda _: None)),
    ("charged", lambda model, _: Charge(Budget()).to(Meter(model, None))),
]


@pytest.mark.parametrize("is_stopped", [False, True], ids=["complete", "stopped"])
@pytest.mark.parametrize(("name", "wrap"), LISTENING, ids=[name for name, _ in LISTENING])
async def test_a_request_is_freed_without_the_garbage_collector(
    name: str, wrap: Callable[[Model, Path], Model], is_stopped: bool, tmp_path: Path
) -> None:
    """A server collects garbage rarely: requests in cycles of references took a third of its growing memory."""
    model = wrap(Says(Piece("one "), Piece("two"), Usage(1, 2, 0.5)), tmp_path)
    prompt = Talk(text="a long prompt")
    freed = weakref.ref(prompt)
    gc.disable()
    try:
        async with aclosing(model.reply(Request(prompt, "talker"))) as parts:
            async for _ in parts:
                if is_stopped:
                    break
        del prompt
        assert freed() is None
    finally:
        gc.enable()


# Retry.


async def test_retry_waits_for_retry_after() -> None:
    clock = Patient()
    assert text_of(await parts_of(Retry(talks(RateLimited("busy", 12.0), "here"), clock=clock))) == "here"
    assert clock.slept == [12.0]


async def test_retry_does_not_wait_for_an_hour() -> None:
    clock = Patient()
    with pytest.raises(RateLimited):
        await parts_of(Retry(talks(RateLimited("busy", 3600.0), "here"), clock=clock))
    assert clock.slept == []


async def test_retry_does_not_repeat_permanent_errors() -> None:
    scripted = talks(ModelRefused("no key"), "here")
    with pytest.raises(ModelRefused):
        await parts_of(Retry(scripted, clock=Patient()))
    assert len(scripted.asked) == 1


async def test_retry_never_repeats_a_piece() -> None:
    model = Retry(Says(Piece("half"), error=ModelUnavailable("cut")), clock=Patient())
    heard: list[Part] = []
    with pytest.raises(ModelUnavailable):
        async for part in model.reply(talk()):
            heard.append(part)
    assert heard == [Piece("half")]


@given(attempts=st.integers(1, 12), base_s=st.floats(0.01, 5), seed=st.integers())
async def test_retry_sleeps_at_most_the_maximum(attempts: int, base_s: float, seed: int) -> None:
    clock = Patient()
    lines = [ModelUnavailable("down")] * (attempts - 1)
    model = Retry(talks(*lines, "here"), attempts, clock=clock, base_s=base_s, longest_s=20.0, seed=seed)
    assert text_of(await parts_of(model)) == "here"
    assert len(clock.slept) == attempts - 1
    assert all(0 < slept <= 20.0 for slept in clock.slept)


# Repair.


async def test_repair_shows_the_model_its_mistake() -> None:
    scripted = talks("seven", '{"score": "high"}', '{"score": 7}')
    assert (await ask(Repair(scripted), Judge())).score == 7
    turns = scripted.asked[2].turns
    assert [turn.role for turn in turns] == ["assistant", "user", "assistant", "user"]
    assert (turns[0].text, turns[2].text) == ("seven", '{"score": "high"}')
    assert "JSON" in turns[1].text
    assert "score" in turns[3].text


class Answers:
    """A model that sends one list of parts for each request; an error among them is raised."""

    name = "answers"

    def __init__(self, *replies: Sequence[Part | ModelError]) -> None:
        self.replies, self.asked = [*replies], list[Request]()

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        self.asked.append(request)
        for part in self.replies.pop(0):
            if isinstance(part, ModelError):
                raise part
            yield part


@pytest.mark.parametrize(
    "empty",
    [[], [Piece(""), Usage(3, 0)], [Piece("\u2060 "), Piece("\n")], [ReplyInvalid("nothing but thoughts")]],
    ids=["no part", "empty piece", "invisible", "thoughts"],
)
async def test_a_model_that_says_nothing_is_asked_once_more(empty: list[Part | ModelError]) -> None:
    model = Answers(empty, [Piece("Good "), Piece("morning."), Usage(4, 2)])
    parts = await parts_of(Repair(model), Request(Talk()))
    assert text_of(parts).strip("\u2060 \n") == "Good morning."
    assert [each.output_tokens for each in parts if isinstance(each, Usage)] == [2]
    assert "no text" in model.asked[1].turns[-1].text and len(model.asked) == 2
    with pytest.raises(ReplyInvalid):
        await ask(Repair(Answers([ReplyInvalid("empty")], [ReplyInvalid("empty")])), Talk())
    with pytest.raises(ReplyInvalid, match="broke"):
        await ask(Repair(Answers([Piece("Good "), ReplyInvalid("broke")])), Talk())


async def test_repair_gives_up_and_reports_the_faults() -> None:
    scripted = talks(*['{"score": "high"}'] * 5)
    with pytest.raises(ReplyInvalid, match=r"3 invalid answers to the prompt 'judge'.*score"):
        await ask(Repair(scripted, times=2), Judge())
    assert len(scripted.asked) == 3


async def test_repair_adds_up_the_usage_of_all_answers() -> None:
    model = Repair(talks("no", '{"score": 1}'))
    used = [part for part in await parts_of(model, Request(Judge())) if isinstance(part, Usage)]
    assert len(used) == 1
    assert used[0].output_tokens == 2


async def test_repair_answers_every_call_when_one_is_wrong() -> None:
    wrong = [Call("add", '{"a": 1, "b": 2}', "c1"), Call("add", '{"a": "x"}', "c2"), Call("sub", "{}", "c3")]
    scripted = talks(wrong, [Call("add", '{"a": 1, "b": 2}', "c4")])
    said = await act(Repair(scripted), Talk(), (ADD,))
    assert said == ("", (Call("add", '{"a": 1, "b": 2}', "c4"),))
    assistant, *answers = scripted.asked[1].turns
    assert assistant.calls == tuple(wrong)
    assert [answer.call_id for answer in answers] == ["c1", "c2", "c3"]
    assert "Not run" in answers[0].text
    assert "b is missing" in answers[1].text
    assert "There is no tool 'sub'. There are: add." in answers[2].text


async def test_a_call_without_arguments_is_accepted() -> None:
    tool = ToolSpec("now", "Tell the time.", {"type": "object", "properties": {}})
    assert await act(Repair(talks([Call("now", "", "c1")])), Talk(), (tool,)) == ("", (Call("now", "{}", "c1"),))


# Meter.


async def test_meter_reports_seconds_tokens_and_cost() -> None:
    clock, calls = ManualClock(100.0), list[Metered]()
    inner = Says(Piece("a"), Piece("b"), Usage(5, 2, 0.25), clock=clock)
    await parts_of(Meter(inner, calls.append, clock))
    assert calls == [Metered("says", "talker", "talk", 100.0, 1.0, 3.0, Usage(5, 2, 0.25))]


async def test_meter_reports_an_interrupted_call() -> None:
    calls = list[Metered]()
    model = Meter(Says(Piece("a"), Piece("b")), calls.append, ManualClock())
    async with aclosing(model.reply(talk())) as parts:
        await anext(parts)
    assert [(call.broken_off, call.error) for call in calls] == [(True, None)]


# Budget.


@pytest.mark.parametrize("budget", [Budget(tokens=300), Budget(cost_usd=0.5)])
async def test_a_budget_of_tokens_or_money_stops_the_next_call(budget: Budget) -> None:
    model = Budgeted(Says(Piece("a"), Usage(100, 20, 0.5)), budget)
    await parts_of(model)
    with pytest.raises(BudgetSpent):
        await parts_of(model)
    assert (budget.spent_calls, budget.spent_tokens, budget.spent_usd) == (1, 120, 0.5)


async def test_concurrent_calls_respect_the_budget() -> None:
    class Slow:
        name = "slow"

        async def reply(self, request: Request) -> AsyncGenerator[Part]:
            await asyncio.sleep(0)
            yield Usage(60, 40, 0.05)

    for allowed, most in ((Budget(tokens=1_000), 1_000), (Budget(cost_usd=0.5), 0.55)):
        model = Budgeted(Slow(), allowed)
        came = await asyncio.gather(*(parts_of(model) for _ in range(40)), return_exceptions=True)
        assert sum(isinstance(each, BudgetSpent) for each in came) >= 28, came[:3]
        assert (allowed.spent_tokens if allowed.tokens else allowed.spent_usd) <= most
        assert allowed.spent_calls >= 7


async def test_the_reply_limit_is_the_remaining_budget_and_tiny_budgets_stop_calls() -> None:
    asked: list[int] = []

    class Keeps:
        name = "keeps"

        async def reply(self, request: Request) -> AsyncGenerator[Part]:
            asked.append(request.longest_reply)
            yield Usage(50, request.longest_reply or 900)

    budget = Budget(tokens=1_000)
    model = Budgeted(Keeps(), budget)
    with pytest.raises(BudgetSpent, match=r"the limit of 1000 tokens is reached|next request has"):
        for _ in range(9):
            await parts_of(model)
    assert asked and 200 <= asked[0] < 1_000 and budget.spent_tokens <= 1_050


# Cache.


def kept_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_the_cache_repeats_an_answer_without_a_call(tmp_path: Path) -> None:
    scripted = talks("first", "second")
    assert text_of(await parts_of(Cache(scripted, tmp_path), talk("a"))) == "first"
    again = await parts_of(Cache(scripted, tmp_path), talk("a"))
    assert again == [Piece("first"), Usage(0, 0, 0.0)]
    assert text_of(await parts_of(Cache(scripted, tmp_path), talk("b"))) == "second"


async def test_the_cache_key_includes_model_and_tools(tmp_path: Path) -> None:
    one, other = FakeModel({"talk": ["one", "with tools"]}, "one"), FakeModel({"talk": ["other"]}, "other")
    assert text_of(await parts_of(Cache(one, tmp_path))) == "one"
    assert text_of(await parts_of(Cache(other, tmp_path))) == "other"
    assert text_of(await parts_of(Cache(one, tmp_path), talk(tools=(ADD,)))) == "with tools"


@pytest.mark.parametrize(
    "sampling", [Sampling(temperature=0.9), Sampling(seed=7), Sampling(top_p=0.1), Sampling(stop=("END",))]
)
async def test_other_sampling_parameters_get_an_answer_of_their_own(tmp_path: Path, sampling: Sampling) -> None:
    model = Cache(talks("plain", "sampled", "again"), tmp_path)
    assert text_of(await parts_of(model, talk("a"))) == "plain"
    for _ in range(2):
        assert text_of(await parts_of(model, talk("a").but(sampling=sampling))) == "sampled"
    assert text_of(await parts_of(model, talk("a").but(longest_reply=99))) == "plain"


async def test_a_cache_around_a_fallback_finds_its_answers_whichever_model_gave_them(tmp_path: Path) -> None:
    down, up = Says(error=ModelUnavailable("down")), talks("first", "second")
    for text in ("first", "first", "first"):
        assert text_of(await parts_of(Cache(Fallback([down, up]), tmp_path), talk("a"))) == text


async def test_incomplete_answers_are_not_cached(tmp_path: Path) -> None:
    broken = Cache(Says(Piece("half"), error=ModelUnavailable("cut")), tmp_path)
    for _ in range(2):
        with pytest.raises(ModelUnavailable):
            await parts_of(broken)
    assert kept_in(tmp_path) == []


async def test_erased_text_is_removed_from_cached_answers(tmp_path: Path) -> None:
    (tmp_path / "ab").mkdir()
    (tmp_path / "ab" / "notes.json").write_text("a file of somebody's own")
    model = Cache(talks("Ann has a parrot", "Nobody is known"), tmp_path)
    await parts_of(model)
    caches.empty("ann")
    assert [path.name for path in kept_in(tmp_path)] == ["notes.json"]
    assert text_of(await parts_of(model)) == "Nobody is known"


# Limit.


async def test_concurrent_calls_are_limited() -> None:
    running, most = 0, 0

    class Busy:
        name = "busy"

        async def reply(self, request: Request) -> AsyncGenerator[Part]:
            nonlocal running, most
            running += 1
            most = max(most, running)
            await asyncio.sleep(0)
            yield Piece("done")
            running -= 1

    model = Limit(Busy(), at_once=3)
    await asyncio.gather(*(parts_of(model) for _ in range(10)))
    assert (most, running) == (3, 0)


# Fallback.


async def test_the_next_model_answers_when_one_fails() -> None:
    first = FakeModel({"talk": [ModelUnavailable("down"), "there again"]}, "first")
    model = Fallback([first, FakeModel({"talk": ["here"]}, "second")])
    assert model.name == "first"
    assert (text_of(await parts_of(model)), model.name) == ("here", "second")
    assert (text_of(await parts_of(model)), model.name) == ("there again", "first")


async def test_a_concurrent_caller_learns_which_model_answered() -> None:
    first = FakeModel({"talk": [ModelUnavailable("down"), "there again"]}, "first")
    model = Fallback([first, FakeModel({"talk": ["here"]}, "second")])

    async def asked() -> tuple[str, str]:
        text = text_of(await parts_of(model))
        await asyncio.sleep(0.01)
        return text, model.name

    assert {*await asyncio.gather(asked(), asked())} == {("here", "second"), ("there again", "first")}


async def test_a_model_that_started_answering_is_not_replaced() -> None:
    model = Fallback([Says(Piece("half"), error=ModelUnavailable("cut")), talks("other")])
    with pytest.raises(ModelUnavailable, match="cut"):
        await parts_of(model)


# Changed requests.


# Token counts of requests.


class Counted(dict[str, object]):
    """Tool parameters that count how often they are rendered."""

    written = 0

    def __str__(self) -> str:
        self.written += 1
        return super().__str__()


async def test_a_request_is_rendered_and_counted_once(door: FakeEndpoint) -> None:
    rendered: list[str] = []
    read: list[str] = []

    class Once(Judge):
        def dialogue(self) -> tuple[Message, ...]:
            rendered.append(self.work)
            return ()

        def parse(self, text: str) -> Grade:
            read.append(text)
            return super().parse(text)

    door.otherwise = Streams((delta(content='{"score": 4}').decode().strip(), "data: [DONE]"))
    models = Models.named({"default": f"{door.url}#any"}, budget=Budget(tokens=100_000), context=8_000)
    async with models.with_listener(lambda _: None) as heard, models:
        assert (await ask(heard.of(""), Once())).score == 4
    assert len(rendered) == 1, "the wrappers share its messages"
    assert len(read) == 2, "once where it is checked and once by the caller"
    parameters = Counted()
    request = talk(tools=(ToolSpec("add", "Add.", parameters),))
    tokens = request.tokens
    assert request.but(longest_reply=9).tokens == tokens < request.then(Message("user", "More")).tokens
    assert parameters.written == 1
