"""Make a request fit a model's window: leave out what is needed least, and say what was left out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from mindstream.models.model import Cut, Request
from mindstream.models.model import estimate_tokens as estimate_tokens  # known by its users from here

LONGEST_TURN = 500
"""So many characters of an older tool's result stay."""
LONGEST_TEXTS = (4_000, 2_000, 1_000, 500)
"""How long texts may be, one step after the other, when nothing else is left to cut; their beginning and end stay."""

Count = Callable[[str], int]


def request_tokens(request: Request) -> int:
    """Estimate what a request takes: messages, calls and the descriptions of tools."""
    return request.tokens


def shorten(request: Request, room: int) -> Request:
    """Return a request of at most `room` tokens if that can be: the same, or one that says in `cut` what it lacks.

    First go items of the prompt's lists, in the order of `Prompt.trim_order`; then the length of older turns; then the
    middle of long texts, the newest utterance among them. Static words stay.
    """
    if request_tokens(request) <= room:
        return request
    request = _leave_out(request, room)
    for step in (_cut_turns, _cut_texts):
        for shorter in step(request):
            if request_tokens(request) <= room:
                return request
            request = shorter
    return request


def _leave_out(request: Request, room: int) -> Request:
    """Remove items from the prompt's lists, field by field, until the request fits."""
    for name, keep in request.prompt.trim_order:
        items = getattr(request.prompt, name, ())
        if not items:
            continue
        over = request_tokens(request) - room
        if over <= 0:
            break
        gone = 0
        for item in items if keep == "last" else reversed(items):
            if over <= 0:
                break
            over -= estimate_tokens(str(item))
            gone += 1
        if gone:
            kept = items[gone:] if keep == "last" else items[: len(items) - gone]
            request = _changed(request, {name: kept}, Cut(name, items=gone))
    return request


def _cut_turns(request: Request) -> Iterator[Request]:
    """Shorten the results of tools, the oldest first."""
    turns = list(request.turns)
    for place, turn in enumerate(turns):
        if turn.role == "tool" and len(turn.text) > 2 * LONGEST_TURN:
            turns[place] = replace(turn, text=_middle_out(turn.text, LONGEST_TURN))
            cut = Cut("turns", characters=len(turn.text) - len(turns[place].text))
            request = request.but(turns=tuple(turns), cut=(*request.cut, cut))
            yield request


def _cut_texts(request: Request) -> Iterator[Request]:
    """Take the middle out of texts, shorter each time."""
    for longest in LONGEST_TEXTS:
        changes: dict[str, Any] = {}
        cuts: list[Cut] = []
        for name in type(request.prompt).model_fields:
            before = getattr(request.prompt, name)
            after = _shortened(before, longest)
            if after != before:
                changes[name] = after
                cuts.append(Cut(name, characters=len(str(before)) - len(str(after))))
        if changes:
            request = _changed(request, changes, *cuts)
            yield request


def _shortened(value: Any, longest: int) -> Any:
    if isinstance(value, str):
        return _middle_out(value, longest)
    if isinstance(value, tuple) and all(isinstance(item, str) for item in value):
        return tuple(_middle_out(item, longest) for item in value)
    return value


def _middle_out(text: str, longest: int) -> str:
    half = longest // 2
    return text if len(text) <= longest else f"{text[:half]} … {text[-half:]}"


def _changed(request: Request, fields: dict[str, Any], *cuts: Cut) -> Request:
    return request.but(prompt=request.prompt.model_copy(update=fields), cut=(*request.cut, *cuts))
