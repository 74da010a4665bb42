"""What a pack says in several languages: a plan made in Chinese is shown in English."""

from __future__ import annotations

from collections.abc import Iterator

from mindstream.coach.packs.pack import Pack, Texts, in_language
from mindstream.text.language import Language


def translate(pack: Pack, text: str, language: Language) -> str:
    """Return a topic's name or a step's words as the pack has them in a language; any other text as it is."""
    known = pack.cached(("translations", ""), lambda: dict(_translations(pack)))
    return in_language(known[text], language) if text in known else text


def other_names(pack: Pack, topic: str, language: Language) -> list[str]:
    """Return a topic's names in the pack's other languages."""
    found = pack.topic(topic)
    names = found.name if found and isinstance(found.name, dict) else {}
    return [name for each, name in names.items() if each != language]


def topic_named(pack: Pack, name: str) -> str:
    """Return the id of the topic that has a name in one of the pack's languages; "" where there is none."""
    ids = pack.cached(
        ("topic names", ""),
        lambda: {
            name: topic.id
            for topic in pack.topics
            for name in (topic.name.values() if isinstance(topic.name, dict) else [topic.name])
        },
    )
    return ids.get(name, "")


def _translations(pack: Pack) -> Iterator[tuple[str, Texts]]:
    texts = [topic.name for topic in pack.topics]
    texts += [each for step in pack.steps for each in (step.title, step.do, step.why, step.caution)]
    for each in texts:
        for text in each.values() if isinstance(each, dict) else ():
            yield text, each
