"""Prompts of the evaluation of towns: check claims, judge pairs of answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from pydantic import Field

from mindstream.frozen import Frozen
from mindstream.models.model import Message
from mindstream.models.prompt import Prompt


class Claim(Frozen):
    """Something that an answer says is so."""

    claim: str = Field(min_length=1, max_length=400, description="One short sentence with names instead of pronouns.")
    fact: int = Field(ge=0, le=1_000, description="The number of the fact that bears it out; 0: none does.")


class Claims(Frozen):
    """All that an answer claims."""

    claims: list[Claim] = Field(default_factory=list, max_length=20)


class CheckClaims(Prompt[Claims]):
    """Which claims of an answer do the facts support?"""

    role = "judge"

    who: str
    when: str
    facts: tuple[str, ...]
    """Facts as in `JudgePair`; `Claim.fact` counts them from 1."""
    question: str
    answer: str

    def ground(self, reply: Claims, turns: Sequence[Message]) -> tuple[Claims, str]:  # noqa: ARG002
        """Set the numbers of facts that do not exist to 0, and return a complaint about them for the model."""
        strange = [each.fact for each in reply.claims if each.fact > len(self.facts)]
        if not strange:
            return reply, ""
        kept = [each if each.fact <= len(self.facts) else Claim(claim=each.claim, fact=0) for each in reply.claims]
        return Claims(claims=kept), f"There are {len(self.facts)} facts, none is number {strange[0]}."


Better = Literal["first", "second", "equal"]


class Verdict(Frozen):
    """Which answer is more believable, and why."""

    why: str = Field(max_length=400, description="One sentence: what decides.")
    better: Better = Field(description="The more believable answer; equal: neither is.")


class JudgePair(Prompt[Verdict]):
    """Which of two answers to a question is more believable for a resident?"""

    role = "judge"

    who: str
    when: str
    facts: tuple[str, ...]
    """Identity, activity, plan and memories of the resident, one line each."""
    question: str
    first: str
    second: str
