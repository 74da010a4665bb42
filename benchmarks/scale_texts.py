"""Conversations for a large memory: sentences of a small grammar over words of this repository, by topic.

An episode has two topics. A topic is a word and its neighbours by the bundled embedder; nearer words are more frequent.
The same seed gives the same texts; questions use other seeds, and other places of the topics.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from mindstream.memory.store.record import Kind
from mindstream.models.embedders import embedder
from mindstream.text.words import STOP

HERE = Path(__file__).parents[1]
PROSE = (("docs", "*.md"), ("src", "*.yaml"), ("src", "*.txt"))
"""Files that words are taken from, if they occur there often enough."""
LEAST = 2
SYLLABLES = ("ba", "ke", "lo", "mi", "nu", "ra", "se", "ti", "vo", "du", "fa", "ge", "po", "sha", "tre", "wen")
"""Syllables of surnames: most words of a long conversation occur only a few times."""
TOPICS, OF_TOPIC = 1_500, 120
NAMES = (
    "Otto", "Mira", "Jonas", "Lena", "Pavel", "Ida", "Samir", "Greta", "Tom", "Yuki", "Carla", "Finn", "Nora", "Ravi",
    "Elsa", "Hugo", "Wanda", "Omar", "Ruth", "Leo", "Aisha", "Karl",
)  # fmt: skip
VERBS = (
    "found", "bought", "lost", "fixed", "sold", "moved", "painted", "cleaned", "borrowed", "forgot", "watched",
    "heard", "tried", "ordered", "planned", "cancelled", "finished", "started", "missed", "carried", "built", "broke",
    "opened", "closed", "measured", "liked", "hated", "shared", "showed", "kept", "promised",
)  # fmt: skip
SUBJECTS = ("I", "we", "my sister", "the neighbour", "my boss", "our teacher", "nobody", "the doctor", "they", "{name}")
JOINTS = ("with", "near", "behind", "without", "instead of", "because of", "next to", "after", "before", "under")
TIMES = (
    "yesterday", "last week", "on Monday", "this morning", "in the evening", "two days ago", "since spring", "at noon",
    "on the way home", "every Friday", "for the first time", "", "", "", "", "",
)  # fmt: skip
AND = (", and", ", but", ", so", " while", ". Then", ". Later")
REPLIES = (
    "That sounds like {a}.", "Why the {a}?", "How did the {a} go?", "I would ask about the {a} {b} first.",
    "And what became of the {a}?", "Good; keep the {a} away from the {b}.", "Did {name} see the {a}?",
    "You mentioned the {b} before.",
)  # fmt: skip
QUESTIONS = (
    "What did {name} do with the {a} {b}?", "When did I talk about the {a} and the {b}?", "Which {a} was near the {b}?",
    "What did you suggest about the {a} {b}?", "Who {verb} the {a} {joint} the {b}?", "How was the {a} with {name}?",
    "Why was the {a} {verb}?", "Did we ever find the {a} {joint} the {b}?", "What about my {a}, {b} and {c}?",
    "Tell me about the {a} that {name} {verb} last week", "Where is the {c} {a} now?", "{a} {b} {c}",
    "What did we do for {surname} with the {a}?",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Said:
    """A record to be written."""

    text: str
    kind: Kind
    by: str
    episode: str
    level: int


KEPT = Path()
"""The file that holds the words, so that a cache keeps its first vocabulary; a folder: there is none."""


def keep_words(cache: Path) -> None:
    """Use the words stored in a cache; store them there if missing."""
    global KEPT
    if not (kept := cache / "words.txt").exists():
        kept.write_text("\n".join(words_of_prose()), "utf-8")
    KEPT = kept


def words_of_prose() -> list[str]:
    """Return the words of this repository's prose."""
    prose = [path for folder, ending in PROSE for path in sorted((HERE / folder).rglob(ending))]
    counted = Counter(word for path in prose for word in re.findall(r"[a-z]{4,14}", path.read_text("utf-8").lower()))
    return sorted(word for word, times in counted.items() if times >= LEAST and word not in STOP)


