"""The events of a pool. Its state is computed from this log alone: permissions, and the exemplars that are served.

Rows of the log do not change, except that an erasure removes words from them. So the log shows who wrote, asked and
judged each pair, with which model and rubric.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field

from mindstream.identifiers import normal_name
from mindstream.log.declared import Name, Names, NoWords, Person, Quotes, RecordId
from mindstream.log.events import Event

Form = Literal["composed", "bare", "pair"]
"""The embedded text of an exemplar. `composed`: the exemplar's query, preceded by its examples, without the examples of
these examples; `bare`: the query alone; `pair`: query and answer."""
Verdict = Literal["admitted", "rejected"]
Agent: TypeAlias = Annotated[str, AfterValidator(normal_name)]
"""The name of an agent in its normal form. Rows of earlier versions are normalised when they are read."""
BY_RULES = "rules"
"""Name of the judge in a verdict if no model has read the pair."""
EVERYONE = "*"
"""Stands for all agents in a list of readers or members."""


class PoolCreated(Event):
    """A pool was created for a domain; the first such row counts."""

    kind = "pool_created"
    domain: Name
    owner: Person[Agent]
    members: Person[tuple[Agent, ...]] = (EVERYONE,)
    """The agents that may write and recall, in addition to the owner. The default applies to rows of earlier versions
    of mindstream, in which every agent could write and recall."""
    shared: bool = True
    """Whether all members may read the pairs of a writer who has not set its own readers. False: only the writer may
    read these pairs."""
    form: Form = "composed"
    as_published: bool = False
    """Whether pairs are also graded, labelled and served as composed prompts (Gao 2024, 3.1.1): the query, preceded by
    the examples with which it was answered. False: the examples are only part of the embedded text.
    """
    embedder: Name = ""
    """Name of the embedder of the pool's vectors; "": not recorded, so the default embedder is used."""


class RubricFrozen(Event):
    """A person froze a rubric; pairs are graded by the rubric frozen last. The first rubric is version 1."""

    kind = "rubric_frozen"
    rubric: Name
    """The whole rubric, as `Rubric.text` writes it."""
    digest: Name


class ExemplarOffered(Event):
    """A pair was offered. The first verdict counts, unless the verdict is `ungraded`.

    After an `ungraded` verdict, a later offer of the pair is judged again, up to a limit.
    """

    kind = "exemplar_offered"
    id: RecordId[str]
    """A digest of the pool, the writer, the query and the answer. So a pair with other words has another id."""
    query: Quotes[str]
    answer: Quotes[str]
    writer: Person[Agent]
    model: Name = ""
    """The model that answered; "" if a person wrote the answer."""
    asked_by: Person[Agent] = ""
    """The author of the query, if not the writer: a user or another agent."""
    examples: Names = ()
    """The ids of the exemplars that were in the prompt of the answer."""
    private: bool = False
    """Whether the pair is private. Until the writer shares a private pair, only the writer is served the pair and
    exemplars that were derived from the pair."""


class ExemplarJudged(Event):
    """The verdict on a pair, with reasons."""

    kind = "exemplar_judged"
    id: RecordId[str]
    verdict: Verdict
    score: float = 0.0
    """The sum of the grades, 0 to 100. Without grading: 100 if the pair was admitted, 0 if it was rejected."""
    grades: NoWords[dict[str, float]] = Field(default_factory=dict)
    reasons: Quotes[tuple[str, ...]] = ()
    model: Name = ""
    """The judge: a model, `rules`, or "" if the pair was admitted without grading."""
    rubric: int = 0
    """The version of the rubric; 0: no rubric was used."""
    by_hand: bool = False
    """Whether the owner added the pair. Then it is a trusted seed pair, with which other pairs are compared."""
    fit: float | None = None
    """How well the answer belongs to its query, in log odds (see guarding.py); None: not measured."""
    fit_by: Name = ""
    """How `fit` was measured: by `rules`, or by rules and the log-probabilities of a model."""
    fit_weight: float = 1.0
    """The weight of `fit`, 0 to 1. If the author of the query is not the writer, it is 1. Otherwise it grows with the
    number of seed exemplars (exemplars that the owner added)."""
    orders: bool = False
    """Whether the pair is rejected because its answer gives orders to the reader (the agent to which the pair is shown
    as an example). Only a guarded pool rejects pairs for this reason."""
    ungraded: bool = False
    """Whether the pair is rejected only because the scorer's reply had no valid grades. If the pair is offered again,
    it is judged again, up to a limit.
    """
    louder: float = 1.0
    """Share of the seed exemplars (exemplars that the owner added) whose answers sound at least as much like an order
    to the reader (prompt injection) as this pair's answer does. 1: not measured."""


class ExemplarShared(Event):
    """A writer set which agents may read its exemplars, including earlier exemplars. The writer's last row of this kind
    applies."""

    kind = "exemplar_shared"
    writer: Person[Agent]
    readers: Person[tuple[Agent, ...]]


class PairsShared(Event):
    """A writer shared private pairs with all agents that may read this writer's exemplars."""

    kind = "pairs_shared"
    ids: Names


class MembersChanged(Event):
    """The owner replaced the list of members: the agents that may write and recall."""

    kind = "members_changed"
    members: Person[tuple[Agent, ...]]


