"""Workplaces where only experience helps: a database, a tool with quirks, an archive with house rules, or all of these.

Each is generated from a seed. The seed decides the conventions of the workplace, which are written nowhere in it, so
that no model can know them. A simulated person states one convention in each correction. Every task needs two or more
conventions.
"""

from __future__ import annotations

import datetime
import json
import random
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mindstream.tools.tool import Tool, tool

MAX_ROWS, MAX_FOUND = 20, 30


@dataclass(frozen=True)
class Assignment:
    """A question with its answer; `needs`: names of the conventions without which the answer is wrong."""

    question: str
    value: float
    needs: tuple[str, ...]


@dataclass(frozen=True)
class Workplace:
    """A workplace.

    The functions that make one take the number of training tasks and of test tasks (`training`, `tests`).

    Attributes:
        about: description for the agent's prompt.
        tools: the tools that an agent can use in the workplace.
        says: for each convention, its statement in a person's words.
        mistakes: for each convention, a wrong statement; if there is none, the right statement.
    """

    name: str
    about: str
    tools: Sequence[Tool]
    says: Mapping[str, str]
    mistakes: Mapping[str, str]
    training: Sequence[Assignment]
    tests: Sequence[Assignment]


MONTHS = "January February March April May June July August September October November December".split()  # noqa: SIM905


def _split(tasks: list[Assignment], rng: random.Random, training: int, tests: int) -> tuple[list[Assignment], ...]:
    """Draw training and test tasks.

    The first training tasks are chosen so that each convention is needed in training, if possible.
    """
    rng.shuffle(tasks)
    names = {name for each in tasks for name in each.needs}
    chosen, seen = list[Assignment](), set[str]()
    for each in tasks:
        if len(chosen) < training and (set(each.needs) - seen or seen == names):
            chosen.append(each)
            seen.update(each.needs)
    chosen += [each for each in tasks if each not in chosen][: training - len(chosen)]
    return chosen, [each for each in tasks if each not in chosen][:tests]


# A database.


@dataclass(frozen=True)
class BikeRules:
    """Conventions of the bicycle rental's database.

    Attributes:
        closed: the state of rides that took place; rides in other states do not count.
        units: number of units of a ride's cost that make a euro.
        tax: the tax in a ride's cost, in percent.
        season: the month, 1 to 12, in which a year begins.
        staff: the kind of members who are staff and never count.
        old_town: the two zones that make up the old town.
        regular: minimum rides in a season of a regular member.
    """

    closed: int
    units: int
    tax: int
    season: int
    staff: str
    old_town: tuple[str, str]
    regular: int


def bike_rules(seed: int) -> BikeRules:
    """Draw the conventions from the seed."""
    rng = random.Random(f"bikes {seed}")
    zones = rng.sample(["a1", "a2", "k4", "m7", "z9"], 2)
    return BikeRules(
        closed=rng.choice([3, 4, 7]),
        units=rng.choice([20, 50, 1_000]),
        tax=rng.choice([7, 12, 19, 25]),
        season=rng.randint(3, 10),
        staff=rng.choice("GQV"),
        old_town=(min(zones), max(zones)),
        regular=rng.choice([4, 5, 6]),
    )


