"""Commands of `mindstream town` that begin a town, prepare its file, run it, and estimate the cost."""

from __future__ import annotations

import asyncio
import difflib
import gc
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import typer

from mindstream.cli.shell import output
from mindstream.cli.shell.files import write_text
from mindstream.cli.shell.flags import AsJson, Yes, command, flag, group, split_names, switch, word
from mindstream.cli.shell.output import Progress, complain, print_json, print_table, progress, say, tell
from mindstream.cli.shell.stopping import in_words, is_agreed, run_until_stopped
from mindstream.errors import InputError, ModelError, prefixed
from mindstream.identifiers import shown_name
from mindstream.memory.store.store import Commit
from mindstream.paths import read_text
from mindstream.service.opening import answering, unpriced
from mindstream.settings import Settings
from mindstream.text.words import count_of
from mindstream_town import opened as towns
from mindstream_town.commands.group import MODEL, ROLE, ProfileOf, Seed
from mindstream_town.commands.screen import describe, event_row
from mindstream_town.events import Talked, TownEvent
from mindstream_town.inspect.estimate import Counting
from mindstream_town.inspect.lookup import find_step, format_time
from mindstream_town.opened import is_free
from mindstream_town.setting import Setting
from mindstream_town.source import missing_keys
from mindstream_town.town import Order

app = group()
RESTED = 1
"""Exit code after a model error or a spent budget."""


@dataclass(frozen=True)
class Span:
    """How long to run: at most one of the values is set. If none is set: a day, or with `to_midnight` the rest of the
    day."""

    days: float | None = None
    hours: float | None = None
    until: str = ""
    steps: int | None = None
    to_midnight: bool = False

    def target(self, setting: Setting, now: int) -> int:
        """Return the last step to run; `now` is the last step that the town has finished.

        Raises:
            InputError: more than one value is set, or the time is not later than the town's.
        """
        if [self.days, self.hours, self.steps].count(None) + (not self.until) < 3:
            raise InputError("give only one of --days, --hours, --until and --steps")
        profile = setting.profile
        if self.until:
            step = find_step(setting, self.until, now)
            if step <= now:
                time = format_time(setting, now)
                raise InputError(
                    f"--until {self.until!r:.99} is not later than the town's time, {time}: name a later time"
                )
            return step
        if self.steps is not None:
            return now + self.steps
        if self.hours is not None:
            return now + round(self.hours * 3_600 / profile.step_s)
        if self.days is None and self.to_midnight:
            return setting.step_at(setting.day(now + 1) + 1, 0) - 1
        return now + round((1.0 if self.days is None else self.days) * profile.a_day)


@dataclass(frozen=True)
class TownOptions:
    """Options of a run.

    Attributes:
        yes: skip the question about the cost.
        verbose: print events.
        ray: use Ray.
        order: order of the residents' steps; None: `free` with a model, else `lockstep`.
        slots: maximum number of simultaneous model calls, at least 1.
    """

    yes: bool = False
    verbose: bool = False
    json: bool = False
    ray: bool = False
    order: Order | None = None
    slots: int = towns.SLOTS


LIMITS = """With a model, the cost is estimated first, and you are asked to approve it (--yes
approves). After Ctrl-C, a model error or a spent limit all finished steps are
stored; the next run repeats the interrupted step.

Exit code: 0; 1 after a model error or a spent budget; 2 after a mistake;
130 after Ctrl-C."""
Days = Annotated[float | None, flag("D", "Run D days of the town's time.", min=0, max=36_500)]
Hours = Annotated[float | None, flag("H", "Run H hours of the town's time.", min=0, max=876_000)]
Until = Annotated[str, flag("TIME", 'Run up to a time in the town: "Feb 14 19:00", "tomorrow noon".')]
STEPS = "Run N steps (10 seconds of the town's time each, by default)."
Steps = Annotated[int | None, flag("N", STEPS, min=0, max=2**40)]
Verbose = Annotated[bool, typer.Option("--verbose", "-v", help="Print events, one per line.")]
MODELS = "model roles fallback patience_s budget_calls budget_tokens budget_usd town embedder"