class ExemplarWithdrawn(Event):
    """Exemplars were withdrawn: the exemplars in `ids`, and all exemplars that `writer` has written so far.

    Withdrawn exemplars, and exemplars derived from them, are not served.
    """

    kind = "exemplar_withdrawn"
    writer: Person[Agent] = ""
    ids: Names = ()
    because: Quotes[str] = ""


class SourceTrusted(Event):
    """The owner decided whether to trust a source of pairs: an agent, or `asked by NAME`, the author of queries."""

    kind = "source_trusted"
    source: Person[Agent]
    trusted: bool


class ExemplarsHelped(Event):
    """Feedback on an answer whose prompt contained these exemplars."""

    kind = "exemplars_helped"
    ids: Names
    value: float
    """The quality of the answer, 0 to 1."""
    asked: Name = ""
    """Digest of the question, from which its text cannot be read; "": not known."""


class ExemplarEvicted(Event):
    """These exemplars were evicted from a full pool: they are no longer served, but exemplars derived from them are."""

    kind = "exemplar_evicted"
    ids: Names


class LessonWritten(Event):
    """A lesson was added or amended. The last row with an id gives the lesson's text; its sources are those of all
    rows."""

    kind = "lesson_written"
    id: Name
    text: Quotes[str]
    applies: Quotes[str] = ""
    """When the lesson applies; "": always."""
    state: Literal["confirmed", "assumed"] = "assumed"
    """`confirmed`: confirmed by the verdict of a person or a check, or written by hand by a member who is listed by
    name; `assumed`: not confirmed, such as a model's inference."""
    sources: Quotes[tuple[str, ...]] = ()
    """The evidence for the lesson: tasks, corrections, documents."""
    writer: Person[Agent]
    asked_by: Person[Agent] = ""
    """The user on whose statements the lesson is based. "" if this user is the pool's owner, or is listed as a member
    by name."""
    said_by: Person[Agent] = ""
    """The person on whose verdict the lesson is based. Erasing this person's data removes the words of this row."""
    task: Name = ""
    """Digest of the task whose verdict confirms the lesson; "": no verdict confirms it."""
    replaces: Names = ()
    """Ids of lessons that were merged into this one."""
    disputes: Names = ()
    """Ids of lessons that contradict this one."""
    reads: tuple[int, ...] = ()
    """Sequence numbers of the log rows with the lesson texts that the writer had read; (): not recorded.

    If this event amends the lesson `id`, the first number is that of the row with the previous text of this lesson. The
    rows of the lessons in `replaces` follow. A lesson whose text has changed since the row listed here is neither
    overwritten nor merged.
    """
    private: bool = False
    """Whether the lesson is private. Until a member shares a private lesson, it is shown only to `asked_by`, or to its
    writer if `asked_by` is empty."""
    untrusted: bool = False
    """Third-party content was part of the work from which the lesson was learned."""


class LessonsShared(Event):
    """A member shared private lessons with the other members.

    `vouched`: the owner shared the lessons, so they count as confirmed and trusted.
    """

    kind = "lessons_shared"
    ids: Names
    vouched: bool = False


class LessonRetired(Event):
    """Lessons are no longer shown."""

    kind = "lesson_retired"
    ids: Names
    because: Quotes[str] = ""


class TaskJudged(Event):
    """The verdict on a task, and the lessons that the task's prompt contained.

    The event also names the lessons that the verdict confirms or contradicts.
    """

    kind = "task_judged"
    task: Name
    """Digest of the task."""
    right: bool
    shown: Names = ()
    confirms: Names = ()
    contradicts: Names = ()
    by: Person[Agent] = ""
    """The person who gave the verdict; "": an automatic check."""


class CandidatesLabelled(Event):
    """A model estimated how unlikely a pair's answer is after each of several other exemplars (the candidates).

    The retriever is trained on these labels.
    """

    kind = "candidates_labelled"
    id: RecordId[str]
    """The id of the pair."""
    candidates: Names
    """The ids of the exemplars that were tried as examples for the pair."""
    p_not: tuple[float, ...]
    """p(not Y | candidate, X) for each exemplar in `candidates`, where X is the pair's query and Y its answer."""
    basis: Name
    """`logprobs`: computed from log-probabilities; `stated`: numbers that the model wrote."""
    model: Name


class RetrieverTrained(Event):
    """A new version of the pool's retriever was trained; the weights of the newest version are stored as a checkpoint.

    Each version has one parent and at most one successor. It covers the admissions after the log row `after` and up to
    the log row `upto`, so each pair is covered by one version.
    """

    kind = "retriever_trained"
    number: int
    parent: int
    after: int
    upto: int
    held: bool
    """Whether the training changed the ranking; False: no update passed the check on held-out exemplars."""
    embedder: Name
    basis: Name
    """The source of the labels: `logprobs` (log-probabilities of a model), `stated` (numbers that a model states), or
    `stand-in` (text similarity, without a model)."""
    labeller: Name = ""
    """The model that labelled; "": the stand-in (text similarity, see `StandIn` in retriever.py), without a model."""
    learned_from: int
    """Number of labelled exemplars on which the version was trained. A label says how helpful another exemplar (a
    candidate) is as an example for the labelled one."""
    held_out: float
    """Share of the held-out exemplars for which the retriever ranks a helpful example first. 0 if too few exemplars are
    held out."""
    before: float
    """The same share as `held_out`, for the parent version."""
    anew: bool = False
    """Whether training started from scratch, because no version existed, or the newest version was unreadable or
    belonged to another embedder."""


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
