"""`mindstream town`: begin one, let it live, change it from outside."""

from __future__ import annotations

import asyncio
import shlex
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from mindstream.cli import asking
from mindstream.cli.clean import complain, say
from mindstream.cli.edge import no_more_output
from mindstream.cli.json_lines import print_json
from mindstream.cli.progress import Progress, progress
from mindstream.cli.stopping import Stopping
from mindstream.cli.tables import print_table
from mindstream.cli.town_lines import describe, event_row
from mindstream.errors import InputError, ModelError
from mindstream.memory.store import Commit
from mindstream.service import town as towns
from mindstream.settings import Settings
from mindstream.text.counting import count_of
from mindstream.town.events import Talked
from mindstream.town.lookup import find_object, find_resident, find_step
from mindstream.town.missing_keys import missing_keys
from mindstream.town.setting import Setting
from mindstream.town.time_words import format_time

RESTED = 1
"""The exit code where a model failed, or nothing more may be spent."""


@dataclass(frozen=True)
class Span:
    """How long a town is to live: one of these; none of them: a day, or `to_midnight` the rest of one."""

    days: float | None = None
    hours: float | None = None
    until: str = ""
    steps: int | None = None
    to_midnight: bool = False

    def target(self, setting: Setting, now: int) -> int:
        """Return the last step that it is to live, after the step `now`.

        Raises:
            InputError: two of them are given, or a time that is over.
        """
        if [self.days, self.hours, self.steps].count(None) + (not self.until) < 3:
            raise InputError("say one of --days, --hours, --until and --steps")
        profile = setting.profile
        if self.until:
            step = find_step(setting, self.until, now)
            if step <= now:
                time = format_time(setting, now)
                raise InputError(f"--until {self.until!r:.99}: the town has lived so far already; it is {time} there")
            return step
        if self.steps is not None:
            return now + self.steps
        if self.hours is not None:
            return now + round(self.hours * 3_600 / profile.step_s)
        if self.days is None and self.to_midnight:
            return setting.step_at(setting.day(now + 1) + 1, 0) - 1
        return now + round((1.0 if self.days is None else self.days) * profile.a_day)


@dataclass(frozen=True)
class Wishes:
    """How a town is run: what it may spend now, whether that is asked about, what is shown."""

    usd: float | None = None
    yes: bool = False
    verbose: bool = False
    json: bool = False


def begin(
    settings: Settings, source: str, seed: int, profile: Sequence[str], without: Sequence[str], json: bool
) -> int:
    """Begin a town."""
    setting = towns.find_setting(source, seed, towns.read_profile(profile, without))
    asyncio.run(towns.begin(settings, setting))
    if json:
        print_json(
            {"town": setting.name, "data": str(settings.data), "residents": sorted(setting.people), "seed": seed,
             "lacks": list(missing_keys(setting))}
        )  # fmt: skip
        return 0
    _complain_of_keys(setting)
    objects = sum(each.level == 4 for each in setting.addresses.values())
    say(f"{setting.name} lives in {settings.data}: {count_of(len(setting.people), 'resident')}, {objects} objects")
    say(f"it is {format_time(setting, -1)} there; let it live:\n  {_command('run', settings, '--days', '1')}")
    return 0


def _complain_of_keys(setting: Setting) -> None:
    """Say which keys a town lacks where it is to live without a model."""
    if lacks := missing_keys(setting):
        complain(
            f"without a model nobody lives by prose: keys are missing for {'; '.join(lacks)}"
            " (mindstream town prepare FILE lets a model write them)"
        )


