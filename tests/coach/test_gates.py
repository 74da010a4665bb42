"""Gates: who waits when, who lets the Reasoner sleep, what is logged of it, and what is learned from that."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import yaml
from pydantic import JsonValue

from mindstream import Mind, Models, Scripted
from mindstream.coach.events import Decided, Judged
from mindstream.coach.gates.asking import AskingGate
from mindstream.coach.gates.belief import BeliefGate
from mindstream.coach.gates.gate import Decision, Gate, Situation
from mindstream.coach.gates.learned import LearnedGate
from mindstream.coach.gates.logistic import Logistic
from mindstream.coach.gates.named import gate_named
from mindstream.coach.gates.outcomes import decision_event
from mindstream.coach.gates.quick import QuickGate
from mindstream.coach.gates.report import gate_report
from mindstream.coach.packs.load import load
from mindstream.errors import ModelUnavailable, SettingsError
from mindstream.log.events import Heard, Logged, Said, Thought, Waiting
from mindstream.memory.sqlite import SqliteStore
from mindstream.memory.store import Commit, Entry
from mindstream.models.rules import Rules

SLEEP = load("sleep")
HERE = Path(__file__).parent
BATTERIES = sorted(HERE.glob("battery*.yaml"))
BY_OTHERS = sorted(HERE.glob("unseen_*.tsv"))
"""Written by people who saw neither the code nor the training sentences; but thresholds were chosen, and data grew,
while these were watched: they are seen by now."""
UNDERSTANDING, PLANNING = SLEEP.phases[0], SLEEP.phases[-1]
QUICK = QuickGate(SLEEP)


def rows(path: Path) -> list[tuple[Situation, bool, bool]]:
    return [
        (
            Situation(
                row["text"],
                SLEEP.phase(row["phase"]),
                row.get("known", {}),
                row.get("plan", False),
                row.get("said", ""),
            ),
            row["waits"],
            row["thinks"],
        )
        for row in yaml.safe_load(path.read_text("utf-8"))
    ]


def unseen(path: Path) -> list[tuple[Situation, bool, bool]]:
    """Read situations one a line: kind, phase, known, plan, said, waits, thinks, text."""
    found = []
    for line in path.read_text("utf-8").splitlines():
        _, phase, known, plan, said, waits, thinks, text = line.split("\t")
        belief: dict[str, JsonValue] = {"sleep_concern": ["told before"]} if known == "1" else {}
        situation = Situation(text, SLEEP.phase(phase), belief, plan == "1", said)
        found.append((situation, waits == "1", thinks == "1"))
    return found


def regret(of: Gate, battery: list[tuple[Situation, bool, bool]]) -> float:
    return sum(of.decide(situation).waits != waits for situation, waits, _ in battery) / len(battery)


def planning(text: str, said: str = "") -> Situation:
    return Situation(text, PLANNING, {"sleep_concern": ["noise"]}, True, said)


@pytest.mark.parametrize("path", BY_OTHERS, ids=lambda path: path.stem)
def test_on_situations_it_never_saw_quick_regrets_a_twentieth_and_leaves_nothing_unthought(path: Path) -> None:
    battery = unseen(path)
    assert regret(QUICK, battery) <= 0.05 < 0.3 < regret(BeliefGate(), battery)
    assert all(QUICK.decide(situation).thinks for situation, _, thinks in battery if thinks)
    assert sum(QUICK.decide(situation).thinks for situation, _, thinks in battery if not thinks) <= 4


@pytest.mark.parametrize("path", BATTERIES, ids=lambda path: path.stem)
def test_quick_regrets_less_than_a_tenth_and_the_belief_alone_much_more(path: Path) -> None:
    battery = rows(path)
    assert regret(QUICK, battery) <= 0.10
    assert regret(BeliefGate(), battery) > 0.3


@pytest.mark.parametrize("path", BATTERIES, ids=lambda path: path.stem)
def test_what_needs_thought_is_hardly_ever_left_unthought(path: Path) -> None:
    missed = [s.text for s, _, thinks in rows(path) if thinks and not QUICK.decide(s).thinks]
    assert len(missed) <= 1, missed


def test_no_training_sentence_stands_in_a_set_that_tests() -> None:
    benchmarks = HERE.parents[1] / "benchmarks"
    files = (benchmarks / "training" / "gates").glob("*.tsv")
    trained = {line.split("\t")[-1] for file in files for line in file.read_text("utf-8").splitlines()}
    turns = yaml.safe_load((benchmarks / "gate_turns.yaml").read_text("utf-8"))["classes"]
    simulated = {text for each in turns for text in [*each["en"], *each["zh"]]}
    tested = {situation.text for path in BY_OTHERS for situation, _, _ in unseen(path)}
    short = 12  # 'Good evening.' may stand anywhere
    assert not {text for text in (trained | simulated) & tested if len(text) > short}


def test_the_same_words_wait_or_not_by_what_was_said_before() -> None:
    yes = Situation("Yes please", UNDERSTANDING, {"sleep_concern": ["noise"]})
    offered = Situation("Yes please", UNDERSTANDING, yes.belief, said="Shall I make you a plan?")
    assert not QUICK.decide(yes).waits and QUICK.decide(offered).waits


def test_a_yes_to_a_question_is_thought_about() -> None:
    assert QUICK.decide(Situation("ok", UNDERSTANDING, said="Do you take pills?")).thinks
    assert not QUICK.decide(Situation("ok", UNDERSTANDING, said="I see.")).thinks


def test_small_talk_after_a_question_is_no_answer_unless_it_holds_one() -> None:
    asked = "How long has that been going on?"
    for small in ("haha", "Cheers, mate.", "Thanks a lot for listening.", "Bye for now!", "哈哈"):
        assert not QUICK.decide(Situation(small, UNDERSTANDING, {"sleep_concerns": ["noise"]}, said=asked)).thinks
    for answer in ("thanks, about two years", "haha, since March", "cheers, 11", "no"):
        assert QUICK.decide(Situation(answer, UNDERSTANDING, {"sleep_concerns": ["noise"]}, said=asked)).thinks


@pytest.mark.parametrize("text", ["forget what i said about the dog", "no, four, not three", "床垫那个不用管了 忘了吧"])
def test_what_is_put_right_or_to_be_forgotten_is_thought_about(text: str) -> None:
    assert QUICK.decide(Situation(text, UNDERSTANDING, {"sleep_concerns": ["noise"]})).thinks


def test_there_is_nothing_to_wait_for_before_a_trouble_is_known() -> None:
    assert not QUICK.decide(Situation("Make me a plan", UNDERSTANDING)).waits
    assert QUICK.decide(Situation("The noise is awful. Make me a plan", UNDERSTANDING)).waits
    assert QUICK.decide(Situation("Make me a plan", UNDERSTANDING, unthought=1)).waits  # it is being thought about


def test_an_unknown_gate_is_refused_by_name() -> None:
    with pytest.raises(SettingsError, match="quick, belief, learned"):
        gate_named("clever", SLEEP)


# A small model.


async def test_a_small_model_says_whether_to_wait_where_one_is_configured() -> None:
    model = Scripted({"needs_reasoner": ['{"waits": true}', '{"waits": false}']}, name="small")
    asking = gate_named("quick", SLEEP, Models(Rules(), {"gate": model}))
    assert (await asking.weigh(planning("Hm, my evenings are something else."))).waits
    assert not (await asking.weigh(planning("Give me the next step"))).waits
    assert asking.decide(planning("Give me the next step")).waits, "at once, only the rule is heard"


async def test_small_talk_is_not_worth_a_models_call() -> None:
    model = Scripted({"needs_reasoner": []}, name="small")
    assert not (await AskingGate(QUICK, SLEEP, model).weigh(planning("Thanks a lot!"))).waits
    assert model.asked == []


async def test_the_rule_stands_where_the_model_does_not_answer() -> None:
    model = Scripted({"needs_reasoner": [ModelUnavailable("down")]}, name="small")
    decision = await AskingGate(QUICK, SLEEP, model).weigh(planning("Give me the next step"))
    assert decision.waits and "did not answer" in decision.why


async def test_without_the_role_no_model_is_asked() -> None:
    assert isinstance(gate_named("quick", SLEEP, Models(Rules())), QuickGate)


# Learning.


def test_outcomes_move_a_prior_and_few_do_not_overturn_it() -> None:
    model = Logistic(np.array([3.0, 0.0]), np.array([0.7, 0.7]))
    yes, no = np.array([1.0, 0.0]), np.array([1.0, 1.0])
    assert model.probability(yes) > 0.9
    model.learn(no, False)
    assert model.probability(no) > 0.5
    for _ in range(60):
        model.learn(no, False)
        model.learn(yes, True)
    assert model.probability(no) < 0.3 < 0.7 < model.probability(yes)


@pytest.fixture
def fresh(folder: Path) -> LearnedGate:
    return LearnedGate(SLEEP, None, folder)


def test_a_gate_that_has_learned_nothing_decides_as_quick(fresh: LearnedGate) -> None:
    for situation, _, _ in rows(BATTERIES[0]):
        assert fresh.decide(situation).waits == QUICK.decide(situation).waits


def test_what_a_user_means_by_their_own_words_is_learned(fresh: LearnedGate) -> None:
    odd, plain = planning("Time for the blue folder"), planning("My sister came over")
    assert not fresh.decide(odd).waits
    for _ in range(12):
        fresh.learn(odd, True, True)
        fresh.learn(plain, False, True)
    assert fresh.decide(planning("The blue folder, it is time")).waits and not fresh.decide(plain).waits


async def _log(store: SqliteStore, turns: Sequence[tuple[Situation, bool]]) -> None:
    for situation, needed in turns:
        heard = Entry(Heard(text=situation.text, session="s", record=""), "ann")
        seq = (await store.commit(Commit(mind="ann", at=0.0, entries=(heard,))))[0].seq
        taken = decision_event(QUICK.decide(situation), "quick", situation, SLEEP, seq)
        outcome = Judged(about=seq, needed=needed, changed=needed)
        await store.commit(Commit(mind="ann", at=0.0, entries=(Entry(taken, "gate"), Entry(outcome, "gate"))))


async def test_it_learns_from_the_log_once_and_remembers_it(folder: Path) -> None:
    store = SqliteStore(folder)
    turns = [(planning("The blue folder please"), True), (planning("My sister came over"), False)] * 15
    await _log(store, turns)
    learned = LearnedGate(SLEEP, store, folder)
    assert (await learned.weigh(planning("The blue folder please"))).waits and learned.outcomes == 30
    await learned.catch_up()
    assert learned.outcomes == 30
    again = LearnedGate(SLEEP, store, folder)
    assert again.outcomes == 30, "kept in the data folder"
    await _log(store, turns[:2])
    await again.catch_up()
    assert again.outcomes == 32
    for broken in (b"broken", b"", (folder / "gate-sleep.npz").read_bytes()[:500]):
        (folder / "gate-sleep.npz").write_bytes(broken)
        assert LearnedGate(SLEEP, store, folder).outcomes == 0
    anew = LearnedGate(SLEEP, store, folder)
    await anew.catch_up()
    assert anew.outcomes == 32, "learned again from the log"
    await store.close()


async def test_shuffled_outcomes_teach_nothing(folder: Path) -> None:
    sys.path.insert(0, str(HERE.parents[1] / "benchmarks"))
    from gates import simulated, trained

    test = [(each.situation, each.waits, each.thinks) for each in simulated(SLEEP, 100, seed=99)]
    honest, _ = await trained(SLEEP, 150, seed=1)
    shuffled, _ = await trained(SLEEP, 150, seed=1, shuffled=True)
    assert regret(honest, test) < 0.15 < regret(shuffled, test)


# In a mind.


async def turn(mind: Mind, text: str) -> list[Logged]:
    events = [logged async for logged in mind.hear(text)]
    await mind.settled()
    return events


async def kept(mind: Mind, *kinds: type) -> list[Logged]:
    return [row for row in await mind.stream.store.events("ann", limit=10_000) if isinstance(row.event, kinds)]


async def test_decisions_and_what_came_of_them_are_logged(folder: Path) -> None:
    async with Mind.open(folder, user="ann", gate="quick") as mind:
        await turn(mind, "The noise from the street keeps me up.")
        events = await turn(mind, "Can you make me a plan?")
        assert [type(row.event) for row in events][:2] == [Heard, Waiting]
        first, second = (row.event for row in await kept(mind, Decided))
        assert isinstance(first, Decided) and not first.waits and first.thinks and first.gate == "quick"
        assert isinstance(second, Decided) and second.waits and "sleep_concern" in second.known
        noted, planned = (row.event for row in await kept(mind, Judged))
        assert isinstance(noted, Judged) and not noted.needed and noted.changed
        assert isinstance(planned, Judged) and planned.needed and planned.about == events[0].seq


async def test_small_talk_wakes_the_facts_reasoner_only(folder: Path) -> None:
    async with Mind.open(folder, user="ann", gate="quick") as mind:
        await turn(mind, "Hello!")
        assert {row.event.slot for row in await kept(mind, Thought) if isinstance(row.event, Thought)} == {"facts"}
        decision = (await kept(mind, Decided))[0].event
        assert isinstance(decision, Decided) and not decision.thinks
        await turn(mind, "The noise keeps me awake.")
        about = [row.event.about for row in await kept(mind, Thought) if isinstance(row.event, Thought)]
        assert len(about) == 3


class Hasty:
    """A gate that never waits."""

    name = "hasty"

    def decide(self, situation: Situation) -> Decision:
        return Decision(False, why=situation.phase.name)

    async def weigh(self, situation: Situation) -> Decision:
        return self.decide(situation)


async def test_the_report_tells_who_spoke_too_soon_and_who_waited_for_nothing(folder: Path) -> None:
    talk = ["The noise keeps me awake.", "Can you make me a plan?", "My aunt lives in Rome.", "thanks"]
    async with Mind.open(folder, user="ann", gate=Hasty()) as mind:
        for text in talk:
            await turn(mind, text)
        (hasty,) = await gate_report(mind.stream.store, "ann")
    assert hasty.turns == 4 and hasty.wait_rate == 0 and hasty.spoke_too_soon == 0.25 == hasty.regret
    async with Mind.open(folder, user="bob", gate="belief") as mind:
        for text in talk:
            await turn(mind, text)
        (belief,) = await gate_report(mind.stream.store, "bob")
        assert [report.gate for report in await gate_report(mind.stream.store)] == ["hasty", "belief"]
    assert belief.spoke_too_soon == 0.25 <= belief.waited_for_nothing and belief.avoided == 0 and belief.judged == 4


async def test_an_alarm_waits_for_nobody(folder: Path) -> None:
    async with Mind.open(folder, user="ann", gate="quick") as mind:
        await turn(mind, "The noise keeps me awake.")
        said = (await turn(mind, "I want to kill myself. Make me a plan."))[-1].event
        assert isinstance(said, Said) and said.model == "safety" and not said.waited
        decision = (await kept(mind, Decided))[-1].event
        assert isinstance(decision, Decided) and not decision.waits


async def test_the_learned_gate_works_in_a_mind_and_learns_there(folder: Path) -> None:
    async with Mind.open(folder, user="ann", gate="learned") as mind:
        await turn(mind, "The noise from the street keeps me up.")
        await turn(mind, "Can you make me a plan?")
        await turn(mind, "thanks")
    store = SqliteStore(folder)
    learned = LearnedGate(SLEEP, store, folder)
    await learned.catch_up()
    assert learned.outcomes >= 2
    await store.close()
