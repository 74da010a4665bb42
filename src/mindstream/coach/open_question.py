"""What the Reasoner would like to know: how long it stands, and when the Talker may ask it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from mindstream.caches import remember
from mindstream.log.events import Thought
from mindstream.memory.memory import Memory
from mindstream.models.embedders.wordllama import vectors
from mindstream.reasoners.conversation import Line
from mindstream.text.words import terms

SENTENCE = re.compile(r"[^.!?。！？\n]+[?？]?")
SHARE, LIKENESS = 0.5, 0.45
"""The share of a question's words, or the likeness in meaning, by which another is taken for the same."""
ON_TOPIC = 2
"""So many words of a question in a line, and the line speaks of it."""
AGAIN = range(5, 8)
"""So many answers later a question that was passed over may be asked again, in words that are not known again."""
LOOKED_BACK = 100
"""So many rows of the log are looked through for what the Reasoner wanted to know."""
NEWEST, LONGEST = 4, 400
"""So many questions of an answer, its last, are compared, and so much of each."""


async def open_question(stream: Memory, slot: str, phase: str) -> str:
    """Return what the Reasoner of a slot wanted to know when it last thought; "" where nothing, or of another phase.

    What it keeps asking for belongs to the phase in which it first did.
    """
    last = await stream.store.last(stream.key, "thought")
    rows, event = [] if last is None else [last], last.event if last else None
    if last and not (isinstance(event, Thought) and event.slot == slot and not event.ask_next):
        rows = await stream.store.events(stream.key, max(0, last.seq - LOOKED_BACK), ["thought"])
    question = ""
    for row in reversed(rows):
        if not isinstance(row.event, Thought) or row.event.slot != slot:
            continue
        asked = row.event.ask_next
        if not asked or (question and not _same(question, asked)):
            break
        if row.event.text.partition(": ")[0] != phase:
            return ""
        question = question or asked
    return question


def may_ask(question: str, history: Sequence[Line], utterance: str) -> tuple[str, bool]:
    """Return a question that may be asked in answer to an utterance, else ""; and whether it was asked before.

    What was asked may be asked once more, a while later, unless the user has spoken of it since; so long as the
    Reasoner wants to know it, it was not answered. Whether it fits the turn is for whoever speaks.
    """
    if not question:
        return "", False
    said = [line.text for line in history if not line.by_user]
    asked = [back for back, text in enumerate(reversed(said)) if _asks(text, question)]
    if asked and (len(asked) > 1 or asked[0] not in AGAIN or _was_spoken_of(question, history)):
        return "", True
    return ("" if _speaks_of(utterance, question) else question), bool(asked)


def _was_spoken_of(question: str, history: Sequence[Line]) -> bool:
    asked = False
    for line in history:
        asked = asked or (not line.by_user and _asks(line.text, question))
        if asked and line.by_user and _speaks_of(line.text, question):
            return True
    return False


def _speaks_of(text: str, question: str) -> bool:
    return text.rstrip()[-1:] not in ("?", "？") and len(set(terms(text)) & set(terms(question))) >= ON_TOPIC


def _asks(text: str, question: str) -> bool:
    asked = [found[0] for found in SENTENCE.finditer(text) if found[0][-1] in "?？"]
    return any(_same(question, each[:LONGEST]) for each in asked[-NEWEST:])


def _same(question: str, other: str) -> bool:
    wanted = set(terms(question))
    if len(wanted & set(terms(other))) >= SHARE * len(wanted):
        return True
    return float(_meaning(question) @ _meaning(other)) >= LIKENESS


@remember(512)
def _meaning(text: str) -> NDArray[np.float32]:
    found: NDArray[np.float32] = vectors([text])[0]
    return found
