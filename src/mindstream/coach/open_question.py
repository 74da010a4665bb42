"""What the Reasoner would like to know: how long it stands, and when the Talker may ask it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from mindstream.caches import remember
from mindstream.coach.gates.gate import Situation
from mindstream.coach.gates.quick import QuickGate
from mindstream.coach.moves.moves import ADAPTS, ASKS, PUTS_OFF, SOCIAL
from mindstream.coach.packs.pack import Pack
from mindstream.coach.packs.reading import read_utterance
from mindstream.log.events import Thought
from mindstream.memory.stream import Stream
from mindstream.models.embedders.wordllama import vectors
from mindstream.reasoners.conversation import Line
from mindstream.text.words import terms

SENTENCE = re.compile(r"[^.!?。！？\n]+[?？]?")
SHARE, LIKENESS = 0.5, 0.45
"""The share of a question's words, or the likeness in meaning, by which another is taken for the same."""
ON_TOPIC = 2
"""So many words of a question in a line, or one of its topics, and the line speaks of it."""
AGAIN = range(5, 8)
"""So many answers later a question that was passed over may be asked again, in words that are not known again."""
LOOKED_BACK = 100
"""So many rows of the log are looked through for what the Reasoner wanted to know."""
NEWEST, LONGEST = 4, 400
"""So many questions of an answer, its last, are compared, and so much of each."""


async def open_question(stream: Stream, slot: str, phase: str) -> str:
    """Return what the Reasoner of a slot wanted to know when it last thought; "" where nothing, or of another phase.

    What it keeps asking for belongs to the phase in which it first did.
    """
    last = await stream.store.last(stream.name, "thought")
    rows = await stream.store.events(stream.name, max(0, last.seq - LOOKED_BACK), ["thought"]) if last else []
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


class Timing:
    """Decides when the Talker may ask what the Reasoner would like to know."""

    def __init__(self, pack: Pack) -> None:
        self._pack, self._gate = pack, QuickGate(pack)

    def may_ask(self, question: str, history: Sequence[Line], situation: Situation) -> tuple[str, bool]:
        """Return a question that may be asked in answer to an utterance, else ""; and whether it was asked before.

        Never in small talk, nor when the user speaks of it. What was asked and passed over may be asked once more, a
        while later; what was asked and answered, in whole or in part, is let go.
        """
        if not question:
            return "", False
        said = [line.text for line in history if not line.by_user]
        asked = [back for back, text in enumerate(reversed(said)) if _asks(text, question)]
        if asked and (len(asked) > 1 or asked[0] not in AGAIN or self._was_answered(question, history, situation)):
            return "", True
        if self._answers(situation, question, at_once=False) or self._is_small_talk(situation):
            return "", bool(asked)
        return question, bool(asked)

    def _was_answered(self, question: str, history: Sequence[Line], situation: Situation) -> bool:
        """Tell whether the user answered it after it was asked: at once by anything, later by what speaks of it."""
        asked = False
        for before, line in pairwise(history):
            at_once = not before.by_user and _asks(before.text, question)
            asked = asked or at_once
            if asked and line.by_user and self._answers(replace(situation, text=line.text), question, at_once):
                return True
        return False

    def _answers(self, situation: Situation, question: str, at_once: bool) -> bool:
        heard, wanted = read_utterance(self._pack, situation.text), read_utterance(self._pack, question)
        if "question" in heard.moves or heard.moves & (ASKS | ADAPTS | PUTS_OFF):
            return False
        if set(heard.topics) & set(wanted.topics) or len(set(terms(heard.text)) & set(terms(question))) >= ON_TOPIC:
            return True
        elsewhere = bool(heard.topics and wanted.topics)
        return at_once and not elsewhere and not (heard.moves & SOCIAL and self._is_small_talk(situation))

    def _is_small_talk(self, situation: Situation) -> bool:
        """Tell whether an utterance tells nothing by itself, whatever it may answer."""
        return not self._gate.decide(replace(situation, said="")).thinks


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
