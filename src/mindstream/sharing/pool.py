"""A pool: exemplars that several agents write and recall. It is a separate stream in the store that they share.

async with Pool.open("data", "verse") as pool:
    found = await pool.recall("a limerick on tea", 3, reader="ann")
"""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from mindstream import chance
from mindstream.arrays import Floats
from mindstream.clock import Clock
from mindstream.errors import Conflict, InputError
from mindstream.guidance import next_step, opens
from mindstream.identifiers import StreamName, checked_name, normal_name
from mindstream.log.events import Event
from mindstream.memory.memory import Memory
from mindstream.memory.opening import AnyStore
from mindstream.memory.store.store import Entry, Erasure
from mindstream.models.embedders.embedder import EmbedderChoice, embedder, unit
from mindstream.models.model import Model
from mindstream.sharing import events
from mindstream.sharing.events import EVERYONE, Form, RetrieverTrained
from mindstream.sharing.exemplar import Exemplar, pair_id, question_id
from mindstream.sharing.grading import Rubric
from mindstream.sharing.guarding import Measures, MutualInformation, build_measures, mutual_information
from mindstream.sharing.learning import PoolLearner
from mindstream.sharing.ranking import Retriever, Served, mask_of
from mindstream.sharing.state import PoolState, Standing

RANKED_PER_SHOT = 4
"""Number of exemplars that a recall ranks for each exemplar that it returns. It is more than one because several
writers may have written the same pair, and recall returns such a pair only once."""
MAX_SHOTS = 64
USUAL = "wordllama"
"""Name of the default embedder of a pool."""


