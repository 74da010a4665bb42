"""Gates: decisions to wait, decisions to skip the reasoner, the log, and the report."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from keys import key_of
from mindstream_evals.gate_curve import Turns, gate_curve, gate_report, thought_turns
from spoken import turn

from mindstream import Coach, FakeModel, Mind, Models
from mindstream.clock import ManualClock
from mindstream.coach.events import Decided, Judged
from mindstream.coach.talker import BeliefGate, Decision, Situation, TalkerGate, gate_named
from mindstream.errors import SettingsError
from mindstream.models.model import Model, Part, Request
from mindstream.models.rules import Rules

MODEL = FakeModel({}, name="m")


def test_the_default_gate_is_talker_with_a_model_and_belief_without() -> None:
    assert isinstance(gate_named("", MODEL), TalkerGate) and isinstance(gate_named("talker", MODEL), TalkerGate)
    assert isinstance(gate_named("", Rules()), BeliefGate) and isinstance(gate_named("belief", MODEL), BeliefGate)


def test_unknown_gates_and_gates_without_their_model_are_refused() -> None:
    with pytest.raises(
        SettingsError, match="unknown gate 'quick'; choose one of talker, belief, or leave the gate out"
    ):
        gate_named("quick", MODEL)
    with pytest.raises(SettingsError, match="unknown gate 'clever'; choose one of talker, belief"):
        gate_named("clever", MODEL)
    with pytest.raises(SettingsError, match="needs a language model"):
        gate_named("talker", Rules())


async def settled_turn(mind: Mind, text: str) -> None:
    await turn(mind, text)
    await mind.settled()


async def decided(mind: Mind) -> list[Decided]:
    rows = await mind.memory.store.events(mind.memory.key, kinds=["decided"])
    return [row.event for row in rows if isinstance(row.event, Decided)]


PLAN = (
    '{"thought": "a plan", "plan": [{"title": "Dim the lights", "do": "Dim at nine", "state": "now"}],'
    ' "offer": "Dim the lights at nine."}'
)
LATER = PLAN.replace('"offer"', '"follow_up"')
NOTHING = '{"thought": "nothing"}'


def models(talks: list[str], thinks: list[str]) -> Models:
    reasoner = FakeModel({"think": thinks}, name="thinker")
    quiet = {"facts": Rules(), "safety": Rules()}
    return Models(Rules(), {"talker": FakeModel({"talk": talks}), "reasoner": reasoner, **quiet})


async def test_the_report_counts_early_answers_and_needless_waits(folder: Path) -> None:
    talks = ["I see.", "[WAIT]", "Dim them.", "[WAIT]", "A fine cat.", "[ALONE] Bye."]
    thinks = [LATER, PLAN.replace("nine", "ten"), NOTHING]
    async with Mind.open(folder, user="ann", model=models(talks, thinks), responder=Coach.using()) as mind:
        for text in ("make me a plan", "so where do I start?", "I have a cat", "bye"):
            await settled_turn(mind, text)
        assert [(each.waits, each.thinks, each.gate) for each in await decided(mind)] == [
            (False, True, "talker"), (True, True, "talker"), (True, True, "talker"), (False, False, "talker"),
        ]  # fmt: skip
        judged = [row.event for row in await mind.memory.store.events(key_of("ann"), kinds=["judged"])]
        assert [event.needed for event in judged if isinstance(event, Judged)] == [True, True, False]
        (report,) = await gate_report(mind.memory.store, key_of("ann"))
        assert await gate_report(mind.memory.store) == [report]
    assert report.turns == 4 and report.judged == 3 and report.avoided == 0.25 and report.wait_rate == 0.5
    assert (report.spoke_too_soon, report.waited_for_nothing, report.regret) == (0.3333, 0.3333, 0.6667)


async def test_alternative_gates_are_scored_on_the_same_log(folder: Path) -> None:
    clock = ManualClock()

    async def slowly(*_: object) -> None:
        clock.advance(4.0)

    talks = ["[WAIT]", "Dim them.", "[ALONE] I see.", "[WAIT]", "A fine cat."]
    thinks = [PLAN.replace('"thought"', '"phase": "planning", "thought"'), NOTHING, NOTHING]
    named = models(talks, thinks)
    thinker = Slow(named.of("reasoner"), slowly)
    named = Models(Rules(), {"talker": named.of("talker"), "reasoner": thinker, "safety": Rules()})
    async with Mind.open(folder, user="ann", model=named, clock=clock, responder=Coach.using()) as mind:
        for text in ("make me a plan", "thanks for that", "and my cat?"):
            await settled_turn(mind, text)
        found = await thought_turns(mind.memory.store, key_of("ann"))
    points = {point.rule: point for point in gate_curve(Turns(found.turns, 100, 50), ["planning"])}
    assert [(turn.needed, turn.waited, turn.thought_s) for turn in found.turns] == [(True, True, 4), (False, True, 4)]
    told = {rule: (point.wait_rate, point.stale, point.for_nothing, point.seconds) for rule, point in points.items()}
    assert told["never"] == (0.0, 0.5, 0.0, 0.0) and told["always"] == (1.0, 0.0, 0.5, 4.0)
    assert told["as decided"] == told["always"] and told["belief (its phase waits)"] == (0.5, 0.5, 0.5, 2.0)
    assert told["always, at most 2 s"] == (1.0, 0.5, 0.5, 2.0) and told["always, at most 5 s"] == told["always"]
    assert (points["as decided"].tokens, points["always"].tokens) == (250, 150), "the Talker is called twice"
    assert gate_curve(Turns((), 0, 0), []) == []


@dataclass
class Slow:
    """A model that takes its time."""

    model: Model
    passes: Callable[..., Awaitable[None]]
    name: str = "slow"

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        await self.passes()
        async for part in self.model.reply(request):
            yield part


class Hasty:
    """A gate that never waits."""

    name = "hasty"

    def decide(self, situation: Situation) -> Decision:
        return Decision(False, thinks="noise" in situation.text)


async def test_a_custom_gate_can_skip_the_reasoner(folder: Path) -> None:
    async with Mind.open(
        folder, user="ann", model=models(["One.", "Two."], [NOTHING]), responder=Coach.using(gate=Hasty())
    ) as mind:
        await settled_turn(mind, "hello")
        await settled_turn(mind, "the noise")
        assert [(each.thinks, each.gate) for each in await decided(mind)] == [(False, "hasty"), (True, "hasty")]
