"""How words are found without a model: phrases by name, never the same words twice running."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import yaml

from mindstream import chance
from mindstream.coach.packs.pack import Lists, Pack, choices
from mindstream.text.words import Language


@lru_cache(1)
def _own() -> dict[str, Lists]:
    raw: dict[str, Lists] = yaml.load(
        Path(__file__).with_name("phrases.yaml").read_text("utf-8"), Loader=yaml.CSafeLoader
    )
    return raw


def phrase_names() -> list[str]:
    """Name the phrases that ship."""
    return list(_own())


def phrases(pack: Pack, name: str, language: Language) -> list[str]:
    """Return the phrases of a name: the pack's own where it has some in this language, else the ones shipped."""
    own = pack.phrases.get(name)
    if isinstance(own, dict):
        own = own.get(language)
    return list(own) if own else shipped_phrases(name, language)


def shipped_phrases(name: str, language: Language) -> list[str]:
    """Return the phrases of a name that belong to no pack."""
    return choices(_own().get(name, []), language)


def say(pack: Pack, name: str, language: Language, said: Sequence[str] = (), **filled: str) -> str:
    """Choose a phrase whose words were not said before, and fill in what its braces name."""
    words = fresh(phrases(pack, name, language), said, name, len(said))
    for brace, text in filled.items():
        words = words.replace(f"{{{brace}}}", text)
    return words


def fresh(options: Sequence[str], said: Sequence[str], *key: object) -> str:
    """Choose an option whose words were not said before; else the one said longest ago; "" where there is none."""
    if not options:
        return ""
    new = [option for option in options if not any(_stands_in(option, text) for text in said)]
    if new:
        return chance.pick(new, "fresh", *key)
    lately = {
        option: max((n for n, text in enumerate(said) if _stands_in(option, text)), default=-1) for option in options
    }
    return min(options, key=lambda option: lately[option])


def _stands_in(option: str, text: str) -> bool:
    fixed = max(
        option.replace("{", "\0{").replace("}", "}\0").split("\0"), key=lambda part: 0 if "{" in part else len(part)
    )
    return fixed.strip() in text if fixed.strip() else False


def list_in(language: Language, items: Sequence[object]) -> str:
    """Write items one after the other, as a language does."""
    texts = [str(item) for item in items]
    if language == "zh":
        return "、".join(texts)
    return ", ".join(texts[:-1]) + " and " + texts[-1] if len(texts) > 1 else "".join(texts)
