"""A scripted M2, M1 and M0 for long lives: their replies depend only on the turn and the step."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Sequence

from mindstream.clock import HOUR_S, ManualClock
from mindstream.models.model import Call, Message, Part, Piece, Request, Usage

Say = str | Sequence[Call]
Answer = Callable[[int, int, Request], Say]
"""Return the reply to a request, given the turn and its step (from 1)."""
TURN = re.compile(r"\ATurn (\d+)\.")


class LifeModel:
    """Answer with the functions of its roles; each answer of M2 advances a manual clock."""

    name = "scripted"

    def __init__(self, clock: ManualClock, m2: Answer, m1: Answer, hours: float = 0.5) -> None:
        self._clock, self._hours = clock, hours
        self._answers = {"M2": m2, "M1": m1, "M0": _think}
        self.calls = 0

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        self.calls += 1
        label = request.prompt.label()
        if request.options or label not in ("live", "carry_out", "think_deeply"):
            yield Piece(_others(request, label))
            yield Usage(100, 10, 0.0)
            return
        if request.role == "M2":
            self._clock.advance(self._hours * HOUR_S)
        turn, step = _place(request)
        said = self._answers[request.role](turn, step, request)
        for part in [Piece(said)] if isinstance(said, str) else said:
            yield part
        yield Usage(100, 10, 0.0)


def _place(request: Request) -> tuple[int, int]:
    """Return M2's turn (0: the request is not M2's) and the step."""
    openings = [n for n, each in enumerate(request.turns) if TURN.match(each.text)]
    turn = int(TURN.match(request.turns[openings[-1]].text)[1]) if openings else 0  # type: ignore[index]
    since = request.turns[openings[-1] :] if openings else request.turns
    return turn, 1 + sum(each.role == "assistant" for each in since)


def _think(_turn: int, _step: int, request: Request) -> Say:
    return f"thought about it: {request.messages[-1].text[:80]}"


def _others(request: Request, label: str) -> str:
    """Fold, dream and rate importance, with short replies."""
    if label == "fold_turns":
        return "Some turns went by: " + request.messages[-1].text[-200:]
    if label == "dream":
        return "I dreamt of: " + " ".join(request.messages[-1].text.split())[:300]
    return json.dumps({"importance": 3, "ratings": []})


def call(tool: str, **arguments: object) -> Call:
    """Make a call."""
    return Call(tool, json.dumps(arguments, ensure_ascii=False))


def result(messages: Sequence[Message]) -> str:
    """Return the result of the newest call."""
    return next((each.text for each in reversed(messages) if each.role == "tool"), "")
