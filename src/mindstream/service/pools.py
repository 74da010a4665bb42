"""Pools of the settings' data: opening, filling from files, grading by the configured models."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from mindstream.errors import InputError
from mindstream.models.ask import ask
from mindstream.models.model import Model
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.planning.estimate import Estimate, RoleEstimate, priced
from mindstream.service.calling import LocalCaller, calling
from mindstream.settings import Settings
from mindstream.sharing import capacity as capacity_policy
from mindstream.sharing.admission import Pair, lay_in, offer
from mindstream.sharing.events import ExemplarJudged, Form
from mindstream.sharing.exemplar import Exemplar, render_shot
from mindstream.sharing.grading.prompts import DraftQuestion, DraftRubric
from mindstream.sharing.grading.rubric import Rubric
from mindstream.sharing.growth import SizeCurve, size_curve
from mindstream.sharing.labelling import LabelCost, Labeller, find_labeller, known_labeller
from mindstream.sharing.learning import PoolLearner
from mindstream.sharing.member import Member
from mindstream.sharing.pool import Pool

SAMPLES = 5
"""Number of exemplars that are shown to a model that drafts."""


@dataclass(frozen=True)
class Added:
    """The result of adding pairs: the new ones that were added by hand, or the verdicts on offered ones."""

    laid_in: tuple[str, ...] = ()
    judged: tuple[ExemplarJudged, ...] = ()
    known: int = 0


def calling_pool(settings: Settings, name: str, *, new: bool = False) -> AbstractAsyncContextManager[LocalCaller]:
    """Open the data of the settings for operations on a pool; `new`: create the data if there are none."""
    return calling(settings, new=new, begins=f"`mindstream pool create {name}`", what="pool")


@contextlib.asynccontextmanager
async def open_pool(settings: Settings, name: str) -> AsyncIterator[Pool]:
    """Open a pool of the settings' data.

    Raises:
        InputError: there are no such data, or the name cannot be used.
    """
    async with calling_pool(settings, name) as call, call.pool(name) as pool:
        yield pool


async def open_labeller(models: Models) -> Labeller | None:
    """Return the model that labels which exemplars help, and its method; None: no model is configured, rules label.

    Raises:
        ModelError: the model is not available.
    """
    model = models.of("labeller")
    return None if model.name == Rules.name else await find_labeller(model)


async def go_on_labelling(pool: Pool, models: Models) -> None:
    """Let the model that labelled the pool's newest version label new pairs, if it is configured."""
    versions = (await pool.state()).versions
    model = models.of("labeller")
    if versions and versions[-1].labeller == model.name and isinstance(pool.retriever, PoolLearner):
        pool.retriever.labeller = known_labeller(model, versions[-1].basis)


def labelling_estimate(cost: LabelCost, labeller: Labeller) -> Estimate:
    """Return the estimated cost of labelling, with its price if that is known."""
    asked = RoleEstimate("labeller", cost.calls, cost.tokens_in, cost.tokens_out)
    return priced([asked], {"labeller": labeller.model.name})


async def draft_rubric(pool: Pool, scorer: Model, reader: str) -> Rubric:
    """Return a rubric that a model drafted, for a person to review."""
    domain, samples = await _domain_and_samples(pool, reader)
    return await ask(scorer, DraftRubric(domain=domain, samples=samples))


async def draft_pairs(pool: Pool, scorer: Model, answers: Iterable[str], reader: str) -> list[Pair]:
    """Return pairs of each answer with a question that a model drafted.

    Raises:
        ModelError: no model is configured, or it failed.
    """
    domain, samples = await _domain_and_samples(pool, reader)
    drafted = list[Pair]()
    for answer in answers:
        found = await ask(scorer, DraftQuestion(domain=domain, answer=answer, examples=samples))
        drafted.append(Pair(found.question, answer))
    return drafted


async def add_pairs(pool: Pool, scorer: Model, pairs: Sequence[Pair], user: str, writer: str = "") -> Added:
    """Add pairs by hand, or, if they have another writer, offer them to be graded; then wait for the retriever."""
    if writer:
        added = Added(judged=tuple([await offer(pool, pair, writer, scorer) for pair in pairs]))
    else:
        fresh = await lay_in(pool, pairs, user)
        added = Added(laid_in=tuple(each.id for each in fresh), known=len(pairs) - len(fresh))
    await pool.retriever.settle()
    return added


async def _domain_and_samples(pool: Pool, reader: str) -> tuple[str, tuple[str, ...]]:
    state = await pool.member_state(reader)
    domain = state.created.domain if state.created else pool.name
    served = [id_ for id_ in state.standings if id_ in pool.served(state, reader)]
    step = max(1, len(served) // SAMPLES)
    return domain, tuple(render_shot(state.standings[id_].exemplar) for id_ in served[::step][:SAMPLES])


async def size_curves(pool: Pool, reader: str, form: Form | None = None) -> list[SizeCurve]:
    """Measure a pool at tenths of its size, with both forms of embedded text if they differ."""
    state = await pool.member_state(reader)
    own = state.form
    differ = any(each.exemplar.examples for each in state.standings.values())
    forms: list[Form] = [form] if form else [own, "bare" if own == "composed" else "composed"] if differ else [own]
    return [await size_curve(pool, reader, each) for each in forms]


async def trim(pool: Pool, capacity: str, by: str) -> list[str]:
    """Remove the least useful exemplars until a pool has a number of them, or ("best") its best measured size.

    Raises:
        InputError: `capacity` is neither.
    """
    if capacity != "best" and not (capacity.isascii() and capacity.isdigit() and len(capacity) < 10):
        raise InputError(f"--capacity takes a number of exemplars, or best, not {capacity!r}")
    return await capacity_policy.trim(
        pool, (await size_curve(pool, by)).best if capacity == "best" else int(capacity), by
    )


@contextlib.asynccontextmanager
async def open_member(
    settings: Settings,
    name: str,
    *,
    scorer: Model | None = None,
    model: str = "",
    offers: bool = False,
    render: Callable[[Exemplar], str] = render_shot,
) -> AsyncIterator[Member | None]:
    """Open the user's membership in a pool; None if no pool is named.

    Args:
        scorer: the model that grades offered pairs; None: the member only reads.
        model: the name of the model that answers.
        offers: something will be offered, and the scorer is set later.

    Raises:
        InputError: there is no such pool, the user is no member, or the pool has no rubric for offers.
    """
    if not name:
        yield None
        return
    async with open_pool(settings, name) as pool:
        state = await pool.member_state(settings.user)
        if (scorer or offers) and not state.rubrics:
            raise InputError(f"the pool {name!r} has no frozen rubric, so nothing can be offered to it")
        yield Member(pool, settings.user, model, scorer, render=render)