@command(
    app,
    "town embedder",
    "mindstream town new --data ./ville",
    "mindstream town new ./mine.toml --data ./mine --seed 7 --profile vision=4",
    "mindstream town new --data ./blind --without observation,reflection",
)
def new(
    settings: Settings,
    source: Annotated[str, word("TOWN", "A shipped town, or FILE.toml.")] = "smallville",
    seed: Seed = 0,
    profile: ProfileOf = None,
    without: Annotated[
        list[str] | None,
        flag("A,B", "Parts of residents' minds to switch off: observation, reflection, planning, recall, talk."),
    ] = None,
    as_published: Annotated[
        bool,
        switch(
            "--as-published", "With a model, residents decide step by step, as in Park 2023 (--profile lives=paper)."
        ),
    ] = False,
    json: AsJson = False,
) -> None:
    """Create a town in a data folder."""
    constants = [*(["lives=paper"] if as_published else []), *(profile or ())]
    begin(settings, source, seed, constants, split_names(without) or (), json=json)


def begin(
    settings: Settings,
    source: str,
    seed: int,
    profile: Sequence[str] = (),
    without: Sequence[str] = (),
    *,
    json: bool = False,
) -> None:
    """Create a town, and print how to run it."""
    setting = towns.find_setting(source, seed, towns.read_profile(profile, without))
    asyncio.run(towns.begin(settings, setting))
    if not json:
        _complain_of_keys(setting)
    objects = sum(each.level == 4 for each in setting.addresses.values())
    row = {"town": setting.name, "data": str(settings.data), "residents": sorted(setting.people), "seed": seed}
    tell(
        json,
        {**row, "lacks": list(missing_keys(setting))},
        f"{setting.name} is stored in {settings.data}: {count_of(len(setting.people), 'resident')}, {objects} objects",
        f"it is {format_time(setting, -1)} there; run it with:\n  {_command('run', settings, '--days', '1')}",
    )


def _complain_of_keys(setting: Setting) -> None:
    """Warn about missing keys of the town file, without which rules cannot simulate its residents well."""
    if lacks := missing_keys(setting):
        complain(
            f"rules do not read descriptions in prose; missing keys: {'; '.join(lacks)}"
            " (`mindstream town prepare FILE` lets a model write them)"
        )


class Watcher:
    """Shows the progress of a run, and its events with --verbose."""

    def __init__(self, options: TownOptions, told: Progress, setting: Setting, first: int, last: int) -> None:
        self.options, self._told, self._setting = options, told, setting
        self.first, self.step, self._last, self.talks = first, first, last, 0

    def on_step(self, step: int) -> None:
        self.step = step
        if step % 30 == 0 or step >= self._last:
            doing = f"{format_time(self._setting, step)}, {count_of(self.talks, 'talk')}"
            self._told(step - self.first, self._last - self.first, doing)

    def on_commits(self, commits: Sequence[Commit]) -> None:
        for commit in commits:
            mind = shown_name(commit.mind)
            for entry in commit.entries:
                event = entry.event
                self.talks += isinstance(event, Talked) and event.lines[:1] != () and event.lines[0].by == mind
                if self.options.verbose and (line := describe(mind, event, [each.text for each in entry.records])):
                    at = event.step if isinstance(event, TownEvent) else self.step + 1
                    row = event_row(self._setting, mind, event, line) if self.options.json else {}
                    tell(self.options.json, row, f"{self._setting.when(at):%b %d %H:%M}  {line}")


@command(
    app,
    MODELS,
    "mindstream town run --data ./ville --days 2",
    'mindstream town run --data ./ville --until "Feb 14 19:00" -v',
    "mindstream town run --data ./ville --hours 3 --model openai:gpt-5-mini --max-usd 2",
    name="run",
    summary="Run the town for a day, or as long as the flags say.",
    notes=LIMITS,
    model=MODEL,
    roles=ROLE,
)
@command(
    app,
    MODELS,
    "mindstream town resume --data ./ville",
    name="resume",
    summary="Continue the town to the end of its day, or as long as the flags say.",
    notes=LIMITS,
    model=MODEL,
    roles=ROLE,
)
def let_live(
    context: typer.Context,
    settings: Settings,
    days: Days = None,
    hours: Hours = None,
    until: Until = "",
    steps: Steps = None,
    yes: Yes = False,
    verbose: Verbose = False,
    ray: Annotated[
        bool,
        switch("--ray", "Run the model calls as Ray tasks (docs/ray.md)."),
    ] = False,
    order: Annotated[
        Order | None,
        flag(
            "ORDER",
            "free: a resident runs ahead while no other can affect it; lockstep: all run each step together [free with"
            " a model, else lockstep].",
        ),
    ] = None,
    slots: Annotated[int, flag("N", "Maximum number of simultaneous model calls.", min=1, max=1_000)] = towns.SLOTS,
    json: AsJson = False,
) -> int:
    """Run the town, starting after its last finished step."""
    span = Span(days, hours, until, steps, to_midnight=context.info_name == "resume")
    return live(settings, span, TownOptions(yes, verbose, json, ray, order, slots))


