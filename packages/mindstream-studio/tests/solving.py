"""A scripted model that solves tasks and grades pairs: the replies of an endpoint in the studio's tests."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx
from fake_endpoint import Asked, Behaviour, Calls, Says
from served import Served

from mindstream.sharing.grading import Criterion, Rubric

TASK = "How much is six times seven, taken twice?"
PLAN = """\
Plan: Multiply the numbers.
#E1 = calculator[6 * 7]
Plan: Multiply them once more.
#E2 = calculator[7 * 6]
Plan: Add what was found.
#E3 = calculator[#E1 + #E2]"""
USAGE = (420, 60)
RUBRIC = Rubric(
    domain="Short answers on tea", threshold=60,
    criteria=(
        Criterion(name="True", points=60, asks="Is it true for ordinary cases?"),
        Criterion(name="Of use", points=40, asks="Is it of use to the others, too?", others=True),
    ),
)  # fmt: skip


def answer(asked: Asked) -> Behaviour:
    """Answer as a planner, a worker, a solver or a scorer would."""
    messages = asked.body["messages"]
    words = json.dumps(messages, ensure_ascii=False)
    if "Plan the task" in words:
        return Says(PLAN, USAGE)
    if "Think in a sentence" in words:
        seen = sum(each["role"] == "tool" for each in messages)
        calls = ("6 * 7", "42 + 42")
        return Calls((("calculator", json.dumps({"expression": calls[seen]})),)) if seen < 2 else Says("84", USAGE)
    if "from the evidence" in words:
        return Says("84", USAGE)
    points = (5, 5) if "Blue" in words else (55, 35)
    reasons = ("It says a colour, and no heat.", "Nobody could use it.") if "Blue" in words else ("It is.", "It is.")
    grades = [
        {"criterion": each.name, "points": got, "reason": why}
        for each, got, why in zip(RUBRIC.criteria, points, reasons, strict=True)
    ]
    return Says(json.dumps({"grades": grades}), USAGE)


def ended(client: httpx.Client, id_: str) -> dict[str, Any]:
    """Poll an operation until it has ended, or waits for a person."""
    while True:
        found: dict[str, Any] = client.get(f"/api/v1/operations/{id_}").json()
        if found["state"] != "running":
            return found
        time.sleep(0.05)


def solve(served: Served, user: str, *ways: str, task: str = TASK, approve: bool = False) -> list[dict[str, Any]]:
    """Solve a task with these strategies, one after the other."""
    with served.client() as client:
        ask = {"task": task, "approve": approve, "fresh": True}
        url = f"/api/v1/users/{user}/plans"
        return [ended(client, client.post(url, json=ask | {"how": how}).json()["id"]) for how in ways]
