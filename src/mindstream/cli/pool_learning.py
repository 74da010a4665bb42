"""`mindstream pool`: train the retriever of a pool, measure the pool's best size, trim the pool; its lessons, and
verdicts on the work of agents."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from mindstream.cli.pool import ME, Name, lesson_lines
from mindstream.cli.shell import output
from mindstream.cli.shell.files import write_text
from mindstream.cli.shell.flags import AsJson, Svg, Yes, command, flag, group, next_command, switch, word
from mindstream.cli.shell.output import (
    Axes,
    complain,
    fitting_top,
    picture,
    plot,
    print_json,
    progress,
    say,
    tell,
)
from mindstream.errors import InputError
from mindstream.guidance import next_step
from mindstream.models.rules import Rules
from mindstream.service import pools
from mindstream.service.calling import calling
from mindstream.service.opening import answering
from mindstream.settings import Settings
from mindstream.sharing.events import RetrieverTrained
from mindstream.sharing.growth import SizeCurve, SizePoint, growth_curve
from mindstream.sharing.learning import LEAST, PoolLearner
from mindstream.sharing.pool import taught_by
from mindstream.text.words import count_of

if TYPE_CHECKING:
    from mindstream.service.operations.lessons import LessonShape


app = group()


LABELLER = "The model that labels which exemplars help (role labeller) [rules: half ROUGE-L, half cosine]."
ASKED_FROM_USD = 0.10
"""Estimated cost, in US dollars, from which the user is asked before pairs are labelled.

