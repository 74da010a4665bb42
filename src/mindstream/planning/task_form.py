"""The form of a task: its words, with what it is about (names, numbers, quoted text) taken out and numbered.

Two tasks have one form where all other words agree, in their order, as they are written: not by stem ("police" and
"policy" have one), nor by likeness. A name that stands twice is one entity, so that "between A and B, and between B
and C" is another form than "between A and B, and between C and D". A form too many costs a call of the planner, a form
too few costs the answer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from mindstream.text.words import STOP

LONGEST = 2_000
NAME_WORD = r"[A-Z][\w-]*(?:\.(?:[A-Z]\.)+)?"
TOKEN = re.compile(
    r"[\"“«《「](?P<quote>[^\"”»》」\n]{1,200})[\"”»》」]"
    rf"|(?P<name>{NAME_WORD}(?: (?:(?:of|the|de|da|von|van|la|du) ){{0,2}}{NAME_WORD})*(?: \d+(?![\w%.,]| ?%))?)"
    r"|(?P<number>(?<![\w^])\d+(?:[.,]\d+)*(?![\w^]))"
    r"|(?P<word>\w+(?:[\^-]\w+)*)|(?P<own>['’]s?(?!\w))|(?P<sign>[^\s\w,.;:?!，。？！；：])"
)
OPENERS = STOP | {
    "after", "among", "assuming", "before", "between", "both", "calculate", "compare", "compute", "considering",
    "determine",
    "factoring", "find", "given", "identify", "imagine", "name", "only", "suppose", "take", "taking", "tell", "under",
    "unless", "until", "upon", "without",
}  # fmt: skip
"""Words that begin a sentence, or are stressed, in capitals and name nothing."""
SPLIT = re.compile(rf" ?\b((?i:{'|'.join(sorted(OPENERS - {'of', 'the'}))})|Of|The)\b(?![-.]) ?")
LINKS = re.compile(r"^(?:(?:of|the|de|da|von|van|la|du) ?)+(?![a-z])")
ENDS = re.compile(r"(?:^|[.!?:。！？])\s*$")


@dataclass(frozen=True, slots=True)
class TaskForm:
    """A task's words with `<0>`, `<1#>` … for its entities (`#`: a number, `"`: quoted text), and the entities."""

    words: tuple[str, ...]
    entities: tuple[str, ...]

    @property
    def key(self) -> str:
        """The form as one text: tasks that have it in common are solved alike."""
        return " ".join(self.words)


def read_form(task: str) -> TaskForm | None:
    """Return a task's form; None where it has no entity, or capitals say nothing."""
    if len(task) > LONGEST or _is_in_capitals(task):
        return None
    words: list[str] = []
    entities: dict[str, str] = {}
    for found in TOKEN.finditer(task):
        kind, text = found.lastgroup or "", found[found.lastgroup or 0]
        if kind == "name":
            parts = _split_name(text, is_first=bool(ENDS.search(task[: found.start()])), rest=task[found.end() :])
        else:
            parts = [(text, kind in ("number", "quote"))]
        for part, is_entity in parts:
            if is_entity:
                if words[-1:] == ["the"] and kind == "name":
                    words.pop()  # it comes and goes with the name: the Rhine, K2
                mark = {"number": "#", "quote": '"'}.get(kind, "")
                words.append(entities.setdefault(part + mark, f"<{len(entities)}{mark}>"))
            else:
                words.append("'s" if kind == "own" else part.casefold())
    return TaskForm(tuple(words), tuple(each.rstrip('#"') for each in entities)) if entities else None


def _split_name(name: str, is_first: bool, rest: str) -> list[tuple[str, bool]]:
    """Return the words of a name, and before, in or behind it those that have capitals for another reason."""
    parts: list[tuple[str, bool]] = []
    for words in SPLIT.split(name):
        bare = LINKS.sub("", words)
        parts += [(each, False) for each in words[: len(words) - len(bare)].split()]
        parts += [(bare, bare.casefold() not in OPENERS)] if bare else []
    if is_first and parts == [(name, True)] and " " not in name and not re.match(r"['’]s?\b", rest):
        return [(name, False)]  # "Describe the plan": the first word of a sentence says nothing
    return parts


def _is_in_capitals(task: str) -> bool:
    """Tell whether a task is written Like A Title, or IN CAPITALS: no name can be told from a word."""
    words = re.findall(r"[A-Za-z]{4,}", task)
    return len(words) > 3 and sum(word.islower() for word in words) < 0.1 * len(words)


def swap_entities(text: str, swaps: Mapping[str, str]) -> str:
    """Return a text with other entities, all at once, where they stand as whole words."""
    if not swaps:
        return text
    named = "|".join(map(re.escape, sorted(swaps, key=len, reverse=True)))
    return re.sub(rf"(?<![\w.])(?:{named})(?!\w|\.\d)", lambda found: swaps[found[0]], text)


def count_entity(text: str, entity: str) -> int:
    """Count how often an entity stands in a text as whole words."""
    return len(re.findall(rf"(?<![\w.]){re.escape(entity)}(?!\w|\.\d)", text))
