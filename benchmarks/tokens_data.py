"""The recorded questions of ReWOO's authors, from their file, and a mapping from planned steps to observations."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

REACT, PLANS = "HOTPOTQA_REACT", "HOTPOTQA_PWS_BASE"
TURN = re.compile(r"Thought: (?P<thought>.*)\nAction: (?P<tool>\w+)\[(?P<input>.*)\](?:\nObservation: (?P<seen>.*))?")
STEP = re.compile(r"^#(E\d+) = (\w+)\[", re.MULTILINE)
OBSERVED, SEARCHED, ANSWER = "observed", "searched", "answer"
EVIDENCE: tuple[dict[str, tuple[str, tuple[int, ...]]], ...] = (
    {"E1": (OBSERVED, (0, 1)), "E2": (SEARCHED, (2,)), "E3": (OBSERVED, (2, 3)), "E4": (ANSWER, ())},
    {"E1": (OBSERVED, (0, 1)), "E2": (ANSWER, ())},
    # The second film was not searched for: the observation of the first is used for it.
    {"E1": (OBSERVED, (0, 1)), "E2": (OBSERVED, (1,)), "E3": (ANSWER, ())},
    {"E1": (OBSERVED, (0,)), "E2": (OBSERVED, (1,)), "E3": (ANSWER, ())},
    {"E1": (OBSERVED, (0,)), "E2": (OBSERVED, (1,)), "E3": (ANSWER, ())},
    {"E1": (OBSERVED, (0,)), "E2": (OBSERVED, (1,)), "E3": (ANSWER, ())},
)
"""For each question, the result of each planned step: recorded observations, the input of a recorded search, or the
recorded answer.
"""


@dataclass(frozen=True)
class Acted:
    """One recorded round of ReAct."""

    thought: str
    tool: str
    input: str
    seen: str


@dataclass(frozen=True)
class Question:
    """A question with both recorded solutions; `react` and `plan` are their texts, as shown in exemplars."""

    task: str
    answer: str
    rounds: tuple[Acted, ...]
    react: str
    plan: str
    evidence: dict[str, str]

    @property
    def steps(self) -> tuple[tuple[str, str], ...]:
        """The plan's steps: id and tool."""
        return tuple(STEP.findall(self.plan))


def read_questions(path: Path) -> list[Question]:
    """Read the questions that have both a ReAct trace and a plan."""
    texts = json.loads(path.read_text("utf-8"))
    traces, plans = _blocks(texts[REACT]), _blocks(texts[PLANS])
    return [_question(*each) for each in zip(traces, plans, EVIDENCE, strict=True)]


def _blocks(text: str) -> list[str]:
    """Return a text's questions, each with the text below it."""
    blocks = [block.strip() for block in re.split(r"(?m)^(?=Question: )", text)[1:]]
    return [block for block in blocks if "{input}" not in block]


def _question(react: str, plan: str, mapping: dict[str, tuple[str, tuple[int, ...]]]) -> Question:
    rounds = tuple(Acted(m["thought"], m["tool"], m["input"], m["seen"] or "") for m in TURN.finditer(react))
    answer = rounds[-1].input

    def found(kind: str, at: tuple[int, ...]) -> str:
        return (
            answer if kind == ANSWER else "\n".join(rounds[n].seen if kind == OBSERVED else rounds[n].input for n in at)
        )

    task = react.partition("\n")[0].removeprefix("Question: ")
    return Question(task, answer, rounds, react, plan, {id: found(*each) for id, each in mapping.items()})


def planned_words(question: Question) -> str:
    """Return the planner's output: the plan without the question."""
    return question.plan.partition("\n")[2]