The user is asked only in a terminal, and only if no budget in US dollars is set.
"""


@command(
    app,
    "model roles patience_s budget_calls budget_tokens budget_usd data user embedder",
    "mindstream pool train verse",
    "mindstream pool train verse --role labeller=gguf:small.gguf",
    "mindstream pool train verse --model openai:gpt-5-mini --max-calls 200",
    user=ME,
    model=LABELLER,
)
async def train(settings: Settings, name: Name, yes: Yes = False, json: AsJson = False) -> None:
    """Train the retriever, which ranks the exemplars, on the whole pool.

    The retriever also learns from each admitted pair. This command trains the retriever on all pairs again, and from
    scratch if the embedder has changed.

    A model labels how likely each answer is with other pairs as examples. The labels are log-probabilities if the model
    returns them, otherwise the model's own estimates; without a model, rules label. An estimate of the cost is shown
    first. Labels are stored: after Ctrl-C or a failure of the model, the same command continues. After Ctrl-C the pool
    keeps the last version that did better on held-out pairs.
    """
    async with pools.open_pool(settings, name) as pool, answering(settings) as models:
        total = len((await pool.member_state(settings.user)).teaching(pool.guarded))
        learner = PoolLearner(pool, await pools.open_labeller(models))
        if not await _agreed(settings, learner, yes):
            return
        with progress(f"learning from {name}") as bar:
            row = await learner.train(
                settings.user, lambda done: bar(done, total), lambda done: bar(done, total, f"labelling {name}")
            )
        before = _before((await pool.state()).versions, row)
    tell(json, {"pool": name, **row.model_dump(mode="json")}, "\n".join([describe_version(row), *before]))


async def _agreed(settings: Settings, learner: PoolLearner, yes: bool) -> bool:
    """Show the estimated cost of labelling; return whether to do it.

    The user is asked only if all of these hold:
    - A model labels, and its cost is at least ASKED_FROM_USD.
    - A person can answer.
    - `yes` is False, and no budget in US dollars is set.

    Otherwise the result is True.
    """
    cost = await learner.cost(settings.user)
    if cost is None or learner.labeller is None:
        complain("no model is configured: rules label which exemplars help (--model, or --role labeller=NAME)")
        return True
    expected = pools.labelling_estimate(cost, learner.labeller)
    basis, model = learner.labeller.key
    how = "by log-probabilities" if basis == "logprobs" else "by its own estimates"
    complain(f"{model} labels {count_of(cost.pairs, 'exemplar')} {how}: {expected}")
    limited = yes or settings.budget_usd is not None or not output.is_answerable()
    return limited or (expected.cost_usd or 0.0) < ASKED_FROM_USD or output.confirm("Continue?")


def describe_version(row: RetrieverTrained) -> str:
    """Describe a version of the retriever: what it learned from, and the result of its check on held-out pairs."""
    begun = "restarted" if row.anew and row.parent else "the first" if row.anew else f"after version {row.parent}"
    if not row.held:
        nothing = f"training by {taught_by(row)} did not improve the results on held-out pairs"
        return f"version {row.number}, {begun}: {nothing}; it ranks as version {row.parent} does"
    learned = f"learned from {count_of(row.learned_from, 'exemplar')}, taught by {taught_by(row)}"
    line = f"version {row.number}, {begun}: {learned}"
    if not row.held_out and not row.before:
        return f"{line}; too few held-out pairs to check it"
    return f"{line}; the exemplar ranked first helps {row.held_out:.0%} of the held-out pairs, {row.before:.0%} before"


def _before(versions: Sequence[RetrieverTrained], row: RetrieverTrained) -> list[str]:
    """Return a note if the labels of the previous version came from another method (basis) or model; else []."""
    before = next((each for each in versions if each.number == row.parent), None)
    if before is None or (before.basis, before.labeller) == (row.basis, row.labeller):
        return []
    return [
        f"version {before.number} was taught by {taught_by(before)}, this one by {taught_by(row)}: their labels are"
        " not mixed"
    ]


@command(app, "data user embedder", "mindstream pool curve verse --svg curve.svg", user=ME)
async def curve(
    settings: Settings,
    name: Name,
    form: Annotated[
        Literal["composed", "bare"] | None,
        typer.Option(
            help="The text to embed: the query with its examples (composed), or the query alone (bare) [the pool's own"
            " form; if a pair has examples, a curve for each of two forms]."
        ),
    ] = None,
    file: Svg = None,
    json: AsJson = False,
) -> None:
    """Show the quality of a pool's recall at each pool size, the best size, and the gain of training as the pool grows.

    Three exemplars are recalled for each of at most 100 pairs that the retriever was not trained on. If there are too
    few such pairs, any pairs are used. The quality is the similarity of the exemplars' answers to the answer of the
    pair: half ROUGE-L, half cosine.
    """
    async with pools.open_pool(settings, name) as pool:
        with progress(f"learning from {name} as it grew") as bar:
            total = len((await pool.member_state(settings.user)).teaching(pool.guarded))
            learns = total >= LEAST
            grown = await growth_curve(pool, settings.user, lambda done: bar(done, total)) if learns else []
        curves = Curves(name, await pools.size_curves(pool, settings.user, form), grown, (await pool.state()).versions)
    if file:
        write_text(file, _picture(curves))
    if json:
        for each in curves.sizes:
            points = [_point(point) for point in each.points]
            facts = {"asked": each.asked, "held_out": each.held_out, "by_hand": each.by_hand}
            print_json({"curve": "size", "form": each.form, "best": each.best, **facts, "points": points})
        print_json({"curve": "growth", "points": [_point(point) for point in curves.growth]})
        print_json({"curve": "versions", "points": [_checked(row) for row in curves.versions]})
        return
    _show(curves, settings)
    if file:
        say(f"the picture is in {file}")


@command(app, "data user embedder", "mindstream pool trim verse --capacity best", user=ME)
def trim(
    settings: Settings,
    name: Name,
    capacity: Annotated[str, flag("N|best", "Number of exemplars to keep; best: the best size of `pool curve`.")],
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Remove the least useful exemplars of a pool, by grade, use and similarity; pairs added by hand stay."""
    if not yes and not output.confirm(f"Trim {name} to {capacity}?"):
        return

    async def run() -> list[str]:
        async with pools.open_pool(settings, name) as pool:
            return await pools.trim(pool, capacity, settings.user)

    gone = asyncio.run(run())
    left = "pairs added by hand stay, and so does everything derived from the removed ones"
    tell(json, {"pool": name, "gone": gone}, f"{count_of(len(gone), 'exemplar')} removed; {left}")


@dataclass(frozen=True)
class Curves:
    """The curves that `pool curve` shows."""

    pool: str
    sizes: Sequence[SizeCurve]
    growth: Sequence[SizePoint]
    versions: Sequence[RetrieverTrained]

    @property
    def title(self) -> str:
        return f"Quality of exemplars for the pairs of {self.pool}, by size of the pool under the capacity policy"

    @property
    def grown(self) -> dict[str, list[float]]:
        return {"untrained": [each.untrained for each in self.growth], "trained": [each.helped for each in self.growth]}

    def axes(self, points: Sequence[SizePoint]) -> Axes:
        """Return axes that fit all curves."""
        found = [*self.growth, *(point for each in self.sizes for point in each.points)]
        top = fitting_top(max(point.helped, point.untrained) for point in found)
        return Axes(points[-1].size, "exemplars in the pool", "", points[0].size, top)