class Watcher:
    """Tells of a town while it lives: a bar with its clock, and with -v what happens."""

    def __init__(self, wishes: Wishes, told: Progress) -> None:
        self._wishes, self._told = wishes, told
        self.setting: Setting | None = None
        self.first = self.last = self.talks = 0
        self.step = -1

    def aim(self, setting: Setting, now: int, last: int) -> int:
        """Know from where to where it goes; return the latter."""
        self.setting, self.first, self.step, self.last = setting, now, now, last
        return last

    def on_step(self, step: int) -> None:
        self.step = step
        if self.setting is not None and (step % 30 == 0 or step >= self.last):
            doing = f"{format_time(self.setting, step)}, {count_of(self.talks, 'talk')}"
            self._told(step - self.first, self.last - self.first, doing)

    def on_commits(self, commits: Sequence[Commit]) -> None:
        for commit in commits:
            for entry in commit.entries:
                event = entry.event
                self.talks += isinstance(event, Talked) and event.lines[:1] != () and event.lines[0].by == commit.mind
                if self._wishes.verbose and self.setting is not None:
                    self._tell(self.setting, commit, entry.event, [record.text for record in entry.records])

    def _tell(self, setting: Setting, commit: Commit, event: Any, texts: list[str]) -> None:
        if (line := describe(commit.mind, event, texts)) is None:
            return
        if self._wishes.json:
            print_json(event_row(setting, commit.mind, event, line))
        else:
            say(f"{setting.when(event.step if hasattr(event, 'step') else self.step + 1):%b %d %H:%M}  {line}")


def run(settings: Settings, span: Span, wishes: Wishes) -> int:
    """Let it live; return the exit code.

    Raises:
        InputError: no town lives there, or the time that is named is over: nothing has changed.
    """
    stopping = Stopping()
    setting, now, last = asyncio.run(_plan(settings, span))
    if towns.is_free(settings) and not any(person.day for person in setting.people.values()):
        _complain_of_keys(setting)
    if not towns.is_free(settings) and not wishes.yes and not _has_leave(settings, setting, last - now, wishes):
        return 0
    with progress(setting.name, max(1, last - now)) as told:
        watcher = Watcher(wishes, told)
        watcher.aim(setting, now, last)
        try:
            reached = asyncio.run(_live(settings, watcher, wishes, stopping))
        except (KeyboardInterrupt, asyncio.CancelledError) as error:
            if stopping.signal is None and not isinstance(error, KeyboardInterrupt):
                raise
            return _stopped(settings, watcher, stopping.code, "stopped")
        except ModelError as error:
            return _stopped(settings, watcher, RESTED, str(error))
    summary = {
        "step": reached,
        "steps": reached - now,
        "time": setting.when(reached).isoformat(),
        "talks": watcher.talks,
    }
    if wishes.json:
        print_json({"event": "ended", **summary})
    else:
        lived, talked = count_of(reached - now, "step"), count_of(watcher.talks, "talk")
        say(f"it is {format_time(setting, reached)} in {setting.name}: {lived}, {talked}")
        say(f"look in:\n  {_command('status', settings)}")
    return 0


async def _plan(settings: Settings, span: Span) -> tuple[Setting, int, int]:
    async with towns.look_in(settings) as look:
        if not towns.is_free(settings):
            async with towns.open_answerer(settings):  # a model that cannot be is told now
                pass
        return look.setting, look.now, span.target(look.setting, look.now)


async def _live(settings: Settings, watcher: Watcher, wishes: Wishes, stopping: Stopping) -> int:
    stopping.heed(interrupt=True)
    happened = towns.Happened(watcher.on_step, watcher.on_commits)
    return await towns.live(settings, lambda _, now: max(now, watcher.last), happened, wishes.usd)


def _stopped(settings: Settings, watcher: Watcher, code: int, why: str) -> int:
    """Say what ended it and how it goes on."""
    left = watcher.last - watcher.step
    again = _command("resume", settings, "--steps", str(left))
    try:
        complain(f"{why}; what is done is kept, and this goes on with it:\n  {again}")
    except OSError:
        no_more_output()
    return code


def _has_leave(settings: Settings, setting: Setting, steps: int, wishes: Wishes) -> bool:
    """Say what it may cost, and ask."""
    if not asking.is_answerable():
        raise InputError("models are asked, and nobody is there to be asked whether they may be: say --yes")
    found = _estimate(settings, setting, steps)
    calls, tokens = _totals(found)
    usd = "its price is not known" if found.usd is None else f"about {found.usd:,.2f} US dollars"
    most = "" if wishes.usd is None else f", never more than {wishes.usd:g}"
    say(f"{count_of(steps, 'step')}: about {calls:,} calls and {tokens:,} tokens; {usd}{most}", sys.stderr)
    return asking.confirm("Let it live?")


