"""A scripted M2, M1 and M0 for long lives: what they do follows from the turn, the step and nothing else."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncGenerator, Callable, Sequence

from mindstream.clock import HOUR_S, ManualClock
from mindstream.models.model import Call, Message, Part, Piece, Request, Usage

Say = str | Sequence[Call]
Answer = Callable[[int, int, Request], Say]
"""Gives what is said in a turn, at a step of it (from 1), to a request."""
TURN = re.compile(r"\ATurn (\d+)\.")


class LifeModel:
    """Answers as the functions of its roles say; each answer of M2 takes a while of a clock that is moved by hand."""

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
    """Return the turn that M2 is in (0: it is not M2), and the step."""
    openings = [n for n, each in enumerate(request.turns) if TURN.match(each.text)]
    turn = int(TURN.match(request.turns[openings[-1]].text)[1]) if openings else 0  # type: ignore[index]
    since = request.turns[openings[-1] :] if openings else request.turns
    return turn, 1 + sum(each.role == "assistant" for each in since)


def _think(_turn: int, _step: int, request: Request) -> Say:
    return f"thought about it: {request.messages[-1].text[:80]}"


def _others(request: Request, label: str) -> str:
    """Fold, dream and rate importance, each shortly."""
    if label == "fold_turns":
        return "Some turns went by: " + request.messages[-1].text[-200:]
    if label == "dream":
        return "I dreamt of: " + " ".join(request.messages[-1].text.split())[:300]
    return json.dumps({"importance": 3, "ratings": []})


def call(tool: str, **arguments: object) -> Call:
    """Make a call."""
    return Call(tool, json.dumps(arguments, ensure_ascii=False))


def result(messages: Sequence[Message]) -> str:
    """Return what the newest call gave."""
    return next((each.text for each in reversed(messages) if each.role == "tool"), "")
