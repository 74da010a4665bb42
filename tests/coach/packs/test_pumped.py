"""No attack text makes a pattern or a parser slow: each gets 32 kB made for it.

Linear work takes some milliseconds, quadratic work seconds, and exponential work does not end. The bounds are far from
both.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import pkgutil
import random
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from keys import key_of
from pumping import SIZE, attacks, pumped, seconds, words

import mindstream
from mindstream import Coach
from mindstream.coach.packs import safety
from mindstream.coach.packs.load import SHIPPED, load, shipped_packs
from mindstream.coach.packs.pack import all_texts, topics_in
from mindstream.coach.packs.safety import parts
from mindstream.errors import PackError, ToolError
from mindstream.memory.curation import audit
from mindstream.memory.recall.ranking import understood
from mindstream.memory.store.columns import Columns
from mindstream.minds.mind import Mind
from mindstream.models.model import estimate_tokens
from mindstream.text import dates
from mindstream.text.classifier import views
from mindstream.text.pattern import pattern
from mindstream.text.words import sentences, terms
from mindstream.tools.calculator import read_formulas

SLEEP = load("sleep")
HANGS = "hahahahahahahahahahahahahahahahahahahahahahahahahahaha, I still cannot sleep"
HALF = SIZE // 2
QUADRATIC_S = 0.2
"""Lower bound in seconds for work that scans half a text again from each position; linear work takes 0.005."""
MATCHED_AT_POSITION = {
    "mindstream.coach.handover.BARE",
    "mindstream.models.reply.BRACKET",
    "mindstream.text.times.RULE",
    *(f"mindstream.planning.formats.read.{name}" for name in ("NAMED", "ALONE", "THOUGHT", "TABLE_ROW", "ACTION")),
    "mindstream.models.providers.tool_calls.PYTHON",
    *(f"mindstream.planning.formats.rewoo.{name}" for name in ("KEY", "_CLOSING")),
    *(f"mindstream.planning.formats.rewoo.{name}" for name in ("NUMBERED", "OTHER_HEAD", "ESCAPED_HEAD")),
    *(f"mindstream.text.links.{name}" for name in ("_NO_LINK", "_DEFINITION")),
    "mindstream.models.providers.address._PREFIX",
    *(f"mindstream.tools.{name}" for name in ("call._ADDRESS", "documents.ITEM")),
}
"""Patterns that are matched at the current position instead of searched."""
SHORT_TEXT_MODULES = tuple(f"mindstream.{name}." for name in ("tools.calculator",))
"""Modules that search only in short texts, even if the whole text is long: their parsers are tested below."""
MOST = 4.0
"""Maximum time of a reader here, in seconds: non-linear ones take minutes; on an idle machine a twentieth is enough."""


def shipped_patterns() -> Iterator[tuple[str, str]]:
    for name in shipped_packs():
        for alarm in load(name).alarms:
            for part in (alarm.patterns, alarm.hints, alarm.unless):
                yield from ((f"{name}: {alarm.id}", source) for each in part.values() for source in each)


def compiled(value: object, name: str, depth: int = 0) -> Iterator[tuple[str, re.Pattern[str]]]:
    """Find the patterns in a module's name, in lists and mappings too."""
    if isinstance(value, re.Pattern) and isinstance(value.pattern, str):
        yield name, value
    elif isinstance(value, list | tuple | dict) and depth < 4:
        for inner in value.values() if isinstance(value, dict) else value:
            yield from compiled(inner, name, depth + 1)


OPTIONAL = {
    "crewai",
    "google.adk",
    "langchain_core",
    "langgraph",
    "livekit",
    "llama_index",
    "pipecat",
    "psycopg",
}


def own_patterns() -> dict[tuple[str, int], tuple[str, re.Pattern[str]]]:
    found = {}
    for module in pkgutil.walk_packages(mindstream.__path__, "mindstream."):
        if not module.name.endswith("__main__"):
            for name, value in vars(imported(module.name)).items():
                for where, each in compiled(value, f"{module.name}.{name}"):
                    found[each.pattern, each.flags] = where, each
    return found


