"""The events of a pool. Its state follows from this log alone: permissions, and the exemplars that are served.

Rows never change, so the record of who wrote, asked and judged a pair, with which model and rubric, cannot change
either.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field

from mindstream.identifiers import normal_name
from mindstream.log.declared import NoWords, Person, Quotes, RecordId
from mindstream.log.events import Event

Form = Literal["composed", "bare", "pair"]
"""The embedded text of an exemplar: the prompt including its examples, one level deep; the query alone; query and
answer."""
Verdict = Literal["admitted", "rejected"]
Agent: TypeAlias = Annotated[str, AfterValidator(normal_name)]
"""The name of an agent in its normal form; rows of earlier versions are normalised when they are read."""
BY_RULES = "rules"
"""The judge of pairs that no model has read."""
EVERYONE = "*"
"""All agents, in a list of readers or members."""


class PoolCreated(Event):
    """A pool was created for a domain; the first such row counts."""

    kind = "pool_created"
    domain: NoWords[str]
    owner: Person[Agent]
    members: Person[tuple[Agent, ...]] = (EVERYONE,)
    """The agents who may write and recall, besides the owner. Rows without it are from versions in which every agent
    could."""
    shared: bool = True
    """Whether all members may read what a writer has not granted otherwise; False: no other agent may."""
    form: Form = "composed"
    embedder: NoWords[str] = ""
    """The embedder of its vectors; "": not recorded, so that of the process that opens it."""


class RubricFrozen(Event):
    """A person froze a rubric; pairs are graded by the last one. The first is version 1."""

    kind = "rubric_frozen"
    rubric: NoWords[str]
    """The whole rubric, as `Rubric.text` writes it."""
    digest: NoWords[str]


class ExemplarOffered(Event):
    """A pair was offered; it is judged exactly once."""

    kind = "exemplar_offered"
    id: RecordId[str]
    """Computed from the pool, the writer, the query and the answer: other words are another exemplar."""
    query: Quotes[str]
    answer: Quotes[str]
    writer: Person[Agent]
    model: NoWords[str] = ""
    """The model that answered; "" if a person wrote the answer."""
    asked_by: Person[Agent] = ""
    """The author of the query, if not the writer: a user or another agent."""
    examples: NoWords[tuple[str, ...]] = ()
    """The ids of the exemplars in the prompt; an id is computed from the words of its exemplar."""
    private: bool = False
    """Until the writer shares it, only the writer is served it, and exemplars derived from it."""


class ExemplarJudged(Event):
    """The verdict on a pair, with reasons."""

    kind = "exemplar_judged"
    id: RecordId[str]
    verdict: Verdict
    score: float = 0.0
    """0 to 100; 100 for a seed pair."""
    grades: NoWords[dict[str, float]] = Field(default_factory=dict)
    reasons: Quotes[tuple[str, ...]] = ()
    model: NoWords[str] = ""
    """The judge: a model, `rules`, or "" for a seed pair."""
    rubric: int = 0
    """The version of the rubric; 0: none."""
    by_hand: bool = False
    """The owner added it: it is trusted, and other pairs are measured by it."""
    fit: float | None = None
    """How well the answer belongs to its query, in log odds (see measuring.py); None: not measured."""
    fit_by: NoWords[str] = ""
    """The measurement: `rules`, or rules and the log-probabilities of a model."""
    fit_weight: float = 1.0
    """The weight of `fit`: 1 if a user outside the members asked; for a member's pair it grows with the seed
    exemplars."""
    orders: bool = False
    """It gives orders to its reader."""
    louder: float = 1.0
    """Share of the seed exemplars that are at least as similar to an order."""


class ExemplarShared(Event):
    """A writer set who may read its exemplars, earlier pairs included; the last row counts."""

    kind = "exemplar_shared"
    writer: Person[Agent]
    readers: Person[tuple[Agent, ...]]


class PairsShared(Event):
    """A writer shared pairs that it had offered as private, with everyone who may read this writer."""

    kind = "pairs_shared"
    ids: NoWords[tuple[str, ...]]


class MembersChanged(Event):
    """The owner set who may write and recall."""

    kind = "members_changed"
    members: Person[tuple[Agent, ...]]


class ExemplarWithdrawn(Event):
    """Exemplars are no longer served, nor those derived from these: all of a writer, or single ones."""

    kind = "exemplar_withdrawn"
    writer: Person[Agent] = ""
    ids: NoWords[tuple[str, ...]] = ()
    because: Quotes[str] = ""


class SourceTrusted(Event):
    """The owner decided whether to trust a source."""

    kind = "source_trusted"
    source: Person[Agent]
    trusted: bool


class ExemplarsHelped(Event):
    """Feedback on an answer that had these exemplars in its prompt."""

    kind = "exemplars_helped"
    ids: NoWords[tuple[str, ...]]
    value: float
    """0 to 1."""
    asked: NoWords[str] = ""
    """Digest of the question, without its words; "": not known."""


class ExemplarEvicted(Event):
    """The pool was full: these are no longer served, but exemplars derived from these are."""

    kind = "exemplar_evicted"
    ids: NoWords[tuple[str, ...]]


class LessonWritten(Event):
    """A lesson was added or amended: the last row of an id counts, and the sources of all rows are kept."""

    kind = "lesson_written"
    id: NoWords[str]
    text: Quotes[str]
    applies: Quotes[str] = ""
    """When it applies; "": always."""
    state: Literal["confirmed", "assumed"] = "assumed"
    """Confirmed by a person's or a check's verdict, or an assumption of the model that wrote it."""
    sources: Quotes[tuple[str, ...]] = ()
    """What it rests on: tasks, corrections, documents."""
    writer: Person[Agent]
    asked_by: Person[Agent] = ""
    """The user whose words it rests on, if not a member by name."""
    said_by: Person[Agent] = ""
    """The person whose verdict it rests on; erasing that person's data removes the words of this row."""
    task: NoWords[str] = ""
    """Digest of the task from which it was learned."""
    replaces: NoWords[tuple[str, ...]] = ()
    """Ids of lessons that were merged into it."""
    disputes: NoWords[tuple[str, ...]] = ()
    """Ids of lessons that say otherwise."""
    private: bool = False
    """Until a member shares it, only the user whose words it rests on is shown it; without such a user, its writer."""
    untrusted: bool = False
    """Third-party content was part of the work from which it was learned."""


