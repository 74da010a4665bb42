"""Open pools in the data of the settings, fill them from files, and have the configured models grade pairs."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from mindstream.errors import InputError
from mindstream.guidance import next_step
from mindstream.models.model import Model
from mindstream.models.prompt import ask
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.planning.estimate import Estimate, RoleEstimate, priced
from mindstream.service.calling import LocalCaller, calling
from mindstream.settings import Settings
from mindstream.sharing import growth
from mindstream.sharing.admission import Pair, lay_in, offer
from mindstream.sharing.events import ExemplarJudged, Form
from mindstream.sharing.exemplar import Exemplar, render_shot
from mindstream.sharing.grading import DraftQuestion, DraftRubric, Rubric
from mindstream.sharing.growth import SizeCurve, size_curve
from mindstream.sharing.labelling import LabelCost, Labeller, find_labeller, known_labeller
from mindstream.sharing.learning import PoolLearner
from mindstream.sharing.member import Member
from mindstream.sharing.pool import Pool

SAMPLES = 5
"""Maximum number of exemplars that are shown to a model that drafts a rubric or a question."""


@dataclass(frozen=True)
class Added:
    """The result of adding pairs.

    Attributes:
        laid_in: ids of the new pairs that were added by hand.
        judged: the verdicts on offered pairs.
        known: number of pairs that the pool already contained.
    """

    laid_in: tuple[str, ...] = ()
    judged: tuple[ExemplarJudged, ...] = ()
    known: int = 0


def calling_pool(settings: Settings, name: str, *, new: bool = False) -> AbstractAsyncContextManager[LocalCaller]:
    """Open the data of the settings for operations on a pool; `new`: create the data folder if it does not exist."""
    return calling(settings, new=new, begins=next_step(f"pool create {name}"), what="pool")


@contextlib.asynccontextmanager
async def open_pool(settings: Settings, name: str) -> AsyncIterator[Pool]:
    """Open a pool of the settings' data.

    Raises:
        InputError: the data do not exist, or the name is not valid.
    """
    async with calling_pool(settings, name) as call, call.pool(name) as pool:
        yield pool


async def open_labeller(models: Models) -> Labeller | None:
    """Return the labeller of the role `labeller` (see `find_labeller`); None: the role has no model.

    A labeller is a model that labels which exemplars help, with its kind of labels.

    Raises:
        ModelError: the model is not available.
    """
    model = models.of("labeller")
    return None if model.name == Rules.name else await find_labeller(model)


async def go_on_labelling(pool: Pool, models: Models) -> None:
    """If the model that labelled the pool's newest version is configured, let it also label new pairs."""
    versions = (await pool.state()).versions
    model = models.of("labeller")
    if versions and versions[-1].labeller == model.name and isinstance(pool.retriever, PoolLearner):
        pool.retriever.labeller = known_labeller(model, versions[-1].basis)


def labelling_estimate(cost: LabelCost, labeller: Labeller) -> Estimate:
    """Return the estimated cost of labelling, with the price if it is known."""
    asked = RoleEstimate("labeller", cost.calls, cost.tokens_in, cost.tokens_out)
    return priced([asked], {"labeller": labeller.model.name})


async def draft_rubric(pool: Pool, scorer: Model, reader: str) -> Rubric:
    """Let a model draft a rubric from the pool's domain and some exemplars that `reader` may read. A person should
    review the draft."""
    domain, samples = await _domain_and_samples(pool, reader)
    return await ask(scorer, DraftRubric(domain=domain, samples=samples))


async def draft_pairs(pool: Pool, scorer: Model, answers: Iterable[str], reader: str) -> list[Pair]:
    """Let a model draft a question for each answer, and return the pairs.

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
    """Add pairs to a pool, and wait until the retriever has processed them.

    Args:
        writer: the author of the answers, if this is not the user. Pairs with such an author are graded before they are
            admitted. "": the user is the author.
    """
    if writer:
        added = Added(judged=tuple([await offer(pool, pair, writer, scorer) for pair in pairs]))
    else:
        fresh = await lay_in(pool, pairs, user)
        added = Added(laid_in=tuple(each.id for each in fresh), known=len(pairs) - len(fresh))
    await pool.retriever.settle()
    return added


async def _domain_and_samples(pool: Pool, reader: str) -> tuple[str, tuple[str, ...]]:
    state = await pool.member_state(reader)
    domain = state.domain
    served = [id_ for id_ in state.standings if id_ in pool.served(state, reader)]
    step = max(1, len(served) // SAMPLES)
    return domain, tuple(render_shot(state.standings[id_].exemplar) for id_ in served[::step][:SAMPLES])


async def size_curves(pool: Pool, reader: str, form: Form | None = None) -> list[SizeCurve]:
    """Measure how well a pool helps at each tenth of its size.

    Args:
        form: the form of the embedded text. None: the pool's own form, and a second form if any pair has examples. The
            second form is `composed`, or `bare` if the pool's own form is `composed`.
    """
    state = await pool.member_state(reader)
    own = state.form
    differ = any(each.exemplar.examples for each in state.standings.values())
    forms: list[Form] = [form] if form else [own, "bare" if own == "composed" else "composed"] if differ else [own]
    return [await size_curve(pool, reader, each) for each in forms]


async def trim(pool: Pool, capacity: str, by: str) -> list[str]:
    """Remove the least useful exemplars of a pool; return their ids.

    Args:
        capacity: the number of exemplars to keep, or "best": the measured size at which the pool helps best.

    Raises:
        InputError: `capacity` is neither a number of at least 1 nor "best"; or the pool is too small to measure the
            best size; or `by` is not the pool's owner.
    """
    if capacity != "best" and not (capacity.isascii() and capacity.isdigit() and len(capacity) < 10):
        raise InputError(f"--capacity must be a number of exemplars or `best`, not {capacity!r}")
    return await growth.trim(pool, (await size_curve(pool, by)).best if capacity == "best" else int(capacity), by)


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
        offers: pairs will be offered, and the caller sets the scorer later.
        render: returns the text by which an exemplar is shown.

    Raises:
        InputError: the pool does not exist; the user is not a member; or pairs are to be offered, and the pool has no
            rubric.
    """
    if not name:
        yield None
        return
    async with open_pool(settings, name) as pool:
        state = await pool.member_state(settings.user)
        if (scorer or offers) and not state.rubrics:
            raise InputError(
                f"the pool {name!r} has no frozen rubric by which offered pairs are graded; freeze one: `mindstream"
                " pool rubric`"
            )
        yield Member(pool, settings.user, model, scorer, render=render)
