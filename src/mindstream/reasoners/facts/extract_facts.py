"""Which facts of interest about the user does an utterance hold?, and the rule that answers.

Source: Christakopoulou 2024, 3.2.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.model import Message
from mindstream.models.prompt import Prompt, rule
from mindstream.reasoners.conversation import Line, user_statements
from mindstream.text.links import has_links, links, without_links
from mindstream.text.support import Support, complaint


class Fact(BaseModel):
    """One fact about the user."""

    model_config = ConfigDict(frozen=True)

    text: str = Field(min_length=1, max_length=500, description="One short sentence that stands on its own.")
    predicate: str = Field(
        "said", max_length=80, description="What it is about, in one to three words: name, age, bedtime, caffeine."
    )
    object: str = Field("", max_length=200, description="The value: Tomás, 51, 22:15, two teas a day.")
    rests_on: str = Field("", max_length=400, description="The user's words that say so, copied.")
    replaces: list[int] = Field(
        default_factory=list,
        max_length=40,
        description="Numbers of known facts that are no longer true because of this one.",
    )


class Facts(BaseModel):
    """What was learnt."""

    model_config = ConfigDict(frozen=True)

    facts: list[Fact] = Field(default_factory=list, max_length=20)


class ExtractFacts(Prompt[Facts]):
    """Which lasting facts about the user do these utterances state?"""

    utterances: tuple[str, ...]
    conversation: tuple[Line, ...] = ()
    known: tuple[str, ...] = ()
    now: str = ""

    def ground(self, reply: Facts, turns: Sequence[Message]) -> tuple[Facts, str]:  # noqa: ARG002
        """Leave out facts that rest on nothing the user said, and links that nobody said: a note may be said again."""
        support = Support(user_statements(self.conversation, self.utterances))
        held = [
            fact for fact in reply.facts if support.has_quotation(fact.rests_on) or support.has_most_words(fact.text)
        ]
        gone = [fact.text for fact in reply.facts if fact not in held]
        found, links_gone = self._without_made_up_links(Facts(facts=held) if gone else reply)
        return found, " ".join(filter(None, (complaint(gone) if gone else "", links_gone)))

    def _without_made_up_links(self, reply: Facts) -> tuple[Facts, str]:
        if not any(has_links(f"{fact.text} {fact.object}") for fact in reply.facts):
            return reply, ""
        given = links([*self.utterances, *self.known, *(line.text for line in self.conversation)])
        gone: list[str] = []

        def kept(text: str) -> str:
            left, more = without_links(text, given)
            gone.extend(more)
            return left

        facts = [fact.model_copy(update={"text": kept(fact.text), "object": kept(fact.object)}) for fact in reply.facts]
        return (Facts(facts=facts), f"The user named no link {', '.join(gone)[:400]}.") if gone else (reply, "")


LONGEST = 200
SINGLE = {
    "name": [
        re.compile(r"\b(?i:my name(?:'s| is)) (?P<o>[A-Z]\w+(?: (?:[A-Z]\w*|\d+)){0,2})"),
        re.compile(r"\b(?i:call me|i am called|i'm called) (?P<o>[A-Z]\w+)"),
        re.compile(
            r"^(?i:(?:hi|hello|hey)\b[\s,.!]+)?(?i:i'?m|i am|this is) (?P<o>[A-Z][a-z]+)(?=[,.!]|$| and | by the way)"
        ),
        re.compile(r"我(?:叫|的名字是|名叫)(?!什么|啥|谁|做)(?P<o>\w{1,8})"),
    ],
    "age": [
        re.compile(r"\b(?:i am|i'm|im) (?P<o>\d{1,3}) ?(?:years? old|yo\b|y/o)", re.I),
        re.compile(r"我(?:今年)?(?P<o>\d{1,3})岁"),
    ],
    "job": [
        re.compile(r"\bi (?:work as|am working as) (?:an? )?(?P<o>[\w -]{3,40}?)(?=[.,;!?]|$| and | but )", re.I),
        re.compile(r"我是(?:一名|一个|个)(?P<o>\w{2,10})"),
    ],
}
"""Predicates that have one value at a time, and how people state them."""

FIRST_PERSON = re.compile(r"\b(i|i'?m|i'?ve|i'?d|i'?ll|my|me|mine|we|we'?re|we'?ve|our|us|im|ive)\b|我|咱", re.I)
ASKS = re.compile(
    r"\?|？|\b(can|could|would|will|should|shall|do|does|did|is|are|what|why|how|when|where|which|who)"
    r" (you|i|we|it|that|there|the|this)\b"
    r"|^\W*(please|tell|give|make|help|show|let'?s|let us|also look|look)\b"
    r"|\b(i'?d|i would) (like|prefer|rather)\b|\bi (need|want) (you|your|help|a plan)\b"
    r"|\bi (don'?t|do not|dont) (like|want) (that|this|it|the)\b"
    r"|\bi (hear|see|agree|understand|guess|think so)\b\W*$"
    r"|吗|呢|请|帮我|给我|怎么|什么|不喜欢(这|那)",
    re.I,
)
"""Questions and requests: no facts about the user."""
OF_THE_TALK = re.compile(
    r"\b(that|this|the|your|next|first|last|another) (step|plan|idea|exercise|tip|advice|suggestion)s?\b"
    r"|\bi(?:'ve| have)?(?: just)? (did|done|tried|finished) (it|that|this)\b|\bi (don'?t|do not) know\b|\b(ha){2,}"
    r"|[这那下第][一二三]?步|计划|建议|不知道|哈哈",
    re.I,
)
"""Remarks on the talk itself, its steps and plans: no facts about the user."""


MOST = 20
"""So many facts at most are kept of a run."""
LOOKED_AT = 100
"""So many clauses about oneself are looked at: a diary says enough in them."""


@rule(ExtractFacts)
def facts_by_clauses(ask: ExtractFacts) -> Facts:
    """Keep what users state of themselves as they said it; read a name, an age, a job as such."""
    found = (fact for clause in islice(_clauses(ask.utterances), LOOKED_AT) for fact in _facts(clause, ask.known))
    return Facts(facts=list(islice(found, MOST)))


def _clauses(utterances: Iterable[str]) -> Iterator[str]:
    """Give what is said of oneself, clause by clause."""
    for utterance in utterances:
        for clause in re.split(r"(?<=[.!?。！？;；\n])\s*", utterance):
            if FIRST_PERSON.search(clause):
                yield clause.strip()


def _facts(clause: str, known: tuple[str, ...]) -> Iterator[Fact]:
    """Give what a clause states that has one value at a time, and the clause, where it says more than that."""
    single = _single(clause, known)
    if single:
        yield single
    rest = clause.replace(single.rests_on, " ") if single else clause
    if (not single or FIRST_PERSON.search(rest)) and (whole := _in_own_words(clause)):
        yield whole


def _in_own_words(clause: str) -> Fact | None:
    if ASKS.search(clause) or OF_THE_TALK.search(clause) or (len(clause.split()) <= 2 and len(clause) <= 5):
        return None
    return Fact(text=f"“{clause.rstrip('.。;；')[:400]}”", object=clause[:200], rests_on=clause[:LONGEST])


def _single(clause: str, known: tuple[str, ...]) -> Fact | None:
    for predicate, patterns in SINGLE.items():
        for pattern in patterns:
            if found := pattern.search(clause):
                old = [n for n, text in enumerate(known, 1) if text.startswith(f"{predicate}: ")]
                value = found["o"][:LONGEST]
                quoted = found[0][:LONGEST]
                return Fact(
                    text=f"{predicate}: {value}", predicate=predicate, object=value, rests_on=quoted, replaces=old
                )
    return None
