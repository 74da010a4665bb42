"""Who speaks says "I", and who listens remembers a name: one sentence from mouth to memory, and back."""

from __future__ import annotations

import re

from mindstream.town.rules.habits import gerund

LONGEST = 600
SAME = frozenset(["was", "had", "will", "can", "could", "would", "should", "must", "may", "might"])
"""After "I" as after a name."""
STATES = frozenset(
    [
        "want",
        "love",
        "like",
        "need",
        "know",
        "hate",
        "own",
        "think",
        "believe",
        "hope",
        "live",
        "feel",
        "miss",
        "prefer",
    ]
)
"""Verbs that do not stand in their -ing form."""
SECOND = re.compile(
    r",? (?:and|but) (?:(?:he|she) (?P<his>[a-z]{2,14}s)"
    r"|(?P<verb>[a-z]{2,14}s) (?=(?:his|her|to|for|that|how|what|about)\b))"
)
OWN = re.compile(r"\b(?:his|her) (?=[a-z])")
MINE = re.compile(r"\bmy\b")


def say_as(who: str, fact: str) -> str:
    """Return a memory as somebody says it: of itself as "I", of others as it is."""
    fact = fact[:LONGEST]
    if fact.startswith(f"{who}'s "):
        return "My " + fact[len(who) + 3 :]
    if not fact.startswith(f"{who} ") or fact.startswith(f"{who} and "):
        return fact
    verb, _, rest = fact[len(who) + 1 :].partition(" ")
    if verb == "is":
        said = f"I am {rest}"
    elif verb == "has":
        said = f"I have {rest}"
    elif verb in SAME or not verb.endswith("s"):
        said = f"I {verb} {rest}"
    elif verb.removesuffix("s") in STATES:
        said = f"I {verb.removesuffix('s')} {rest}"
    else:
        said = f"I am {gerund(f'{verb} {rest}')}"
    said = SECOND.sub(lambda found: f", {gerund(found['his'] or found['verb'])}{' ' * bool(found['verb'])}", said)
    return OWN.sub("my ", said).replace(f"{who}'s", "my").replace(who, "me")


def hear_from(speaker: str, sentence: str) -> str:
    """Return what somebody said as another remembers it: with the speaker's name."""
    sentence, first = sentence[:LONGEST], speaker.split()[0]
    if sentence.startswith("My "):
        return f"{speaker}'s {sentence[3:]}"
    if not sentence.startswith("I "):
        return sentence
    verb, _, rest = sentence[2:].partition(" ")
    rest = MINE.sub(f"{first}'s", rest)
    if verb == "am":
        return f"{speaker} is {rest.removeprefix(f'{speaker}, ')}"
    if verb == "have":
        return f"{speaker} has {rest}"
    return f"{speaker} {verb}{'s' if verb in STATES else ''} {rest}"
