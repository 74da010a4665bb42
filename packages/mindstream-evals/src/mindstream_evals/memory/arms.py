"""The conditions of the memory evaluation: what a reader sees from recall, from BM25 alone, or from the whole
conversation, within a token budget."""

from __future__ import annotations

import tempfile
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import numpy as np

from mindstream.clock import ManualClock
from mindstream.memory.memory import Memory
from mindstream.memory.recall.rerank import SecondStage
from mindstream.memory.store.record import RecordDraft
from mindstream.memory.store.validation import fitted_text
from mindstream.models.embedders.embedder import Embedder
from mindstream.models.model import estimate_tokens
from mindstream.text.lexical import Lexical
from mindstream.text.words import terms
from mindstream_evals.memory.forms import AskedTalk, TalkMessage, TalkQuestion

Arm = Literal["memory", "bm25", "whole"]
ARMS: tuple[Arm, ...] = ("memory", "bm25", "whole")
BEST = 100
"""Maximum number of messages that are ranked; the best that fit into the token limit are shown."""


@dataclass(frozen=True, slots=True)
class ShownLines:
    """The messages that a reader sees, in the order of the conversation; `left`: the number of messages left
    out."""

    messages: tuple[TalkMessage, ...]
    tokens: int
    left: int

    @property
    def lines(self) -> tuple[str, ...]:
        """The messages as text."""
        return tuple(map(line_of, self.messages))

    def share_of(self, evidence: frozenset[str]) -> float | None:
        """Return the share of the evidence that is shown; None: there is no evidence."""
        there = {each.id for each in self.messages} | {each.session for each in self.messages}
        return len(evidence & there) / len(evidence) if evidence else None


@dataclass
class TalkArms:
    """The conditions for one conversation."""

    talk: AskedTalk
    memory: Memory
    tokens: int
    whole_tokens: int

    def __post_init__(self) -> None:
        self._index = Lexical()
        for each in self.talk.messages:
            self._index.add(terms(f"{each.by}: {each.text}"))
        self._by_id = {each.id: each for each in self.talk.messages}

    async def show(self, question: TalkQuestion, arm: Arm) -> ShownLines:
        """Return the lines for a question under a condition."""
        if arm == "whole":
            return self._fit(self._newest(), self.whole_tokens)
        ranked = await self._recalled(question) if arm == "memory" else self._by_words(question)
        return self._fit(ranked, self.tokens)

    def _newest(self) -> list[TalkMessage]:
        """Return the newest messages that fit, without gaps."""
        kept, tokens = list[TalkMessage](), 0
        for each in reversed(self.talk.messages):
            tokens += estimate_tokens(line_of(each))
            if tokens > self.whole_tokens:
                break
            kept.append(each)
        return kept

    async def _recalled(self, question: TalkQuestion) -> list[TalkMessage]:
        found = await self.memory.recall(question.text, BEST, kinds=["chat"], touch=False)
        return [self._by_id[str(each.record.data["message"])] for each in found]

    def _by_words(self, question: TalkQuestion) -> list[TalkMessage]:
        scores = self._index.scores(terms(question.text))
        best = np.argsort(-scores, kind="stable")[:BEST]
        return [self.talk.messages[at] for at in best if scores[at] > 0]

    def _fit(self, ranked: Sequence[TalkMessage], most: int) -> ShownLines:
        """Select the messages that fit, best first, and return them in the order of the conversation."""
        kept, tokens = list[TalkMessage](), 0
        for each in ranked:
            size = estimate_tokens(line_of(each))
            if tokens + size <= most:
                kept.append(each)
                tokens += size
        place = {each.id: at for at, each in enumerate(self.talk.messages)}
        ordered = tuple(sorted(kept, key=lambda each: place[each.id]))
        return ShownLines(ordered, tokens, len(self.talk.messages) - len(ordered))


@asynccontextmanager
async def open_arms(
    talk: AskedTalk, embedder: Embedder, tokens: int, whole_tokens: int, second: SecondStage | None = None
) -> AsyncIterator[TalkArms]:
    """Write a conversation into a temporary memory. No language model is called."""
    asked = [question.at for question in talk.questions if question.at is not None]
    clock = ManualClock(max([talk.ends, *asked]) + 60)
    with tempfile.TemporaryDirectory() as folder:
        async with Memory.open(Path(folder), "talk", embed=embedder, clock=clock, seed=1) as memory:
            memory.second = second
            await memory.retain_all([_draft(each) for each in talk.messages if each.text.strip()])
            yield TalkArms(talk, memory, tokens, whole_tokens)


def _draft(said: TalkMessage) -> RecordDraft:
    by_user = {} if said.by_user is None else {"by_user": said.by_user}
    return RecordDraft(
        text=fitted_text(said.text),
        kind="chat",
        by=said.by,
        episode=said.session,
        created=said.at,
        data={"message": said.id, **by_user},
    )


def line_of(said: TalkMessage) -> str:
    """Format a message for the reader."""
    day = datetime.fromtimestamp(said.at, UTC).strftime("%Y-%m-%d (%a)")
    return f"{day} {said.by}: {' '.join(said.text.split())}"
