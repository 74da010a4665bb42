"""What the condition of a thing is, in words: fine, taken, dangerous, empty, dirty, left on, or broken."""

from __future__ import annotations

import re
from typing import Literal

from mindstream import caches
from mindstream.text.words import plain_words

Kind = Literal["fine", "fire", "taken", "missing", "dirty", "flowing", "on", "broken"]
LONGEST = 200


def _words(text: str) -> re.Pattern[str]:
    return re.compile(rf"\b(?:{text})\b", re.IGNORECASE)


NOT_SO = _words(r"not|no longer|isn't|never|nearly|half|badly|without")
PATTERNS: tuple[tuple[Kind, re.Pattern[str]], ...] = (
    (
        "fire",
        _words(
            r"on fire|fire|burn(?:s|ing)|flames?|aflame|ablaze|alight|smok(?:e|es|ing|y)|smoulder\w{0,4}|scorch\w{0,4}"
            r"|sparks?|sparking|explod\w{0,4}|gas leak|smell\w{0,4} (?:of|like) (?:gas|smoke|burning)"
        ),
    ),
    ("taken", _words(r"occupied|taken|in use|busy|locked|reserved|being used|engaged|somebody is in it")),
    (
        "missing",
        _words(
            r"empty|out of (?!order\b|use\b)|run(?:s|ning)? (?:out|low)|used up|nothing (?:left|in)|bare|missing"
            r"|no (?:more|\w+ (?:left|in it))|low on|almost gone|all gone|sold out|^ no"
        ),
    ),
    (
        "flowing",
        _words(
            r"overflow\w{0,4}|flood\w{0,4}|under water|running over|gushing|puddles?|spilling|boiling over|left running"
        ),
    ),
    (
        "dirty",
        _words(
            r"dirt\w{0,2}|messy?|filth\w?|dust\w?|stain\w{0,3}|spilled|spilt|stick(?:y|ing)|greasy|mud\w{0,2}|untidy"
            r"|smelly|stink\w{0,3}|smell\w{0,4} (?:bad|foul|awful|rotten)|mou?ld\w?|rotten|grimy|cluttered|ants|mice"
            r"|cockroaches|crumbs"
        ),
    ),
    ("on", re.compile(r"\b(?:left (?:on|open|unlocked)|running|beeping|ringing|whistling)$", re.IGNORECASE)),
)
"""Signs that something is wrong, the gravest first."""
STATE_WORDS = """
idle fine ok okay ready closed open off on full new working well good available free locked lit green blue red white
set switched turned made
"""
PLEASANT_WORDS = """
clean tidy warm quiet dry cosy cozy bright shiny neat spotless pretty beautiful lovely comfortable soft fresh safe
fragrant scented smelling smells stocked repaired fixed mended restored renewed polished cleaned washed painted
repainted decorated dusted waxed scrubbed swept refilled restocked tidied aired arranged upholstered ironed
folded replaced upgraded improved
"""
GENTLY_WORDS = "softly quietly gently brightly steadily nicely beautifully warmly evenly smoothly neatly perfectly"
STATES, PLEASANT = frozenset(STATE_WORDS.split()), frozenset(PLEASANT_WORDS.split())
GENTLY = frozenset(GENTLY_WORDS.split())
"""In a condition of states alone nothing is wrong, nor in one that begins with something pleasant or goes gently."""
FILLING_WORDS = "very now quite all back nice and again just newly freshly recently as it should be in good shape order"
FILLING = frozenset(FILLING_WORDS.split())


@caches.remember(4_096)
def kind_of(condition: str) -> Kind:
    """Return what is the matter; what nothing speaks for being fine is broken."""
    text = condition[:LONGEST]
    for kind, signs in PATTERNS:
        if signs.search(text):
            return kind
    if NOT_SO.search(text):
        return "broken"
    said = [word for word in plain_words(text) if word not in FILLING]
    is_fine = not said or set(said) <= STATES | PLEASANT or said[0] in PLEASANT or GENTLY & {*said}
    return "fine" if is_fine else "broken"


def is_danger(condition: str) -> bool:
    """Tell whether a thing in this condition cannot be overlooked: it wakes people, and comes before everything."""
    return kind_of(condition) == "fire"
