"""Run a contest between the coach and plain agents, judged blind, in both orders; all steps are stored, so a run can be
resumed."""

from __future__ import annotations

import asyncio
import json
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field

from mindstream.coach.packs.load import SHIPPED
from mindstream.coach.packs.pack import Pack
from mindstream.errors import SettingsError, prefixed
from mindstream.frozen import Frozen
from mindstream.models.ask import ask
from mindstream.models.model import Model, estimate_tokens
from mindstream.models.prompt import Prompt
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.models.wrappers.override import MAX_BYTES
from mindstream.paths import read_text
from mindstream_evals.contest.play import COACH, PLAIN, Contest, Played, Script, Turn, by_people, read_talks, write_page

DRAWS = 2_000


def score(votes: Sequence[str]) -> float:
    """Return the preference for the coach in one conversation, the mean of its votes: from -1 to 1."""
    values = [0.0 if vote == "same" else 1.0 if vote == COACH else -1.0 for vote in votes]
    return sum(values) / max(1, len(values))


def interval(values: Sequence[float], seed: int = 0) -> tuple[float, float]:
    """Return the 95 % interval of the mean, by bootstrap over conversations."""
    draw = random.Random(seed)
    means = sorted(sum(draw.choices(values, k=len(values))) / len(values) for _ in range(DRAWS))
    return means[int(0.025 * DRAWS)], means[int(0.975 * DRAWS) - 1]


def summarise(
    played: Sequence[Played], votes: Mapping[str, Mapping[str, Sequence[str]]], points: Mapping[str, Sequence[float]]
) -> dict[str, Any]:
    """Return the results of each side (contestant): cost per turn, preference for the coach, share of right answers.

    Args:
        votes: preferred sides by opponent and conversation. points: for each side, the grades of its answers to lines
            with a reference answer (`key`).
    """
    found: dict[str, Any] = {}
    for side in dict.fromkeys(each.side for each in played):
        turns = [turn for each in played if each.side == side for turn in each.turns]
        scores = {id_: score(cast) for id_, cast in votes.get(side, {}).items() if cast}
        found[side] = _cost(turns) | (_preference(scores) if scores else {})
        if graded := points.get(side):
            found[side] |= {"questions": len(graded), "right": round(sum(graded) / len(graded), 3)}
    return found


def _preference(scores: Mapping[str, float]) -> dict[str, Any]:
    low, high = interval(list(scores.values()))
    return {
        "talks": len(scores),
        "coach_preferred": sum(each > 0 for each in scores.values()),
        "coach_worse": sum(each < 0 for each in scores.values()),
        "preference": round(sum(scores.values()) / len(scores), 3),
        "interval": [round(low, 3), round(high, 3)],
        "by_talk": dict(scores),
    }


