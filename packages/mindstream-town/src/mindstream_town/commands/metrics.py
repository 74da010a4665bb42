"""`mindstream town metrics`: measures of a town as tables, CSV files and charts."""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

from mindstream.cli.shell.flags import AsJson, command, flag, group, switch
from mindstream.cli.shell.output import print_json, print_table, progress, say
from mindstream.errors import InputError
from mindstream.log.events import Reflected
from mindstream.service.opening import answering
from mindstream.settings import Settings
from mindstream.text.words import count_of
from mindstream_town import opened as towns
from mindstream_town.commands.group import ROLE, At
from mindstream_town.commands.look import read
from mindstream_town.formats.files import write_text
from mindstream_town.inspect.history import History
from mindstream_town.inspect.lookup import find_place, find_span, format_time
from mindstream_town.metrics import (
    Acquaintance,
    Attendance,
    Conduct,
    Counts,
    Diffusion,
    Event,
    Followed,
    Mark,
    StatesFact,
    count_events,
    curves_csv,
    draw_curves,
    examine_conduct,
    find_fact,
    hours,
    trace_acquaintance,
    trace_adherence,
    trace_attendance,
    trace_fact,
    trace_insights,
    trace_meaning,
    write_csv,
)
from mindstream_town.opened import find_past_step
from mindstream_town.residents.places import with_article, words_of

app = group()


@dataclass(frozen=True)
class Measured:
    """The measures of a town."""

    history: History
    counts: Counts
    acquaintance: Acquaintance
    conduct: Conduct
    diffusions: tuple[Diffusion, ...]
    followed: Followed
    attendance: Attendance | None
    mark: Mark | None

    @property
    def density(self) -> tuple[float, float]:
        """The share of pairs of residents who know each other, at the beginning and now."""
        return self.acquaintance.density(0), self.acquaintance.density(self.history.step)


@command(
    app,
    "model roles patience_s town embedder",
    "mindstream town metrics --data ./ville",
    'mindstream town metrics --data ./ville --fact "there is a Valentine\'s Day party at Hobbs Cafe" \\',
    '    --event "Hobbs Cafe" --from "Feb 14 17:00" --to "Feb 14 19:00" --plot ./plots',
    model="The model that reads whether memories state a fact [none: facts are traced through derived memories].",
    roles=ROLE,
)
def metrics(
    settings: Settings,
    fact: Annotated[
        list[str] | None, flag("WORDS", "Show which residents know this fact, since when and from whom; repeatable.")
    ] = None,
    event: Annotated[
        str,
        flag("PLACE", "List the residents at PLACE between --from and --to, and which of them knew the first --fact."),
    ] = "",
    since: Annotated[str, flag("TIME", "With --event: when the event begins.", "--from")] = "",
    until: Annotated[str, flag("TIME", "With --event: when the event ends.", "--to")] = "",
    at: At = "",
    odd: Annotated[bool, switch("--odd", "Also list each act at a place that is closed, private or full.")] = False,
    csv: Annotated[Path | None, flag("DIR", "Also write tables as CSV into this folder.")] = None,
    plot: Annotated[Path | None, flag("DIR", "Also write charts as SVG into this folder.")] = None,
    json: AsJson = False,
) -> None:
    """Show measures of a town: talks, reflections, the spread of facts.

    Also shows acquaintance, adherence to plans, and acts at closed, private or full places.

    With a model, a resident knows a --fact if the model says that one of the resident's memories states the fact (about
    one call per resident).

    Without a model, one memory stands for the fact: the one that shares the most words with --fact. It is chosen from
    the memories that residents had before the town began, and from those that users added (`town whisper`). A resident
    knows the fact if one of the resident's memories is, or is derived from, this memory.
    """
    history = read(settings)
    if at:
        history = read(settings, find_past_step(history.setting, at, history.step))
    diffusions = _spread(settings, history, fact or ())
    attendance = mark = None
    if event:
        attendance, mark = _attend(history, event, since, until, diffusions)
    measured = Measured(
        history,
        count_events(history),
        trace_acquaintance(history),
        examine_conduct(history),
        diffusions,
        trace_insights(history),
        attendance,
        mark,
    )
    for folder, ending in ((csv, "csv"), (plot, "svg")):
        for path, text in _files(measured, ending).items() if folder else ():
            write_text(folder / path, text) if folder else None
    if json:
        print_json(_as_json(measured))
        return
    _print(measured)
    for act in measured.conduct.odd if odd else ():
        say(f"  {act.time}  {act.name}: {act.what}, at {with_article(words_of(act.place))}: {act.why}")


