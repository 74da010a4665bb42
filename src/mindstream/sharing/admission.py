"""Admission to a pool: each offered pair gets a verdict, admitted or rejected, with reasons (Gao 2024, 3.1.2).

One commit writes the offer of a pair and a work item for judging the pair. If the process dies before it has written
the verdict, `judge_open` judges the pair later, in any process.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mindstream import redaction
from mindstream.errors import Conflict, InputError, ModelError, ReplyInvalid
from mindstream.foreign_code import describe
from mindstream.guidance import next_step
from mindstream.identifiers import checked_name, normal_name
from mindstream.log.events import Failed
from mindstream.memory.store.record import TAINTED, Record, RecordDraft, checked_text
from mindstream.memory.store.store import Entry, NewWork, WorkDone, WorkReleased
from mindstream.models.model import Model
from mindstream.models.prompt import ask
from mindstream.sharing.events import BY_RULES, ExemplarJudged
from mindstream.sharing.exemplar import Exemplar, embedded_text, exemplar_id, pair_id
from mindstream.sharing.grading import GradePair
from mindstream.sharing.guarding import MutualInformation, find_faults
from mindstream.sharing.pool import Pool
from mindstream.sharing.state import MAX_UNGRADED, PoolState

if TYPE_CHECKING:
    from mindstream.sharing.pool import Pool

LEASE_S, JUDGING_S, POLL_S = 110.0, 90.0, 0.05
"""In seconds. LEASE_S: duration of the lease on a work item for judging. JUDGING_S: timeout of one judgement. POLL_S:
poll interval while another process judges."""

SLOT = "judge "
"""Prefix of the slot of a work item for judging; the id of the pair follows. A process claims the work by this slot."""


@dataclass(frozen=True)
class Pair:
    """A query with its answer.

    Attributes:
        model: the model that answered.
        asked_by: the author of the query; "": the agent that offers the pair.
        examples: ids of the exemplars that were in the prompt of the answer.
        private: whether only the agent that offers the pair can read it, until that agent shares it.
    """

    query: str
    answer: str
    model: str = ""
    asked_by: str = ""
    examples: tuple[str, ...] = ()
    private: bool = False


async def lay_in(pool: Pool, pairs: Sequence[Pair], by: str) -> list[Exemplar]:
    """Add pairs that the pool's owner vouches for (seed exemplars), without grading. Return the exemplars that are new.

    Raises:
        InputError: a text cannot be stored, a pair has a fault in its form (`find_faults`), or `by` is not the owner.
    """
    by = normal_name(by)
    state = await pool.state()
    if by != state.owner:
        raise InputError(
            f"only the owner {state.owner!r} may add exemplars without grading; {by!r} can offer them instead"
        )
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
    """Admit a pair without grading, because a person or a check has accepted its answer; return the pair's id.

    Only the form is checked. Admit nothing and return "" in these cases:
    - the pair was offered to the pool before;
    - the form of the pair has a fault;
    - the writer or `accepted_by` is not listed as a member by name: their words must not be shown to others.

    Args:
        accepted_by: the person who accepted the answer; "": a check did.

    Raises:
        InputError: the writer is not a member, or the text cannot be stored.
    """
    writer = normal_name(writer)
    state = await pool.member_state(writer)
    if not state.is_named(writer) or (accepted_by and not state.is_named(accepted_by)):
        return ""
    exemplar = _exemplar(pool, pair, writer)
    if exemplar.id in state.standings or find_faults(exemplar.query, exemplar.answer):
        return ""
    reason = f"the result was accepted by {'a person' if accepted_by else 'a check'}"
    judged = ExemplarJudged(id=exemplar.id, verdict="admitted", score=100, reasons=(reason,))
    with contextlib.suppress(Conflict):  # another process has added it
        await pool.memory.commit(
            Entry(exemplar, writer), Entry(judged, "verdict", (await _record(pool, exemplar, state),))
        )
        await _tell(pool, exemplar)
    return exemplar.id


async def offer(pool: Pool, pair: Pair, writer: str, scorer: Model) -> ExemplarJudged:
    """Offer a pair, have it judged, and return the verdict.

    A pair that was judged before keeps its verdict. If the scorer's reply had no valid grades, the pair is judged
    again; after MAX_UNGRADED such replies, it stays rejected.

    Raises:
        InputError: the pair cannot be stored, the writer is not a member, the pool does not serve one of the pair's
            examples to the writer, or the pool has no frozen rubric.
        ModelError: the scorer failed; `judge_open` judges the pair later.
        TimeoutError: judging took longer than JUDGING_S seconds; `judge_open` judges the pair later.
    """
    writer = normal_name(writer)
    state = await pool.member_state(writer)
    if not state.rubrics:
        raise InputError(
            f"the pool {pool.name!r} has no frozen rubric to grade by;"
            f" draft and freeze one: {next_step(f'pool rubric {pool.name}')}"
        )
    exemplar = _exemplar(pool, pair, writer)
    unseen = [id_ for id_ in exemplar.examples if id_ not in pool.served(state, writer)]
    if unseen:
        raise InputError(
            f"the answer cannot be based on exemplar {unseen[0]!r}: the pool does not serve it to {writer!r}"
        )
    known = state.standings.get(exemplar.id)
    if known and known.verdict and known.is_judged:
        return known.verdict
    if not known:
        wake = NewWork((SLOT + exemplar.id,), pool.owner_token, pool.memory.clock.now() + LEASE_S)
        await pool.memory.commit(Entry(exemplar, writer), wake=wake)
    return await _judge(pool, exemplar, scorer)


async def judge_open(pool: Pool, scorer: Model) -> list[ExemplarJudged]:
    """Judge the offered pairs that have no verdict and that no process is judging; return the verdicts.

    Such pairs remain if the process that judged them died, or if the scorer failed.

    Raises:
        ModelError: the scorer failed; the other pairs wait for the next call.
        TimeoutError: judging one pair took longer than JUDGING_S seconds; the other pairs wait for the next call.
    """
    state = await pool.state()
    judged = list[ExemplarJudged]()
    for id_ in [id_ for id_, each in state.standings.items() if each.verdict is None]:
        if await _claim(pool, id_):
            judged.append(await _judge(pool, state.standings[id_].exemplar, scorer))
    return judged


async def _judge(pool: Pool, exemplar: Exemplar, scorer: Model) -> ExemplarJudged:
    """Judge an offered pair; if another process is judging it, wait for that verdict."""
    while not (work := await _claim(pool, exemplar.id)):
        standing = (await pool.state()).standings[exemplar.id]
        if standing.verdict and standing.is_judged:
            return standing.verdict
        await asyncio.sleep(POLL_S)
    state = await pool.state()
    done = WorkDone(work, pool.owner_token)
    standing = state.standings[exemplar.id]
    if standing.verdict and standing.is_judged:
        await pool.memory.commit(Entry(standing.verdict, "scorer"), finish=done)  # the first verdict on a pair counts
        return standing.verdict
    try:
        async with asyncio.timeout(JUDGING_S):
            judged = await _verdict(pool, state, exemplar, scorer)
    except (ModelError, TimeoutError) as error:
        failed = WorkReleased(work, pool.owner_token, describe(error))
        await pool.memory.commit(Failed(text=f"{exemplar.id}: {describe(error)}", where="scorer"), put_back=failed)
        raise
    admitted = judged.verdict == "admitted"
    records = (await _record(pool, exemplar, state),) if admitted else ()
    again = None
    if judged.ungraded and standing.ungraded + 1 < MAX_UNGRADED:
        # with a lease of 0 s, any process may judge the pair when it is offered again
        again = NewWork((SLOT + exemplar.id,), pool.owner_token, 0.0)
    await pool.memory.commit(Entry(judged, "scorer", records), finish=done, wake=again)
    if admitted:
        await _tell(pool, exemplar)
    return judged


async def _claim(pool: Pool, id_: str) -> tuple[int, ...]:
    """Claim the work of judging a pair. Return the ids of the claimed work items; (): another process holds the
    work."""
    now = pool.memory.clock.now()
    found = await pool.memory.store.claim(pool.memory.key, SLOT + id_, pool.owner_token, now, now + LEASE_S)
    return tuple(each.id for each in found)


async def _verdict(pool: Pool, state: PoolState, exemplar: Exemplar, scorer: Model) -> ExemplarJudged:
    """Return the verdict on a pair.

    A pair is rejected if one of these holds:
    - its form has a fault;
    - the pool already serves the writer a pair with the same query and answer;
    - its answer gives orders to its reader, and the pool is guarded;
    - the scorer's reply has no valid grades;
    - the grades sum to less than the rubric's threshold.
    """
    query, answer, rubric = exemplar.query, exemplar.answer, state.rubrics[-1]
    judged = ExemplarJudged(id=exemplar.id, verdict="rejected", rubric=len(state.rubrics), model=BY_RULES)
    if faults := find_faults(query, answer):
        return judged.model_copy(update={"reasons": faults})
    served = pool.served(state, exemplar.writer)
    if any(pair_id(state.standings[id_].exemplar) == pair_id(exemplar) for id_ in served):
        return judged.model_copy(
            update={"reasons": ("the pool already has an exemplar with the same query and answer",)}
        )
    likely = pool.likely(scorer)
    if scorer.name == BY_RULES or likely:
        judged = await _measured(pool, state, exemplar, judged, likely)
        if judged.orders:
            return judged
    judged = judged.model_copy(update={"model": scorer.name})
    try:
        prompt = state.as_prompt(exemplar, served).query
        grades = await ask(
            scorer, GradePair(domain=rubric.domain, criteria=rubric.criteria, query=prompt, answer=answer)
        )
    except ReplyInvalid as error:
        reason = f"the reply of the scorer contained no valid grades: {describe(error)}"
        return judged.model_copy(update={"ungraded": True, "reasons": (reason,)})
    reasons = tuple(f"{each.criterion}: {each.points:g}, {each.reason}" for each in grades.grades)
    if pool.guarded and grades.gives_orders:
        reasons = (f"according to {scorer.name}, the answer gives orders to its reader", *reasons)
        return judged.model_copy(update={"orders": True, "reasons": reasons})
    found = {"score": grades.total, "grades": {each.criterion: each.points for each in grades.grades}}
    if grades.total < rubric.threshold:
        reasons = (f"{grades.total:g} points; the rubric requires {rubric.threshold}", *reasons)
        return judged.model_copy(update={**found, "reasons": reasons})
    return judged.model_copy(update={**found, "reasons": reasons, "verdict": "admitted"})


async def _measured(
    pool: Pool, state: PoolState, exemplar: Exemplar, judged: ExemplarJudged, likely: MutualInformation | None
) -> ExemplarJudged:
    """Measure whether the answer of a pair gives orders to its reader, and how well it fits the query. In a guarded
    pool, the fit of an answer that gives orders is not measured.

    Called only if the scorer is the `rules` model, or if `likely`, a model in this process, can measure.
    """
    measures = await pool.measures(state)
    heard = await measures.detector.hear(exemplar.query, exemplar.answer)
    if pool.guarded and heard.order:
        reason = f"the answer contains a sentence that resembles an order to its reader: {heard.order!r}"
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
    """Build the memory record of an exemplar. The text of the record is the embedded text.

    If another person than the writer asked the query (`asked_by`), the record is marked as tainted (third-party
    content).
    """
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
    """Notify the retriever of an admission. The retriever may be third-party code, so its exceptions are logged."""
    try:
        await pool.retriever.admitted(exemplar)
    except Exception as error:  # noqa: BLE001 (third-party code: the pair stays admitted)
        await pool.memory.commit(Failed(text=f"{exemplar.id}: {describe(error)}", where="retriever"))


MAX_LINES = 100_000


async def export_lines(pool: Pool, reader: str) -> list[str]:
    """Return, as lines of JSON, the exemplars that a reader may be served. Each line has messages, id, writer, model
    and score."""
    state = await pool.member_state(reader)
    served = pool.served(state, reader)
    return [_line(pool, id_, state.standings[id_].exemplar.query) for id_ in state.standings if id_ in served]


def _line(pool: Pool, id_: str, query: str) -> str:
    standing = pool.known(id_)
    exemplar = standing.exemplar
    messages = [{"role": "user", "content": query}, {"role": "assistant", "content": exemplar.answer}]
    rest = {
        "id": id_,
        "writer": exemplar.writer,
        "model": exemplar.model,
        "score": standing.verdict.score if standing.verdict else 0.0,
    }
    return json.dumps({"messages": messages, **rest}, ensure_ascii=False)


def read_pairs(lines: Iterable[bytes | str], source: str) -> Iterator[Pair]:
    """Read pairs from lines of JSON, as `export_lines` returns them. The writer that a line names is ignored.

    Raises:
        InputError: a line is not a pair (the message has the number of the line), or there are more than MAX_LINES
            lines.
    """
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        if number > MAX_LINES:
            raise InputError(f"{source} has over {MAX_LINES:,} lines, the maximum: add the pairs in several files")
        try:
            given = json.loads(line)
            said = {message["role"]: message["content"] for message in given["messages"]}
            query, answer, model = said["user"], said["assistant"], given.get("model", "")
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            query = answer = model = None
        if not (isinstance(query, str) and isinstance(answer, str) and isinstance(model, str)):
            wanted = '{"messages": [{"role": "user", "content": …}, {"role": "assistant", "content": …}]}'
            raise InputError(f"{source}:{number}: expected a pair: {wanted}")
        yield Pair(query, answer, model=model)
