"""What a correction, or a wish that something be forgotten, changes in a belief, by rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import JsonValue

from mindstream.coach.belief.belief_rules import note_topic, read_number
from mindstream.coach.packs.pack import Pack
from mindstream.coach.packs.reading import read_utterance
from mindstream.coach.packs.translate import topic_named
from mindstream.text.corrections import Correction, read_correction
from mindstream.text.language import Language
from mindstream.text.revise import apply_correction, resolve_correction, revise


@dataclass
class Corrected:
    """What corrections come to.

    Attributes:
        patch: what changes in the belief.
        used: the utterances that were corrections of something said, noted or believed.
        gone: topics that are no longer the case; `forgets`: all of them because it was asked to forget them.
    """

    patch: dict[str, JsonValue] = field(default_factory=dict)
    used: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    forgets: bool = True


def topics_of(pack: Pack, texts: Sequence[str]) -> set[str]:
    """Name the topics that texts name and do not deny, the newest last."""
    topics: set[str] = set()
    for text in texts:
        for mention in read_utterance(pack, text).mentions:
            (topics.discard if mention.denied else topics.add)(mention.topic)
    return topics


def correct_belief(
    pack: Pack, belief: Mapping[str, JsonValue], said: Sequence[str], notes: Sequence[str], utterances: Sequence[str],
    language: Language,
) -> Corrected:  # fmt: skip
    """Return what utterances put right of what was said in this talk before, of notes, and of what is believed."""
    found, lines = Corrected(), list(said)
    held = [str(item) for value in belief.values() for item in (value if isinstance(value, list) else [value])]
    for text in utterances:
        read = read_correction(text)
        correction = resolve_correction(read, revise(lines)) if read else None
        if correction and _fits(pack, correction, [*revise(lines), *notes, *held]):
            _correct(pack, belief, correction, lines, text, language, found)
        lines.append(text)
    return found


def _fits(pack: Pack, correction: Correction, texts: Sequence[str]) -> bool:
    if not correction.new and topics_of(pack, [correction.old]) & {topic_named(pack, text) for text in texts}:
        return True
    return bool(apply_correction(correction, texts))


def _correct(
    pack: Pack, belief: Mapping[str, JsonValue], correction: Correction, lines: Sequence[str], text: str,
    language: Language, found: Corrected,
) -> None:  # fmt: skip
    before, after = topics_of(pack, revise(lines)), topics_of(pack, revise([*lines, text]))
    denied, named = topics_of(pack, [correction.old]), topics_of(pack, [correction.new])
    gone = (before - after | denied) - named
    found.used.add(text)
    found.gone |= gone
    found.forgets = found.forgets and correction.forgets
    come = (after - before | named) - gone
    for name, value in belief.items():
        if isinstance(value, list):
            _correct_list(pack, name, value, correction, gone, found)
        elif isinstance(value, str) and (changed := _restated(correction, value)) is not None:
            found.patch[name] = changed or None
        elif isinstance(value, float) and read_number(correction.old) == value:
            found.patch[name] = read_number(correction.new)
    for topic in sorted(come):
        note_topic(pack, topic, False, language, found.patch)


def _correct_list(
    pack: Pack, name: str, items: Sequence[JsonValue], correction: Correction, gone: set[str], found: Corrected
) -> None:
    for item in map(str, items):
        topic = item if pack.fields[name].of else topic_named(pack, item)
        if topic in gone:
            _change(found, name)["remove"].append(item)
        elif not topic and (changed := _restated(correction, item)) is not None:
            _change(found, name)["remove"].append(item)
            _change(found, name)["add"] += [changed] if changed else []


def _change(found: Corrected, name: str) -> Any:
    return found.patch.setdefault(name, {"add": [], "remove": []})


def _restated(correction: Correction, text: str) -> str | None:
    """Return a believed text as it is after a correction; None where this does not fit it."""
    if not correction.old:
        return None
    changes = apply_correction(correction, [text])
    return changes[0].text if changes else None
