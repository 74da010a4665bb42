"""Admission to a pool: a pair is offered, judged exactly once, and admitted or rejected with reasons (Gao 2024, 3.1.2).

The offer is written first, together with the work of judging it. If the process dies in between, `judge_open` judges
the pair later.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mindstream import redaction
from mindstream.errors import Conflict, InputError, ModelError, ReplyInvalid
from mindstream.foreign_code import describe
from mindstream.identifiers import normal_name
from mindstream.log.events import Failed
from mindstream.log.names import checked_name
from mindstream.memory.store.record import TAINTED, Record, RecordDraft
from mindstream.memory.store.store import Entry, NewWork, WorkDone, WorkReleased
from mindstream.memory.store.validation import checked_text
from mindstream.models.ask import ask
from mindstream.models.model import Model
from mindstream.sharing.events import BY_RULES, ExemplarJudged
from mindstream.sharing.exemplar import Exemplar, embedded_text, exemplar_id, pair_id
from mindstream.sharing.grading.prompts import GradePair
from mindstream.sharing.guarding.answer_fit import MutualInformation, find_faults
from mindstream.sharing.state import PoolState

if TYPE_CHECKING:
    from mindstream.sharing.pool import Pool

LEASE_S, JUDGING_S, POLL_S = 110.0, 90.0, 0.05
SLOT = "judge "


@dataclass(frozen=True)
class Pair:
    """A query with its answer.

    Attributes:
        model: the model that answered; asked_by: the author of the query, if not the writer.
        examples: ids of the exemplars in the prompt.
        private: only the writer can read it until the writer shares it.
    """

    query: str
    answer: str
    model: str = ""
    asked_by: str = ""
    examples: tuple[str, ...] = ()
    private: bool = False


async def lay_in(pool: Pool, pairs: Sequence[Pair], by: str) -> list[Exemplar]:
    """Admit pairs that the pool's owner vouches for; return those that are new.

    Raises:
        InputError: a text cannot be stored, or `by` is not the owner.
    """
    by = normal_name(by)
    state = await pool.state()
    if by != state.owner:
        raise InputError(f"only the owner {state.owner!r} may add exemplars directly; {by!r} may offer them")
    fresh: dict[str, Exemplar] = {}
    for pair in pairs:
        exemplar = _exemplar(pool, pair, by)
        if faults := find_faults(exemplar.query, exemplar.answer):
            raise InputError(f"{faults[0]}: {exemplar.query[:80]!r}")
        if exemplar.id not in state.standings:
            fresh.setdefault(exemplar.id, exemplar)
    entries = list[Entry]()
    for each in fresh.values():
        judged = ExemplarJudged(id=each.id, verdict="admitted", score=100, by_hand=True, reasons=("laid in by hand",))
        entries += [Entry(each, by), Entry(judged, by, (await _record(pool, each, state),))]
    try:
        if entries:
            await pool.memory.commit(*entries)
    except Conflict:  # another process has added some of them
        return await lay_in(pool, pairs, by)
    for each in fresh.values():
        await _tell(pool, each)
    return list(fresh.values())


async def admit_work(pool: Pool, pair: Pair, writer: str, accepted_by: str) -> str:
    """Admit work whose result was accepted, without grading; return its id, or "" if the pool has it already.

    It is private if somebody who is not a member by name accepted it. A person or a check has judged the result, so the
    form is checked and nothing else.

    Raises:
        InputError: the writer is not a member, or the text cannot be stored.
    """
    writer = normal_name(writer)
    state = await pool.member_state(writer)
    stranger = accepted_by if accepted_by and accepted_by not in (*state.members, state.owner) else ""
    pair = replace(pair, asked_by=stranger, private=bool(stranger))
    exemplar = _exemplar(pool, pair, writer)
    if exemplar.id in state.standings or find_faults(exemplar.query, exemplar.answer):
        return ""
    reason = f"the result was accepted by {accepted_by or 'a check'}"
    judged = ExemplarJudged(
        id=exemplar.id, verdict="admitted", score=100, reasons=(reason,), by_hand=writer == state.owner
    )
    with contextlib.suppress(Conflict):  # another process has added it
        await pool.memory.commit(
            Entry(exemplar, writer), Entry(judged, "verdict", (await _record(pool, exemplar, state),))
        )
        await _tell(pool, exemplar)
    return exemplar.id


async def offer(pool: Pool, pair: Pair, writer: str, scorer: Model) -> ExemplarJudged:
    """Offer a pair and have it judged. A pair that was judged before keeps its verdict.

    Raises:
        InputError: it cannot be stored, the writer is not a member or has not been served the examples, or no rubric
            is frozen.
        ModelError: the scorer did not answer: the pair waits for `judge_open`.
    """
    writer = normal_name(writer)
    state = await pool.member_state(writer)
    if not state.rubrics:
        raise InputError(f"the pool {pool.name!r} has no frozen rubric: `mindstream pool rubric {pool.name}`")
    exemplar = _exemplar(pool, pair, writer)
    unseen = [id_ for id_ in exemplar.examples if id_ not in pool.served(state, writer)]
    if unseen:
        raise InputError(f"{writer!r} cannot have been shown {unseen[0]!r}: it is not served that exemplar")
    known = state.standings.get(exemplar.id)
    if known and known.verdict:
        return known.verdict
    if not known:
        wake = NewWork((SLOT + exemplar.id,), pool.owner_token, pool.memory.clock.now() + LEASE_S)
        await pool.memory.commit(Entry(exemplar, writer), wake=wake)
    return await _judge(pool, exemplar, scorer)


async def judge_open(pool: Pool, scorer: Model) -> list[ExemplarJudged]:
    """Judge offered pairs that no process is judging, because it died or got no answer."""
    state = await pool.state()
    judged = list[ExemplarJudged]()
    for id_ in [id_ for id_, each in state.standings.items() if each.verdict is None]:
        if await _claim(pool, id_):
            judged.append(await _judge(pool, state.standings[id_].exemplar, scorer))
    return judged


async def _judge(pool: Pool, exemplar: Exemplar, scorer: Model) -> ExemplarJudged:
    """Judge an offered pair, or wait for the process that does."""
    while not (work := await _claim(pool, exemplar.id)):
        standing = (await pool.state()).standings[exemplar.id]
        if standing.verdict:
            return standing.verdict
        await asyncio.sleep(POLL_S)
    state = await pool.state()
    done = WorkDone(work, pool.owner_token)
    if known := state.standings[exemplar.id].verdict:
        await pool.memory.commit(Entry(known, "scorer"), finish=done)  # the first one counts
        return known
    try:
        async with asyncio.timeout(JUDGING_S):
            judged = await _verdict(pool, state, exemplar, scorer)
    except (ModelError, TimeoutError) as error:
        failed = WorkReleased(work, pool.owner_token, describe(error))
        await pool.memory.commit(Failed(text=f"{exemplar.id}: {describe(error)}", where="scorer"), put_back=failed)
        raise
    admitted = judged.verdict == "admitted"
    records = (await _record(pool, exemplar, state),) if admitted else ()
    await pool.memory.commit(Entry(judged, "scorer", records), finish=done)
    if admitted:
        await _tell(pool, exemplar)
    return judged


async def _claim(pool: Pool, id_: str) -> tuple[int, ...]:
    now = pool.memory.clock.now()
    found = await pool.memory.store.claim(pool.memory.key, SLOT + id_, pool.owner_token, now, now + LEASE_S)
    return tuple(each.id for each in found)


async def _verdict(pool: Pool, state: PoolState, exemplar: Exemplar, scorer: Model) -> ExemplarJudged:
    """Judge a pair: its form, whether it is new, whether it gives orders, and the rubric."""
    query, answer, rubric = exemplar.query, exemplar.answer, state.rubrics[-1]
    judged = ExemplarJudged(id=exemplar.id, verdict="rejected", rubric=len(state.rubrics), model=BY_RULES)
    if faults := find_faults(query, answer):
        return judged.model_copy(update={"reasons": faults})
    served = pool.served(state, exemplar.writer)
    if any(pair_id(state.standings[id_].exemplar) == pair_id(exemplar) for id_ in served):
        return judged.model_copy(update={"reasons": ("another exemplar says the same",)})
    likely = pool.likely(scorer)
    if scorer.name == BY_RULES or likely:
        judged = await _measured(pool, state, exemplar, judged, likely)
        if judged.orders:
            return judged
    judged = judged.model_copy(update={"model": scorer.name})
    try:
        grades = await ask(
            scorer, GradePair(domain=rubric.domain, criteria=rubric.criteria, query=query, answer=answer)
        )
    except ReplyInvalid as error:
        return judged.model_copy(update={"reasons": (f"the scorer gave no grades: {describe(error)}",)})
    reasons = tuple(f"{each.criterion}: {each.points:g}, {each.reason}" for each in grades.grades)
    if pool.guarded and grades.gives_orders:
        reasons = (f"{scorer.name} says that it gives orders to its reader", *reasons)
        return judged.model_copy(update={"orders": True, "reasons": reasons})
    found = {"score": grades.total, "grades": {each.criterion: each.points for each in grades.grades}}
    if grades.total < rubric.threshold:
        reasons = (f"{grades.total:g} points, and {rubric.threshold} are wanted", *reasons)
        return judged.model_copy(update={**found, "reasons": reasons})
    return judged.model_copy(update={**found, "reasons": reasons, "verdict": "admitted"})


async def _measured(
    pool: Pool, state: PoolState, exemplar: Exemplar, judged: ExemplarJudged, likely: MutualInformation | None
) -> ExemplarJudged:
    """Measure a pair that rules or a model in this process judge: whether its answer gives orders and belongs to
    its query."""
    measures = await pool.measures(state)
    heard = await measures.detector.hear(exemplar.query, exemplar.answer)
    if pool.guarded and heard.order:
        reason = f"it resembles an order to its reader: {heard.order!r}"
        return judged.model_copy(update={"orders": True, "reasons": (reason,)})
    fit = await measures.fit(exemplar.query, exemplar.answer, likely)
    weight = 1.0 if exemplar.asked_by else measures.weight
    measured = {"fit": fit.log_odds, "fit_by": fit.by, "fit_weight": weight} if fit else {}
    return judged.model_copy(update={"louder": heard.louder, **measured})


def _exemplar(pool: Pool, pair: Pair, writer: str) -> Exemplar:
    query, answer = (redaction.clean(checked_text(each)).text for each in (pair.query, pair.answer))
    asked_by = checked_name(pair.asked_by, "asked_by") if pair.asked_by else ""
    id_ = exemplar_id(f"pool:{pool.name}", checked_name(writer, "writer"), query, answer)
    examples = tuple(dict.fromkeys(pair.examples))
    return Exemplar(
        id=id_,
        query=query,
        answer=answer,
        writer=writer,
        model=pair.model,
        asked_by=asked_by,
        examples=examples,
        private=pair.private,
    )


async def _record(pool: Pool, exemplar: Exemplar, state: PoolState) -> Record:
    """Build the record of an exemplar. Its text is the embedded text; it is tainted if a user outside the members
    asked."""
    text = embedded_text(exemplar.query, exemplar.answer, state.examples_of(exemplar), state.form)
    data = {"query": exemplar.query, "answer": exemplar.answer, "model": exemplar.model, "asked_by": exemplar.asked_by}
    new = RecordDraft(
        text=text,
        kind="exemplar",
        by=exemplar.writer,
        evidence=exemplar.examples,
        data={**data, **({TAINTED: True} if exemplar.asked_by else {})},
    )
    return replace((await pool.memory.build_records([new]))[0], id=exemplar.id)


async def _tell(pool: Pool, exemplar: Exemplar) -> None:
    """Notify the retriever of an admission. It may be third-party code: an exception is logged."""
    try:
        await pool.retriever.admitted(exemplar)
    except Exception as error:  # noqa: BLE001 (third-party code: the pair stays admitted)
        await pool.memory.commit(Failed(text=f"{exemplar.id}: {describe(error)}", where="retriever"))
