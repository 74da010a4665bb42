"""What can happen to a pool. Its log is its state: who may read what, and what is served, follows from these rows.

A row is never changed, so who wrote what, asked by whom, with which model, judged by which rubric, cannot be either.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field

from mindstream.identifiers import normal_name
from mindstream.log.declared import NoWords, Person, Quotes, RecordId
from mindstream.log.events import Event

Form = Literal["composed", "bare", "pair"]
"""What of an exemplar is embedded: the prompt as it was put, one level deep; the query alone; query and answer."""
Verdict = Literal["admitted", "rejected"]
Agent: TypeAlias = Annotated[str, AfterValidator(normal_name)]
"""The name of an agent, in its normal form; rows of earlier versions are normalised when they are read."""
BY_RULES = "rules"
"""Who judged a pair that no model has read."""
EVERYONE = "*"
"""Stands for all agents in a list of readers."""


class PoolCreated(Event):
    """A pool was opened for a domain; the first such row counts."""

    kind = "pool_created"
    domain: NoWords[str]
    owner: Person[Agent]
    members: Person[tuple[Agent, ...]] = (EVERYONE,)
    """Who may write and recall, in addition to the owner. Rows without it are of versions that opened every pool."""
    shared: bool = True
    """What a writer has not granted otherwise all members may read; False: nobody else may."""
    form: Form = "composed"
    embedder: NoWords[str] = ""
    """By whose vectors it is recalled; "": nobody wrote it down, so by whoever opens it."""


class RubricFrozen(Event):
    """A person froze a rubric; pairs are graded by the last one. The first is version 1."""

    kind = "rubric_frozen"
    rubric: NoWords[str]
    """All of it, as `Rubric.text` writes it."""
    digest: NoWords[str]


class ExemplarOffered(Event):
    """A pair was handed in; it is judged exactly once."""

    kind = "exemplar_offered"
    id: RecordId[str]
    """Made of the pool, the writer, the query and the answer: other words are another exemplar."""
    query: Quotes[str]
    answer: Quotes[str]
    writer: Person[Agent]
    model: NoWords[str] = ""
    """Who answered; "" where a person wrote it."""
    asked_by: Person[Agent] = ""
    """Whose query it was, where that is not the writer's own: a user, another agent."""
    examples: NoWords[tuple[str, ...]] = ()
    """The ids of the exemplars that stood in the prompt; an id is made of its exemplar's words, so it tells which."""
    private: bool = False
    """Nobody but its writer is served it, nor what was drawn from it, until the writer shares it."""


class ExemplarJudged(Event):
    """What became of a pair, and why."""

    kind = "exemplar_judged"
    id: RecordId[str]
    verdict: Verdict
    score: float = 0.0
    """0 to 100; of a pair that a person laid in, 100."""
    grades: NoWords[dict[str, float]] = Field(default_factory=dict)
    reasons: Quotes[tuple[str, ...]] = ()
    model: NoWords[str] = ""
    """Who graded it: a model, `rules`, or "" where a person laid it in."""
    rubric: int = 0
    """By which version of the rubric; 0: by none."""
    by_hand: bool = False
    """A person laid it in: it is trusted, and the guard measures others by it."""
    fit: float | None = None
    """How well the answer belongs to its query, in log odds (see measuring); None: nothing to compare with."""
    fit_by: NoWords[str] = ""
    """Who measured that: `rules`, or rules and the log-probabilities of a model."""
    fit_weight: float = 1.0
    """How far it counts: a stranger's in full, a member's as far as enough was laid in to measure by."""
    orders: bool = False
    """It gives orders to whoever reads it."""
    louder: float = 1.0
    """Which share of what a person laid in sounds at least as much like an order."""


class ExemplarShared(Event):
    """A writer said who may read what it wrote; the last word counts, for what was written before, too."""

    kind = "exemplar_shared"
    writer: Person[Agent]
    readers: Person[tuple[Agent, ...]]


class PairsShared(Event):
    """A writer let others read pairs that it had offered in private: whoever may read what it writes."""

    kind = "pairs_shared"
    ids: NoWords[tuple[str, ...]]


class MembersChanged(Event):
    """The owner said who may write and recall."""

    kind = "members_changed"
    members: Person[tuple[Agent, ...]]


class ExemplarWithdrawn(Event):
    """Exemplars are served no more, nor what was drawn from them: of a writer all, or single ones."""

    kind = "exemplar_withdrawn"
    writer: Person[Agent] = ""
    ids: NoWords[tuple[str, ...]] = ()
    because: Quotes[str] = ""


class SourceTrusted(Event):
    """A person looked at a source's exemplars and trusts it, or does not."""

    kind = "source_trusted"
    source: Person[Agent]
    trusted: bool


class ExemplarsHelped(Event):
    """How good an answer was that these exemplars stood before."""

    kind = "exemplars_helped"
    ids: NoWords[tuple[str, ...]]
    value: float
    """0 to 1."""
    asked: NoWords[str] = ""
    """Which question it was, as a short text that tells it from others and has none of its words; "": not known."""


class ExemplarEvicted(Event):
    """The pool was full: these are served no more, though what was drawn from them is."""

    kind = "exemplar_evicted"
    ids: NoWords[tuple[str, ...]]


class CandidatesLabelled(Event):
    """A model has said of some exemplars how unlikely a pair's answer is after each: what the retriever learns by."""

    kind = "candidates_labelled"
    id: RecordId[str]
    """The pair."""
    candidates: NoWords[tuple[str, ...]]
    """The ids of the exemplars that were weighed."""
    p_not: tuple[float, ...]
    """p(not Y | candidate, X) of each."""
    basis: NoWords[str]
    """`logprobs` or `stated`."""
    model: NoWords[str]


class RetrieverTrained(Event):
    """The pool's retriever has learned: versions are a line, and the newest one's weights lie beside the log.

    Each covers what was admitted after the row `after` and up to the row `upto`, so that each pair is covered once.
    """

    kind = "retriever_trained"
    number: int
    parent: int
    after: int
    upto: int
    held: bool
    """False: nothing that does better on what was held out came of it, or not yet; it ranks as its parent does."""
    embedder: NoWords[str]
    basis: NoWords[str]
    """What said which candidates help: `logprobs`, `stated`, or `stand-in`."""
    labeller: NoWords[str] = ""
    """The model that said so; "": none, the stand-in."""
    learned_from: int
    """How many exemplars' candidates it was trained on."""
    held_out: float
    """How often what it ranks first helps, on exemplars that it was not trained on; 0 where these are too few."""
    before: float
    """The same of its parent."""
    anew: bool = False
    """It went on from no version: there was none, none that could be read, or one of another embedder."""


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
    CandidatesLabelled,
    RetrieverTrained,
)
