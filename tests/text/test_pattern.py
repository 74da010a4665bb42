"""Patterns match like Python's engine, in bounded time."""

from __future__ import annotations

import re
import warnings
from pathlib import Path

import pytest
from hypothesis import given, reject
from hypothesis import strategies as st

from mindstream.coach.packs.load import load, shipped_packs
from mindstream.text.pattern import Patterns, pattern

TESTS = Path(__file__).parents[1]


def sources() -> list[str]:
    """Return every shipped pattern: alarms, hints and exceptions."""
    found = [source for name in shipped_packs() for alarm in load(name).alarms for source in alarm.sources()]
    return list(dict.fromkeys(found))


def sentences() -> list[str]:
    said = [line.split("\t")[-1] for path in sorted(TESTS.rglob("seen_*.tsv")) for line in _lines(path)]
    return list(dict.fromkeys(said))


def _lines(path: Path) -> list[str]:
    return path.read_text("utf-8").splitlines()


def test_every_shipped_pattern_matches_like_re() -> None:
    compiled = [(source, pattern(source), re.compile(source, re.IGNORECASE)) for source in sources()]
    said = sentences()[::4]
    assert len(compiled) >= 40 and len(said) > 100
    differ = [
        (source, sentence)
        for sentence in said
        for source, ours, theirs in compiled
        if ours.matches(sentence) is not bool(theirs.search(sentence))
    ]
    assert differ == []


def test_combined_patterns_match_like_single_ones() -> None:
    each = [pattern(source) for source in sources()]
    together = Patterns({at: [one] for at, one in enumerate(each)})
    for sentence in sentences()[::7]:
        assert together.matching(sentence) == {at for at, one in enumerate(each) if one.matches(sentence)}


ATOM = st.sampled_from(
    ["a", "b", "c", "ab", " ", ".", "[ab]", "[^a]", r"\w", r"\W", r"\b", r"\B", r"\s", r"\d", "^", "$", "é", "你", "I"]
)
EXPRESSION = st.recursive(
    ATOM,
    lambda inner: st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(inner, inner).map(lambda two: f"(?:{two[0]}|{two[1]})"),
        st.tuples(inner, st.sampled_from(["?", "{0,2}", "{1,3}", "*?", "*", "+"])).map(
            lambda two: f"(?:{two[0]}){two[1]}"
        ),
        inner.map(lambda one: f"(?={one})"),
        inner.map(lambda one: f"(?!{one})"),
        st.sampled_from(["(?<=a)", "(?<!a)", "(?<=ab|bc)", "(?<!a )"]),
    ),
    max_leaves=8,
)


@given(EXPRESSION, st.text("abcA é你1\n.", min_size=1, max_size=9))
def test_any_pattern_matches_like_re(source: str, text: str) -> None:
    try:
        read = pattern(source)
    except ValueError:  # stars nested three deep
        reject()
    assert read.matches(text) is bool(re.search(source, text, re.IGNORECASE))


@given(EXPRESSION, st.text("abcAkſİı é你1\u0301\x1c\n.", max_size=9))
def test_a_relaxed_pattern_matches_at_least_what_re_matches(source: str, text: str) -> None:
    try:
        read = pattern(source)
    except ValueError:
        reject()
    if re.search(source, text, re.IGNORECASE):
        assert read.hits(text)


@given(st.text("ab(|)[]^$*+?{}01,\\\\:=!<>P#iswWbB-.'", max_size=12))
def test_every_accepted_pattern_is_valid_for_re(source: str) -> None:
    """Any pattern text is refused, or Python accepts it too and finds no more than its relaxed form."""
    try:
        read = pattern(source)
    except ValueError:
        reject()
    try:
        with warnings.catch_warnings(action="ignore"):
            compiled = re.compile(source, re.IGNORECASE)
    except re.error:  # a look-behind without fixed width
        reject()
    for text in ("ab", "a", "0,1", "(b)", "i's:w-", "é{1}", "a\n", "<P>", "^$*+?[]#\\"):
        if compiled.search(text):
            assert read.hits(text), text


EXPLOSIVE = [
    r"(a+)+$", r"(a|a)*$", r"(a|aa)+$", r"(\w+\s?)*$", r"^(([a-z])+.)+[A-Z]([a-z])+$", r"(.*)*x", r"(x+x+)+y",
    r"(?:a?){50}a{50}$", r"(?=(a+)+$)b", r"\b(\w+ ){0,80}end", r".{0,200}.{0,200}.{0,200}z", r"(.{0,40}a){20}z",
    r"^((oh|ah|ok(ay)?|hah?|h+m+) ?,? ?)*z", r"(\w*)*\W", r"([\s\S]*,)*;", r"(a{0,30}){0,30}b",
]  # fmt: skip
PUMPED = ["a" * 32_000, "a " * 16_000, "x" * 32_000, "aA" * 16_000, "haha " * 6_400, "我a" * 8_000, " " * 32_000]


@pytest.mark.timeout(60)
@pytest.mark.parametrize("source", EXPLOSIVE)
def test_patterns_that_make_re_backtrack_end_at_once(source: str) -> None:
    """Each takes milliseconds; a backtracking engine would exceed the time limit of the test."""
    read = pattern(source)
    for text in PUMPED:
        read.matches(text + "!")
        read.without(text + "!")


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("(", "not a regular expression"),
        ("(" * 5_000 + "a" + ")" * 5_000, "groups deep"),
        (r"(a)\1", "write out what may stand there"),
        ("(a)(?(1)b|c)", "write two patterns"),
        ("(?m)^a", r"only \(\?i\) and \(\?s\)"),
        ("((a{0,99}){0,99}){0,99}", "fewer of them"),
        ("(?:.{0,200}){5}|(?:.{0,200}){5}|(?:.{0,200}){5}z", "at most 20,000 are allowed"),
        ("\ud800", "surrogate"),
    ],
)
def test_unsupported_patterns_are_refused_with_an_alternative(source: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        pattern(source)


def test_a_search_that_takes_too_long_gives_the_in_doubt_value() -> None:
    slow = pattern("(?:x|y|xy|yx)+!(?<!!)")
    text = "xy" * 1_000 + "!"
    for in_doubt in (True, False):
        assert slow.matches(text, in_doubt=in_doubt) is in_doubt
        assert Patterns({"slow": [slow]}, in_doubt=in_doubt).matching(text) == ({"slow"} if in_doubt else set())
    assert slow.without(text) == text
