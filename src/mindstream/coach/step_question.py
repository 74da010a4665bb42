"""A question about the step the user was given: what it asks, and whether the plan holds the answer."""

from __future__ import annotations

import re

from mindstream.coach.belief.plan import PlanStep
from mindstream.coach.moves.moves import ABOUT_A_STEP, ADAPTS
from mindstream.coach.packs.pack import Pack
from mindstream.coach.packs.reading import Reading
from mindstream.text.values import NUMBER, NUMBER_ZH
from mindstream.text.words import terms

CLAUSES = re.compile(r"[,.;?!，。；？！\n]")
STRETCH = re.compile(
    rf"\b(?:{NUMBER}|an?|some|few)[ -](?:minute|hour|day|night|week|month)s?\b"
    rf"|{NUMBER_ZH}个?(?:分钟|小时|天|晚|周|星期|月)",
    re.IGNORECASE,
)


def asked_of_step(pack: Pack, step: PlanStep | None, heard: Reading) -> str:
    """Return which of the moves about a step (moves.ABOUT_A_STEP) an utterance makes; "" where it speaks of more."""
    if step is None:
        return ""
    topics = next((each.topics for each in pack.steps if each.id == step.source), ())
    if set(heard.topics) - set(topics):
        return ""
    return next((move for move in ABOUT_A_STEP if move in heard.moves), "")


def plan_answers(pack: Pack, step: PlanStep | None, heard: Reading) -> bool:
    """Tell whether an utterance asks one thing about the step the user was given, and the plan holds the answer."""
    said = [clause for clause in CLAUSES.split(heard.text) if len(terms(clause)) > 1]
    if step is None or heard.moves & (ADAPTS | {"resources"}) or len(said) > 1:
        return False
    held = {
        "plan_again": step.do, "why_this": step.why, "safe": step.caution, "proof": step.evidence,
        "how_long": STRETCH.search(f"{step.do} {step.why}"),
    }  # fmt: skip
    return bool(held.get(asked_of_step(pack, step, heard)))
