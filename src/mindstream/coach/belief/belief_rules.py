"""What the rules believe after an utterance: topics it names, the answer to the question before it, wishes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import JsonValue

from mindstream.coach.belief.own_words import answering_phrase, wished_phrase
from mindstream.coach.moves.moves import ASKS, PUTS_OFF, SOCIAL, moves_of
from mindstream.coach.packs.pack import Field_, Pack, choices, in_language
from mindstream.coach.packs.reading import Mention, Reading
from mindstream.coach.packs.translate import other_names
from mindstream.text.language import Language
from mindstream.text.persons import find_persons

NO_ANSWER = ASKS | SOCIAL | PUTS_OFF | {"question", "next", "dislike", "unsure", "complaint", "laugh"}
"""Moves of an utterance that is no answer to the question before it."""
SENTENCES = re.compile(r"(?<=[.!?。！？])\s*")
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
        noted = (note_topic(pack, each.topic, each.denied, language, patch) for each in _stated(pack, reading))
        told += filter(None, noted)
        if reading.moves & NO_ANSWER:
            continue
        if wished := [name for name, spec in pack.fields.items() if reading.moves & set(spec.moves)]:
            told += [
                words for name in wished for words in _hold(pack.fields[name], name, wished_phrase(reading.text), patch)
            ]
        elif asked and not pack.fields[asked].moves:
            told += _answer(pack, asked, reading, said, patch)
        asked = ""
    return patch, told


def _stated(pack: Pack, reading: Reading) -> Iterator[Mention]:
    """Give the topics that are stated; of those in a question ("does tea help?") only one's own trouble, or a wish."""
    if "question" not in reading.moves:
        yield from reading.mentions
        return
    needed = {name for phase in pack.phases for name in phase.needs}
    own = bool(reading.moves & ASKS) or find_persons(reading.text).asker
    asked = " ".join(
        each for each in SENTENCES.split(reading.text) if "question" in moves_of(each.strip(), reading.language)
    )
    for mention in reading.mentions:
        topic = pack.topic(mention.topic)
        if mention.words not in asked or (own and topic is not None and topic.field in needed):
            yield mention


def requested_field(pack: Pack, said: str, language: Language) -> str:
    """Name the field that the mind asked for in its own words; "" where it asked for none."""
    return next(
        (name for name, spec in pack.fields.items() if any(ask in said for ask in choices(spec.ask, language))), ""
    )


def _answer(pack: Pack, name: str, reading: Reading, said: str, patch: dict[str, Any]) -> list[str]:
    """Fill the field that was asked for with the number or the phrase that answers; a topic says it already."""
    spec = pack.fields[name]
    if spec.of or (not reading.topics and reading.moves & {"no", "thanks"}):
        return []
    if spec.type == "number":
        hours = read_number(reading.text)
        if hours is None:
            return []
        patch[name] = hours
        return [f"{hours:g}"]
    words = answering_phrase(reading.text, said)
    return _hold(spec, name, words, patch)


def _hold(spec: Field_, name: str, words: str, patch: dict[str, Any]) -> list[str]:
    """Hold words of the user's own in a field that has none of this utterance yet."""
    if not words or spec.of or name in patch or spec.type not in ("text", "list"):
        return []
    patch[name] = words if spec.type == "text" else {"add": [words], "remove": []}
    return [words]


def read_number(text: str) -> float | None:
    """Read the number that a text gives; None where it gives none or several."""
    found = HOURS.findall(text)
    if len(found) != 1:
        return None
    latin, half, chinese, half_zh = found[0]
    return _number(latin or chinese) + (0.5 if half or half_zh else 0.0)


def _number(word: str) -> float:
    low = word.lower()
    return float(NUMBERS.get(low) or NUMBERS_ZH.get(low) or low)


def note_topic(pack: Pack, id_: str, denied: bool, language: Language, patch: dict[str, Any]) -> str:
    """Put a topic into its field of a patch, or take it out; return what it is called, "" where no field holds it.

    It is held under one name, in the language that is spoken now.
    """
    topic = pack.topic(id_)
    spec = pack.fields.get(topic.field) if topic else None
    if topic is None or spec is None or (spec.of and topic.id not in spec.of):
        return ""
    name = in_language(topic.name, language)
    value = topic.id if spec.of else name
    if spec.type == "list":
        change = patch.setdefault(topic.field, {"add": [], "remove": []})
        change["remove" if denied else "add"].append(value)
        change["remove"] += [] if spec.of else other_names(pack, id_, language)
    elif spec.type == "text" and not denied:
        patch[topic.field] = value
    elif spec.type == "yes_no":
        patch[topic.field] = not denied
    else:
        return ""
    return f"not {name}" if denied else name