def _estimate(settings: Settings, setting: Setting, steps: int) -> towns.Estimate:
    with progress("counting", min(steps, setting.profile.a_day)) as told:
        return asyncio.run(towns.estimate(settings, setting, steps, lambda step: told(step)))


def _totals(found: towns.Estimate) -> tuple[int, int]:
    kinds = found.counted.by_kind.values()
    calls = sum(kind.calls for kind in kinds)
    tokens = sum(kind.tokens_in + kind.tokens_out for kind in kinds)
    return round(calls * found.scale), round(tokens * found.scale)


def show_estimate(settings: Settings, span: Span, json: bool) -> int:
    """Print what a town would ask of models."""

    async def read() -> Setting:
        async with towns.look_in(settings) as look:
            return look.setting

    setting = asyncio.run(read())
    steps = span.target(setting, -1) + 1
    if towns.is_free(settings):
        return _say_free(setting, steps, json)
    found = _estimate(settings, setting, steps)
    calls, tokens = _totals(found)
    kinds = sorted(found.counted.by_kind.items(), key=lambda each: -each[1].tokens_in)
    rows = [
        {
            "prompt": label,
            "role": found.counted.role_of[label],
            **{key: round(n * found.scale) for key, n in each.items()},
        }
        for label, each in ((label, asdict(kind)) for label, kind in kinds)
    ]
    if json:
        for row in rows:
            print_json(row)
        total = {"calls": calls, "tokens": tokens, "usd": found.usd, "steps": steps, "residents": len(setting.people)}
        print_json({"prompt": "all", **total})
        return 0
    numbers = ("calls", "tokens_in", "tokens_out")
    lines = [(str(row["prompt"]), str(row["role"]), *(f"{row[name]:,}" for name in numbers)) for row in rows]
    everything = ("all", "", f"{calls:,}", f"{tokens:,}", "in and out")
    print_table(("prompt", "role", "calls", "tokens in", "tokens out"), [*lines, everything], words=2)
    usd = "not known" if found.usd is None else f"{found.usd:,.2f}"
    say(f"US dollars: {usd}; {count_of(steps, 'step')} of {count_of(len(setting.people), 'resident')}")
    return 0


def _say_free(setting: Setting, steps: int, json: bool) -> int:
    """Say that nothing is asked of models."""
    if json:
        nothing = {"prompt": "all", "calls": 0, "tokens": 0, "usd": 0.0}
        print_json({**nothing, "steps": steps, "residents": len(setting.people)})
    else:
        say("rules answer everything, and cost nothing; what a model would cost:")
        say("  mindstream town estimate --model openai:gpt-5-mini")
    return 0


def change_object(settings: Settings, place: str, condition: str, danger: bool | None, json: bool) -> int:
    """Put an object into a condition."""

    async def change() -> tuple[str, bool]:
        async with towns.open_town(settings) as town:
            address = find_object(town.setting, place)
            return address, await town.set_object(address, condition.strip(), danger=danger)

    address, is_danger = asyncio.run(change())
    if json:
        print_json({"place": address, "condition": condition.strip(), "danger": is_danger})
    else:
        say(f"{address} is {condition.strip() or 'as it should be'}{', a danger' if is_danger else ''}")
    return 0


def whisper(settings: Settings, name: str, text: str, json: bool) -> int:
    """Put a thought into somebody's memory."""

    async def tell() -> tuple[str, str]:
        async with towns.open_town(settings) as town:
            whom = find_resident(town.setting, name)
            return whom, (await town.whisper(whom, text)).id

    whom, id_ = asyncio.run(tell())
    if json:
        print_json({"resident": whom, "record": id_, "text": text.strip()})
    else:
        say(f"{whom} has that in mind now")
    return 0


def _command(name: str, settings: Settings, *more: str) -> str:
    return shlex.join(["mindstream", "town", name, "--data", str(settings.data), *more, *_models(settings, name)])


def _models(settings: Settings, name: str) -> list[str]:
    """Return the flags that name the same models again."""
    if name not in ("run", "resume") or towns.is_free(settings):
        return []
    roles = [word for role, model in settings.roles.items() for word in ("--role", f"{role}={model}")]
    more = {"--model": settings.model, "--fallback": settings.fallback}
    return [*(word for flag, name in more.items() if name for word in (flag, name)), *roles]
