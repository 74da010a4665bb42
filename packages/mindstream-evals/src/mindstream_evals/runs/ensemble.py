"""Run an ensemble in a folder: a town per run, a stored line per finished run, and statistics over the runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from mindstream_town.ensemble import Difference, Failed, Lived, Run, Spread, differences, runs_of, spreads
from mindstream_town.inspect.history import read_history
from mindstream_town.metrics import measure
from mindstream_town.opened import begin, find_setting, open_town, read_profile
from mindstream_town.profile import Profile
from mindstream_town.setting import Setting
from mindstream_town.source import dump_source, load_source

from mindstream import chance
from mindstream.clock import SystemClock
from mindstream.encodings import csv_text
from mindstream.engines import Engine, open_engine
from mindstream.errors import InputError
from mindstream.evaluation_cache import EvaluationCache, of_row
from mindstream.location import Location
from mindstream.models.cached_prompts import Progress
from mindstream.paths import write_text
from mindstream.private_files import make_private_folder
from mindstream.service.folders import holds_town
from mindstream.settings import Settings
from mindstream_evals.runs.town import Wish as EvaluationWish
from mindstream_evals.runs.town import evaluate, open_evaluation
from mindstream_evals.town.evaluate import Design

CLOCK = SystemClock()


@dataclass(frozen=True)
class Wish:
    """The options of an ensemble.

    Attributes:
        town: name of a shipped town, or path of a town file. profile: changed constants, as `key=value`.
        without: conditions to run in addition to the whole town, each a tuple of parts to switch off.
        last: function from a town's setting to the last step of a run.
        facts: facts whose spread is measured.
        design: design of the evaluation; None: no evaluation.
        workers: number of concurrent runs; 0: one per processor.
        ray: whether the runs are Ray tasks.
    """

    town: str
    seeds: tuple[int, ...]
    last: Callable[[Setting], int]
    into: Path
    without: tuple[tuple[str, ...], ...] = ()
    profile: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    design: Design | None = None
    workers: int = 0
    ray: bool = False

    @property
    def kept(self) -> Path:
        """The file with a line for each finished run."""
        return self.into / "runs.jsonl"


@dataclass(frozen=True)
class Job:
    """One run as plain data for a worker process, which reads no file outside the run's folder."""

    run: Run
    source: str
    profile: Profile
    start: float
    last: int
    folder: Path
    settings: Settings
    facts: tuple[str, ...]
    design: Design | None

    @property
    def setting(self) -> Setting:
        """The town to run."""
        return load_source(self.source, seed=self.run.seed, profile=self.profile, start=self.start)

    @property
    def key(self) -> str:
        """A key that identifies the result: a digest of everything that the result depends on."""
        rests = (self.source, self.profile.model_dump_json(), self.start, self.last, self.facts, self.design)
        return chance.keyed_token(32, "town run", self.run.seed, rests, sorted(self.settings.models.items()))


@dataclass(frozen=True)
class Ensemble:
    """The result of an ensemble: finished and failed runs of a town, and statistics over the runs."""

    town: str
    steps: int
    lived: tuple[Lived, ...]
    failed: tuple[Failed, ...]
    spreads: tuple[Spread, ...]
    differences: tuple[Difference, ...]


def jobs_of(settings: Settings, wish: Wish) -> list[Job]:
    """Return the runs as jobs; the town is read once per condition.

    Raises:
        InputError: there is no such town, profile constant or part to switch off.
    """
    towns = {
        without: find_setting(wish.town, 0, read_profile(wish.profile, without)) for without in {(), *wish.without}
    }
    sources = {without: dump_source(each) for without, each in towns.items()}
    found = []
    for run in runs_of(wish.seeds, wish.without):
        town = towns[run.without]
        folder = wish.into.resolve() / run.condition / f"seed-{run.seed}"
        found.append(
            Job(
                run,
                sources[run.without],
                town.profile,
                town.start,
                wish.last(town),
                folder,
                settings.model_copy(update={"data": Location.of(folder)}),
                wish.facts,
                wish.design,
            )
        )
    return found


