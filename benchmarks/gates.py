"""Gates on labelled situations: who waits when, who lets the Reasoner sleep, and what that costs.

    python benchmarks/gates.py --json [--turns 500] [--seeds 5]

Regret is the share of situations in which a gate waited for nothing or spoke too soon, by the labels of the sets
(tests/coach/unseen_*.tsv: nothing was trained on them; battery*.yaml: used for the rules and for training).
`learned` has learned from simulated turns that were logged in a store of its own and read back from its log: phrasings
of gate_turns.yaml, none of which stands in an unseen set; what came of a turn is its class's label, wrong in 5 % of the
turns. It is trained anew for each seed; the mean and the worst are printed. Control: with outcomes shuffled among the
turns it must not get better than by rule. dialogues: rules for models, each dialogue played with the Reasoner always
woken and with a gate that may leave it asleep: the same beliefs and plan must come of it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import JsonValue

from mindstream.coach.events import Judged
from mindstream.coach.gates.belief import BeliefGate
from mindstream.coach.gates.by_rules import ByRules
from mindstream.coach.gates.gate import Decision, Gate, Situation
from mindstream.coach.gates.learned import LearnedGate
from mindstream.coach.gates.outcomes import decision_event
from mindstream.coach.gates.quick import QuickGate
from mindstream.coach.packs.load import load
from mindstream.coach.packs.pack import Pack
from mindstream.log.events import Heard
from mindstream.memory.sqlite import SqliteStore
from mindstream.memory.store import Commit, Entry
from mindstream.minds.mind import Mind

HERE = Path(__file__).parent
BATTERIES = HERE.parent / "tests" / "coach"
NOISE = 0.05


@dataclass(frozen=True)
class Labelled:
    """A situation, and what is right in it."""

    situation: Situation
    waits: bool
    thinks: bool
    kind: str = ""


def battery(pack: Pack, path: Path) -> list[Labelled]:
    """Read a battery."""
    return [
        Labelled(
            Situation(
                row["text"], pack.phase(row["phase"]), row.get("known", {}), row.get("plan", False), row.get("said", "")
            ),
            row["waits"], row["thinks"], row["kind"],
        )
        for row in yaml.safe_load(path.read_text("utf-8"))
    ]  # fmt: skip


def situations(pack: Pack, path: Path) -> list[Labelled]:
    """Read situations one a line: kind, phase, known, plan, said, waits, thinks, text, between tabs."""
    found = []
    for line in path.read_text("utf-8").splitlines():
        kind, phase, known, plan, said, waits, thinks, text = line.split("\t")
        belief: dict[str, JsonValue] = {pack.phases[0].needs[0]: ["told before"]} if known == "1" else {}
        found.append(
            Labelled(Situation(text, pack.phase(phase), belief, plan == "1", said), waits == "1", thinks == "1", kind)
        )
    return found


def simulated(pack: Pack, turns: int, seed: int, chinese: float = 0.3) -> list[Labelled]:
    """Draw turns from the phrasings: classes in turn, so that waiting is about as common as in the batteries."""
    source = yaml.safe_load((HERE / "gate_turns.yaml").read_text("utf-8"))
    chance, drawn = random.Random(seed), []
    for _ in range(turns):
        kind = chance.choices(source["classes"], [len(each["en"]) for each in source["classes"]])[0]
        language = "zh" if chance.random() < chinese else "en"
        text = chance.choice(kind[language])
        for gap, options in source["fill"][language].items():
            text = text.replace("{" + gap + "}", chance.choice(options))
        phase = pack.phase(chance.choice(kind["phases"]))
        known: dict[str, JsonValue] = (
            {} if kind.get("bare") or phase is pack.phases[0] else {pack.phases[0].needs[0]: ["told before"]}
        )
        said = kind.get("said", {}).get(language, "")
        situation = Situation(text[0].upper() + text[1:], phase, known, kind.get("plan", False), said)
        drawn.append(Labelled(situation, kind["waits"], kind["thinks"]))
    return drawn


async def logged(folder: Path, pack: Pack, turns: Sequence[Labelled], seed: int, shuffled: bool = False) -> SqliteStore:
    """Write turns and what came of them into a log, as a mind would have."""
    store, chance = SqliteStore(folder), random.Random(f"outcomes {seed}")
    outcomes = [(turn.waits, turn.thinks) for turn in turns]
    outcomes = [(not waits, thinks) if chance.random() < NOISE else (waits, thinks) for waits, thinks in outcomes]
    if shuffled:
        chance.shuffle(outcomes)
    for turn, (needed, changed) in zip(turns, outcomes, strict=True):
        heard = Entry(Heard(text=turn.situation.text, session="s", record=""), "user")
        seq = (await store.commit(Commit(mind="user", at=0.0, entries=(heard,))))[0].seq
        decision = decision_event(Decision(False), "quick", turn.situation, pack, seq)
        outcome = Judged(about=seq, needed=needed, changed=changed)
        await store.commit(Commit(mind="user", at=0.0, entries=(Entry(decision, "gate"), Entry(outcome, "gate"))))
    return store


def regret(gate: Gate, situations: Sequence[Labelled]) -> dict[str, float]:
    """Return a gate's regret by the labels, in its two parts, and how it did on whether to think."""
    found = [(gate.decide(each.situation), each) for each in situations]
    nothing = sum(decision.waits and not each.waits for decision, each in found)
    soon = sum(each.waits and not decision.waits for decision, each in found)
    slept = sum(not decision.thinks and each.thinks for decision, each in found)
    spared = sum(not decision.thinks and not each.thinks for decision, each in found)
    count, needless = len(found), sum(not each.thinks for each in situations)
    return {
        "regret": round((nothing + soon) / count, 4),
        "waited_for_nothing": round(nothing / count, 4),
        "spoke_too_soon": round(soon / count, 4),
        "wait_rate": round(sum(decision.waits for decision, _ in found) / count, 4),
        "needless_calls_avoided": round(spared / needless, 4) if needless else 0.0,
        "needed_calls_missed": round(slept / (count - needless), 4) if count > needless else 0.0,
    }