GROWN = "The same quality while the pool grew, with a trained and an untrained retriever"


def _show(curves: Curves, settings: Settings) -> None:
    say(f"{curves.title}\n")
    drawn = {each.form[0]: _helped(each) for each in reversed(curves.sizes)}
    say("\n".join(plot(drawn, curves.axes(curves.sizes[0].points))))
    for each in curves.sizes:
        who = "pairs held out from training" if each.held_out else "pairs, some of them trained on"
        say(f"\n{each.form[0]}: {each.form}, {each.asked} {who}")
        say("  " + ", ".join(f"{point.size}: {point.helped:.1%}" for point in each.points))
        laid = f" (pairs added by hand, which stay: {each.by_hand})" if each.by_hand else ""
        trim = next_command(settings, f"mindstream pool trim {curves.pool} --capacity {each.best}")
        say(f"  best size: {each.best}{laid}; {trim}")
    if curves.growth:
        say(f"\n{GROWN}\n")
        marked = {name[0]: shares for name, shares in curves.grown.items()}
        say("\n".join(plot(marked, curves.axes(curves.growth))))
        last = curves.growth[-1]
        say(f"\nu: untrained, {last.untrained:.1%} at the end; t: trained, {last.helped:.1%}")
    versions = curves.versions
    say(f"\n{describe_version(versions[-1])}" if versions else "\nthe retriever is not trained yet")


def _picture(curves: Curves) -> str:
    named = {f"{each.form}, best {each.best}": _helped(each) for each in curves.sizes}
    charts = {curves.title: (named, curves.axes(curves.sizes[0].points))}
    return picture(charts | ({GROWN: (curves.grown, curves.axes(curves.growth))} if curves.growth else {}))


def _helped(curve: SizeCurve) -> list[float]:
    return [point.helped for point in curve.points]


def _point(point: SizePoint) -> dict[str, object]:
    return {"size": point.size, "helped": round(point.helped, 4), "untrained": round(point.untrained, 4)}


def _checked(row: RetrieverTrained) -> dict[str, object]:
    names = ("number", "held", "held_out", "before", "learned_from", "upto")
    return {name: getattr(row, name) for name in names}


Ids = list[str] | None


@command(
    app,
    "data user",
    "mindstream pool lessons shop --user ann",
    "mindstream pool lessons shop --retire 7fk2 --because 'it changed' --user ann",
)
async def lessons(
    settings: Settings,
    name: Name,
    retire: Annotated[Ids, flag("ID", "Stop showing this lesson; repeatable.", "--retire")] = None,
    share: Annotated[Ids, flag("ID", "Show this private lesson to other members; repeatable.", "--share")] = None,
    because: Annotated[str, flag("WORDS", "The reason for --retire.")] = "",
    all_: Annotated[bool, switch("--all", "Also list retired lessons.")] = False,
    json: AsJson = False,
) -> None:
    """List the lessons of a pool with their sources, or share or retire lessons.

    A lesson is one or two sentences from experience that agents read before a task. Lessons are `assumed` or
    `confirmed`. A lesson is confirmed if a verdict supports it, if a member who is listed by name wrote it by hand, or
    if the pool's owner shared it. An id may be shortened.
    """
    async with calling(settings, own=bool(retire or share)) as call:
        known = (await call("pools.lessons", pool=name, retired=True)).lessons
        if retire:
            await call("pools.retire_lessons", pool=name, ids=[_full(each, known) for each in retire], because=because)
        if share:
            await call("pools.share_lessons", pool=name, ids=[_full(each, known, hidden=True) for each in share])
        found = (await call("pools.lessons", pool=name, retired=all_)).lessons
    for each in found:
        tell(json, each.model_dump(mode="json"), *lesson_lines(each))
    if not found and known and not json:
        say("all lessons are retired; --all lists them")
    elif not found and not json:
        say(
            f"no lessons yet; write one by hand:\n  {next_command(settings, f'mindstream pool lesson {name} WORDS')}\n"
            "or, after a run, let a model write it from your correction:\n"
            f"  {next_command(settings, f'mindstream pool verdict {name} --wrong WORDS --model NAME')}"
        )