class LessonsShared(Event):
    """A member shared private lessons with all members, or the owner vouched for lessons."""

    kind = "lessons_shared"
    ids: NoWords[tuple[str, ...]]
    vouched: bool = False


class LessonRetired(Event):
    """Lessons are no longer shown."""

    kind = "lesson_retired"
    ids: NoWords[tuple[str, ...]]
    because: Quotes[str] = ""


class TaskJudged(Event):
    """The verdict on a task whose prompt had these lessons, and what the verdict says about lessons."""

    kind = "task_judged"
    task: NoWords[str]
    """Digest of the task."""
    right: bool
    shown: NoWords[tuple[str, ...]] = ()
    confirms: NoWords[tuple[str, ...]] = ()
    contradicts: NoWords[tuple[str, ...]] = ()
    by: Person[Agent] = ""
    """Who gave the verdict: a person, or "" for a check."""


class CandidatesLabelled(Event):
    """A model estimated how unlikely a pair's answer is after each of some candidates; the retriever learns by this."""

    kind = "candidates_labelled"
    id: RecordId[str]
    """The pair."""
    candidates: NoWords[tuple[str, ...]]
    """The ids of the candidates."""
    p_not: tuple[float, ...]
    """p(not Y | candidate, X) of each."""
    basis: NoWords[str]
    """`logprobs` or `stated`."""
    model: NoWords[str]


class RetrieverTrained(Event):
    """A new version of the pool's retriever; versions form a line, and the newest one's weights are stored as a
    checkpoint.

    Each version covers the admissions after the row `after` and up to the row `upto`, so that each pair is
    covered once.
    """

    kind = "retriever_trained"
    number: int
    parent: int
    after: int
    upto: int
    held: bool
    """False: the training brought nothing that is better on held-out exemplars; it ranks as its parent does."""
    embedder: NoWords[str]
    basis: NoWords[str]
    """The source of the labels: `logprobs`, `stated`, or `stand-in`."""
    labeller: NoWords[str] = ""
    """The model that labelled; "": the stand-in, no model."""
    learned_from: int
    """Number of exemplars whose candidates it was trained on."""
    held_out: float
    """Share of held-out exemplars for which the candidate it ranks first helps; 0 if these are too few."""
    before: float
    """The same for its parent."""
    anew: bool = False
    """It did not continue from a version: there was none, it could not be read, or it belonged to another embedder."""


EVENTS: tuple[type[Event], ...] = (
    PoolCreated,
    RubricFrozen,
    ExemplarOffered,
    ExemplarJudged,
    ExemplarShared,
    PairsShared,
    MembersChanged,
    ExemplarWithdrawn,
    SourceTrusted,
    ExemplarsHelped,
    ExemplarEvicted,
    LessonWritten,
    LessonsShared,
    LessonRetired,
    TaskJudged,
    CandidatesLabelled,
    RetrieverTrained,
)