async def trained(pack: Pack, turns: int, seed: int, shuffled: bool = False) -> tuple[LearnedGate, float]:
    """Return a gate that has learned from a log, and how long one outcome took it, in ms."""
    with tempfile.TemporaryDirectory() as folder:
        store = await logged(Path(folder), pack, simulated(pack, turns, seed), seed, shuffled)
        gate, begun = LearnedGate(pack, store), time.perf_counter()
        await gate.catch_up()
        each_ms = (time.perf_counter() - begun) * 1000 / max(1, turns)
        await store.close()
    gate.stop_learning()
    return gate, each_ms


async def learned(pack: Pack, sets: dict[str, list[Labelled]], turns: int, seeds: int) -> dict[str, Any]:
    """Measure the learned gate at several numbers of turns, and the control."""
    table: dict[str, Any] = {}
    for count in sorted({0, 50, 200, turns}):
        gates = [await trained(pack, count, seed) for seed in range(seeds if count else 1)]
        table[f"after_{count}_turns"] = {
            name: {
                "regret_mean": round(statistics.fmean(found := [regret(g, each)["regret"] for g, _ in gates]), 4),
                "regret_worst": max(found),
            }
            for name, each in sets.items()
        }
        table["ms_per_outcome"] = round(statistics.fmean(ms for _, ms in gates), 3)
    control = [(await trained(pack, turns, seed, shuffled=True))[0] for seed in range(seeds)]
    table["control_shuffled_outcomes"] = {
        name: round(statistics.fmean(regret(g, each)["regret"] for g in control), 4) for name, each in sets.items()
    }
    return table


