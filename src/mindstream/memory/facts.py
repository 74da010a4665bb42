"""Extract facts that users state about themselves, and write them as notes, which supersede outdated notes.

Source: Christakopoulou 2024, 3.2.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from pydantic import Field

from mindstream.clock import format_spoken
from mindstream.frozen import Frozen
from mindstream.log.events import Remembered
from mindstream.memory.conversation import Line, lines, user_statements
from mindstream.memory.store.record import Record, RecordDraft, Triple, normalised
from mindstream.memory.store.store import Entry, Revision
from mindstream.models.model import Message, Model
from mindstream.models.prompt import Prompt, ask, rule
from mindstream.text.classifier import Support, complaint
from mindstream.text.links import has_links, links, without_links

if TYPE_CHECKING:
    from mindstream.memory.stream import Stream


class Fact(Frozen):
    """One fact about the user."""

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


class Facts(Frozen):
    """The facts that a model has extracted from utterances, and the known facts that the user takes back."""

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
        """Remove facts that the user's words do not support, and links that are neither in the conversation nor in a
        known fact. Return the remaining reply, and a message for the model about what was removed ("": nothing)."""
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
    """Without a model, note nothing: the utterances themselves are stored and can be recalled with their day."""
    return Facts()


KNOWN = 40
"""Maximum number of known facts in the prompt, newest last."""
SHOWN_LINES = 6
"""Maximum number of messages before the current batch (at most AT_ONCE messages) that the prompt shows for context."""


async def find_facts(
    stream: Stream, model: Model, utterances: Sequence[str], conversation: Sequence[Record]
) -> tuple[Facts, list[Record]]:
    """Ask the model which facts the utterances state. Return the facts, and the known notes that the facts may replace.

    Raises:
        ModelError: the model failed.
    """
    known = await stream.latest("note", KNOWN)
    prompt = ExtractFacts(
        utterances=tuple(utterances),
        conversation=lines(conversation),
        known=tuple(note.text for note in known),
        now=format_spoken(stream.clock.now()),
    )
    return await ask(model, prompt), known


async def facts_to_write(
    stream: Stream, found: Facts, known: Sequence[Record], draft: Callable[[str, Triple], RecordDraft], by: str
) -> tuple[Sequence[Entry], Sequence[Revision]]:
    """Return the entries that write facts as notes, and the revisions that end known notes. Revisions end the notes
    that the facts replace, and the notes that the user takes back. A note that exists already is not written again.

    Args:
        draft: builds a note from a text and a triple that says what it is about.
        by: the author of the notes.
    """
    now = stream.clock.now()
    there = await stream.find_same("note", [fact.text for fact in found.facts if not fact.replaces])
    # A correction ends the note that it replaces. So its text is compared only with notes that are valid now.
    corrected = [fact.text for fact in found.facts if fact.replaces]
    there |= await stream.store.find_same(stream.key, "note", corrected, now=now)
    first = {normalised(fact.text): fact for fact in reversed(found.facts)}
    fresh = [fact for said, fact in reversed(first.items()) if said not in there]
    drafts = [draft(fact.text, Triple("user", fact.predicate, fact.object)) for fact in fresh]
    records = await stream.build_records(drafts)
    new = there | {normalised(record.text): record for record in records}
    ends = {number: new[normalised(fact.text)].id for fact in found.facts for number in fact.replaces}
    revisions = [
        Revision(id=known[number - 1].id, valid_until=now, superseded_by=by_)
        for number, by_ in (ends | dict.fromkeys(found.let_go)).items()
        if 0 < number <= len(known) and known[number - 1].id != by_
    ]
    if not fresh:
        return (), revisions
    event = Remembered(count=len(records), kinds={"note": len(records)})
    return [Entry(event, by, tuple(records), distinct=True)], revisions


AT_ONCE = 8
"""Maximum number of messages, including the mind's own, per model call that extracts facts."""


async def extract_facts(stream: Stream, model: Model, messages: Sequence[Record]) -> list[Record]:
    """Extract facts about the user from stored messages, write them as notes, and return the new notes.

    Raises:
        ModelError: the model failed; the facts of earlier messages are kept.
    """
    written = list[Record]()
    for start in range(0, len(messages), AT_ONCE):
        part = messages[start : start + AT_ONCE]
        said = [each for each in part if each.data.get("by_user")]
        if not said:
            continue
        before = messages[max(0, start - SHOWN_LINES) : start + part.index(said[-1])]
        found, known = await find_facts(stream, model, [each.text for each in said], before)
        evidence, at = tuple(each.id for each in said), said[-1].created

        def draft(text: str, about: Triple, evidence: tuple[str, ...] = evidence, at: float = at) -> RecordDraft:
            return RecordDraft(text=text, kind="note", by="facts", evidence=evidence, depth=1, about=about, created=at)

        entries, revisions = await facts_to_write(stream, found, known, draft, "facts")
        if entries or revisions:
            await stream.commit(*entries, revisions=revisions)
        written += [record for entry in entries for record in entry.records]
    return written
