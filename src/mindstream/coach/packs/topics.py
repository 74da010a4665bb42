"""Which of a pack's topics a text names: by plain words, compared by their stems; Chinese ones as they stand."""

from __future__ import annotations

from collections.abc import Iterator

from mindstream.coach.packs.pack import Pack
from mindstream.text.words import CJK, both_ends, simplify, terms


def topics_in(pack: Pack, text: str) -> list[str]:
    """Return the ids of the topics that a text names, in the pack's order; of a very long one both ends are read.

    What stands inside something longer is not named by itself: a light sleeper speaks of no light.
    """
    plain = simplify(both_ends(text)).lower()
    said = frozenset(terms(plain))
    found: dict[str, frozenset[str]] = {}
    for topic, chinese, parts in pack.cached(("words", ""), lambda: list(_words(pack))):
        stands = chinese in plain if chinese else parts <= said
        if stands and len(parts) > len(found.get(topic, ())):
            found[topic] = parts
    return [topic for topic, parts in found.items() if not any(parts < other for other in found.values())]


def _words(pack: Pack) -> Iterator[tuple[str, str, frozenset[str]]]:
    """Give for each word of each topic the word itself where it is Chinese, and its stems or Chinese characters."""
    for topic in pack.topics:
        for words in topic.words.values() if isinstance(topic.words, dict) else [topic.words]:
            for word in map(str.lower, map(simplify, words)):
                chinese = word if CJK.search(word) else ""
                if parts := frozenset(chinese or terms(word)):
                    yield topic.id, chinese, parts