@cache
def topics() -> tuple[Sequence[str], NDArray[np.int64], NDArray[np.float64]]:
    """Return the words, the words of each topic, and the frequency of the n-th of them."""
    words = KEPT.read_text("utf-8").split() if KEPT.is_file() else words_of_prose()
    rows = embedder.vectors(words)
    heads = np.random.default_rng(7).choice(len(words), TOPICS, replace=False)
    near = np.argsort(-(rows[heads] @ rows.T), axis=1)[:, :OF_TOPIC]
    share = 1 / (np.arange(OF_TOPIC) + 3.0)
    return words, near, np.cumsum(share / share.sum())


class Talk:
    """Sentences of a seed."""

    def __init__(self, seed: int) -> None:
        self._chance = np.random.default_rng(seed)
        self._words, self._near, self._shares = topics()

    def _pick(self, among: Sequence[str]) -> str:
        return among[int(self._chance.random() * len(among))]

    def _topics(self) -> NDArray[np.int64]:
        skewed = (self._chance.random(2) ** 2 * TOPICS).astype(np.int64)  # some things come up all the time
        return self._near[skewed].reshape(-1)

    def _word(self, topic: NDArray[np.int64]) -> str:
        at = int(np.searchsorted(self._shares, self._chance.random()))
        return self._words[int(topic[at + (OF_TOPIC if self._chance.random() < 0.4 else 0)])]

    def _clause(self, topic: NDArray[np.int64]) -> str:
        subject = self._pick(SUBJECTS).format(name=self._pick(NAMES))
        clause = f"{subject} {self._pick(VERBS)} the {self._word(topic)}"
        if self._chance.random() < 0.6:
            clause += f" {self._word(topic)}"
        if self._chance.random() < 0.6:
            clause += f" {self._pick(JOINTS)} the {self._word(topic)}"
        draw = self._chance.random()
        if draw < 0.08:
            clause += f" number {int(self._chance.integers(1, 100_000))}"
        elif draw < 0.2:
            clause += f" for {self.surname()}"
        return f"{clause} {self._pick(TIMES)}".rstrip()

    def surname(self) -> str:
        """Return a name of three or four syllables; a few names are frequent."""
        drawn = (self._chance.random(4) ** 1.5 * len(SYLLABLES)).astype(np.int64)
        return "".join(SYLLABLES[at] for at in drawn[: 3 + int(drawn[0]) % 2]).capitalize()

    def _sentence(self, topic: NDArray[np.int64]) -> str:
        text = self._clause(topic)
        while self._chance.random() < 0.35:
            text += f"{self._pick(AND)} {self._clause(topic)}"
        return f"{text[0].upper()}{text[1:]}."

    def question(self) -> str:
        """Return a question."""
        return self._filled(self._pick(QUESTIONS), self._topics())

    def _filled(self, frame: str, topic: NDArray[np.int64]) -> str:
        a, b, c = (self._word(topic) for _ in range(3))
        return frame.format(a=a, b=b, c=c, **self._others())

    def _others(self) -> dict[str, str]:
        return {
            "name": self._pick(NAMES), "verb": self._pick(VERBS), "joint": self._pick(JOINTS),
            "surname": self.surname(),
        }  # fmt: skip

    def episode(self, name: str, most: int) -> list[Said]:
        """Return one conversation of a user and an agent, with its notes."""
        topic, said = self._topics(), list[Said]()
        for turn in range(min(most, int(self._chance.integers(8, 41)))):
            draw = self._chance.random()
            kind: Kind = (
                "chat" if draw < 0.82 else "observation" if draw < 0.9 else "note" if draw < 0.98 else "thought"
            )
            by = "ann" if turn % 2 == 0 or kind != "chat" else "coach"
            text = self._filled(self._pick(REPLIES), topic) if by == "coach" else self._sentence(topic)
            level = int(self._chance.integers(1, 6)) if kind != "chat" and self._chance.random() < 0.05 else 0
            said.append(Said(text, kind, by, name, level))
        return said


def talk(first: int, count: int) -> list[Said]:
    """Return the records of one batch; the same place gives the same records, in any order of calls."""
    maker, said = Talk(1_000_000 + first), list[Said]()
    while len(said) < count:
        said += maker.episode(f"{first}-{len(said)}", count - len(said))
    return said


def questions(count: int, seed: int = 5) -> list[str]:
    """Return `count` questions."""
    maker = Talk(seed)
    return [maker.question() for _ in range(count)]
