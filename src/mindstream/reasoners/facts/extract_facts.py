"""Which facts of interest about the user does an utterance hold? Without a model none is noted.

Source: Christakopoulou 2024, 3.2.2.
"""

from __future__ import annotations

from collections.abc import Sequence

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


@rule(ExtractFacts)
def note_nothing(ask: ExtractFacts) -> Facts:  # noqa: ARG001
    """Stand in: note nothing. What was said is kept as it was said, and recalled with its day."""
    return Facts()