def live(settings: Settings, span: Span, options: TownOptions) -> int:
    """Run the town in a data folder and return the exit code.

    Raises:
        InputError: there is no town, or the time is in the past; nothing was changed.
    """
    setting, now, last = asyncio.run(_plan(settings, span))
    if towns.is_free(settings) and not any(person.day for person in setting.people.values()):
        _complain_of_keys(setting)
    for fault in towns.describe_bedless(setting):
        complain(f"{fault}; until then these residents sleep at home, at any position there")

    def price() -> str:
        counted, usd = count_in_advance(settings, setting, last - now)
        return f"{count_of(last - now, 'step')}: {in_words(counted.calls, counted.tokens, usd)}"

    if not (towns.is_free(settings) or options.yes or is_agreed(settings, price, "Run the town?")):
        return 0
    with progress(setting.name, max(1, last - now)) as told:
        watcher = Watcher(options, told, setting, now, last)

        async def living() -> int:
            opening = towns.open_town(settings, order=options.order, slots=options.slots, ray=options.ray)
            async with opening as town:
                gc.freeze()  # a full collection over the loaded code and town takes 50 ms and frees nothing
                await town.run(max(town.step, last), watcher.on_step, watcher.on_commits)
                watcher.step = town.step
            return 0

        def goes_on(why: str) -> str:
            order = [*["--order", str(options.order)] * bool(options.order)]
            order += ["--slots", str(options.slots)] * (options.slots != towns.SLOTS)
            again = _command("resume", settings, "--steps", str(last - watcher.step), *["--ray"] * options.ray, *order)
            return f"{why}; finished steps are stored; resume with:\n  {again}"

        try:
            code = run_until_stopped(living(), lambda: goes_on("stopped"))
        except ModelError as error:
            complain(goes_on(str(error)))
            code = RESTED
    if code == 0:
        reached, steps = watcher.step, watcher.step - now
        row = {"step": reached, "steps": steps, "time": setting.when(reached).isoformat(), "talks": watcher.talks}
        lived = f"{count_of(steps, 'step')}, {count_of(watcher.talks, 'talk')}"
        told_at_end = f"it is {format_time(setting, reached)} in {setting.name}: {lived}"
        tell(
            options.json, {"event": "ended", **row}, told_at_end, f"inspect it with:\n  {_command('status', settings)}"
        )
    return code


async def _plan(settings: Settings, span: Span) -> tuple[Setting, int, int]:
    async with towns.look_in(settings) as look:
        if not towns.is_free(settings):
            async with answering(settings):  # raises an error now if a model cannot be used
                pass
            if settings.budget_usd is not None and (why := unpriced(settings)):
                complain(why)
        return look.setting, look.now, span.target(look.setting, look.now)


def count_in_advance(settings: Settings, setting: Setting, steps: int) -> tuple[Counting, float | None]:
    """Estimate the model calls of some steps and their cost in US dollars, with a progress display."""
    with progress("counting", min(steps, setting.profile.a_day)) as told:
        return asyncio.run(towns.estimate(settings, setting, steps, lambda step: told(step)))


def show_counts(counted: Counting, usd: float | None, json: bool, note: str, **more: int) -> None:
    """Print estimated calls by prompt, those with the most input tokens first, and their sum.

    Args:
        note: text to print after the price. more: fields to add to the sum in JSON.
    """
    kinds = sorted(counted.by_kind.items(), key=lambda each: -each[1].tokens_in)
    rows = [{"prompt": label, "role": counted.role_of[label]} | asdict(kind) for label, kind in kinds]
    if json:
        print_json(*rows, {"prompt": "all", "calls": counted.calls, "tokens": counted.tokens, "usd": usd, **more})
        return
    numbers = ("calls", "tokens_in", "tokens_out")
    lines = [(str(row["prompt"]), str(row["role"]), *(f"{row[name]:,}" for name in numbers)) for row in rows]
    everything = ("all", "", f"{counted.calls:,}", f"{counted.tokens:,}", "in and out")
    print_table(("prompt", "role", "calls", "tokens in", "tokens out"), [*lines, everything], words=2)
    say(f"US dollars: {'not known' if usd is None else f'{usd:,.2f}'}; {note}")