class Pool:
    """Exemplars that several agents of a store share (Gao 2024). Open one with `Pool.open`; `create` it once.

        async with Pool.open("data", "plants") as pool:
            if not await pool.exists():
                await pool.create("caring for plants", owner="olga", members=["ann"])
            await lay_in(pool, [Pair("How do I water a fern?", "From below, once a week.")], by="olga")
            print(await Member(pool, "ann").examples("How do I water an orchid?", k=1))

    `lay_in` and `Pair` are in `mindstream.sharing.admission`. Offers of members (`Member.offer`) are graded by a
    rubric, which `mindstream pool rubric` drafts and freezes.

    Args:
        retriever: ranks the exemplars; None: the pool's own retriever, which learns from admitted exemplars when there
            are 36 or more.
        measure_by: a model in this process that measures whether answers belong to their queries; None: the scorer
            measures this, if it runs in this process.
        guarded: whether pairs are withheld if there is doubt about them or their source; False is for control
            experiments.

    Raises (from every method): StorageError; InputError for an invalid request or a missing permission.
    """

    def __init__(
        self,
        memory: Memory,
        *,
        retriever: Retriever | None = None,
        guarded: bool = True,
        measure_by: MutualInformation | None = None,
    ) -> None:
        self.memory = memory
        self.retriever: Retriever = retriever or PoolLearner(self)
        self.guarded = guarded
        self.owner_token = chance.token()
        """Identifies this `Pool` object as the holder of the judging work that it has claimed."""
        self._state = PoolState()
        self._served: dict[str, tuple[int, frozenset[str]]] = {}
        self.measure_by = measure_by
        self._likely: dict[str, MutualInformation | None] = {}
        self._measures: tuple[frozenset[str], Measures] | None = None
        self._vectors = dict[str, Floats]()

    @classmethod
    @opens
    async def open(
        cls,
        data: AnyStore,
        name: str,
        *,
        embed: EmbedderChoice = None,
        clock: Clock | None = None,
        retriever: Retriever | None = None,
        guarded: bool = True,
        measure_by: MutualInformation | None = None,
    ) -> AsyncIterator[Pool]:
        """Open a pool of a data folder or a store. The pool need not exist yet; `create` then creates it.

        Args:
            embed: the embedder; None: the one that the pool was created with, or wordllama for a new pool.
            retriever, guarded, measure_by: as for `Pool`: how exemplars are ranked, whether doubtful pairs are
                withheld, and the model that measures pairs.
        """
        stream = StreamName("pool", name)
        if embed is None:
            async with Memory.open(data, stream, embed=USUAL, clock=clock) as memory:
                created = (await PoolState.read(memory.store, memory.key)).created
            embed = (created.embedder if created else "") or USUAL
        async with Memory.open(data, stream, embed=embed, clock=clock) as memory:
            pool = cls(memory, retriever=retriever, guarded=guarded, measure_by=measure_by)
            try:
                yield pool
            finally:
                await pool.close()

    async def close(self) -> None:
        """Stop background training. The memory stays open."""
        await self.retriever.close()

    @property
    def name(self) -> str:
        """The name of the pool."""
        return self.memory.name

    async def create(
        self,
        domain: str,
        owner: str,
        *,
        members: Sequence[str] = (),
        shared: bool = True,
        form: Form = "composed",
        as_published: bool = False,
    ) -> None:
        """Create the pool, by an event in its log.

        Args:
            domain: a description of the pool's subject, used for grading.
            owner: the agent that manages members, rubric and trust.
            members: agents that may write and recall, in addition to the owner; `*` means every agent.
            shared: whether all members may read the exemplars of each member; a member can set its own readers instead.
            form: which text of an exemplar is embedded for recall: `composed` (the query after the examples of its
                prompt), `bare` (the query) or `pair` (query and answer).
            as_published: whether each pair is also graded, labelled and served as a composed prompt (Gao 2024, 3.1.1).

        Raises:
            InputError: the pool exists already, or the name of an agent is not valid.
        """
        owner, *members = (_checked_agent(each) for each in (owner, *members))
        created = events.PoolCreated(
            domain=domain,
            owner=owner,
            members=tuple(members),
            shared=shared,
            form=form,
            as_published=as_published,
            embedder=self.memory.embedder.name,
        )
        try:
            await self.memory.commit(Entry(created, owner), unique="created")
        except Conflict:
            raise InputError(f"the pool {self.name!r} exists already; choose another name") from None

    async def exists(self) -> bool:
        """Read new rows of the log; return whether the pool was created."""
        await self._state.catch_up(self.memory.store, self.memory.key)
        return self._state.created is not None

    async def state(self) -> PoolState:
        """Return the current state of the pool (without vectors), including the writes of other processes.

        Raises:
            InputError: the pool was not created.
        """
        if not await self.exists():
            raise InputError(
                f"there is no pool {self.name!r}; create it with `await pool.create(…)` or"
                f" {next_step(f'pool create {self.name}')}"
            )
        return self._state

    @property
    def last_state(self) -> PoolState:
        """The state of the pool as it was last read; the log is not read."""
        return self._state

    async def member_state(self, agent: str) -> PoolState:
        """Return the current state of the pool, after checking that an agent may write and recall.

        Raises:
            InputError: the agent is not a member.
        """
        agent = normal_name(agent)
        state = await self.state()
        if not state.is_member(agent):
            adds = next_step(f"pool members {shlex.quote(self.name)} --add {shlex.quote(agent)}", state.owner)
            raise InputError(
                f"{agent!r} is not a member of the pool {self.name!r}; its owner {state.owner!r} can add it with"
                f" {adds}, or add all agents with --add '*'"
            )
        return state

    def known(self, id_: str) -> Standing:
        """Return the recorded offer and verdict of a pair, from the state that was last read.

        Raises:
            KeyError: no pair has this id.
        """
        return self._state.standings[id_]

    def is_untrusted(self, id_: str) -> bool:
        """Return whether a pair is untrusted: the author of its query is not the writer of the pair.

        A pair is also untrusted if it was derived from an untrusted pair.
        """
        drawn = (id_, *self._state.standings[id_].roots)
        return any(self._state.standings[each].exemplar.asked_by for each in drawn if each in self._state.standings)

    async def write(self, event: Event, by: str) -> None:
        """Write an event to the pool's log."""
        await self.memory.commit(Entry(event, by))

    # Recall.

    async def recall(self, query: str, k: int = 3, *, reader: str) -> list[Exemplar]:
        """Return up to k exemplars that a reader may be served, best first.

        k = 0 returns none (zero-shot). Permissions are checked at the time of the recall.

        Raises:
            InputError: k is not from 0 to MAX_SHOTS, the reader is not a member, or the pool does not exist.
        """
        if not 0 <= k <= MAX_SHOTS:
            raise InputError(f"k, the number of exemplars to recall, must be 0 to {MAX_SHOTS}, not {k}")
        reader = normal_name(reader)
        state = await self.member_state(reader)
        served = self.served(state, reader)
        if not k or not served:
            return []
        await self.retriever.catch_up(state)
        columns = await self.memory.columns()
        policy = Served(
            self.retriever.policy,
            columns,
            mask_of(columns, served),
            state.helped,
            state.helped_again,
            question_id(query),
        )
        found = await self.memory.recall(query, RANKED_PER_SHOT * k, kinds=["exemplar"], policy=policy, touch=False)
        # checked again, because an exemplar may have been withdrawn in the meantime
        served = self.served(await self.member_state(reader), reader)
        by_pair: dict[str, Exemplar] = {}
        for each in found:
            if each.record.id in served:
                exemplar = self._state.standings[each.record.id].exemplar
                by_pair.setdefault(pair_id(exemplar), state.as_prompt(exemplar, served))
        return list(by_pair.values())[:k]

    def served(self, state: PoolState, reader: str) -> frozenset[str]:
        """Return the ids of the exemplars that a reader may be served now."""
        seq, found = self._served.get(reader, (-1, frozenset[str]()))
        if seq != state.seq:
            found = frozenset(id_ for id_ in state.standings if state.is_served(id_, reader, self.guarded))
            self._served[reader] = (state.seq, found)
        return found

    def likely(self, scorer: Model) -> MutualInformation | None:
        """Return the object that measures, with a model in this process, whether answers belong to their queries.

        This object is the pool's `measure_by`. If the pool has none, it is an object that uses the scorer; None: the
        scorer does not run in this process.
        """
        if self.measure_by is None and scorer.name not in self._likely:
            self._likely[scorer.name] = mutual_information(scorer.name)
        return self.measure_by or self._likely.get(scorer.name)

    async def measures(self, state: PoolState) -> Measures:
        """Return the instruments that measure pairs.

        The instruments are calibrated with the seed exemplars (added by the owner), and rebuilt when the seed exemplars
        have changed.
        """
        trusted = state.trusted()
        if self._measures is None or self._measures[0] != trusted:
            exemplars = [state.standings[id_].exemplar for id_ in sorted(trusted)]
            # the measures' thresholds are calibrated for the embedder USUAL
            self._measures = trusted, await build_measures(embedder(USUAL), exemplars)
        return self._measures[1]

    async def embed_cached(self, texts: Sequence[str]) -> list[Floats]:
        """Return the unit vectors of texts.

        Only the vectors of the last call are cached, so that erased texts do not stay in memory.
        """
        found = {text: self._vectors[text] for text in texts if text in self._vectors}
        if new := [text for text in dict.fromkeys(texts) if text not in found]:
            found.update(zip(new, unit(np.asarray(await self.memory.embedder.embed(new), np.float32)), strict=True))
        self._vectors = found
        return [found[text] for text in texts]

    # Permissions and withdrawal.

    async def freeze_rubric(self, rubric: Rubric, by: str) -> int:
        """Freeze a rubric that a person has reviewed; return its version. Freezing the newest rubric again changes
        nothing."""
        state = await self._owners_state(by)
        if state.rubrics and state.rubrics[-1] == rubric:
            return len(state.rubrics)
        await self.write(events.RubricFrozen(rubric=rubric.text(), digest=rubric.digest), by)
        return len((await self.state()).rubrics)

    async def share(self, writer: str, readers: Sequence[str]) -> None:
        """Let only these agents, and the writer, read a writer's exemplars and all exemplars derived from them."""
        writer, *readers = (_checked_agent(each) for each in (writer, *readers))
        await self.member_state(writer)
        await self.write(events.ExemplarShared(writer=writer, readers=tuple(dict.fromkeys(readers))), writer)

    async def release(self, ids: Sequence[str], by: str) -> None:
        """Share private pairs of the writer `by` with all agents that may read this writer's exemplars.

        Raises:
            InputError: a pair was not offered by this writer.
        """
        by = normal_name(by)
        state = await self.member_state(by)
        if wrong := [id_ for id_ in ids if id_ not in state.standings or state.standings[id_].exemplar.writer != by]:
            raise InputError(f"the pool {self.name!r} has no pair {wrong[0]!r} that was offered by {by!r}")
        await self.write(events.PairsShared(ids=tuple(ids)), by)

    async def set_members(self, members: Sequence[str], by: str) -> None:
        """Replace the list of members, the agents that may write and recall; only the owner may."""
        by, *members = (_checked_agent(each) for each in (by, *members))
        await self._owners_state(by)
        await self.write(events.MembersChanged(members=tuple(dict.fromkeys(members))), by)

    async def change_members(self, add: Sequence[str] = (), remove: Sequence[str] = (), *, by: str) -> None:
        """Add and remove members; `*` means every agent. Only the owner of the pool (`by`) may do this.

        Raises:
            InputError: `by` is not the owner, or a name to remove is not in the list of members.
        """
        add, remove = ([normal_name(each) for each in names] for names in (add, remove))
        state = await self._owners_state(by)
        if unknown := [each for each in remove if each not in state.members]:
            named = ", ".join(state.members)
            why = named or "none"
            if EVERYONE in state.members:
                why = f"all agents are members by {EVERYONE!r}: remove {EVERYONE!r} and add names"
            raise InputError(f"{unknown[0]!r} is not in the list of members of the pool {self.name!r} ({why})")
        await self.set_members([each for each in (*state.members, *add) if each not in remove], by)

    async def trust(self, source: str, trusted: bool, by: str) -> None:
        """Record the owner's decision whether to trust a source of pairs (`PoolState.source_of`): a writer, or the
        author of queries.

        Raises:
            InputError: `by` is not the owner, or the pool has no pairs from this source.
        """
        state = await self._owners_state(by)
        if source not in state.sources:
            known = ", ".join(sorted(state.sources)) or "none"
            raise InputError(
                f"the pool {self.name!r} has no pairs from the source {source!r}; its sources are: {known}"
            )
        await self.write(events.SourceTrusted(source=source, trusted=trusted), by)

    async def withdraw(self, *ids: str, writer: str = "", by: str, because: str = "", erase: bool = False) -> list[str]:
        """Withdraw exemplars by id, and all exemplars that `writer` has written until now; return their ids.

        From the next recall on, in any process, neither these exemplars nor exemplars derived from them are served.

        Args:
            by: the agent that withdraws the exemplars: their writer, or the pool's owner.
            erase: whether to also erase the words of the exemplars from records and log.

        Raises:
            InputError: there is no exemplar of an id or of the writer, or `by` may not withdraw one of the exemplars.
        """
        state = await self.state()
        found = [id_ for id_, each in state.standings.items() if id_ in ids or each.exemplar.writer == writer]
        if unknown := set(ids) - set(found):
            raise InputError(f"there is no exemplar {sorted(unknown)[0]!r} in the pool {self.name!r}")
        if not found:
            if not writer:
                raise InputError("name the exemplars to withdraw: their ids, or a writer")
            raise InputError(f"the pool {self.name!r} has no exemplar by {writer!r}")
        if by != state.owner and any(state.standings[id_].exemplar.writer != by for id_ in found):
            raise InputError(
                f"{by!r} may withdraw only exemplars by {by!r}; the owner {state.owner!r} may withdraw any exemplar"
            )
        await self.write(events.ExemplarWithdrawn(writer=writer, ids=tuple(ids), because=because), by)
        if erase:
            await self._erase(state, found)
        return found

    async def _erase(self, state: PoolState, ids: Sequence[str]) -> None:
        """Erase exemplars. Exemplars that were derived from erased ones stay, but are embedded by their own query
        alone."""
        rows = frozenset(state.standings[id_].seq for id_ in ids)
        drawn = [id_ for id_, each in state.standings.items() if each.roots & set(ids) and id_ not in ids]
        records = await self.memory.records(drawn)
        bare = tuple(replace(each, text=state.standings[each.id].exemplar.query) for each in records)
        await self.memory.store.erase(self.memory.key, Erasure(ids=tuple(ids), rows=rows, rewritten=bare))

    async def helped(self, ids: Sequence[str], value: float, by: str, query: str = "") -> None:
        """Record the quality, 0 to 1, of an answer whose prompt contained these exemplars; `query`: the question.

        Without ids, nothing is recorded.

        Raises:
            InputError: the value is not from 0 to 1, `by` is not a member, or one of these exemplars is not served to
                this member.
        """
        if not 0 <= value <= 1:
            raise InputError(f"feedback must be a number from 0 to 1, not {value}")
        by = normal_name(by)
        state = await self.member_state(by)
        if unseen := [id_ for id_ in ids if id_ not in self.served(state, by)]:
            raise InputError(f"the pool does not serve the exemplar {unseen[0]!r} to {by!r}, so it cannot have helped")
        if ids:
            await self.write(
                events.ExemplarsHelped(ids=tuple(ids), value=value, asked=question_id(query) if query else ""), by
            )

    async def _owners_state(self, by: str) -> PoolState:
        by = normal_name(by)
        state = await self.state()
        if by != state.owner:
            raise InputError(f"only the owner {state.owner!r} can change the pool {self.name!r}, not {by!r}")
        return state


