"""Which facts of interest about the user does an utterance hold?, and the rule that answers.

Source: Christakopoulou 2024, 3.2.2.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import islice

from pydantic import BaseModel, ConfigDict, Field

from mindstream.models.model import Message
from mindstream.models.prompt import Prompt, rule
from mindstream.reasoners.conversation import Line, user_statements
from mindstream.text.corrections import Correction, only_corrects, read_correction
from mindstream.text.links import has_links, links, without_links
from mindstream.text.revise import apply_correction, resolve_correction
from mindstream.text.support import Support, complaint
from mindstream.text.words import terms


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
    let_go: list[int] = Field(
        default_factory=list,
        max_length=200,
        description="Numbers of known facts that the user takes back or wants forgotten, with nothing in their place.",
    )


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
        found, links_gone = self._without_made_up_links(reply.model_copy(update={"facts": held}) if gone else reply)
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
        return (
            (reply.model_copy(update={"facts": facts}), f"The user named no link {', '.join(gone)[:400]}.")
            if gone
            else (reply, "")
        )


LONGEST = 200
SENTENCES = re.compile(r"(?<=[.!?。！？;；\n])\s*")
SINGLE = {
    "name": [
        re.compile(r"\b(?i:my name(?:'s| is)) (?P<o>[A-Z]\w+(?: (?:[A-Z]\w*|\d+)){0,2})"),
        re.compile(
            r"^\W*(?:(?:hi|hello|hey)\b[\s,.!]+)?my name(?:'s| is) (?!not\b|a\b|the\b)(?P<o>[a-z]{2,})(?=[,.!]|$| and )"
        ),
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
    r"\?|？|\b(can|could|would|will|should|shall|do|does|did|is|are) (you|i|we|it|that|there|the|this)\b"
    r"|^\W*((and|but|so|ok) )*(what|why|how|when|where|which|who) (you|i|we|it|that|there|the|this)\b"
    r"|^\W*(please|tell|give|make|help|show|let'?s|let us|also look|look)\b"
    r"|\b(i'?d|i would) (like|prefer|rather)\b|\bi (need|want) (you|your|help|a plan)\b"
    r"|\bi (don'?t|do not|dont) (like|want) (that|this|it|the)\b"
    r"|\bi (hear|see|agree|understand|guess|think so)\b\W*$"
    r"|吗|呢|请|帮我|给我|怎么|什么|不喜欢(这|那)",
    re.I,
)
"""Questions and requests: no facts about the user."""
TO_THE_MIND = re.compile(
    r"\b(?!you know\b|you see\b|thank you\b)(?:you|your|yours|you'(?:re|ve|d|ll)|u|ur)\b|[你您]", re.I
)
"""Words to the one who listens: remarks on the talk."""
TWO = re.compile(
    r"(?:,\s?|\s)(?:and|but|plus)\s(?=(?:i|i'm|im|i've|my|we|our)\b)|,\s(?=(?:i|i'm|im|i've|my|we|our)\b)"
    r"|[，,](?:而且|并且|但是?|还有)?(?=我|咱)",
    re.I,
)
"""Between what one clause says of oneself and the next."""
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
    """Keep what users state of themselves as they said it; read a name, an age, a job as such; correct what was."""
    found = _Found(ask.known)
    said = [line.text for line in ask.conversation if line.by_user]
    for utterance in ask.utterances:
        sentences = SENTENCES.split(utterance)
        if correction := read_correction(utterance):
            correction = resolve_correction(correction, said)
            if found.correct(correction, utterance) or found.hold(correction, utterance, said) or correction.forgets:
                sentences = [each for each in sentences if not any(map(each.__contains__, correction.named))]
        for clause in islice(_clauses(sentences), LOOKED_AT):
            found.facts += _facts(clause, ask.known)
        said.append(utterance)
    return Facts(facts=found.facts[:MOST], let_go=sorted(found.gone))


class _Found:
    """What was known and what is found, as it stands after each correction."""

    def __init__(self, known: Sequence[str]) -> None:
        self.known = list(known)
        self.facts: list[Fact] = []
        self.gone: set[int] = set()

    def correct(self, correction: Correction, utterance: str) -> bool:
        """Put right what a correction fits; tell whether it fitted anything."""
        changes = apply_correction(correction, [*self.known, *(fact.text for fact in self.facts)])
        lost: list[Fact] = []
        for change in changes:
            n = change.at - len(self.known)
            if n >= 0:
                before = self.facts[n]
                self.facts[n] = _restated(before.text, change.text or before.text, utterance, before.replaces)
                lost += [] if change.text else [self.facts[n]]
            elif change.text:
                self.facts.append(_restated(self.known[change.at], change.text, utterance, [change.at + 1]))
            else:
                self.gone.add(change.at + 1)
            if n < 0:
                self.known[change.at] = ""
        self.facts = [fact for fact in self.facts if fact not in lost]
        return bool(changes)

    def hold(self, correction: Correction, utterance: str, said: Sequence[str]) -> bool:
        """Note what was said as it is put right, where nothing was noted of it; else the correction itself."""
        if not correction.new:
            return False
        changed = [change.text for change in apply_correction(correction, said)][:1]
        text = next((each for each in changed if len(each) <= LONGEST and not ASKS.search(each)), "")
        if not text and (not correction.sure or ASKS.search(utterance) or TO_THE_MIND.search(utterance)):
            return False
        self.facts.append(_restated("", (text or utterance).rstrip(".。"), utterance, []))
        return True


def _restated(before: str, after: str, utterance: str, replaces: list[int]) -> Fact:
    """Return a known fact as it is after a correction."""
    predicate = next((name for name in SINGLE if before.startswith(f"{name}: ")), "said")
    text = after if after[:1] == "“" or predicate != "said" else f"“{after}”"
    value = text.removeprefix(f"{predicate}: ").strip("“”")[:LONGEST]
    return Fact(text=text[:500], predicate=predicate, object=value, rests_on=utterance[:LONGEST], replaces=replaces)


def _clauses(sentences: Sequence[str]) -> Iterator[str]:
    """Give what is said of oneself, clause by clause: "I'm Ann and I work nights" is two."""
    for sentence in sentences:
        parts = [sentence] if ASKS.search(sentence) else TWO.split(sentence)
        yield from (part.strip() for part in parts if FIRST_PERSON.search(part))


def _facts(clause: str, known: Sequence[str]) -> Iterator[Fact]:
    """Give what a clause states that has one value at a time, and what else it says."""
    if ASKS.search(clause) and clause.rstrip()[-1:] in "?？吗呢":
        return
    rest = clause
    for fact in _single(clause, known):
        yield fact
        rest = rest.replace(fact.rests_on, " ")
    if rest == clause or (FIRST_PERSON.search(rest) and len(terms(rest)) > 1):
        whole = _in_own_words(rest.strip(" ,，、。.") if rest != clause else clause)
        if whole:
            yield whole


def _in_own_words(clause: str) -> Fact | None:
    if ASKS.search(clause) or TO_THE_MIND.search(clause) or (len(clause.split()) <= 2 and len(clause) <= 5):
        return None
    if only_corrects(clause) or OF_THE_TALK.search(clause):
        return None
    return Fact(text=f"“{clause.rstrip('.。;；,，')[:400]}”", object=clause[:200], rests_on=clause[:LONGEST])


def _single(clause: str, known: Sequence[str]) -> Iterator[Fact]:
    for predicate, patterns in SINGLE.items():
        found = next(filter(None, (pattern.search(clause) for pattern in patterns)), None)
        if found is None:
            continue
        old = [n for n, text in enumerate(known, 1) if text.startswith(f"{predicate}: ")]
        value = found["o"][:LONGEST]
        yield Fact(
            text=f"{predicate}: {value}", predicate=predicate, object=value, rests_on=found[0][:LONGEST], replaces=old
        )