def imported(name: str) -> object:
    """Import a module; return no names if its driver is not installed."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name not in OPTIONAL:
            raise
        return SimpleNamespace()


def is_slow(function: Callable[[], object]) -> bool:
    """Return whether it takes too long in each of three runs; a single slow run may be a garbage collection."""
    return all(seconds(function, QUADRATIC_S) >= QUADRATIC_S for _ in range(3))


def test_no_pattern_of_the_shipped_packs_is_slow_on_repeated_words() -> None:
    slow = []
    for where, source in shipped_patterns():
        read, own = pattern(source), words(source)
        mixed = random.Random(1).choices(own or ["a"], k=SIZE // 60) * 10
        for text in (pumped(own[0] if own else "a"), " ".join(mixed)[:SIZE] + "!"):
            if is_slow(lambda read=read, text=text: read.matches(text)):  # type: ignore[misc]
                slow.append((where, text[:30]))
    assert slow == []


@pytest.mark.slow
def test_no_pattern_of_the_package_is_slow_on_attack_texts() -> None:
    found = own_patterns()
    assert len(found) > 80
    slow = []
    for where, each in found.values():
        for text in () if where.startswith(SHORT_TEXT_MODULES) else attacks(each.pattern, HALF):
            find = each.match if where in MATCHED_AT_POSITION else lambda text, each=each: list(each.finditer(text))
            if is_slow(lambda find=find, text=text: find(text)):  # type: ignore[misc]
                slow.append((where, text[:20]))
                break
    assert slow == []


def texts_without_repeats() -> list[str]:
    """Return texts without repeated parts."""
    chance = random.Random(7)
    letters = ["".join(chance.choices("abcdefghijklmnopqrstuvwxyz", k=7)) for _ in range(SIZE // 8)]
    named = [word for topic in SLEEP.topics for word in all_texts(topic.words)]
    days = [f"{day} {month} {year}" for year in range(1950, 2023) for month in ("May", "July") for day in range(1, 29)]
    texts = [
        " ".join(letters), ". ".join(letters), ";".join(f"I {n}" for n in range(SIZE // 6)),
        ". ".join(f"{n}" for n in range(SIZE // 6)), " ".join(named), ", ".join(named), "".join(named),
        "".join(chr(chance.randrange(0x4E00, 0x9FFF)) for _ in range(SIZE // 3)), ", ".join(days),
        "\n".join(f"I agree, I see {n}" for n in range(SIZE // 18)),
    ]  # fmt: skip
    return [text.encode()[:SIZE].decode(errors="ignore") for text in texts]


ATTACKS = [
    *map(pumped, [
        "ha", "haha ", "1", "; ", "a", " ", ",", "I ", "not ", "last monday ", "two weeks before the ", "十", "我",
        "what is the ", "sleep sleeep slep ", "i'm i've my me ", "，", "\u200b", "?!", "my mother my father my ", "12:",
    ]),
    *texts_without_repeats(), HANGS,
]  # fmt: skip


def read_formula(text: str) -> None:
    with contextlib.suppress(ToolError):
        read_formulas(text)


READERS: dict[str, Callable[[str], object]] = {
    "topics": lambda text: topics_in(SLEEP, text),
    "question": lambda text: understood(text, Columns(key_of("x")), 1_700_000_000),
    "dates": lambda text: dates.spans(text, 1_700_000_000),
    "views": lambda text: views(f"{random.random()} {text}"),
    "formula": read_formula,
    "junk": audit._junk,
    "sentences": sentences,
    "parts": lambda text: list(parts(text)),
    "terms": lambda text: (terms(text), estimate_tokens(text)),
    "alarm patterns": lambda text: safety._matching(SLEEP, text),
    "hints": lambda text: safety._hinted(SLEEP, text),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name == "hints" else []) for name in READERS]
)
def test_no_attack_text_makes_a_parser_slow(name: str) -> None:
    reader = READERS[name]
    reader("what is read once before")
    assert [text[:30] for text in ATTACKS if seconds(lambda text=text: reader(text), MOST) >= MOST] == []  # type: ignore[misc]


@pytest.mark.parametrize("place", [0, 15_000, 31_000])
@pytest.mark.parametrize("danger", ["I want to kill myself.", "我想自杀。"])
def test_an_alarm_is_detected_anywhere_in_a_long_text(place: int, danger: str) -> None:
    text = pumped("The day was long and the tea was cold. ")
    alarm = safety.find_alarm(SLEEP, f"{text[:place]} {danger} {text[place:]}")
    assert alarm is not None and alarm.stops


async def test_a_long_text_does_not_block_the_event_loop(tmp_path: Path) -> None:
    """The alarms take a second in a thread; the event loop, timed by its own work, continues."""
    longest = 0.0

    async def ticking() -> None:
        nonlocal longest
        last = time.thread_time()
        while True:
            await asyncio.sleep(0.001)
            longest, last = max(longest, (now := time.thread_time()) - last), now

    async with Mind.open(tmp_path, responder=Coach.using(gate="belief")) as mind:
        async for _ in mind.hear("hello"):
            pass
        task = asyncio.create_task(ticking())
        async for _ in mind.hear(texts_without_repeats()[1]):
            pass
        await mind.settled()
        task.cancel()
    assert longest < MOST


EVIL = r"""
- id: evil
  patterns: {en: ['(a+)+$', '(a|aa)+b', '^(([a-z])+.)+[A-Z]([a-z])+$', '(\w+\s?)*$']}
  unless: {en: ['(x+x+)+y', 'a']}
  say: Stop.