def _cost(turns: Sequence[Turn]) -> dict[str, float]:
    def mean(of: Callable[[Turn], float]) -> float:
        return sum(map(of, turns)) / max(1, len(turns))

    seconds = sorted(turn.first_s for turn in turns)
    return {
        "turns": len(turns),
        "tokens_a_turn": round(mean(lambda turn: turn.tokens)),
        "cached_at_a_tenth": round(mean(lambda turn: turn.tokens - 0.9 * turn.cached)),
        "usd_a_turn": round(mean(lambda turn: turn.cost_usd), 6),
        "first_s": seconds[len(seconds) // 2] if seconds else 0.0,
    }


COACH_TURN, PLAIN_TURN, COACH_TALK = 1_700, 700, 1.1
"""Constants of the cost estimate: tokens of a turn of the coach and of a plain agent, in addition to the conversation;
and how many times the coach reads the conversation (`benchmarks/coach_tokens.py`)."""


@dataclass(frozen=True)
class Terms:
    """The options of a contest.

    Attributes:
        talks: file of the conversations. out: folder of the results; the same call resumes.
        judge: model that judges; "": people judge on a page.
        against: names of the opponents.
        constitution: file with the opponents' constitution; None: the pack's `plain_agent.md`, else the pack's own.
    """

    talks: Path
    out: Path
    judge: str = ""
    against: Sequence[str] = (PLAIN,)
    constitution: Path | None = None


def opponent(pack: Pack, terms: Terms) -> str:
    """Return the constitution of the opponents (see `Terms`)."""
    # A pack may ship a constitution for the plain agent next to its own.
    beside = SHIPPED / pack.name / "plain_agent.md"
    path = terms.constitution or (beside if beside.is_file() else None)
    with prefixed(path):
        return read_text(path, MAX_BYTES) if path else pack.constitution


def estimate(scripts: Sequence[Script]) -> dict[str, int]:
    """Estimate the tokens of the coach and of a plain agent that is shown the whole conversation."""
    lengths = [(len(each.lines), sum(estimate_tokens(line.text) + 90 for line in each.lines)) for each in scripts]
    talk = sum(length * turns // 2 for turns, length in lengths)
    turns = sum(turns for turns, _ in lengths)
    return {"turns": turns, COACH: turns * COACH_TURN + round(COACH_TALK * talk), PLAIN: turns * PLAIN_TURN + talk}


async def run_contest(
    models: Models, pack: Pack, terms: Terms, told: Callable[[str], None], gate: str = ""
) -> dict[str, Any]:
    """Play and judge the missing conversations, and return the results.

    Raises:
        InputError: the conversations or the folder cannot be used.
        SettingsError: no model is set.
        ModelError: a model is not available; results until then are stored.
    """
    scripts = read_talks(terms.talks)
    if models.of("talker").name == Rules.name:
        raise SettingsError("a contest needs a model for both sides: name one with --model")

    def say(played: Played) -> None:
        told(f"played {played.id} by {played.side}: {len(played.turns)} turns")

    played = await Contest(models, pack, opponent(pack, terms), terms.out, gate, terms.against, say).play(scripts)
    if not terms.judge:
        write_page(terms.out, scripts, played)
        return summarise(played, by_people(terms.out), {})
    judge = models.of("judge")
    votes = {
        side: dict(await asyncio.gather(*(_judged(judge, terms.out, each, side, played, told) for each in scripts)))
        for side in terms.against
    }
    return summarise(played, votes, await _graded(judge, terms.out, scripts, played))


async def _judged(
    model: Model, folder: Path, script: Script, side: str, played: Sequence[Played], told: Callable[[str], None]
) -> tuple[str, list[str]]:
    """Return a conversation's id and the side that the judge prefers in each order; stored verdicts are reused."""
    path = folder / f"{script.id}.{side}.votes.json"
    if not path.is_file():
        texts = {each.side: each.written() for each in played if each.id == script.id}
        orders = ((COACH, side), (side, COACH))
        votes = [await vote(model, (a, texts[a]), (b, texts[b]), script.who) for a, b in orders]
        path.write_text(json.dumps([each.model_dump() for each in votes], ensure_ascii=False, indent=1), "utf-8")
        told(f"judged {script.id} against {side}")
    found = [Vote.model_validate(each) for each in json.loads(path.read_text("utf-8"))]
    return script.id, [each.preferred for each in found]


async def _graded(
    model: Model, folder: Path, scripts: Sequence[Script], played: Sequence[Played]
) -> dict[str, list[float]]:
    """Return, for each side, the points of its answers to lines with a reference answer (`key`).

    Stored grades are reused.
    """
    keys = {(each.id, line.text): line.key for each in scripts for line in each.lines if line.key}
    path = folder / "grades.json"
    kept: dict[str, str] = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    points: dict[str, list[float]] = {}
    for each in played:
        for turn in each.turns:
            if not (key := keys.get((each.id, turn.heard))):
                continue
            name = f"{each.id}.{each.side}: {turn.heard}"
            if name not in kept:
                found: Grade = await ask(model, GradeAnswer(question=turn.heard, key=key, answer=turn.said))
                kept[name] = found.grade
                path.write_text(json.dumps(kept, ensure_ascii=False, indent=1), "utf-8")
            points.setdefault(each.side, []).append(POINTS[kept[name]])
    return points


class Preference(Frozen):
    """Which of two transcripts is better."""

    why: str = Field("", max_length=4_000)
    preferred: Literal["A", "B", "same"]


class Judge(Prompt[Preference]):
    """Which coach would this person prefer to return to?"""

    role = "judge"

    a: str
    b: str
    who: str = ""


class Vote(BaseModel):
    """A judge's verdict on a pair of conversations, with the names of the contestants ("sides") in place of A and B.

    Attributes:
        first: the side that the prompt showed as A.
        preferred: the better side, or "same".
    """

    first: str
    preferred: str
    why: str


async def vote(model: Model, first: tuple[str, str], second: tuple[str, str], who: str) -> Vote:
    """Ask which of two (side, transcript) is better, without naming the sides."""
    found = await ask(model, Judge(a=first[1], b=second[1], who=who))
    sides = {"A": first[0], "B": second[0], "same": "same"}
    return Vote(first=first[0], preferred=sides[found.preferred], why=found.why)


POINTS = {"right": 1.0, "partly": 0.5, "wrong": 0.0}


class Grade(Frozen):
    """How much of the key an answer holds."""

    why: str = Field("", max_length=2_000)
    grade: Literal["right", "partly", "wrong"]


class GradeAnswer(Prompt[Grade]):
    """Does the answer contain what a right one must?"""

    role = "judge"

    question: str
    key: str
    answer: str
