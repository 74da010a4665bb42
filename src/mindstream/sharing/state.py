"""The state of a pool, computed from its log: permissions, trusted sources, withdrawn exemplars."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field

from mindstream.clock import Moment
from mindstream.identifiers import StreamKey
from mindstream.log.events import Logged
from mindstream.memory.store.store import LogStore
from mindstream.sharing import events
from mindstream.sharing.events import BY_RULES, EVERYONE
from mindstream.sharing.exemplar import Exemplar, embedded_text, pair_id
from mindstream.sharing.grading import Rubric, read_rubric
from mindstream.sharing.guarding import MIN_SEEDS, particulars
from mindstream.sharing.lesson import LessonBook
from mindstream.sharing.ranking import Helped
from mindstream.sharing.trust import TWICE, Mentions, SourceRecord

KINDS = tuple(event.kind for event in events.EVENTS)
MAX_UNGRADED = 3
"""Number of judgements without valid grades after which a pair stays rejected."""


@dataclass
class Standing:
    """An offered pair, its origin and its verdict.

    Attributes:
        at, seq: time and log row of the offer.
        roots: ids of all exemplars that the pair was derived from, at any depth: the exemplars in the prompt of its
            answer, the exemplars in the prompts of these exemplars' answers, and so on.
        writers: the writer of the pair and the writers of its roots.
        verdict: the verdict; None: not judged yet.
        judged: the log row of the verdict; 0: not judged yet.
        ungraded: number of verdicts so far for which the scorer's reply had no valid grades.
    """

    exemplar: Exemplar
    at: float
    seq: int
    roots: frozenset[str]
    writers: frozenset[str]
    verdict: events.ExemplarJudged | None = None
    judged: int = 0
    ungraded: int = 0

    @property
    def by_hand(self) -> bool:
        """Whether the pair was added by hand."""
        return self.verdict is not None and self.verdict.by_hand

    @property
    def is_judged(self) -> bool:
        """Whether there is a final verdict.

        If the scorer's reply had no valid grades, the pair is rejected. Such a rejection is final only after the
        pair has been rejected for this reason MAX_UNGRADED times.
        """
        return self.verdict is not None and (not self.verdict.ungraded or self.ungraded >= MAX_UNGRADED)


@dataclass
class PoolState:
    """The state of a pool, without its vectors.

    Attributes:
        seq: the last log row that was read.
        created: the event that created the pool; None: the pool was not created.
        released: ids of pairs that were offered as private and shared later.
        rubrics: all frozen rubrics; the first is version 1.
        standings: the offered pairs by id.
        readers: the agents that may read a writer's exemplars, for each writer that has set them. For other writers the
            pool's default applies (`PoolCreated.shared`).
        withdrawn_writers: writers whose exemplars were all withdrawn, with the log row of the withdrawal. Exemplars
            that a writer added later are not affected.
        because: reasons of withdrawals, by writer or exemplar id.
        sources: the history of each source of pairs.
        versions: the versions of the retriever, in order.
        trained: the time when the newest version was stored.
        admitted: the log row of the last admission; 0: there was none.
        labels: for each labeller (basis, model), by pair and candidate: the label p_not (see `Labels`).
        helped: feedback by exemplar.
        helped_again: feedback on single exemplars, by (digest of the question, exemplar).
    """

    seq: int = 0
    created: events.PoolCreated | None = None
    members: tuple[str, ...] = ()
    rubrics: list[Rubric] = field(default_factory=list)
    standings: dict[str, Standing] = field(default_factory=dict)
    readers: dict[str, frozenset[str]] = field(default_factory=dict)
    released: set[str] = field(default_factory=set)
    withdrawn_writers: dict[str, int] = field(default_factory=dict)
    withdrawn: set[str] = field(default_factory=set)
    evicted: set[str] = field(default_factory=set)
    sources: dict[str, SourceRecord] = field(default_factory=dict)
    mentions: Mentions = field(default_factory=Mentions)
    helped: dict[str, Helped] = field(default_factory=dict)
    helped_again: dict[tuple[str, str], Helped] = field(default_factory=dict)
    labels: dict[tuple[str, str], dict[str, dict[str, float]]] = field(default_factory=dict)
    because: dict[str, str] = field(default_factory=dict)
    versions: list[events.RetrieverTrained] = field(default_factory=list)
    trained: Moment = 0.0
    admitted: int = 0
    lessons: LessonBook = field(default_factory=LessonBook)

    @classmethod
    async def read(cls, store: LogStore, pool: StreamKey) -> PoolState:
        """Read a pool's log from the beginning."""
        state = cls()
        await state.catch_up(store, pool)
        return state

    async def catch_up(self, store: LogStore, pool: StreamKey) -> None:
        """Apply the rows that were written since the last read, by any process."""
        while rows := await store.events(pool, self.seq, KINDS):
            self.fold(rows)

    def fold(self, rows: Iterable[Logged]) -> None:
        """Apply rows of the log, oldest first."""
        for row in rows:
            self._fold(row)
            self.seq = row.seq

    def _fold(self, row: Logged) -> None:
        match row.event:
            case events.PoolCreated() as event if self.created is None:
                self.created, self.members = event, event.members
            case events.MembersChanged(members=members):
                self.members = members
            case events.RubricFrozen(rubric=text):
                self.rubrics.append(read_rubric(text, f"version {len(self.rubrics) + 1} of the rubric"))
            case events.ExemplarOffered() as event if event.id not in self.standings:
                self.standings[event.id] = self._standing(event, row)
            case events.ExemplarJudged() as event if event.id in self.standings:
                self._judge(event, row.seq)
            case events.ExemplarShared(writer=writer, readers=readers):
                self.readers[writer] = frozenset(readers)
            case events.PairsShared(ids=ids):
                self.released.update(ids)
            case events.ExemplarWithdrawn() as event:
                self._withdraw(event, row.seq)
            case events.SourceTrusted(source=source, trusted=trusted):
                self.sources.setdefault(source, SourceRecord()).by_person = trusted
            case events.ExemplarsHelped(ids=ids, value=value, asked=asked):
                for id_ in ids:
                    self.helped.setdefault(id_, Helped()).add(value)
                    if asked and len(ids) == 1:  # with several exemplars it is unknown which one helped
                        self.helped_again.setdefault((asked, id_), Helped()).add(value)
            case events.ExemplarEvicted(ids=ids):
                self.evicted.update(ids)
            case events.CandidatesLabelled() as event:
                known = self.labels.setdefault((event.basis, event.model), {}).setdefault(event.id, {})
                known.update(zip(event.candidates, event.p_not, strict=False))
            case events.RetrieverTrained() as event if event.number > self.version:
                self.versions.append(event)
                self.trained = row.at
            case _:
                self.lessons.fold(row)

    def _standing(self, event: events.ExemplarOffered, row: Logged) -> Standing:
        drawn = [self.standings[id_] for id_ in event.examples if id_ in self.standings]
        roots = frozenset(event.examples).union(*(each.roots for each in drawn))
        writers = frozenset({event.writer}).union(*(each.writers for each in drawn))
        return Standing(event, row.at, row.seq, roots, writers)

    def _judge(self, event: events.ExemplarJudged, seq: int) -> None:
        standing = self.standings[event.id]
        if standing.is_judged:
            return  # the first verdict counts
        standing.verdict, standing.judged = event, seq
        if event.ungraded:
            standing.ungraded += 1
            return
        if event.verdict == "admitted":
            self.admitted = seq
        exemplar = standing.exemplar
        self.mentions.add(self.source_of(exemplar), pair_id(exemplar), particulars(exemplar.answer))
        if not event.by_hand:
            self.sources.setdefault(self.source_of(standing.exemplar), SourceRecord()).add(event)

    def _withdraw(self, event: events.ExemplarWithdrawn, seq: int) -> None:
        if event.writer:
            self.withdrawn_writers[event.writer] = seq
            self.because[event.writer] = event.because
        self.withdrawn.update(event.ids)
        self.because.update(dict.fromkeys(event.ids, event.because))

    # Derived from the log.

    @property
    def domain(self) -> str:
        """The topic of the pool; "" if the pool was not created."""
        return self.created.domain if self.created else ""

    @property
    def owner(self) -> str:
        """The agent that owns the pool; "" if the pool was not created."""
        return self.created.owner if self.created else ""

    @property
    def form(self) -> events.Form:
        """Which text of an exemplar is embedded (`Form`)."""
        return self.created.form if self.created else "composed"

    def examples_of(self, exemplar: Exemplar) -> list[Exemplar]:
        """Return the exemplars that were in the prompt when this exemplar was answered."""
        return [self.standings[id_].exemplar for id_ in exemplar.examples if id_ in self.standings]

    def as_prompt(self, exemplar: Exemplar, served: Collection[str]) -> Exemplar:
        """Return an exemplar in the form in which it is graded, labelled and served.

        In a pool that was created `as_published`, the examples that were in the prompt of the answer come before the
        query. Only examples that are served now (`served`: the ids of these exemplars) are included.
        """
        if not (self.created and self.created.as_published):
            return exemplar
        examples = [each for each in self.examples_of(exemplar) if each.id in served]
        query = embedded_text(exemplar.query, exemplar.answer, examples, "composed")
        return exemplar.model_copy(update={"query": query})

    @property
    def version(self) -> int:
        """The number of the retriever's newest version; 0: none was trained yet."""
        return self.versions[-1].number if self.versions else 0

    @property
    def covered(self) -> int:
        """The seq of the last log row that the newest version of the retriever covers; 0: there is no version. The
        retriever has not learned from exemplars that were admitted later."""
        return self.versions[-1].upto if self.versions else 0

    def covering(self, id_: str) -> events.RetrieverTrained | None:
        """Return the first version of the retriever that was trained after an exemplar's admission, or None."""
        judged = self.standings[id_].judged
        return next((each for each in self.versions if each.after < judged <= each.upto), None)

    def teaching(self, guarded: bool = True) -> list[str]:
        """Return the ids of the exemplars that the retriever learns from, in the order of admission.

        Only exemplars that are served to every member are returned, so private or doubted exemplars do not affect the
        ranking of other members. With `guarded` False, doubted exemplars are returned, too.
        """
        found = [
            id_
            for id_, each in self.standings.items()
            if each.verdict
            and self.is_open(id_)
            and all(map(self._is_public, each.writers))
            and self.is_served(id_, self.owner, guarded)
        ]
        return sorted(found, key=lambda id_: self.standings[id_].judged)

    def _is_public(self, writer: str) -> bool:
        return EVERYONE in self._readers(writer)

    def _readers(self, writer: str) -> frozenset[str]:
        shared = frozenset({EVERYONE} if self.created and self.created.shared else ())
        return self.readers.get(writer, shared)

    @staticmethod
    def source_of(exemplar: Exemplar) -> str:
        """Return the source of a pair: the author of its query, or else the writer if the query has no other author.

        The author of the query counts because an attacker can plant pairs by asking questions.
        """
        return f"asked by {exemplar.asked_by}" if exemplar.asked_by else exemplar.writer

    def is_member(self, agent: str) -> bool:
        """Return whether an agent may write to the pool and recall from it."""
        return agent == self.owner or agent in self.members or EVERYONE in self.members

    def is_named(self, agent: str) -> bool:
        """Return whether an agent is the owner or listed as a member by name, not only admitted by `*`."""
        return agent == self.owner or agent in self.members

    def same_readers(self, one: str, other: str) -> bool:
        """Return whether the same agents may read what two writers wrote."""
        return self._readers(one) == self._readers(other)

    def may_read(self, reader: str, writer: str) -> bool:
        """Return whether an agent is a member and may read the exemplars of a writer."""
        readers = self._readers(writer)
        return self.is_member(reader) and (reader == writer or reader in readers or EVERYONE in readers)

    def is_open(self, id_: str, reader: str = "") -> bool:
        """Return whether privacy allows `reader` to read an exemplar.

        The exemplar, and each exemplar that it was derived from, must meet one of these conditions:

        - it is not private;
        - it was offered as private, and shared later;
        - `reader` wrote it ("": no agent).
        """
        return not self._private(self.standings[id_], reader)

    def _private(self, standing: Standing, reader: str) -> list[Exemplar]:
        drawn = (self.standings[id_].exemplar for id_ in standing.roots if id_ in self.standings)
        return [
            each
            for each in (standing.exemplar, *drawn)
            if each.private and each.id not in self.released and each.writer != reader
        ]

    def may_see(self, reader: str, id_: str) -> bool:
        """Return whether an agent may inspect a pair, even if the pair is not served.

        The owner may inspect every pair except private pairs of other writers and pairs derived from these.
        """
        standing = self.standings[id_]
        readable = reader == self.owner or all(self.may_read(reader, writer) for writer in standing.writers)
        return readable and self.is_open(id_, reader)

    def reasons_unserved(self, id_: str, reader: str, guarded: bool = True) -> Iterator[str]:
        """Yield the reasons why an exemplar is not served to an agent; if there are none, it is served.

        `guarded`: whether doubts about the exemplar or its source count as reasons.
        """
        standing = self.standings.get(id_)
        if standing is None or standing.verdict is None:
            yield "it was not judged yet" if standing else "there is no such exemplar"
            return
        if standing.verdict.verdict == "rejected":
            yield "it was rejected"
        if id_ in self.evicted:
            yield "it was evicted when the pool was full"
        yield from self._walls(standing, reader)
        if guarded and not standing.by_hand and (doubt := self._doubt(standing)):
            yield doubt

    def is_served(self, id_: str, reader: str, guarded: bool = True) -> bool:
        """Return whether an exemplar is served to an agent.

        `guarded`: whether the exemplar is not served if there are doubts about the exemplar or its source.
        """
        return next(self.reasons_unserved(id_, reader, guarded), None) is None

    def trusted(self) -> frozenset[str]:
        """Return the ids of the valid seed exemplars (exemplars that the owner added). Evicted exemplars are left out.
        So are exemplars that were withdrawn, singly or together with all pairs of their writer."""
        gone = self.withdrawn | self.evicted
        return frozenset(
            id_
            for id_, each in self.standings.items()
            if each.by_hand and id_ not in gone and self.withdrawn_writers.get(each.exemplar.writer, 0) < each.seq
        )

    def _walls(self, standing: Standing, reader: str) -> Iterator[str]:
        for writer in sorted(standing.writers):
            own = writer == standing.exemplar.writer
            words = f"it is an exemplar of {writer!r}" if own else f"it was derived from an exemplar of {writer!r}"
            if self.withdrawn_writers.get(writer, 0) > standing.seq or self._drew_withdrawn(standing, writer):
                yield f"{words}, and these exemplars of {writer!r} were withdrawn"
            if not self.may_read(reader, writer):
                yield f"{words}, which {reader!r} may not read"
        for each in self._private(standing, reader):
            yield f"the pair {each.id} by {each.writer!r} is private until {each.writer!r} shares it"
        gone = ({standing.exemplar.id} | standing.roots) & self.withdrawn
        if gone:
            yield f"withdrawn exemplars: {', '.join(sorted(gone))}"
        if unknown := standing.roots - self.standings.keys():
            yield f"it was derived from exemplars that do not exist: {', '.join(sorted(unknown))}"

    def _drew_withdrawn(self, standing: Standing, writer: str) -> bool:
        """Return whether a pair was derived from an exemplar of `writer` that was offered before all exemplars of this
        writer were withdrawn."""
        since = self.withdrawn_writers.get(writer, 0)
        roots = (self.standings.get(id_) for id_ in standing.roots)
        return any(root.seq < since and root.exemplar.writer == writer for root in roots if root)

    def _doubt(self, standing: Standing) -> str:
        """Return the doubt about the source or content of an offered pair; "": none. A doubted pair is not served."""
        exemplar, source = standing.exemplar, self.source_of(standing.exemplar)
        record = self.sources.get(source)
        if record is None or standing.verdict is None:
            return ""
        if (doubt := record.doubt(standing.verdict, source)) or not exemplar.asked_by or record.by_person:
            return doubt
        if standing.verdict.fit is None and standing.verdict.model == BY_RULES:
            return (
                f"the query is not by the writer ({source}), and nothing measures whether the answer fits it: add"
                f" {MIN_SEEDS} seed pairs, grade by a model, or trust the source"
            )
        if record.pairs < TWICE:
            return f"too few pairs of this source are known ({source}): {record.pairs}, but {TWICE} are required"
        name = self.mentions.agenda(source, particulars(exemplar.answer))
        return (
            f"several answers to queries {source} mention {name!r}, and no answer of another source does"
            if name
            else ""
        )