"""


def own_pack(folder: Path, safety_yaml: str) -> Path:
    text = (SHIPPED / "_new" / "pack.yaml").read_text("utf-8")
    folder.mkdir()
    (folder / "pack.yaml").write_text(text, "utf-8")
    for name in ("topics.yaml", "steps.yaml", "resources.yaml"):
        (folder / name).write_text((SHIPPED / "_new" / name).read_text("utf-8"), "utf-8")
    (folder / "safety.yaml").write_text(safety_yaml, "utf-8")
    return folder


def test_patterns_with_exponential_backtracking_do_not_block(tmp_path: Path) -> None:
    pack = load(own_pack(tmp_path / "evil", EVIL))
    for text in (pumped("a") + "!", pumped("xa ") + "!", pumped("x") + "!"):
        assert seconds(lambda text=text: safety._sure(pack, text), MOST) < MOST  # type: ignore[misc]


@pytest.mark.parametrize(
    ("held", "told"),
    [
        (r"(a)\1", r"safety.yaml:3: alarms.0.patterns.en.0 contains a reference to a group"),
        ("((a{0,99}){0,99}){0,99}", r"safety.yaml:3: .* .* in several patterns"),
        ("a(", r"safety.yaml:3: .* not a regular expression"),
    ],
)
def test_an_unsupported_pattern_is_refused_with_file_and_line(tmp_path: Path, held: str, told: str) -> None:
    with pytest.raises(PackError, match=told):
        load(own_pack(tmp_path / "refused", f"- id: evil\n  say: Stop.\n  patterns: {{en: ['{held}']}}\n"))


def test_too_many_alarm_patterns_are_refused(tmp_path: Path) -> None:
    each = "\n".join(f"- {{id: a{n}, say: Stop., patterns: {{en: ['(?:.{{0,400}}{n} )*c']}}}}" for n in range(60))
    with pytest.raises(PackError, match=r"yaml:1: the patterns of the alarms need .* matching steps"):
        load(own_pack(tmp_path / "many", each))
