"""What corrections make of what was said, noted or believed: the user's own words in place of what is taken back."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from mindstream.text.corrections import ZH, Correction, read_correction
from mindstream.text.values import NUMBER, Value, kind_of, values
from mindstream.text.words import terms

RECENT = 6
"""So many of the newest texts may be meant where it is not said what was wrong."""
COPULA = re.compile(
    r"^.*\b(?:is|are|was|were|called|named|be|it's|he's|she's)\s+(?P<value>\S.*)$|^.*(?:[是叫]"
    r"|名字是)(?P<value_zh>.+)$",
    re.I,
)
DETERMINER = re.compile(rf"(?:\b(?:the|a|an|my|our|his|her|their|this|that|some|no|{NUMBER})\s+)$", re.IGNORECASE)
IS_CLAUSE = re.compile(
    r"^(?:i|we|he|she|they|you|i'\w+|we'\w+|my \w+ \w+|our \w+ \w+|the \w+ \w+s)\s\S|^我(?!的|爸|妈"
    r"|哥|弟|姐|妹|老|岳|婆|公|儿|女|室|邻|同|男)",
    re.I,
)


@dataclass(frozen=True, slots=True)
class Change:
    """What a correction makes of the text at a place: other words, or "": it does not hold any more."""

    at: int
    text: str


def apply_correction(correction: Correction, texts: Sequence[str]) -> list[Change]:
    """Return what a correction makes of texts, the newest last; nothing where it fits none of them."""
    if not correction.new:
        return [Change(at, "") for at in _named(correction, texts)]
    correction = resolve_correction(correction, texts)
    if not correction.old:
        return []
    found: list[Change] = []
    for at in range(len(texts) - 1, -1, -1):
        if (new := _replaced(correction, texts[at])) is not None:
            found.append(Change(at, new))
            if kind_of(correction.old) not in ("", "name", "person"):
                break  # another "four" may be four of something else
    return found


def resolve_correction(correction: Correction, said: Sequence[str]) -> Correction:
    """Return a correction that names what does not hold: the newest value of the same kind that was said, newest last.

    Without words that say so ("no, three") only the very last text is meant.
    """
    if correction.old or not correction.new:
        return correction
    words = f"is {correction.new}"  # so that a capital says that it is a name
    for new in values(words):
        for text in reversed(said[-RECENT:] if correction.sure else said[-1:]):
            there = list(values(text, new.kind))
            same = [value for value in there if new.unit and value.unit == new.unit]
            if there and (same or not new.unit or len(there) == 1):
                return replace(correction, new=_whole(words, new), old=(same or there)[-1].text)
    return correction


def revise(texts: Sequence[str]) -> list[str]:
    """Return what users said in a talk as it stands after their own corrections, which are left out where they fit."""
    standing: list[str] = []
    for text in texts:
        correction = read_correction(text)
        changes = apply_correction(correction, standing) if correction else []
        for change in changes:
            standing[change.at] = change.text
        if not changes:
            standing.append(text)
        standing = [each for each in standing if each]
    return standing


def _named(correction: Correction, texts: Sequence[str]) -> list[int]:
    """Name the texts that are about what is taken back; where nothing is named, the last."""
    if not correction.old:
        return [len(texts) - 1] if texts else []
    if ZH.search(correction.old):
        return [at for at, text in enumerate(texts) if correction.old in text]
    wanted = set(terms(correction.old))
    return [at for at, text in enumerate(texts) if wanted and wanted <= set(terms(text))]


def _whole(words: str, value: Value) -> str:
    """Return a value with its own determiner, where it has one."""
    before = DETERMINER.search(words[: value.start])
    return (before[0] if before else "") + value.text


def _replaced(correction: Correction, text: str) -> str | None:
    """Return a text with the new words in place of the old; None where these do not stand in it."""
    old, new = correction.old, correction.new
    is_clause = bool(IS_CLAUSE.match(new))
    for is_there, by in ((old, new), *_same_kind(old, new)):
        span = _span(is_there, text)
        if span is None:
            continue
        if is_clause and by == new:
            named = COPULA.match(new)
            shared = set(terms(new)) & set(terms(text)) or len(terms(old)) > 1
            by = (named["value"] or named["value_zh"]) if named and not shared else new
            if by == new:
                return new if shared else None
        return _put(text, *span, by)
    return None


def _same_kind(old: str, new: str) -> list[tuple[str, str]]:
    """Return the values of old and new words where both are of one kind: they stand for the words around them."""
    return [
        (gone.text, _whole(new, come))
        for gone in values(old)
        for come in values(new, gone.kind)
        if gone.text != come.text
    ]


def _span(words: str, text: str) -> tuple[int, int] | None:
    """Return where words stand in a text, whatever their case; their determiner need not."""
    bare = words if ZH.search(words) else re.sub(r"^(?:the|a|an|my|our|his|her|their)\s+", "", words, flags=re.I)
    if not bare:
        return None
    edge = "" if ZH.search(bare) else r"\b"
    found = re.search(edge + r"[\s-]+".join(map(re.escape, bare.split())) + edge, text, re.IGNORECASE)
    return found.span() if found else None


def _without_end(words: str, after: str) -> str:
    """Return words without their end where it stands after them already: "2 kids" before "kids"."""
    rest = after.lstrip().lower()
    for at in range(1, len(words)):
        end = words[at:].strip().lower()
        if len(end) > 1 and (words[at - 1] == " " or ZH.match(end)) and re.match(re.escape(end) + r"(?![a-z])", rest):
            return words[:at].rstrip()
    return words


def _put(text: str, start: int, end: int, words: str) -> str:
    """Put words in a place of a text; their determiner takes the place of the one that stands before it."""
    first = re.match(r"\S+\s", words)
    if first and DETERMINER.match(first[0]) and (before := DETERMINER.search(text[:start])):
        start = before.start()
    words = _without_end(words, text[end:])
    if start == 0 or text[:start] in {"“", '"'}:
        words = words[:1].upper() + words[1:]
    return text[:start] + words + text[end:]
