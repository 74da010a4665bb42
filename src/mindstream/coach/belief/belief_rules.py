"""What the rules believe after an utterance: topics it names, the answer to the question before it, wishes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from pydantic import JsonValue

from mindstream.coach.moves.moves import ASKS, PUTS_OFF, SOCIAL
from mindstream.coach.packs.pack import Field_, Pack, choices, in_language
from mindstream.coach.packs.reading import Reading
from mindstream.text.language import Language

LONGEST = 140
"""The longest answer that is believed in the user's words, in characters."""
NO_ANSWER = ASKS | SOCIAL | PUTS_OFF | {"question", "next", "dislike", "unsure", "complaint", "laugh"}
"""Moves of an utterance that is no answer to the question before it."""
NUMBERS = dict(zip("one two three four five six seven eight nine ten eleven twelve".split(), range(1, 13), strict=True))  # noqa: SIM905
NUMBERS_ZH = {"两": 2, "十": 10, "十一": 11, "十二": 12} | {sign: n for n, sign in enumerate("一二三四五六七八九", 1)}
HOURS = re.compile(
    r"(?<![A-Za-z\d.])(\d{1,2}(?:\.\d+)?|" + "|".join(NUMBERS) + r")(?![A-Za-z\d])(?: and a (half))?"
    r"|(十[一二]?|[一二两三四五六七八九])(个?半)?",
    re.IGNORECASE,
)


def patch_by_rules(
    pack: Pack, readings: Sequence[Reading], language: Language, said: str
) -> tuple[dict[str, JsonValue], list[str]]:
    """Return the patch that the utterances make, and what it says; `said`: what the mind said before them."""
    patch: dict[str, Any] = {}
    told: list[str] = []
    asked = requested_field(pack, said, language)
    for reading in readings:
        told += _topics(pack, reading, language, patch)
        answered = [asked] if asked and not pack.fields[asked].moves and answers(reading) else []
        for name in _by_moves(pack, reading) or answered:
            told += _in_words(pack.fields[name], name, reading, patch)
        asked = ""
    return patch, told


def requested_field(pack: Pack, said: str, language: Language) -> str:
    """Name the field that the mind asked for in its own words; "" where it asked for none."""
    return next(
        (name for name, spec in pack.fields.items() if any(ask in said for ask in choices(spec.ask, language))), ""
    )


def answers(reading: Reading) -> bool:
    """Tell whether an utterance can be the answer to a question about its speaker."""
    return not reading.moves & NO_ANSWER and len(reading.text) <= LONGEST


def _by_moves(pack: Pack, reading: Reading) -> list[str]:
    """Name the fields that this kind of utterance fills wherever it comes: a wish is a goal."""
    if reading.moves & NO_ANSWER or len(reading.text) > LONGEST:
        return []
    return [name for name, spec in pack.fields.items() if reading.moves & set(spec.moves)]


def _in_words(spec: Field_, name: str, reading: Reading, patch: dict[str, Any]) -> list[str]:
    """Fill a field with the utterance itself, as its type asks."""
    words = reading.text.strip().rstrip(".!。！ ")
    if spec.of or not words or (not reading.topics and reading.moves & {"no", "thanks"}):
        return []
    if spec.type == "number":
        found = HOURS.findall(words)
        if len(found) != 1:
            return []
        latin, half, chinese, half_zh = found[0]
        patch[name] = _number(latin or chinese) + (0.5 if half or half_zh else 0.0)
    elif spec.type == "text":
        patch[name] = words
    elif spec.type == "list" and name not in patch:
        patch[name] = {"add": [words], "remove": []}
    else:
        return []
    return [words]


def _number(word: str) -> float:
    low = word.lower()
    return float(NUMBERS.get(low) or NUMBERS_ZH.get(low) or low)


def _topics(pack: Pack, reading: Reading, language: Language, patch: dict[str, Any]) -> list[str]:
    told: list[str] = []
    for mention in reading.mentions:
        topic = pack.topic(mention.topic)
        spec = pack.fields.get(topic.field) if topic else None
        if topic is None or spec is None or (spec.of and topic.id not in spec.of):
            continue
        name = in_language(topic.name, language)
        value = topic.id if spec.of else name
        if spec.type == "list":
            change = patch.setdefault(topic.field, {"add": [], "remove": []})
            change["remove" if mention.denied else "add"].append(value)
        elif spec.type == "text" and not mention.denied:
            patch[topic.field] = value
        elif spec.type == "yes_no":
            patch[topic.field] = not mention.denied
        else:
            continue
        told.append(f"not {name}" if mention.denied else name)
    return told
