"""Simulate a month of one mind with a manual clock: are facts kept or archived as the decay rules predict?

    python benchmarks/month.py --json [--plot month.svg] [--days 30] [--seed 1] [--drawn 60]

Every day two facts are noted, and the mind observes ten events. Some facts are asked about at growing intervals, some
every third day, the others never again. At night the mind sleeps. No model is called: only the settings of the decay
rules (memory/forgetting_curve) decide which records are kept.

The prediction is made each evening: from the rules and each record's level it follows how many records this night will
archive. `z`: the difference between archived and predicted records in standard deviations.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import math
import tempfile
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np

from mindstream import ManualClock, SqliteStore, chance
from mindstream.cli.shell.output import Axes, fitting_top, picture
from mindstream.clock import DAY_S, HOUR_S
from mindstream.memory.forgetting_curve import DECAY, Strength
from mindstream.memory.memory import Memory
from mindstream.memory.store.columns import OPEN
from mindstream.memory.store.record import FADING, KINDS
from mindstream.models.embedders.embedder import WordLlama
from mindstream.models.rules import Rules

LAWS = Strength()
OLD_DAYS = 20
RETURNED = 5
"""Number of records that a recall returns."""
GROWING, REGULAR = (1, 2, 4, 8, 13, 24), tuple(range(3, 60, 3))
"""Days after a fact was noted on which it is asked about."""
FACTS = (
    "My sister plays the cello.",
    "My uncle built a canoe.",
    "My neighbour keeps bees.",
    "I own a telescope.",
    "We planted a walnut tree.",
    "My aunt sews curtains.",
    "I broke my ankle in March.",
    "My boss collects stamps.",
    "I grew up in Bergen.",
    "My cousin repairs motorbikes.",
    "Our parrot speaks Dutch.",
    "I teach chess on Mondays.",
    "My brother sails to Malta.",
    "My wife bakes rye bread.",
    "I throw pottery at the weekend.",
    "Our tortoise is called Ida.",
    "I sold my bookshop.",
    "My son practises the drums.",
    "My father owned a vineyard.",
    "I failed my driving test twice.",
    "My daughter studies geology.",
    "I am afraid of lifts.",
    "We rented a lighthouse.",
    "My grandmother wove carpets.",
    "I write letters by typewriter.",
    "My flatmate snores.",
    "I pick apples every October.",
    "My nephew learns the trombone.",
    "I feed the fish before breakfast.",
    "My dentist moved to Oslo.",
    "I cannot eat walnuts.",
    "My piano is out of tune.",
    "We have a sauna in the cellar.",
    "My ferret bites strangers.",
    "I ride a tandem with Tom.",
    "My mother was a pilot.",
    "I paint only in blue.",
    "My first job was in a circus.",
    "I lost my passport in Lima.",
    "My knees hurt when it snows.",
    "I wear my grandfather's watch.",
    "My brother-in-law brews cider.",
    "I once met a king.",
    "My roof leaks over the stairs.",
    "I read maps for pleasure.",
    "My goat won a prize.",
    "I swim in the canal in winter.",
    "My camera takes square pictures.",
    "I was born during an eclipse.",
    "My scooter has no brakes.",
    "I speak to my roses.",
    "My accountant plays the harp.",
    "I sleep in a hammock in July.",
    "My cat hides my keys.",
    "I owe Peter forty euros.",
    "My garden floods each spring.",
    "I keep an anvil in the hall.",
    "My twin lives in Peru.",
    "I dream in French.",
    "My bicycle was stolen in Ghent.",
)  # fmt: skip
ASKED: dict[int, tuple[str, str]] = {
    0: ("growing", "Who plays the cello?"), 1: ("regular", "Who built a canoe?"),
    2: ("growing", "What about the bees?"), 3: ("regular", "Where is the telescope?"),
    4: ("growing", "Who planted the walnut tree?"), 5: ("regular", "Who sews curtains?"),
    6: ("growing", "How is the ankle?"), 7: ("regular", "Who collects stamps?"),
}  # fmt: skip
"""Which facts are rehearsed, and by which question."""
SEEN = (
    "the bus",
    "a dog",
    "the postman",
    "a neighbour",
    "the radio",
    "a child",
    "the lift",
    "a cyclist",
    "the heating",
)
DID = ("was late", "passed by", "made a noise", "stopped at the corner", "was silent", "turned around", "was repaired")
WHERE = ("in the rain", "before noon", "near the bridge", "on the stairs", "at the station", "behind the school")


@dataclass
class Life:
    """One record's month: its level at the end of each day, -1 from when it was archived.

    Attributes:
        risks: for each night, the probability of being archived, computed in the evening by the decay rules.
    """

    id: str
    group: str
    born: int
    levels: list[int] = field(default_factory=list)
    risks: list[float] = field(default_factory=list)
    lasting: bool = False


class Month:
    """The simulation."""

    def __init__(self, folder: str, days: int, seed: int, drawn: int) -> None:
        self.store, self.clock = SqliteStore(folder), ManualClock(1_700_000_000.0 // DAY_S * DAY_S)
        self.embedder, self.days, self.seed, self.drawn = WordLlama(), days, seed, drawn
        self.lives: dict[str, Life] = {}
        self.day = 0
        self.dreams: list[str] = []

    async def run(self) -> None:
        while self.day < self.days:
            await self.live_a_day()
            self.day += 1
        await self.store.close()

    def questions_today(self) -> list[str]:
        """Return today's questions."""
        after = {number: self.day - number // 2 for number in ASKED}
        due = {"growing": GROWING, "regular": REGULAR}
        return [question for number, (group, question) in ASKED.items() if after[number] in due[group]]

    async def live_a_day(self) -> None:
        self.clock.advance(9 * HOUR_S)
        async with Memory(self.store, f"ann {self.seed}", self.embedder, self.clock, strength=DECAY) as stream:
            for number in (2 * self.day, 2 * self.day + 1):
                await stream.retain(FACTS[number % len(FACTS)], "note")
                self.clock.advance(0.05 * HOUR_S)
            for number in range(10):
                key = (self.seed, "seen", self.day, number)
                text = f"{chance.pick(SEEN, *key, 0)} {chance.pick(DID, *key, 1)} {chance.pick(WHERE, *key, 2)}"
                await stream.retain(f"{text}, day {self.day + 1}", "observation", importance=3)
                self.clock.advance(0.25 * HOUR_S)
            for question in self.questions_today():
                await stream.recall(question, RETURNED)
                self.clock.advance(0.05 * HOUR_S)
            await stream.settle()
            await self.take_in(stream)
            self.clock.advance(11 * HOUR_S)
            await self.sleep(stream)
            self.clock.advance((self.day + 1) * DAY_S - (self.clock.now() - 1_700_000_000.0 // DAY_S * DAY_S))

    async def take_in(self, stream: Memory) -> None:
        """Add the records written since the last call."""
        columns = await stream.columns()
        for at, id_ in enumerate(columns.ids):
            kind = KINDS[columns.kind.values[at]]
            if kind in FADING and id_ not in self.lives:
                group = (
                    self.group((await stream.store.records(stream.key, [id_]))[0].text)
                    if kind == "note"
                    else f"{kind}s"
                )
                self.lives[id_] = Life(id_, group, self.day)

    def group(self, text: str) -> str:
        said = (group for number, (group, _) in ASKED.items() if FACTS[number].rstrip(".") in text)
        return next(said, "told once")

    async def sleep(self, stream: Memory) -> None:
        """Predict the night, sleep, and store each record's level afterwards."""
        columns, now = await stream.columns(), self.clock.now()
        there = np.isin(columns.kind.values, [code for code, kind in enumerate(KINDS) if kind in FADING])
        there &= (columns.forgotten.values == OPEN) & (columns.valid_until.values > now)
        drawn = min(1.0, self.drawn / max(1, int(there.sum())))
        weak = there & (columns.level.values == 0) & (now - columns.accessed.values > LAWS.asleep_s)
        for life in self.lives.values():
            life.risks.append(drawn if weak[columns.position[life.id]] else 0.0)
        self.dreams += [dream] if (dream := await stream.sleep(Rules(), self.drawn)) else []
        await self.take_in(stream)
        columns = await stream.columns()
        for life in self.lives.values():
            at = columns.position[life.id]
            life.levels.append(-1 if columns.forgotten.values[at] < OPEN else int(columns.level.values[at]))
            life.lasting = bool(columns.lasting.values[at])
            life.risks += [0.0] * (len(life.levels) - len(life.risks))


def summary(month: Month) -> dict[str, Any]:
    """Return the results of the month."""
    groups = {}
    for name in dict.fromkeys(life.group for life in month.lives.values()):
        lives = [life for life in month.lives.values() if life.group == name]
        groups[name] = {
            "records": len(lives),
            "kept": sum(life.levels[-1] != -1 for life in lives),
            "predicted": round(len(lives) - sum(sum(life.risks) for life in lives), 1),
            "lasting": sum(life.lasting for life in lives),
            "mean_level": round(
                float(np.mean([level for life in lives if (level := life.levels[-1] or 0) >= 0] or [0])), 2
            ),
        }
    risks = [risk for life in month.lives.values() for risk in life.risks]
    old = [life for life in month.lives.values() if month.days - life.born >= OLD_DAYS]
    forgotten = sum(life.levels[-1] == -1 for life in month.lives.values())
    expected, spread = sum(risks), math.sqrt(sum(risk * (1 - risk) for risk in risks))
    return {
        "days": month.days,
        "records": len(month.lives),
        "forgotten": forgotten,
        "predicted": round(expected, 1),
        "sd": round(spread, 1),
        "z": round((forgotten - expected) / max(spread, 1e-9), 2),
        "groups": groups,
        f"older_than_{OLD_DAYS}_days": {
            "never_returned": kept([life for life in old if max(life.levels) <= 0]),
            "returned": kept([life for life in old if 0 < max(life.levels) < LAWS.lasting_level]),
            "lasting": kept([life for life in old if max(life.levels) == LAWS.lasting_level]),
        },
        "dreams": len(month.dreams),
        "last_dream": month.dreams[-1] if month.dreams else "",
    }


def kept(lives: list[Life]) -> dict[str, int]:
    return {"records": len(lives), "kept": sum(life.levels[-1] >= 0 for life in lives)}


def draw_chart(month: Month) -> str:
    """Draw the share of records archived by each day, the prediction, and the levels of each group."""
    lives, days = list(month.lives.values()), range(month.days)
    groups = {name: [life for life in lives if life.group == name] for name in dict.fromkeys(x.group for x in lives)}
    gone = [sum(life.levels[day - life.born] == -1 for life in lives if day >= life.born) / len(lives) for day in days]
    risks = [sum(life.risks[day - life.born] for life in lives if day >= life.born) / len(lives) for day in days]
    held = {name: [_share_held(group, day) for day in days] for name, group in groups.items()}
    forgotten = {"observed": gone, "predicted by the laws": list(accumulate(risks))}
    return picture({
        "forgotten so far, of all records": (forgotten, Axes(month.days - 1, "day", top=fitting_top(gone))),
        "held, of those written so far": (held, Axes(month.days - 1, "day")),
    })  # fmt: skip


def _share_held(group: list[Life], day: int) -> float:
    there = [life.levels[day - life.born] != -1 for life in group if day >= life.born]
    return sum(there) / len(there) if there else 1.0


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--drawn", type=int, default=60, help="number of records drawn per night")
    parser.add_argument("--plot", type=Path, help="write the month to this SVG file")
    parser.add_argument("--json", action="store_true", help="accepted for uniformity; the output is always JSON")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        month = Month(folder, asked.days, asked.seed, asked.drawn)
        asyncio.run(month.run())
    result = summary(month)
    if asked.plot:
        asked.plot.write_text(draw_chart(month), "utf-8")
    print(json.dumps(result, indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main()
