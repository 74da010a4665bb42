"""Operations on pools of exemplars: who reads and writes is the user, never a name in a request."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from mindstream.log.names import id_of
from mindstream.minds.calls import CallLog
from mindstream.service.operations.house import House
from mindstream.service.operations.lasting.running import Running
from mindstream.service.operations.refusals import NotFound
from mindstream.service.operations.shapes import Ask, NoQuestion, Reply
from mindstream.service.operations.table import operation
from mindstream.service.operations.who import Who
from mindstream.sharing.events import EVERYONE

if TYPE_CHECKING:
    from mindstream.sharing.pool import Pool
    from mindstream.sharing.state import PoolState


class PoolName(Ask):
    """One pool."""

    pool: str = Field(max_length=100)


class CreateRequest(PoolName):
    """A pool of the user's; `members`: who may write and recall, all of the tenant's where none is named."""

    domain: str = Field("", max_length=1_000)
    members: list[str] = Field([EVERYONE], min_length=1, max_length=1_000)
    private: bool = False
    form: Literal["composed", "bare"] = "composed"


class PoolRecallRequest(PoolName):
    """A question like those whose answers are wanted."""

    query: str = Field(min_length=1, max_length=100_000)
    k: int = Field(3, ge=1, le=50)


class OfferRequest(PoolName):
    """A question and its answer, to be judged by the pool's rubric; `asked_by` is the user."""

    query: str = Field(min_length=1, max_length=100_000)
    answer: str = Field(min_length=1, max_length=100_000)


class HelpedRequest(PoolName):
    """How good an answer was, 0 to 1, before which these exemplars stood."""

    ids: list[str] = Field(min_length=1, max_length=50)
    value: float = Field(ge=0, le=1)
    query: str = Field("", max_length=100_000)


class PoolShape(Reply):
    """A pool as a member sees it."""

    pool: str
    domain: str
    owner: str
    members: list[str]
    exemplars: int
    rubrics: int


class PoolList(Reply):
    """The pools of which a user is a member."""

    pools: list[PoolShape]


class ExemplarShape(Reply):
    """How somebody answered."""

    id: str
    query: str
    answer: str
    writer: str


class ExemplarList(Reply):
    """Exemplars, best first."""

    exemplars: list[ExemplarShape]


class Judged(Reply):
    """What became of a pair, and why."""

    id: str
    verdict: str
    score: float
    reasons: list[str]


class Done(Reply):
    """It is done."""

    done: bool = True


@contextlib.asynccontextmanager
async def open_pool(house: House, who: Who, name: str, *, new: bool = False) -> AsyncIterator[Pool]:
    """Open a pool of the tenant's, for one of its members.

    Raises:
        NotFound: there is none, or the user is no member: who is none does not learn that it is there.
    """
    from mindstream.sharing.pool import Pool

    async with Pool.open(house.ground(who).store, name, embed=house.embedder, clock=house.clock) as pool:
        if not new and (not await pool.exists() or not is_member(await pool.state(), who.user)):
            raise NotFound(f"there is no pool {name!r} here")
        yield pool


@operation("pools.list", "read", "GET /users/{user}/pools", mcp="list_pools")
async def list_pools(house: House, who: Who, ask: NoQuestion) -> PoolList:  # noqa: ARG001
    """List the pools of which a user is a member."""
    store, found = house.ground(who).store, list[PoolShape]()
    for key in await store.streams():
        if name := id_of(key, "pool"):
            with contextlib.suppress(NotFound):
                async with open_pool(house, who, name) as pool:
                    found.append(await _shape(pool))
    return PoolList(pools=found)


@operation("pools.create", "write", "POST /users/{user}/pools/{pool}", cli="pool create", status=201)
async def create(house: House, who: Who, ask: CreateRequest) -> PoolShape:
    """Create a pool; it is the user's."""
    async with open_pool(house, who, ask.pool, new=True) as pool:
        if await pool.exists():
            raise NotFound(f"a pool cannot be called {ask.pool!r}: that name is taken")
        await pool.create(ask.domain or ask.pool, who.user, members=ask.members, shared=not ask.private, form=ask.form)
        return await _shape(pool)


@operation("pools.get", "read", "GET /users/{user}/pools/{pool}")
async def get(house: House, who: Who, ask: PoolName) -> PoolShape:
    """Return a pool of which a user is a member."""
    async with open_pool(house, who, ask.pool) as pool:
        return await _shape(pool)


@operation("pools.recall", "read", "POST /users/{user}/pools/{pool}/recall", mcp="recall_exemplars", cli="pool recall")
async def recall(house: House, who: Who, ask: PoolRecallRequest) -> ExemplarList:
    """Return how others answered what is like a question."""
    async with open_pool(house, who, ask.pool) as pool:
        found = await pool.recall(ask.query, ask.k, reader=who.user)
    shown = [ExemplarShape(id=each.id, query=each.query, answer=each.answer, writer=each.writer) for each in found]
    return ExemplarList(exemplars=shown)


@operation(
    "pools.offer", "write", "POST /users/{user}/pools/{pool}/offer", long=True, mcp="offer_exemplar", cli="pool add"
)
async def offer_pair(house: House, who: Who, ask: OfferRequest, one: Running) -> Judged:
    """Offer an answer to a pool: it is judged by the rubric, and admitted or not."""
    from mindstream.sharing.admission import Pair, offer

    calls = CallLog()
    scorer = house.models_of(who, calls.take).of("scorer")
    async with open_pool(house, who, ask.pool) as pool, calls.writing(await house.memory(who)):
        one.tell("it is judged")
        judged = await offer(pool, Pair(ask.query, ask.answer, "", who.user), who.user, scorer)
    return Judged(id=judged.id, verdict=judged.verdict, score=judged.score, reasons=list(judged.reasons))


@operation("pools.helped", "write", "POST /users/{user}/pools/{pool}/helped", mcp="exemplars_helped")
async def helped(house: House, who: Who, ask: HelpedRequest) -> Done:
    """Tell how good an answer was before which exemplars stood."""
    async with open_pool(house, who, ask.pool) as pool:
        await pool.helped(ask.ids, ask.value, who.user, ask.query)
    return Done()


def is_member(state: PoolState, user: str) -> bool:
    """Tell whether a user may read a pool."""
    created = state.created
    return created is not None and (EVERYONE in state.members or user in state.members or user == created.owner)


async def _shape(pool: Pool) -> PoolShape:
    state = await pool.state()
    created = state.created
    return PoolShape(
        pool=pool.name, domain=created.domain if created else "", owner=created.owner if created else "",
        members=sorted(state.members), exemplars=len(state.standings), rubrics=len(state.rubrics),
    )  # fmt: skip
