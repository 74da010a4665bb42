"""Words that stand together, in whatever order and form: 'fell asleep' and 'the wheel', near each other."""

from __future__ import annotations

import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Generic, TypeAlias, TypeVar

from mindstream.coach.packs.cues import BREAKS, Cues, Span, is_denied, is_of_somebody_else
from mindstream.text.language import CJK, Language

Name = TypeVar("Name", bound=Hashable)
Groups: TypeAlias = Sequence[str]
"""Of each group one cue must stand near the others: 'wheel|driving'; of a group that begins with '-' none may."""
NEAR, NEAR_ZH = 150, 48
"""In so many characters all of them must stand."""
OLD_STORY = re.compile(
    r"\b(?:years ago|in (?:19|20)\d\d|as a (?:child|kid)|decades|last century)\b|年前|小时候|以前|当年", re.I
)
"""What happened then to somebody else is a story."""


class Together(Generic[Name]):
    """Sets of groups in one language, by what they show."""

    def __init__(self, language: Language, named: Mapping[Name, Sequence[Groups]]) -> None:
        self._language, self._near = language, NEAR_ZH if language == "zh" else NEAR
        sets = [(name, groups) for name, each in named.items() for groups in each]
        self._sets = [(name, {at for at, group in enumerate(groups) if group[0] != "-"}) for name, groups in sets]
        self._places: dict[str, list[tuple[int, int]]] = {}
        """Where each group stands: of which set, and the how manieth of it."""
        for number, (_, groups) in enumerate(sets):
            for at, group in enumerate(groups):
                self._places.setdefault(group.lstrip("-"), []).append((number, at))
        self._cues = Cues(language, {group: group.split("|") for group in self._places})

    def matching(self, text: str) -> frozenset[Name]:
        """Return the names of which all groups are met, and none that may not be."""
        if not self._sets or (self._language == "zh" and not CJK.search(text)):
            return frozenset()
        met: dict[int, list[tuple[int, Span]]] = {}
        for group, span in self._mentions(text):
            for number, at in self._places[group]:
                met.setdefault(number, []).append((at, span))
        return frozenset(self._sets[number][0] for number, found in met.items() if self._is_met(number, found))

    def _is_met(self, number: int, found: Sequence[tuple[int, Span]]) -> bool:
        _, wanted = self._sets[number]
        if not wanted <= {at for at, _ in found}:
            return False
        for _, (start, _) in found:
            after = {at for at, span in found if start <= span[0] and span[1] <= start + self._near}
            around = {at for at, span in found if start - self._near <= span[0] <= start + self._near}
            if wanted <= after and around <= wanted:
                return True
        return False

    def _mentions(self, text: str) -> Iterator[tuple[str, Span]]:
        """Give which groups the clauses show, and where; what is denied and old stories of others aside."""
        story = bool(OLD_STORY.search(text))
        for start, clause in _clauses(text):
            found = self._cues.find(clause)
            blank = _blank(clause, found.values()) if found else ""
            for group, (begins, ends) in found.items():
                told_of = story and is_of_somebody_else(clause[:begins])
                if not told_of and not is_denied(blank[:begins], self._language):
                    yield group, (start + begins, start + ends)


def _clauses(text: str) -> Iterator[tuple[int, str]]:
    """Give a text's clauses and where they begin; a very long one in parts that overlap."""
    start = 0
    for mark in [*BREAKS.finditer(text), None]:
        end = mark.start() if mark else len(text)
        for at in range(start, max(start + 1, end - NEAR), NEAR):
            yield at, text[at : min(end, at + 2 * NEAR)]
        start = mark.end() if mark else end


def _blank(clause: str, spans: Iterable[Span]) -> str:
    """Return a clause with spaces for cues of several words: the 'no' of 'no memory' denies nothing that follows."""
    for start, end in spans:
        if " " in clause[start:end]:
            clause = f"{clause[:start]}{' ' * (end - start)}{clause[end:]}"
    return clause