def _spread(settings: Settings, history: History, facts: Sequence[str]) -> tuple[Diffusion, ...]:
    """Return who knows each fact. A model reads whether memories state the fact; without a model, a fact is traced
    through memories that are derived from each other."""
    if not facts or towns.is_free(settings):
        return tuple(trace_fact(history, find_fact(text, history)) for text in facts)

    async def run() -> tuple[Diffusion, ...]:
        async with (
            towns.look_in(settings) as look,
            towns.counting(look, settings) as calls,
            answering(settings, on_call=calls.take) as models,
        ):
            return tuple([await trace_meaning(history, text, models.of(StatesFact.role)) for text in facts])

    with progress("reading memories"):
        return asyncio.run(run())


def _attend(
    history: History, event: str, since: str, until: str, diffusions: Sequence[Diffusion]
) -> tuple[Attendance, Mark]:
    """Return the attendance of an event, and the event's mark in the chart."""
    if not (diffusions and since and until):
        raise InputError("an event needs --event PLACE, --from TIME, --to TIME and --fact WORDS")
    address = history.setting.addresses[find_place(history.setting, event)]
    start, end = find_span(history.setting, since, until, history.step)
    if end == start:
        raise InputError(f"--to {until!r:.99} must be later than --from {since!r:.99}")
    mark = Mark(start, end, f"{event}, {format_time(history.setting, start)}")
    return trace_attendance(history, Event(address, start, end), diffusions[0]), mark


def _files(measured: Measured, ending: str) -> dict[str, str]:
    """Return the contents of the files to write, by file name: tables (`ending` "csv") or a chart ("svg")."""
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
    """Return the curves by name, each with its values and the label of the last value.

    There are curves of the spread of each fact, of pairs who know each other, kept plans, talks and reflections.
    """
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
    """Return the share of all events that happened up to each step."""
    return [bisect_right(happened, step) / max(1, len(happened)) for step in steps]


def _as_json(measured: Measured) -> dict[str, Any]:
    begun, now = measured.density
    counts, conduct = measured.counts, measured.conduct
    attended = measured.attendance
    return {
        "town": measured.history.setting.name,
        "step": measured.history.step,
        "days": round(counts.days, 3),
        "residents": len(measured.history.names),
        "talks": counts.talks,
        "talks_a_day": round(counts.talks_a_day, 2),
        "reflections_a_day": round(counts.reflections_a_day, 3),
        "density_begun": round(begun, 4),
        "density": round(now, 4),
        "adherence": round(conduct.adherence, 4),
        "believable": round(conduct.believable_share, 4),
        "conduct": asdict(conduct),
        "calls": counts.calls,
        "insights": asdict(measured.followed),
        "facts": [
            {
                "fact": each.fact,
                "knowers": len(each.knowers),
                "by_how": each.by_how(),
                "who": [asdict(knower) for knower in each.knowers],
            }
            for each in measured.diffusions
        ],
        "event": None if attended is None else asdict(attended),
    }


def _print(measured: Measured) -> None:
    history, counts, conduct = measured.history, measured.counts, measured.conduct
    begun, now = measured.density
    say(
        f"{history.setting.name}, {count_of(len(history.names), 'resident')}, {counts.days:.2f} days, up to "
        f"{format_time(history.setting, history.step)}"
    )
    print_table(
        ("", "value"),
        [
            ("talks a day", f"{counts.talks_a_day:.1f}"),
            ("reflections a day and resident", f"{counts.reflections_a_day:.2f}"),
            ("pairs that know each other, at first", f"{begun:.3f}"),
            ("pairs that know each other, now", f"{now:.3f}"),
            ("planned minutes spent as planned", f"{conduct.adherence:.1%}"),
            ("acts at open and permitted places", f"{conduct.believable_share:.1%}"),
            ("steps in walls", f"{conduct.in_walls}"),
            ("sleeps away from home", f"{conduct.asleep_elsewhere}"),
            ("talks asleep", f"{conduct.talking_asleep}"),
            ("insights that a plan or talk cites", f"{measured.followed.cited} of {measured.followed.insights}"),
        ],
    )
    for each in measured.diffusions:
        say(f"“{each.fact}”: known to {len(each.knowers)} of {each.residents}")
        for knower in each.knowers:
            by = f" by {knower.by}" if knower.by else ""
            chain = f" ({' > '.join(knower.chain)})" if len(knower.chain) > 1 else ""
            say(f"  {knower.time}  {knower.name}, {knower.how}{by}{chain}")
    if (attended := measured.attendance) is not None:
        say(f"present: {_names(f'{name} ({n} min)' for name, n in attended.minutes.items())}")
        came = [name for name in attended.came_invited if name in attended.invited]
        say(f"invited: {_names(attended.invited)}; of these came: {_names(came)}")
        if late := [name for name in attended.came_invited if name not in came]:
            say(f"came, but heard of the event only while it took place: {_names(late)}")


def _names(names: Any) -> str:
    return ", ".join(names) or "nobody"