class RulesAlone(ByRules):
    """What the quick gate's rules would do without its classifier."""

    name = "rules alone"

    async def weigh(self, situation: Situation) -> Decision:
        return self.decide(situation)


class Thinking:
    """A gate that decides about waiting as another does, and always wakes the Reasoner."""

    name = "thinking"

    def __init__(self, inner: Gate) -> None:
        self._inner = inner

    def decide(self, situation: Situation) -> Decision:
        return replace(self._inner.decide(situation), thinks=True)

    async def weigh(self, situation: Situation) -> Decision:
        return self.decide(situation)


def dialogues(pack: Pack, count: int, seed: int) -> list[list[str]]:
    """Draw dialogues of twelve utterances; a third of them keep the talk going only."""
    chance = random.Random(seed)
    turns = [each for each in simulated(pack, count * 12, seed, chinese=0.0) if not each.situation.said]
    told = [each.situation.text for each in turns if each.thinks]
    idle = [each.situation.text for each in turns if not each.thinks]
    return [[chance.choice(idle if chance.random() < 0.33 else told) for _ in range(12)] for _ in range(count)]


async def played(pack: Pack, gate: Gate, talk: Sequence[str]) -> tuple[Any, int]:
    """Play a dialogue with rules; return the belief and the plan that came of it, and the belief reasoner's runs."""
    with tempfile.TemporaryDirectory() as folder:
        async with Mind.open(folder, pack=pack, user="ann", gate=gate) as mind:
            for text in talk:
                async for _ in mind.hear(text):
                    pass
                await mind.settled()
            rows = await mind.stream.store.events("ann", kinds=["thought"], limit=10_000)
            runs = sum(getattr(row.event, "slot", "") == pack.name for row in rows)
            steps = [(step.source, step.state) for step in mind.plan.steps]
            return (mind.belief.value.model_dump(mode="json"), steps), runs


async def avoided(pack: Pack, count: int) -> dict[str, Any]:
    """Compare belief and plan with and without skipping, dialogue by dialogue."""
    quick, same, runs, fewer = QuickGate(pack), 0, 0, 0
    for talk in dialogues(pack, count, seed=3):
        full, with_all = await played(pack, Thinking(quick), talk)
        spared, with_some = await played(pack, quick, talk)
        same, runs, fewer = same + (full == spared), runs + with_all, fewer + with_some
    return {
        "dialogues": count, "same_belief_and_plan": round(same / count, 4),
        "reasoner_runs": runs, "reasoner_runs_when_skipping": fewer, "avoided": round(1 - fewer / runs, 4),
    }  # fmt: skip


async def measured(turns: int, seeds: int, talks: int) -> dict[str, Any]:
    pack = load("sleep")
    sets = {path.stem: situations(pack, path) for path in sorted(BATTERIES.glob("unseen_*.tsv"))}
    sets |= {path.stem: battery(pack, path) for path in sorted(BATTERIES.glob("battery*.yaml"))}
    fixed: dict[str, Gate] = {
        "belief": BeliefGate(),
        "quick": QuickGate(pack),
        "rules_alone": RulesAlone(pack),
    }
    found: dict[str, Any] = {
        name: {where: regret(gate, each) for where, each in sets.items()} for name, gate in fixed.items()
    }
    found["learned"] = await learned(pack, sets, turns, seeds)
    found["dialogues"] = await avoided(pack, talks)
    quick, begun = QuickGate(pack), time.perf_counter()
    several = [each.situation for each in sets["battery"]]
    for situation in several:
        quick.decide(situation)
    found["quick_ms_per_decision"] = round((time.perf_counter() - begun) * 1000 / len(several), 3)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--turns", type=int, default=500)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--talks", type=int, default=20)
    given = parser.parse_args()
    found = asyncio.run(measured(given.turns, given.seeds, given.talks))
    print(json.dumps(found) if given.json else yaml.safe_dump(found, sort_keys=False, allow_unicode=True))


if __name__ == "__main__":
    main()
