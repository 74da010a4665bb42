"""Measure answers from memory: questions about the user, asked on a third day after two days of conversation.

    python benchmarks/answers.py --data FILE [--model NAME] [--json] [--show]

FILE is a JSON list of dialogues with `id`, `language`, `sessions` (two lists of utterances) and `questions` (`text`,
`expect`: any of these strings is in the correct answer, `kind`: told, corrected or not_told). An answer that quotes is
correct if the quotation contains an expected string, and wrong otherwise. For `not_told`, the correct answer is that
nothing was found. `elsewhere` is the control: each dialogue's questions are asked of the next dialogue, which can
answer almost none of them; every quotation there is a false answer.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mindstream import Coach, Mind
from mindstream.clock import DAY_S, ManualClock
from mindstream.coach.packs.load import load, phrases

QUOTED = re.compile(r"[“「](.+?)[”」]", re.DOTALL)
NOTHING_FOUND = [text for language in ("en", "zh") for text in phrases(load("sleep"), "not_told", language)]


@dataclass(frozen=True, slots=True)
class Asked:
    """A question, the answer, and its outcome: quoted, wrong, nothing_found or other."""

    dialogue: str
    question: dict[str, Any]
    answer: str
    again: bool

    @property
    def outcome(self) -> str:
        quoted = " ".join(QUOTED.findall(self.answer))
        if any(text in self.answer for text in NOTHING_FOUND):
            return "nothing_found"
        if any(each.casefold() in (quoted or self.answer).casefold() for each in self.question["expect"]):
            return "quoted"
        return "wrong" if quoted else "other"


async def ask(dialogue: dict[str, Any], questions: Sequence[dict[str, Any]], model: str) -> list[Asked]:
    """Replay a dialogue on its own days, then ask its questions on the day after."""
    clock, asked, before = ManualClock(), list[Asked](), ""
    with tempfile.TemporaryDirectory() as folder:
        for number, utterances in enumerate(dialogue["sessions"]):
            async with Mind.open(
                Path(folder), user="u", session=f"s{number}", clock=clock, model=model, responder=Coach.using()
            ) as mind:
                for text in utterances:
                    clock.advance(60)
                    await mind.send(text)
                    await mind.settled()
            clock.advance(DAY_S)
        async with Mind.open(
            Path(folder), user="u", session="asked", clock=clock, model=model, responder=Coach.using()
        ) as mind:
            for question in questions:
                clock.advance(60)
                answer = await mind.send(question["text"])
                await mind.settled()
                asked.append(Asked(dialogue["id"], question, answer, answer == before))
                before = answer
    return asked


def count(asked: Sequence[Asked]) -> dict[str, Any]:
    """Count the outcomes of each kind of question."""
    kinds = dict.fromkeys(each.question["kind"] for each in asked)
    by_kind = {kind: Counter(each.outcome for each in asked if each.question["kind"] == kind) for kind in kinds}
    right = sum(found["nothing_found" if kind == "not_told" else "quoted"] for kind, found in by_kind.items())
    return {"questions": len(asked), "right": right, "again": sum(each.again for each in asked), **by_kind}


async def run(data: list[dict[str, Any]], model: str, show: bool) -> dict[str, Any]:
    """Ask every dialogue its own questions and, as the control, those of the next."""
    results: dict[str, Any] = {}
    for language in dict.fromkeys(each["language"] for each in data):
        dialogues = [each for each in data if each["language"] == language]
        own = [each for dialogue in dialogues for each in await ask(dialogue, dialogue["questions"], model)]
        others = zip(dialogues, [*dialogues[1:], *dialogues[:1]], strict=True) if len(dialogues) > 1 else ()
        elsewhere = [each for one, next_ in others for each in await ask(one, next_["questions"], model)]
        quoted = sum(each.outcome in ("quoted", "wrong") for each in elsewhere)
        results[language] = {**count(own), "elsewhere": {"questions": len(elsewhere), "quoted": quoted}}
        for each in (*own, *elsewhere) if show else ():
            print(
                f"{each.dialogue} {each.question['kind']:9} {each.outcome:13} {each.question['text']} | {each.answer}"
            )
    return results


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="rules")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--show", action="store_true", help="print every answer")
    args = parser.parse_args()
    results = asyncio.run(run(json.loads(args.data.read_text("utf-8")), args.model, args.show))
    for language, found in results.items() if not args.json else ():
        print(language, found)
    if args.json:
        print(json.dumps(results, ensure_ascii=False))


if __name__ == "__main__":
    main()
