"""`mindstream town metrics`: what happened in a town, counted; as tables, CSV and curves."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mindstream.cli.clean import say
from mindstream.cli.json_lines import print_json
from mindstream.cli.tables import print_table
from mindstream.cli.town_looking import read
from mindstream.errors import InputError
from mindstream.log.events import Reflected
from mindstream.service.town import find_past_step
from mindstream.settings import Settings
from mindstream.text.counting import count_of
from mindstream.town.formats.files import write_text
from mindstream.town.history import History
from mindstream.town.lookup import find_place, find_span
from mindstream.town.metrics.attendance import Attendance, Event, trace_attendance
from mindstream.town.metrics.conduct import Conduct, examine_conduct, trace_adherence
from mindstream.town.metrics.counts import Counts, count_events
from mindstream.town.metrics.curves import Mark, curves_csv, draw_curves, hours
from mindstream.town.metrics.diffusion import Diffusion, trace_fact, write_csv
from mindstream.town.metrics.fact import find_fact
from mindstream.town.metrics.relationships import Acquaintance, trace_acquaintance
from mindstream.town.places import with_article, words_of
from mindstream.town.time_words import format_time


@dataclass(frozen=True)
class Asked:
    """What is to be counted, up to when, and where it is to be written."""

    facts: tuple[str, ...] = ()
    event: str = ""
    start: str = ""
    end: str = ""
    at: str = ""
    odd: bool = False
    csv: Path | None = None
    plot: Path | None = None


@dataclass(frozen=True)
class Measured:
    """What was counted."""

    history: History
    counts: Counts
    acquaintance: Acquaintance
    conduct: Conduct
    diffusions: tuple[Diffusion, ...]
    attendance: Attendance | None
    mark: Mark | None

    @property
    def density(self) -> tuple[float, float]:
        """How many of the pairs know each other, when it began and now."""
        return self.acquaintance.density(0), self.acquaintance.density(self.history.step)


def show(settings: Settings, asked: Asked, json: bool) -> int:
    """Count and print; write tables and curves where that is asked for."""
    measured = _measure(settings, asked)
    for folder, ending in ((asked.csv, "csv"), (asked.plot, "svg")):
        for path, text in _files(measured, ending).items() if folder else ():
            write_text(folder / path, text) if folder else None
    if json:
        print_json(_as_json(measured))
        return 0
    _print(measured)
    for act in measured.conduct.odd if asked.odd else ():
        say(f"  {act.time}  {act.name}: {act.what}, at {with_article(words_of(act.place))}: {act.why}")
    return 0


def _measure(settings: Settings, asked: Asked) -> Measured:
    history = read(settings)
    if asked.at:
        history = read(settings, find_past_step(history.setting, asked.at, history.step))
    facts = [find_fact(text, history) for text in asked.facts]
    diffusions = tuple(trace_fact(history, fact) for fact in facts)
    attendance = mark = None
    if asked.event:
        if not (facts and asked.start and asked.end):
            raise InputError("an event is told by --event PLACE, --from TIME, --to TIME and --fact WORDS")
        address = history.setting.addresses[find_place(history.setting, asked.event)]
        start, end = find_span(history.setting, asked.start, asked.end, history.step)
        if end == start:
            raise InputError(f"--to {asked.end!r:.99} is not after --from {asked.start!r:.99}")
        mark = Mark(start, end, f"{asked.event}, {format_time(history.setting, start)}")
        attendance = trace_attendance(history, Event(address, start, end), diffusions[0])
    return Measured(
        history,
        count_events(history),
        trace_acquaintance(history),
        examine_conduct(history),
        diffusions,
        attendance,
        mark,
    )


def _files(measured: Measured, ending: str) -> dict[str, str]:
    """Return the tables or curves, by the names of their files."""
    history, steps = measured.history, hours(measured.history)
    curves = _curves(measured, steps)
    shares = {name: values for name, (values, _) in curves.items()}
    if ending == "svg":
        said = {name: text for name, (_, text) in curves.items()}
        title = f"{history.setting.name}: shares over its days"
        return {"curves.svg": draw_curves(history, steps, shares, title, said=said, mark=measured.mark)}
    tables = {f"fact_{n}.csv": write_csv(each) for n, each in enumerate(measured.diffusions, 1)}
    return {"curves.csv": curves_csv(history, steps, shares), **tables}


def _curves(measured: Measured, steps: Sequence[int]) -> dict[str, tuple[list[float], str]]:
    """Return shares, and what the last stands for: facts, pairs, kept plans, and talks and reflections of all."""
    history, people = measured.history, len(measured.history.names)
    known, kept = measured.acquaintance.curve(steps), trace_adherence(history, steps)
    talks = sorted(talk.step for _, talk in history.talks())
    thoughts = sorted(step for name in history.names for step, _ in history.events(name, Reflected))
    return {
        each.fact: ([each.count(step) / max(1, people) for step in steps], f"{len(each.knowers)} of {people}")
        for each in measured.diffusions
    } | {
        "pairs who know each other": (known, f"{known[-1]:.0%}"),
        "planned minutes that were kept, so far": (kept, f"{kept[-1]:.0%}"),
        "talks, as a share of all until the end": (_so_far(talks, steps), f"{len(talks):,} in all"),
        "reflections, as a share of all until the end": (_so_far(thoughts, steps), f"{len(thoughts):,} in all"),
    }


def _so_far(happened: Sequence[int], steps: Sequence[int]) -> list[float]:
    """Return which share had happened after each step."""
    return [bisect_right(happened, step) / max(1, len(happened)) for step in steps]


def _as_json(measured: Measured) -> dict[str, Any]:
    begun, now = measured.density
    counts, conduct = measured.counts, measured.conduct
    attended = measured.attendance
    return {
        "town": measured.history.setting.name, "step": measured.history.step, "days": round(counts.days, 3),
        "residents": len(measured.history.names), "talks": counts.talks, "talks_a_day": round(counts.talks_a_day, 2),
        "reflections_a_day": round(counts.reflections_a_day, 3), "density_begun": round(begun, 4),
        "density": round(now, 4), "adherence": round(conduct.adherence, 4),
        "believable": round(conduct.believable_share, 4), "conduct": asdict(conduct), "calls": counts.calls,
        "facts": [
            {"fact": each.fact, "knowers": len(each.knowers), "by_how": each.by_how(),
             "who": [asdict(knower) for knower in each.knowers]}
            for each in measured.diffusions
        ],
        "event": None if attended is None else asdict(attended),
    }  # fmt: skip


def _print(measured: Measured) -> None:
    history, counts, conduct = measured.history, measured.counts, measured.conduct
    begun, now = measured.density
    say(f"{history.setting.name}, {count_of(len(history.names), 'resident')}, {counts.days:.2f} days, up to "
        f"{format_time(history.setting, history.step)}")  # fmt: skip
    print_table(("", "value"), [
        ("talks a day", f"{counts.talks_a_day:.1f}"),
        ("reflections a day and resident", f"{counts.reflections_a_day:.2f}"),
        ("pairs that know each other, at first", f"{begun:.3f}"),
        ("pairs that know each other, now", f"{now:.3f}"),
        ("planned minutes that were kept", f"{conduct.adherence:.1%}"),
        ("acts where and when one may", f"{conduct.believable_share:.1%}"),
        ("steps in walls", f"{conduct.in_walls}"),
        ("sleeps away from home", f"{conduct.asleep_elsewhere}"),
        ("talks asleep", f"{conduct.talking_asleep}"),
    ])  # fmt: skip
    for each in measured.diffusions:
        say(f"“{each.fact}”: known to {len(each.knowers)} of {each.residents}")
        for knower in each.knowers:
            by = f" by {knower.by}" if knower.by else ""
            chain = f" ({' > '.join(knower.chain)})" if len(knower.chain) > 1 else ""
            say(f"  {knower.time}  {knower.name}, {knower.how}{by}{chain}")
    if (attended := measured.attendance) is not None:
        say(f"there: {_names(f'{name} ({n} min)' for name, n in attended.minutes.items())}")
        say(f"invited: {_names(attended.invited)}; of them came: {_names(attended.came_invited)}")


def _names(names: Any) -> str:
    return ", ".join(names) or "nobody"