@command(
    app,
    "model roles town",
    "mindstream town estimate --data ./ville --days 2 --model openai:gpt-5-mini",
    "mindstream town estimate --data ./ville --hours 6 --json",
    model=MODEL,
    roles=ROLE,
)
def estimate(settings: Settings, days: Days = None, hours: Hours = None, json: AsJson = False) -> None:
    """Estimate what running the town with a model would cost: calls, tokens, US dollars.

    Simulates at most the town's first day without a model, and discards it. Counts the calls that a model would get,
    with replies of average length; for more days, the counts are scaled up.
    """

    async def read() -> Setting:
        async with towns.look_in(settings) as look:
            return look.setting

    setting = asyncio.run(read())
    steps = Span(days, hours).target(setting, -1) + 1
    whole = {"steps": steps, "residents": len(setting.people)}
    if towns.is_free(settings):
        row = {"prompt": "all", "calls": 0, "tokens": 0, "usd": 0.0, **whole}
        free = "rules answer everything, and cost nothing; to estimate the cost of a model:"
        tell(json, row, free, "  mindstream town estimate --model openai:gpt-5-mini")
        return
    counted, usd = count_in_advance(settings, setting, steps)
    note = f"{count_of(steps, 'step')} of {count_of(len(setting.people), 'resident')}"
    show_counts(counted, usd, json, note, **whole)


def _command(name: str, settings: Settings, *more: str) -> str:
    return shlex.join(["mindstream", "town", name, "--data", str(settings.data), *more, *_models(settings, name)])


def _models(settings: Settings, name: str) -> list[str]:
    """Return the command-line flags that select the models of these settings, for the printed command that continues a
    run.

    Return [] if the command `name` takes no models, or if the models cost nothing.
    """
    if name not in ("run", "resume") or towns.is_free(settings):
        return []
    roles = [word for role, model in settings.roles.items() for word in ("--role", f"{role}={model}")]
    more = {"--model": settings.model, "--fallback": settings.fallback}
    return [*(word for flag, name in more.items() if name for word in (flag, name)), *roles]


LARGEST = 16 << 20


@command(
    app,
    "model roles",
    "mindstream town prepare ./mine.toml --model openai:gpt-5-mini",
    "mindstream town prepare ./mine.toml --model openai:gpt-5-mini --out ./prepared.toml",
    notes="Exit code: 0; 1 after a model error, with the file unchanged; 2 after a mistake.",
    model=MODEL,
    roles=ROLE,
)
def prepare(
    settings: Settings,
    file: Annotated[Path, word("FILE.toml", "A town file.")],
    out: Annotated[Path | None, flag("NEW.toml", "Write the result to this new file instead of FILE.")] = None,
    yes: Yes = False,
    json: AsJson = False,
) -> int:
    """Let a model add missing keys to a town file, from the descriptions in the file.

    The keys are days, beds, appointments and acquaintances of residents, purposes of places, and dangers. The model is
    asked once for each resident without a day, and once for the places if none has a purpose. The changes are shown;
    they are written to FILE after you confirm (or with --yes), or to the file named by --out. Comments and existing
    keys stay.
    """
    from mindstream_town.preparing import Preparing  # loads tomlkit, which takes 30 ms

    if out is not None and out.exists():
        raise InputError(f"{out} exists already: name a new file, or omit --out")
    with prefixed(file):
        text = read_text(file, LARGEST)
    with prefixed(f"{file}:"):
        preparing = Preparing(text, file.parent)
    if not preparing.left:
        row = {"file": str(file), "prepared": [], "written": "", "difference": ""}
        tell(json, row, f"{file} needs no preparation: every resident has a day, and at least one place has a purpose")
        return 0
    if is_free(settings):
        raise InputError("reading descriptions needs a model: name one, such as --model openai:gpt-5-mini")
    try:
        with progress(f"preparing {file.name}", len(preparing.left)) as told:

            async def ask() -> str:
                async with answering(settings) as models:
                    return await preparing.run(models, lambda number, name: told(number, None, f"reading {name}"))

            new = asyncio.run(ask())
    except ModelError as error:
        complain(f"{error}; the file was not changed")
        return RESTED
    before, after = text.splitlines(keepends=True), new.splitlines(keepends=True)
    difference = "".join(difflib.unified_diff(before, after, str(file), str(out or file)))
    if not json:
        say(difference)
    is_wanted = yes or out is not None or (output.is_answerable() and output.confirm(f"Write it to {file}?"))
    if is_wanted:
        write_text(out or file, new)
    if json:
        target = str(out or file) if is_wanted else ""
        print_json({"file": str(file), "prepared": preparing.prepared, "written": target, "difference": difference})
    elif is_wanted:
        say(f"{out or file} has new entries for {count_of(len(preparing.prepared), 'description')}", sys.stderr)
    else:
        complain("the file was not changed: add --yes, or --out NEW.toml")
    return 0