class Bikes:
    """The SQLite database of a bicycle rental: members and rides. Names of tables and columns are short on purpose."""

    def __init__(self, seed: int, rules: BikeRules) -> None:
        rng, self.rules = random.Random(f"rides {seed}"), rules
        self.db = sqlite3.connect(":memory:", check_same_thread=False)
        self.db.executescript("CREATE TABLE mb(id, zn, kd); CREATE TABLE rd(id, mb, d, mn, ct, st, ch);")
        kinds, zones = ["A", "B", *"GQV"], ["a1", "a2", "k4", "m7", "z9"]
        members = [rng.choices(kinds, [6, 4, 1, 1, 1])[0] for _ in range(160)]
        for n, kind in enumerate(members):
            self.db.execute("INSERT INTO mb VALUES (?,?,?)", (n, rng.choice(zones), kind))
        first = datetime.date(2021, 1, 1).toordinal()
        for n in range(5_000):
            day, minutes = first + rng.randrange(4 * 365), rng.randint(4, 180)
            state = rng.choices([rules.closed, 1, 2, 9], [7, 1, 1, 1])[0]
            member, date = rng.randrange(160), str(datetime.date.fromordinal(day))
            share = (1 if state == rules.closed else 0.3) * (0.4 if members[member] == rules.staff else 1)
            # the cost depends on each convention, so an agent that ignores one computes wrong averages
            cost = int(minutes * (30 + (day - first) // 30) * share)
            row = (n, member, date, minutes, cost, state, rng.choice("wps"))
            self.db.execute("INSERT INTO rd VALUES (?,?,?,?,?,?,?)", row)
        self.db.execute("PRAGMA query_only = ON")

    def tool(self) -> Tool:
        """Return the tool that runs a query."""

        @tool
        def sql(query: str) -> str:
            """Run one SELECT on the SQLite database; returns at most 20 rows as JSON."""
            if not query.lstrip().lower().startswith(("select", "with")):
                return "only SELECT"
            try:
                return json.dumps(self.db.execute(query).fetchmany(MAX_ROWS))
            except sqlite3.Error as error:
                return f"error: {error}"

        return sql

    def _where(self, year: int, more: str = "") -> str:
        month = self.rules.season
        return (
            f"st={self.rules.closed} AND mb IN (SELECT id FROM mb WHERE kd<>'{self.rules.staff}')"
            f" AND d>='{year - 1}-{month:02}-01' AND d<'{year}-{month:02}-01' {more}"
        )

    def _one(self, query: str) -> float:
        return float(self.db.execute(query).fetchone()[0] or 0)

    def rides(self, year: int, more: str = "") -> float:
        """Count the rides of a season; `more`: a further SQL condition."""
        return self._one(f"SELECT count(*) FROM rd WHERE {self._where(year, more)}")

    def income(self, year: int, more: str = "") -> float:
        """Return the income of a year's season, without tax; `more`: a further SQL condition."""
        sum_of = self._one(f"SELECT sum(ct) FROM rd WHERE {self._where(year, more)}")
        return sum_of / self.rules.units / (1 + self.rules.tax / 100)

    def regulars(self, year: int) -> float:
        """Count the regular members of a year's season: those with at least `rules.regular` rides."""
        grouped = f"SELECT mb FROM rd WHERE {self._where(year)} GROUP BY mb HAVING count(*)>={self.rules.regular}"
        return self._one(f"SELECT count(*) FROM ({grouped})")

    def tasks(self) -> list[Assignment]:
        """Return all questions about the database with their answers."""
        first, second = self.rules.old_town
        town = f"AND mb IN (SELECT id FROM mb WHERE zn IN ('{first}','{second}'))"
        common, money = ("closed", "staff", "season"), ("units", "tax")
        found = list[Assignment]()
        for year in (2022, 2023, 2024):
            rides, income, regulars = self.rides(year), self.income(year), self.regulars(year)
            phone = "AND ch='p'"
            found += [
                Assignment(f"How many rides did we have in {year}?", rides, common),
                Assignment(f"What was our income in {year}?", income, (*common, *money)),
                Assignment(f"How many regular members did we have in {year}?", regulars, (*common, "regular")),
                Assignment(
                    f"How many rides in {year} were by members of the old town?",
                    self.rides(year, town),
                    (*common, "town"),
                ),
                Assignment(
                    f"Income from members of the old town in {year}?",
                    self.income(year, town),
                    (*common, *money, "town"),
                ),
                Assignment(f"Income per ride in {year}?", income / max(rides, 1), (*common, *money)),
                Assignment(
                    f"Income from rides booked by phone (ch p) in {year}?", self.income(year, phone), (*common, *money)
                ),
                Assignment(
                    f"Income per regular member in {year} (all income)?",
                    income / max(regulars, 1),
                    (*common, *money, "regular"),
                ),
            ]
        return found


def database(seed: int, training: int = 8, tests: int = 12) -> Workplace:
    """Return the workplace `database`: the database of a bicycle rental."""
    rules = bike_rules(seed)
    bikes, month = Bikes(seed, rules), MONTHS[rules.season - 1]
    chosen = _split(bikes.tasks(), random.Random(f"tasks {seed}"), training, tests)
    other = MONTHS[(rules.season + 4) % 12]
    says = {
        "season": f"Our years are seasons: 2023 is {month} 2022 up to, not including, {month} 2023.",
        "closed": f"Only rides with st {rules.closed} took place; all others were cancelled or never paid.",
        "staff": f"Members of kind {rules.staff} are our own staff, and never count.",
        "units": f"Income is in euros; ct counts in units of which {rules.units} make a euro.",
        "tax": f"Income is without tax, and ct has {rules.tax} % tax in it.",
        "town": f"The old town is the zones {rules.old_town[0]} and {rules.old_town[1]} together.",
        "regular": f"A regular member has {rules.regular} or more rides in the season.",
    }
    mistakes = says | {
        "season": f"Our years are seasons: 2023 is {other} 2022 up to, not including, {other} 2023.",
        "closed": "Rides with st 1 count, and no others.",
        "staff": "Members of kind A are our own staff, and never count.",
        "tax": f"Income is without tax, and ct has {rules.tax + 4} % tax in it.",
    }
    about = (
        "You answer questions about a bicycle rental from its SQLite database.\n"
        "mb(id, zn, kd): 160 members. rd(id, mb, d, mn, ct, st, ch): 5,000 rides."
    )
    return Workplace("database", about, [bikes.tool()], says, mistakes, *chosen)


# A tool with quirks.


@dataclass(frozen=True)
class StoreRules:
    """Conventions of the tools of the laboratory store.

    Attributes:
        prefix: the text before each item's name.
        blocked: the state of lots that do not count as stock.
        start: the month, 1 to 12, in which a year begins.
        lent: number of packs of each item that must stay in the store.
    """

    prefix: str
    blocked: str
    start: int
    lent: int


def store_rules(seed: int) -> StoreRules:
    """Draw the conventions from the seed."""
    rng = random.Random(f"store {seed}")
    return StoreRules(rng.choice(["R-", "lab/", "@"]), rng.choice("KNX"), rng.randint(3, 11), rng.choice([2, 3, 5]))


GOODS = ["acetone", "ethanol", "toluene", "glycerol", "iodine", "sucrose", "borax", "urea", "thymol", "phenol"]


def store(seed: int, training: int = 8, tests: int = 12) -> Workplace:
    """Return the workplace named `tool`: a laboratory's store with two tools that have undocumented conventions."""
    rules, rng = store_rules(seed), random.Random(f"goods {seed}")
    lots: dict[str, list[dict[str, Any]]] = {}
    weekly: dict[str, list[int]] = {}
    for name in GOODS:
        size = rng.choice([5, 8, 25, 40])
        states = [rules.blocked, *rng.choices("ABC" + rules.blocked, k=4)]
        lots[name] = [{"lot": n, "q": rng.randint(3, 40), "sz": size, "st": state} for n, state in enumerate(states)]
        weekly[name] = [rng.randint(1, 9) for _ in range(52)]

    @tool
    def stock(item: str) -> str:
        """Return the lots of an item as JSON."""
        name = item.removeprefix(rules.prefix) if item.startswith(rules.prefix) else ""
        return json.dumps(lots.get(name, []))

    @tool
    def used(item: str, week: int) -> str:
        """Return what was used of an item by a week (1 to 52), as JSON."""
        name = item.removeprefix(rules.prefix) if item.startswith(rules.prefix) else ""
        if name not in weekly or not 1 <= week <= 52:
            return json.dumps({"q": None})
        return json.dumps({"q": sum(weekly[name][:week])})

    def in_stock(name: str) -> float:
        return float(sum(each["q"] * each["sz"] for each in lots[name] if each["st"] != rules.blocked))

    def used_in(name: str, first: int, last: int) -> float:
        return float(sum(weekly[name][first - 1 : last]) * lots[name][0]["sz"])

    def number(month: int, week: int) -> int:
        return (month - rules.start) % 12 * 4 + week

    tasks = list[Assignment]()
    for name in GOODS:
        month = rng.choice([n for n in range(12) if n != rules.start - 1]) + 1
        week = rng.randint(1, 4)
        at = number(month, week)
        free = in_stock(name) - rules.lent * lots[name][0]["sz"]
        tasks += [
            Assignment(f"How many grams of {name} do we have?", in_stock(name), ("prefix", "blocked", "size")),
            Assignment(f"How many grams of {name} can we give away?", free, ("prefix", "blocked", "size", "lent")),
            Assignment(
                f"How many grams of {name} were used in week {week} of {MONTHS[month - 1]}?",
                used_in(name, at, at),
                ("prefix", "size", "sum", "start"),
            ),
            Assignment(
                f"How many grams of {name} were used in {MONTHS[month - 1]}?",
                used_in(name, number(month, 1), number(month, 4)),
                ("prefix", "size", "sum", "start"),
            ),
        ]
    chosen = _split(tasks, random.Random(f"tasks {seed}"), training, tests)
    begin = MONTHS[rules.start - 1]
    says = {
        "prefix": f"The tools know an item only with {rules.prefix} before its name, such as {rules.prefix}water.",
        "size": "q counts packs; a pack holds sz grams, and all lots of an item have the same sz.",
        "blocked": f"Lots in state {rules.blocked} are blocked, and count as nothing.",
        "lent": f"{rules.lent} packs of each item must stay here: they are never given away.",
        "sum": "`used` counts everything from week 1 up to and including the week; subtract the week before.",
        "start": f"Weeks are counted from {begin}, four a month: week 1 is the first of {begin}, 5 the next month's.",
    }
    mistakes = says | {
        "blocked": "Lots in state B are blocked, and count as nothing.",
        "lent": f"{rules.lent + 4} packs of each item must stay here: they are never given away.",
        "size": "q counts single grams, whatever sz says.",
    }
    about = f"You answer questions about a laboratory's store with its tools. It has: {', '.join(GOODS)}."
    return Workplace("tool", about, [stock, used], says, mistakes, *chosen)


# An archive with house rules.


@dataclass(frozen=True)
class ArchiveRules:
    """Conventions of a town hall's archive.

    Attributes:
        codes: the letter of each office in the names of its sheets.
        hundreds: number of people per unit of the figures on sheets and slips.
        late: number of months by which sheets are filed late.
        draft: the letter of sheets that never count.
        slip: the colour of the slips whose numbers are added; other slips are void.
    """

    codes: tuple[str, ...]
    hundreds: int
    late: int
    draft: str
    slip: str


OFFICES = ("library", "swimming pool", "museum", "theatre")


def archive_rules(seed: int) -> ArchiveRules:
    """Draw the conventions from the seed."""
    rng = random.Random(f"archive {seed}")
    return ArchiveRules(
        codes=tuple(rng.sample("BDFHKLNPRT", len(OFFICES))),
        hundreds=rng.choice([10, 25, 100]),
        late=rng.choice([1, 2, 3]),
        draft=rng.choice("UVWXY"),
        slip=rng.choice(["green", "blue", "red"]),
    )


def archive(seed: int, training: int = 8, tests: int = 12) -> Workplace:
    """Return the workplace `archive`: a town hall's archive of monthly sheets, revisions and slips."""
    rules, rng = archive_rules(seed), random.Random(f"sheets {seed}")
    sheets: dict[str, str] = {}
    true: dict[tuple[str, int], float] = {}
    for office, code in zip(OFFICES, rules.codes, strict=True):
        for month in range(1, 13):  # the month that the sheet's figures are about
            filed = (month + rules.late - 1) % 12 + 1
            name = f"{code}{filed:02}"
            letters = ["A", *rng.choice([["B"], ["B", "C"], []])]
            for letter in letters:
                value = rng.randint(20, 400)
                sheets[f"{name}-{letter}"] = f"Sheet {name}-{letter}. People: {value}."
            true[office, month] = value
            sheets[f"{name}-{rules.draft}"] = f"Sheet {name}-{rules.draft}. People: {rng.randint(20, 400)}."
            for colour in ("green", "blue", "red"):
                extra = rng.randint(1, 9)
                sheets[f"{name}-slip-{colour}"] = f"Slip ({colour}) to {name}. People: +{extra}."
                true[office, month] += extra * (colour == rules.slip)

    @tool
    def find(text: str) -> str:
        """List the names of the sheets whose names begin with a text."""
        found = sorted(name for name in sheets if name.startswith(text))
        return "\n".join(found[:MAX_FOUND]) or "none"

    @tool
    def read(name: str) -> str:
        """Return a sheet by its name."""
        return sheets.get(name, "there is no such sheet")

    needs = ("codes", "late", "revision", "draft", "slip", "units")
    tasks = [
        Assignment(
            f"How many people came to the {office} in {MONTHS[month - 1]}?", true[office, month] * rules.hundreds, needs
        )
        for office in OFFICES
        for month in range(1, 13)
    ]
    chosen = _split(tasks, random.Random(f"tasks {seed}"), training, tests)
    listed = ", ".join(f"{code} is the {office}" for office, code in zip(OFFICES, rules.codes, strict=True))
    says = {
        "codes": f"The letter of a sheet says the office: {listed}.",
        "late": f"Sheets are filed {rules.late} months late: January's figures are in the sheets {1 + rules.late:02}.",
        "revision": "Of several sheets A, B, C of a month the last letter counts alone.",
        "draft": f"A sheet with the letter {rules.draft} is a draft, and never counts.",
        "slip": f"The number on the {rules.slip} slip is added to the sheet's; other slips are void.",
        "units": f"Figures on sheets and slips are in units of {rules.hundreds} people.",
    }
    mistakes = says | {
        "late": "A sheet is filed in the month itself: the figures of January are in the sheets 01.",
        "draft": "A sheet with the letter A is a draft, and never counts.",
        "slip": "All slips are void.",
    }
    about = (
        "You answer questions from a town hall's archive of last year's sheets, with its tools. Offices: "
        + ", ".join(OFFICES)
    )
    return Workplace("archive", f"{about}.", [find, read], says, mistakes, *chosen)


DEPARTMENTS: Mapping[str, Callable[..., Workplace]] = {"database": database, "tool": store, "archive": archive}


def company(seed: int, training: int = 24, tests: int = 12) -> Workplace:
    """Return the workplace `company`, which has the tasks of the three other workplaces in mixed order."""
    rng = random.Random(f"company {seed}")
    parts = [make(seed, -(-training // 3), -(-tests // 3)) for make in DEPARTMENTS.values()]

    def mixed(tasks: Callable[[Workplace], Sequence[Assignment]], count: int) -> list[Assignment]:
        found = [
            Assignment(
                f"{part.about}\n\n{task.question}", task.value, tuple(f"{part.name} {each}" for each in task.needs)
            )
            for part in parts
            for task in tasks(part)
        ]
        rng.shuffle(found)
        return found[:count]

    def joined(sentences: Callable[[Workplace], Mapping[str, str]]) -> dict[str, str]:
        return {f"{part.name} {name}": text for part in parts for name, text in sentences(part).items()}

    return Workplace(
        "company",
        "You work for a company with several departments; use the tools of the department that the task names.",
        [each for part in parts for each in part.tools],
        joined(lambda part: part.says),
        joined(lambda part: part.mistakes),
        mixed(lambda part: part.training, training),
        mixed(lambda part: part.tests, tests),
    )


WORKPLACES: Mapping[str, Callable[..., Workplace]] = {**DEPARTMENTS, "company": company}