@command(
    app,
    "data user",
    "mindstream pool lesson shop 'Amounts are in cents.' --when 'money is asked for' --user ann",
    user=ME,
)
async def lesson(
    settings: Settings,
    name: Name,
    words: Annotated[list[str], word("WORDS", "The lesson, in one or two sentences.")],
    when: Annotated[str, flag("WORDS", "The condition under which the lesson applies [always].")] = "",
    amend: Annotated[str, flag("ID", "The id of an existing lesson whose text is replaced.")] = "",
    json: AsJson = False,
) -> None:
    """Write a lesson by hand, or replace the text of a lesson.

    If you are listed as a member by name, the lesson counts as confirmed. Otherwise it is private, and counts as
    assumed.
    """
    async with calling(settings, own=True) as call:
        known = (await call("pools.lessons", pool=name)).lessons
        id_ = _full(amend, known) if amend else ""
        version = next((each.version for each in known if each.id == id_), 0)
        found = (
            await call("pools.write_lesson", pool=name, text=" ".join(words), applies=when, id=id_, version=version)
        ).lessons
    tell(json, {"pool": name, "lessons": len(found)}, f"{name} has {count_of(len(found), 'lesson')}")


@command(
    app,
    "model budget_calls budget_tokens budget_usd data user",
    "mindstream pool verdict shop --right --user ann",
    "mindstream pool verdict shop pj9ke2 --wrong 'Revenue is without VAT here.' --user ann",
    user=ME,
    model="The model that writes the lessons (role scorer).",
)
async def verdict(
    settings: Settings,
    name: Name,
    run: Annotated[str, word("RUN", "The name of a run of `mindstream solve` [the newest that has ended].")] = "",
    right: Annotated[bool, switch("--right", "The result was right.")] = False,
    wrong: Annotated[str, flag("WORDS", "The result was wrong, and why: the correction in your words.")] = "",
    json: AsJson = False,
) -> None:
    """Record in a pool whether the result of a run of `mindstream solve` was right, or why it was wrong.

    In at most one call, a model derives lessons for later tasks from the work and the correction. The work of a right
    run becomes an exemplar if the pool admits it, a model wrote the answer, and no third-party text was involved.
    """
    if right == bool(wrong):
        raise InputError("name the verdict: either --right, or --wrong WORDS")
    async with calling(settings, own=True) as call:
        found = await call("pools.verdict", pool=name, run=run, right=right, words=wrong)
        has_model = call.runtime.models.of("scorer").name != Rules.name
        shown = {each.id: each for each in (await call("pools.lessons", pool=name)).lessons}
    changed = found.written or found.confirmed or found.contradicted or found.retired
    done = str(found.local) if changed else "the verdict is stored; no lesson was changed"
    tell(json, found.model_dump(mode="json"), f"{found.run}: {done}{'; kept as an exemplar' * bool(found.exemplar)}")
    if wrong and not (json or changed):
        why = "the model found no lesson to write" if has_model else "no model answered (see --model)"
        by_hand = next_command(settings, f"mindstream pool lesson {name} WORDS")
        complain(f"{why}; write the lesson yourself: {by_hand}")
    if right and found.quoted and not json:
        complain(f"the run {found.run} had no model and only quoted what it found: there is no answer to learn from")
    for id_ in () if json else found.written:
        if id_ in shown:
            say("\n".join(lesson_lines(shown[id_])))
    for id_ in [] if json else [id_ for id_ in found.written if id_ in shown and shown[id_].private]:
        sharing = next_command(settings, f"mindstream pool lessons {name} --share {id_}")
        say(f"private until a named member shares it: {sharing}")


def _full(id_: str, known: Sequence[LessonShape], *, hidden: bool = False) -> str:
    """Return the whole id of a lesson that is given by the beginning of its id.

    Args:
        hidden: whether to accept an unknown id: it may be the whole id of another user's lesson, which is not listed.

    Raises:
        InputError: the beginning fits several ids, or none (unless `hidden`).
    """
    found = [each.id for each in known if each.id == id_] or [each.id for each in known if each.id.startswith(id_)]
    if hidden and not found:
        return id_
    if len(found) != 1:
        lists = next_step("pool lessons")
        raise InputError(f"expected the id of one lesson: {len(found)} ids begin with {id_!r}; {lists} lists them")
    return found[0]
