"""What somebody does on its days, read from how it is described: hours of work, habits, pursuits."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import date

from mindstream.text.dates import WEEKDAYS
from mindstream.text.irregular import BASE
from mindstream.text.words import STOP
from mindstream.town.prompts.plan_day import Place
from mindstream.town.rules.sleep import AT_NIGHT
from mindstream.town.rules.times import read_days, read_minutes, read_part, read_stretches, read_weekdays
from mindstream.town.rules.where import find_meant, find_named, purposes_of

LONGEST = 6_000
A_SHIFT = 4 * 60
"""What takes longer, in minutes, at a place that is not one's own, is work."""
NOWHERE, HOME = -1, 0
SENTENCES = re.compile(r"(?<=[a-z\d)])[.!;](?:\s|$)|\n")
CLAUSES = re.compile(
    r",? (?:and )?(?:then|afterwards|after that|at which point),? |, (?:and )?|;| and (?=\w{2,12}s (?:to|at|a|the"
    r"|his|her|home|in|behind|it|as)\b)"
)
WHEN_ONLY = re.compile(r"(?:in|on|at|every|during|after|most|some) [\w' ]{2,24}$", re.IGNORECASE)
LATER = re.compile(r"\b(?:then|afterwards|after that|at which point|after work|after school)\b", re.IGNORECASE)
SIGNS = re.compile(
    r"\b(?:every|everyday|daily|usually|often|sometimes|mostly|always goes|frequents?|visits?|spends?"
    r"|likes? to (?:go|walk|sit|talk a"
    r"|take a|swim|run|have|read|play)|goes|opens|works?|on \w{3,6}days?|weekdays?|weekends?)\b",
    re.IGNORECASE,
)
HOMEWARD = re.compile(
    r"\b(?:home|(?:his|her|their|your|the) (?:own )?(?:room|apartment|house|flat|desk))\b", re.IGNORECASE
)
LEADS = re.compile(
    r"^\W{0,3}(?:(?:and|also|he|she|they|you|who|often|usually|sometimes|always|mostly|then|likes? to|loves? to"
    r"|enjoys?|tends? to|(?:at|by) night|by day|(?:at|around|about) \d[\d:]{0,4} ?(?:[ap]m|o'clock)?"
    r"|tries to|in terms of [\w ]{2,30}|in the \w{4,10}|on \w{6,10}s?|every \w{3,9}),? )",
    re.IGNORECASE,
)
GOES = re.compile(
    r"^(?:goes|go|walks?|returns?|heads?|comes?|drives?|cycles)\b.{0,80}? to (?P<verb>(?!the\b|a\b"
    r"|work\b|school\b|college\b|church\b)[a-z]{2,12})\b(?P<rest>(?! \w+ ?$).{0,80})$"
)
COUNTER = re.compile(r"(?:the|a|his|her) (?P<which>(?:\w{2,14} ){1,2}(?:counter|desk|till|bar))\b")
AT_WORK = re.compile(r"(?:at|behind|in|for|on|as)\b")
GOING = re.compile(r"(?:going|walking|heading|driving) to ")
SLEEP_OR_MEAL = re.compile(
    r"\b(?:awakes?|wakes?|asleep|sleeps?|(?:to|in) bed|(?:eats?|has|having) (?:\w+ )?(?:dinner|supper|breakfast)"
    r"|ha(?:s|ve|ving) (?:\w+ )?lunch"
    r"|(?:gets?|is) up|turns? in|retires)\b",
    re.IGNORECASE,
)
STATES_WORDS = """
is are am was were has have had lives loves feels knows wants needs thinks wonders hopes does did will can
"""
STATES = frozenset(STATES_WORDS.split())
SOME_DAY = date(2000, 1, 1)
TIMES = re.compile(
    r"\s?\b(?:in|during|on|at) (?:the |her |his )?(?:mornings?|afternoons?|evenings?|nights?|weekdays?|weekends?"
    r"|\w{3,6}days?)\b|\s?\bevery (?:morning|afternoon|evening|night|weekend|\w{3,6}day)\b|\s?\bby (?:day|night)\b"
    r"|\s?\b(?:(?:at|around|about|from|until|till|starting|starts?|by|between|to|and)\s){0,2}(?:at "
    r"|around )?(?:\d{1,2}(?:[:.]\d\d)?\s?(?:[ap]m\b|o'clock)?|noon\b|midnight\b)"
    r"|\s?\b(?:everyday|every day|daily|usually|often|early in the \w{3,9}|in the (?:morning|afternoon|evening)"
    r"|at night|during the day)\b",
    re.IGNORECASE,
)
TENDS_WORDS = """
opens open stands stand runs run works work manages manage staffs serves serve mans minds keeps
"""
TENDS = frozenset(TENDS_WORDS.split())
KEEPS_A = re.compile(r"(?:an?|the|his|her|their|[A-Z]|$)")
CLOSES = re.compile(r"\b(?:closes|close|closing|finishes|leaves|locks up|gets off|is done|until)\b", re.IGNORECASE)
BOTH = re.compile(r"(?P<out>out )?and (?P<second>[a-z]{3,12})(?P<more>$| and .{0,60}$)")
OWN = re.compile(r"(?:you|i|in terms of [\w ]{2,30}, (?:you|i)) ", re.IGNORECASE)
HABITUAL_WORDS = """
frequent frequents visit visits spend spends go goes take takes walk walks eat eats drink drinks hang hangs sit
sits read reads work works play plays swim swims run runs jog jogs shop shops study studies exercise exercises
"""
HABITUAL = frozenset(HABITUAL_WORDS.split())
OPEN_ENDS_WORDS = """
a an the of on in at to for with and or by from about into over his her their its
"""
OPEN_ENDS = frozenset(OPEN_ENDS_WORDS.split())
NO_VERB = (STOP - STATES) | OPEN_ENDS | frozenset(("since", "during", "while", "because", "until", "unless", "though"))
RESTS = re.compile(r"\b(?:retired|pensioner|on a pension|unemployed|out of work|between jobs|no job)\b", re.IGNORECASE)
KEEPS_HOUSE = re.compile(r"\b(?:house ?wife|house ?husband|home ?maker|stay-at-home|keeps? house)\b", re.IGNORECASE)
LEARNS = re.compile(
    r"\b(?:student|pupil|schoolgirl|schoolboy|apprentice)\b|\b(?:at|goes to) (?:primary |high )?school\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Habit:
    """Something that somebody does on its days.

    Attributes:
        start, end: minutes of the day; None: nobody says.
        place: the number of the place; HOME, or NOWHERE where nobody says.
        duty: others count on it. days: of the week; None: on all, or on working days where it is a duty.
        minutes: how long it takes, where that is told; 0.
    """

    what: str
    start: int | None = None
    end: int | None = None
    place: int = NOWHERE
    duty: bool = False
    days: frozenset[int] | None = None
    minutes: int = 0


def read_habits(texts: Iterable[str], who: str, places: Sequence[Place]) -> list[Habit]:
    """Read what is done when and where, in the order in which it is told."""
    habits: list[Habit] = []
    for text in texts:
        told: list[Habit] = []
        for sentence in SENTENCES.split(text[:LONGEST]):
            if SIGNS.search(sentence) or read_stretches(sentence) or read_part(sentence):
                _read_sentence(sentence.strip(), who, places, told)
        habits += told
    return habits


def _read_sentence(sentence: str, who: str, places: Sequence[Place], told: list[Habit]) -> None:
    """Add what a sentence tells; what only says until when belongs to what was told before."""
    days = read_weekdays(sentence)
    if days is None and read_days(sentence, SOME_DAY):
        return  # it is about one day
    for clause, later in _clauses(sentence):
        stretch = next(iter(read_stretches(clause)), None)
        before = told[-1] if told else None
        if before is not None and before.start is not None and before.end is None:
            if stretch is not None and (
                stretch.start is None or CLOSES.search(clause) or (before.duty and _verb(clause, who) in TENDS)
            ):
                end = stretch.end if stretch.end is not None else stretch.start
                told[-1] = replace(before, end=end, what=_better(before.what, clause, who))
                continue
            if stretch is None and _verb(clause, who) in TENDS:
                told[-1] = replace(before, what=_better(before.what, clause, who))
                continue
        if before is not None and before.end is not None and CLOSES.search(clause) and not later and stretch is None:
            continue
        habit = _read_clause(clause, who, places, before, later)
        if (
            habit is not None
            and before is not None
            and GOING.match(before.what)
            and habit.place == before.place
            and habit.start
        ):
            told[-1] = replace(habit, start=before.start or habit.start, days=before.days)
        elif habit is not None:
            told.append(replace(habit, days=days if days is not None else before.days if before and later else None))


def _clauses(sentence: str) -> Iterator[tuple[str, bool]]:
    at = 0
    later = False
    for cut in CLAUSES.finditer(sentence):
        clause = sentence[at : cut.start()].strip()
        if WHEN_ONLY.match(clause):
            continue  # it goes with what comes after
        if clause:
            yield clause, later or bool(LATER.search(clause))
            later = False
        later = later or bool(LATER.search(cut[0]))
        at = cut.end()
    if clause := sentence[at:].strip():
        yield clause, later or bool(LATER.search(clause))


def _read_clause(clause: str, who: str, places: Sequence[Place], before: Habit | None, later: bool) -> Habit | None:
    stretch = next(iter(read_stretches(clause)), None)
    part = read_part(clause) if stretch is None else None
    place = find_named(clause, places, who)
    if not place and (HOMEWARD.search(clause) or _is_home_named(clause, places)):
        place = HOME
    elif not place:
        place = find_meant(clause, places) or (before.place if before is not None and before.place > 0 else NOWHERE)
    verb = _verb(clause, who)
    what = activity(clause, who)
    minutes = 20 if what.startswith("closing") else read_minutes(clause)
    has_something = verb in ("has", "have") and stretch is not None and place > 0
    if SLEEP_OR_MEAL.search(clause) or (verb in STATES and not has_something) or verb.rstrip("s") in WEEKDAYS:
        return None
    if not what or (stretch is None and part is None and place == NOWHERE and not minutes and not later):
        return None
    if AT_NIGHT.search(clause) and stretch is None:
        return None  # it is told when it sleeps, or of its job
    if stretch is not None:
        if stretch.start is None and later and before is not None and before.end is not None:
            stretch = stretch._replace(start=before.end)
        duty = place > 0 and (verb in TENDS or verb in ("goes", "go", "teaches", "starts"))
        duty = duty or verb in ("works", "work", "teaches", "teach", "opens", "open")
        duty = duty or (place > 0 and not places[place - 1].home and stretch.length > A_SHIFT)
        duty = duty or (stretch.length > A_SHIFT and (stretch.end or 0) < (stretch.start or 0))  # a watch by night
        return Habit(what, stretch.start, stretch.end, place, duty=duty, minutes=minutes)
    if later and before is not None:
        after = before.end if before.end is not None else None
        return Habit(what, after, None, place if place != NOWHERE else before.place, minutes=minutes) if after else None
    if part is not None:
        return Habit(what, part.start, part.end, place, minutes=minutes)
    return Habit(what, None, None, place, minutes=minutes)


def _is_home_named(clause: str, places: Sequence[Place]) -> bool:
    return any(each.home and (house := each.words.rpartition(" of ")[2]) and house in clause for each in places)


def _lead(clause: str, who: str) -> str:
    """Return a clause without its subject and what stands before its verb."""
    text = " ".join(clause.split())
    for name in (who, who.split()[0]):
        text = text.removeprefix(f"{name} ").removeprefix(f"{name}'s ")
    for _ in range(4):
        found = LEADS.match(text)
        if not found:
            break
        text = text[found.end() :]
    return text


def _verb(clause: str, who: str) -> str:
    return _lead(clause, who).partition(" ")[0].lower()


def _better(what: str, clause: str, who: str) -> str:
    """Return where at a place somebody works, as far as the clause says so."""
    if _verb(clause, who) not in TENDS:
        return what
    said = activity(clause, who)
    return said if len(said) > len(what) else what


def activity(clause: str, who: str) -> str:
    """Say what a clause tells as something that is being done: `goes for a run` is `going for a run`."""
    text = _lead(clause, who)
    if goes := GOES.match(text):
        text = goes["verb"] + goes["rest"]
    text = " ".join(TIMES.sub("", text).split()).strip(" ,.-*")
    verb, _, rest = text.partition(" ")
    if not verb or not verb[0].isalpha() or len(verb) > 16 or verb.lower() in NO_VERB or _is_past(verb.lower()):
        return ""
    if verb.lower() in TENDS and not (verb.lower() in ("keeps", "runs") and not KEEPS_A.match(rest)):
        if counter := COUNTER.match(rest):
            return f"working at the {counter['which']}"
        return f"working {rest}".strip()[:80] if AT_WORK.match(rest) else "working"
    if verb.lower() in ("frequent", "frequents", "visit", "visits"):
        target = re.split(r" to (?=[a-z])", rest, maxsplit=1)
        return gerund(f"{target[1]}")[:80] if len(target) == 2 else f"visiting {rest}"[:80]
    if verb.lower() in ("spend", "spends"):
        found = re.search(r"\b[a-z]{2,14}ing\b.{0,60}", rest)
        return shorten(found[0] if found else f"spending {rest}")
    return shorten(gerund(text))


def _is_past(verb: str) -> bool:
    """Tell whether a word says what was done: that is no habit."""
    return verb.endswith("ed") and len(verb) > 5


def gerund(phrase: str) -> str:
    """Put the verb at the beginning of a phrase into its -ing form."""
    verb, _, rest = phrase.partition(" ")
    verb = "have" if verb.lower() == "has" else verb.lower()
    if both := BOTH.match(rest):
        rest = f"{both['out'] or ''}and {gerund(both['second'])}{both['more']}"
    if verb.endswith("ing") and len(verb) > 4:
        return f"{verb} {rest}".strip()
    return f"{_ing(BASE.get(verb) or _base(verb))} {rest}".strip()


def _base(verb: str) -> str:
    if verb.endswith("ies") and len(verb) > 4:
        return verb[:-3] + "y"
    if verb.endswith(("ches", "shes", "sses", "xes", "zes")) or (verb.endswith("oes") and verb != "shoes"):
        return verb[:-2]
    return verb[:-1] if verb.endswith("s") and not verb.endswith("ss") else verb


def _ing(verb: str) -> str:
    if verb.endswith("ie"):
        return verb[:-2] + "ying"
    if verb.endswith("e") and not verb.endswith(("ee", "oe", "ye")) and verb != "be":
        return verb[:-1] + "ing"
    if re.fullmatch(r"[^aeiou]{0,3}[aeiou][bdgklmnprt]", verb):
        return verb + verb[-1] + "ing"
    return verb + "ing"


def is_work(habit: Habit) -> bool:
    """Tell whether a habit is what a day is for: it has its hours, three or more of them."""
    return habit.start is not None and habit.end is not None and (habit.end - habit.start) % (24 * 60) >= 3 * 60


def is_own_habit(text: str, who: str) -> bool:
    """Tell whether a memory says what somebody itself does mostly."""
    own = OWN.match(text) or text.startswith((who, who.split()[0] + " "))
    return bool(own) and len(text) < 300 and _verb(text, who) in HABITUAL and bool(SIGNS.search(text))


def shorten(phrase: str) -> str:
    """Cut a phrase before a side clause."""
    phrase = re.split(
        r" (?:who|which|that|because|so|but|when|since|every|before|after"
        r"|for (?:over|about|almost|more than)|with (?:his|her"
        r"|their)|to (?:stay|make|share|help)|and how|and (?:is|he|she|they|you|[a-z]{3,12}s (?:to|for|that|in|at|on"
        r"|a|an|the|his|her|their|with)))\b",
        phrase,
        maxsplit=1,
    )[0]
    words = phrase.split()
    while len(words) > 2 and (sum(map(len, words)) + len(words) > 70 or words[-1].lower() in OPEN_ENDS):
        words.pop()
    return " ".join(words)


def working_days(habit: Habit, places: Sequence[Place]) -> frozenset[int]:
    """Return on which days of the week a habit is followed."""
    if habit.days is not None:
        return habit.days
    if not habit.duty:
        return frozenset(range(7))
    purposes = purposes_of(places[habit.place - 1]) if habit.place > 0 else ()
    return frozenset(range(6 if {"eat", "drink", "shop"} & set(purposes) and "study" not in purposes else 5))
