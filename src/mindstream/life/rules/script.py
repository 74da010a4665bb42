"""A turn as a script: a generator that yields calls, is sent what came of them, and returns the last words.

A rule is asked anew at each step, with all that was done; it goes through the script again up to the step that is due.
So a script must yield the same for the same results, and look at nothing that changes within a turn.
"""

from __future__ import annotations

import json
from collections.abc import Generator, Sequence
from typing import TypeAlias

from mindstream.models.model import Call, Message

Script: TypeAlias = Generator[list[Call], list[str], str]


def call(tool: str, **arguments: object) -> Call:
    """Make a call."""
    return Call(tool, json.dumps(arguments, ensure_ascii=False))


def next_step(script: Script, turns: Sequence[Message]) -> str | list[Call]:
    """Return what comes next in a script after these messages: calls, or the last words.

    Where something else was called than the script would, it ends without words: the next turn looks anew.
    """
    try:
        wished = next(script)
        for made, results in _steps(turns):
            if [each.tool for each in made] != [each.tool for each in wished]:
                return "…"
            wished = script.send(results)
    except StopIteration as end:
        return str(end.value) or "…"
    return wished


def read_result(text: str) -> str:
    """Return what a tool gave, out of the fence in which a prompt shows it."""
    inside = text.strip().removeprefix("<result>").removesuffix("</result>")
    return inside.strip().replace("&lt;", "<")


def _steps(turns: Sequence[Message]) -> list[tuple[Sequence[Call], list[str]]]:
    """Return the calls that were made, reply by reply, each with its results."""
    results = {each.call_id: read_result(each.text) for each in turns if each.role == "tool"}
    made = [each.calls for each in turns if each.role == "assistant" and each.calls]
    return [(calls, [results.get(each.id, "") for each in calls]) for calls in made]