async def run_ensemble(settings: Settings, wish: Wish, told: Progress = lambda *_: None) -> Ensemble:
    """Run all unfinished runs, combine the results of all runs, and write them to `into`.

    A failed run is reported; the other runs continue.

    Raises:
        UserError: a town, a folder or an engine cannot be used.
    """
    jobs = jobs_of(settings, wish)
    try:
        make_private_folder(wish.into)
    except OSError as error:
        raise InputError(f"the folder {wish.into} cannot be created: {error.strerror}") from None
    ledger = EvaluationCache(wish.kept)
    left = [job for job in jobs if ledger.find(job.key) is None]
    failed: dict[str, Failed] = {}
    if left:
        async with open_engine(wish.ray, wish.workers) as engine:
            await _Running(engine, ledger, failed, len(jobs), len(left), told).each(left)
    rows = [(job, ledger.find(job.key)) for job in jobs]
    lived = [of_row(Lived, row) for _, row in rows if row is not None]
    town = jobs[0].setting
    found = Ensemble(
        town.name,
        jobs[0].last + 1,
        tuple(lived),
        tuple(failed[job.key] for job, row in rows if row is None),
        tuple(spreads(lived)),
        tuple(differences(lived)),
    )
    write_text(wish.into / "report.json", json.dumps(asdict(found), ensure_ascii=False, indent=1) + "\n")
    write_text(wish.into / "runs.csv", _table(lived))
    return found


@dataclass
class _Running:
    """Runs the unfinished jobs and reports progress."""

    engine: Engine
    ledger: EvaluationCache
    failed: dict[str, Failed]
    all: int
    left: int
    told: Progress

    async def each(self, jobs: Sequence[Job]) -> None:
        """Run all jobs in their order, at most one per worker at a time."""
        self._began, self._done = CLOCK.elapsed(), 0
        self._tell()
        async with asyncio.TaskGroup() as group:
            for job in jobs:
                group.create_task(self._one(job))

    async def _one(self, job: Job) -> None:
        try:
            lived = await self.engine.run(live_run, job)
        except Exception as error:  # noqa: BLE001 (any error ends only its own run)
            self.failed[job.key] = Failed(job.run.condition, job.run.seed, str(error) or type(error).__name__)
        else:
            self.ledger.keep(job.key, asdict(lived))
        self._done += 1
        self._tell()

    def _tell(self) -> None:
        """Report the progress and the estimated remaining time."""
        over = self.all - self.left + self._done
        words = f"{over} of {self.all} towns"
        if self._done:
            seconds = (CLOCK.elapsed() - self._began) / self._done * (self.left - self._done)
            words += f", about {seconds / 60:.0f} min left" if seconds >= 90 else f", about {seconds:.0f} s left"
        words += f", {len(self.failed)} failed" if self.failed else ""
        self.told(over, self.all, words)


async def live_run(job: Job) -> Lived:
    """Run a job in a worker, from the beginning or from the last step that an earlier worker finished.

    Raises:
        InputError: the folder contains another town, or the town has run beyond the last step of the job.
        ModelError: a model failed; finished steps are stored.
    """
    began, setting = CLOCK.elapsed(), job.setting
    if not await holds_town(job.settings.data):
        await begin(job.settings, setting)
    async with open_town(job.settings) as town:
        there = town.setting
        same = (dump_source(there), there.profile, there.seed) == (job.source, job.profile, job.run.seed)
        if not same or town.step > job.last:
            lived = "has run beyond the last step of this run" if same else "is a different town"
            raise InputError(f"the town in {job.folder} {lived}: name another folder with --into")
        await town.run(max(town.step, job.last))
        digest = await town.digest()
    measures = measure(await read_history(job.folder), job.facts)
    if job.design is not None:
        measures |= await _believed(job, job.design)
    return Lived(job.run.condition, job.run.seed, job.last, digest, measures, CLOCK.elapsed() - began)


async def _believed(job: Job, design: Design) -> dict[str, float]:
    """Return the TrueSkill rating and the share of unsupported claims for each condition of the memory."""
    wish = EvaluationWish(replace(design, seed=job.run.seed))
    async with open_evaluation(job.settings, wish) as (evaluation, spent):
        found = await evaluate(evaluation, wish, spent)
    measures = dict[str, float]()
    for each in sorted(found.findings.standings, key=lambda each: each.condition):
        if each.rating is not None:
            measures[f"TrueSkill, memory {each.condition}"] = each.rating.mu
        if each.claims:
            measures[f"claims made up, memory {each.condition}"] = each.unsupported / each.claims
    return measures


def _table(lived: Sequence[Lived]) -> str:
    """Format the runs as CSV, one line per run."""
    names = list(dict.fromkeys(name for each in lived for name in each.measures))
    rows = (
        (each.condition, each.seed, each.step, each.digest, *(each.measures.get(name, "") for name in names))
        for each in lived
    )
    return csv_text(("condition", "seed", "step", "digest", *names), rows)