def _checked_agent(name: str) -> str:
    """Return the normal form of an agent's name; EVERYONE stays as it is."""
    return name if name == EVERYONE else checked_name(name, "agent")


@dataclass(frozen=True)
class Explanation:
    """The state of a pair, and the reasons for it.

    Attributes:
        standing: the recorded offer and verdict.
        unserved: why the pair is not served to the reader; () if it is served.
        drawn: ids of the exemplars that were derived from the pair.
        covering: the first version of the retriever that was trained after the pair's admission; None: none yet.
        version: the number of the retriever's version that ranks now.
    """

    standing: Standing
    unserved: tuple[str, ...]
    drawn: tuple[str, ...]
    covering: RetrieverTrained | None = None
    version: int = 0


async def explain(pool: Pool, id_: str, reader: str) -> Explanation:
    """Explain the state of a pair. The pair is given by its id, or by a unique beginning of the id.

    Raises:
        InputError: the reader is not a member; or none or several of the pairs that the reader may read have an id that
            begins with `id_`. The message does not reveal whether pairs exist that the reader may not read.
    """
    state = await pool.member_state(reader)
    found = [each for each in state.standings if each.startswith(id_)] if id_ else []
    readable = [each for each in found if state.may_see(reader, each)]
    if len(readable) != 1:
        what = f"{len(readable)} exemplars have ids" if readable else "no exemplar that you may read has an id"
        begins = "begin" if readable else "begins"
        lists = next_step(f"pool export {pool.name}")
        raise InputError(f"{what} that {begins} with {id_!r}; {lists} lists the ids")
    one = readable[0]
    drawn = tuple(each for each, standing in state.standings.items() if one in standing.roots)
    await pool.retriever.catch_up(state)
    unserved = tuple(state.reasons_unserved(one, reader, pool.guarded))
    return Explanation(state.standings[one], unserved, drawn, state.covering(one), pool.retriever.version)


def taught_by(row: RetrieverTrained) -> str:
    """Return, for display, the source of the labels that a version of the retriever was trained on."""
    if not row.labeller:
        return "text similarity"
    return f"{'log-probabilities' if row.basis == 'logprobs' else 'stated numbers'} of {row.labeller}"
