"""A scripted M2, M1 and M0 behind the fake endpoint: M2's calls depend on turn and step."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence

from fake_endpoint import Asked, Behaviour, Calls, Says

Script = Mapping[int, Sequence[Behaviour]]
GOAL = "Find the share"
FOUND = "The report says 17.5 %."


def call(tool: str, **arguments: object) -> tuple[str, str]:
    return tool, json.dumps(arguments)


def calls(*made: tuple[str, str], text: str = "") -> Calls:
    return Calls(made, text)


def finish(task: int = 1) -> list[Behaviour]:
    return [calls(call("finish_task", task=task, result="17.5 %")), Says("It is done.")]


def lives(m2: Script, m1: Sequence[Behaviour] = (Says(FOUND),)) -> Callable[[Asked], Behaviour]:
    """Answer as M2, M1 or M0, according to the offered tools; a turn without a script rests."""

    def behave(asked: Asked) -> Behaviour:
        messages = asked.body["messages"]
        tools = {each["function"]["name"] for each in asked.body.get("tools", ())}
        texts = [str(each["content"]) for each in messages]
        if "finish_task" in tools:
            turn, step = _place(messages, texts)
            return (m2.get(turn) or [Says("Nothing comes next.")])[step]
        if "M0" in tools:
            step = sum(each["role"] == "assistant" for each in messages)
            return m1[min(step, len(m1) - 1)]
        return Says("Step by step: it holds.")

    return behave


def _place(messages: Sequence[Mapping[str, object]], texts: Sequence[str]) -> tuple[int, int]:
    begins = max(n for n, text in enumerate(texts) if re.match(r"Turn \d+\.", text))
    found = re.match(r"Turn (\d+)\.", texts[begins])
    assert found
    return int(found[1]), sum(each["role"] == "assistant" for each in messages[begins:])
