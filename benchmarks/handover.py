"""Measure whether the Talker hands over to the Reasoner where a person would, with the product's own prompt.

    python benchmarks/handover.py SITUATIONS.jsonl --model URL#NAME [--at-once 8] [--patience 3600] [--out FILE]

Each line of SITUATIONS.jsonl: {"id": "a1", "language": "en", "talk": [{"by": "person", "text": "…"}, {"by": "coach",
"text": "…"}], "says": "…", "accepted": ["think", "wait"], "direct_wish": false}, and optionally "belief" (fields of the
pack, `phase` among them), "plan" (steps: title, do, why, state) and "one_answer" (nothing can follow the answer).

The conversation is written into a new memory as if it had taken place. The Talker answers `says`, and its decision
(alone, think, wait) is compared with `accepted`. Only this first call is made; no reasoner runs. An endpoint at which
people answer takes minutes: `--patience` is the timeout of one answer in seconds.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from keys import key_of
from pydantic import BaseModel, ConfigDict, JsonValue

from mindstream.coach.belief.belief import plan_slot
from mindstream.coach.belief.plan import CoachingPlan, PlanStep
from mindstream.coach.coach import Coach
from mindstream.coach.talker import Handover, Way
from mindstream.errors import MindstreamError
from mindstream.log.events import PlanChanged
from mindstream.memory.store.record import RecordDraft
from mindstream.memory.store.store import Entry
from mindstream.minds.mind import Mind
from mindstream.models.roles import Models

WAYS: tuple[Way, ...] = ("alone", "think", "wait")


class Spoken(BaseModel):
    """A line of the conversation so far."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    by: str
    text: str


class Case(BaseModel):
    """An utterance, its context, and the decisions that a person would accept."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    id: str
    language: str = "en"
    talk: tuple[Spoken, ...] = ()
    says: str
    accepted: tuple[Way, ...]
    direct_wish: bool = False
    belief: dict[str, JsonValue] = {}
    plan: tuple[PlanStep, ...] = ()
    one_answer: bool = False


async def put(case: Case, models: Models, patience_s: float) -> dict[str, Any]:
    """Return the Talker's decision in a situation; `way` is "failed" if it gave no answer."""
    words, handover = "", Handover()
    with tempfile.TemporaryDirectory(prefix="handover-") as folder:
        async with Mind.open(
            folder, user="ann", session="now", model=models, responder=Coach.using(gate="talker")
        ) as mind:
            coach = Coach.of(mind)
            await prime(mind, coach, case)
            await mind.memory.retain(case.says, "chat", by="ann", episode="now", data={"by_user": True})
            heard = (await mind.memory.store.events(key_of("ann")))[-1].seq
            try:
                async with asyncio.timeout(patience_s):
                    more = {"decides": True, "one_answer": case.one_answer}
                    situation = await coach.talker.situation(case.says)
                    speech = await coach.talker.speak(situation, heard, handover, **more)
                    async with contextlib.aclosing(speech.parts) as parts:
                        async for part in parts:
                            words += speech.read(part)
                            if speech.ended:
                                break
                    words += speech.finish()
                way: str = handover.way
            except (MindstreamError, TimeoutError) as error:
                way, words = "failed", f"{words} [{type(error).__name__}: {error}]"
    return {
        "id": case.id, "language": case.language, "says": case.says, "way": way, "accepted": case.accepted,
        "agrees": way in case.accepted, "direct_wish": case.direct_wish, "words": words,
    }  # fmt: skip


async def prime(mind: Mind, coach: Coach, case: Case) -> None:
    """Write the conversation, the belief and the plan into the mind's memory."""
    stream, pack = mind.memory, coach.pack
    for line in case.talk:
        person = line.by == "person"
        by = stream.name if person else "coach"
        await stream.retain(line.text, "chat", by=by, episode="now", data={"by_user": person})
    if case.belief and (revision := await stream.revision(pack.name, case.belief, pack.belief, evidence=(), by="ann")):
        await stream.commit(revision)
    if case.plan:
        plan = CoachingPlan(steps=case.plan)
        new = RecordDraft(
            text=plan.written(), kind="plan", by=pack.name, slot=plan_slot(pack), version=1,
            data={"plan": plan.model_dump(mode="json")},
        )  # fmt: skip
        event = PlanChanged(version=1, text=plan.written())
        await stream.commit(Entry(event, pack.name, tuple(await stream.build_records([new]))))


async def play(cases: list[Case], name: str, at_once: int, patience_s: float) -> list[dict[str, Any]]:
    """Run all situations, several at a time; return the results in their order."""
    places = asyncio.Semaphore(at_once)
    table = {"default": "rules", "talker": name}
    models = Models.named(table, at_once=at_once, retry=1, patience_s=patience_s)

    async def one(case: Case) -> dict[str, Any]:
        async with places:
            found = await put(case, models, patience_s)
        print(f"{found['id']:12} {found['way']:7} {'' if found['agrees'] else 'NOT ' + '/'.join(case.accepted)}",
              file=sys.stderr)  # fmt: skip
        return found

    async with models:
        return await asyncio.gather(*map(one, cases))


def summary(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Count agreements, and direct wishes that were answered without waiting."""
    wishes = [each for each in found if each["direct_wish"]]
    return {
        "situations": len(found), "agree": sum(each["agrees"] for each in found),
        "failed": sum(each["way"] == "failed" for each in found),
        "direct_wishes": len(wishes),
        "direct_wishes_not_waited_for": [each["id"] for each in wishes if each["way"] != "wait"],
        "disagree": [each["id"] for each in found if not each["agrees"]],
        "ways": dict(Counter(each["way"] for each in found)),
        "by_language": {
            language: f"{sum(each['agrees'] for each in some)} of {len(some)}"
            for language in dict.fromkeys(each["language"] for each in found)
            if (some := [each for each in found if each["language"] == language])
        },
    }  # fmt: skip


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("situations", type=Path)
    parser.add_argument("--model", required=True, help="the model: http://127.0.0.1:8055/v1#door, openai:…, local")
    parser.add_argument("--at-once", type=int, default=8)
    parser.add_argument("--patience", type=float, default=3600.0, metavar="S", help="timeout of one answer in seconds")
    parser.add_argument("--out", type=Path, help="file for one JSON line per situation")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    lines = given.situations.read_text("utf-8").splitlines()
    cases = [Case.model_validate_json(line) for line in lines if line.strip()]
    found = asyncio.run(play(cases, given.model, given.at_once, given.patience))
    if given.out:
        given.out.write_text("".join(json.dumps(each, ensure_ascii=False) + "\n" for each in found), "utf-8")
    total = summary(found)
    print(json.dumps(total, ensure_ascii=False) if given.json else
          "\n".join(f"{name:30} {value}" for name, value in total.items()))  # fmt: skip


if __name__ == "__main__":
    main()
