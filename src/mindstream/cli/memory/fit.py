"""`mindstream memory fit`: replay the log with other decay settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

from mindstream.cli.memory.policy import describe_span
from mindstream.cli.shell.files import write_text
from mindstream.cli.shell.flags import AsJson, Svg, command, flag, group
from mindstream.cli.shell.output import Axes, picture, print_json, print_table, progress, say
from mindstream.memory.forgetting_curve import Strength
from mindstream.memory.lifecycle.replay import (
    MIN_ASKED,
    MIN_DAYS,
    RecallLog,
    Replayed,
    grid,
    rank,
    read_recalls,
    replay,
)
from mindstream.service.calling import open_user_memory
from mindstream.settings import Settings
from mindstream.text.words import count_of

app = group()
FITTED = ("base", "cap_s", "passed_over_s", "asleep_s")
NOTES = """The log holds every recall that strengthens a memory, with the records that it
returned and those that it found but did not return, and every sleep. They are
replayed with each setting. A record is "asked for again" if a recall returns it
an hour or more after it was stored or last returned.

The result is one-sided: records that the current setting had archived could not
be returned, so the gain of a setting that keeps them is not seen."""


@command(app, "data user", "mindstream memory fit --user ann", "mindstream memory fit --svg held.svg", notes=NOTES)
async def fit(
    settings: Settings,
    limit: Annotated[int, flag("N", "Number of settings to show.", "-n", "--limit", min=1)] = 10,
    file: Svg = None,
    json: AsJson = False,
) -> None:
    """Replay the log with other decay settings; the best setting archives the fewest records that were asked for again.

    Nothing is changed; `memory policy` changes the settings. If the memory keeps everything (retention=keep), this
    shows the effect that decay would have had.
    """
    async with open_user_memory(settings, known=True) as opened:
        log, today = await read_recalls(opened), replace(opened.strength or Strength(), keeps_all=False)
    if log.is_thin:
        _tell_thin(log, json)
        return
    tried, outcomes = list(grid(today)), list[Replayed]()
    with progress("replaying", len(tried)) as report:
        for number, laws in enumerate(tried, 1):
            outcomes.append(replay(log, laws))
            report(number, len(tried), "replaying")
    ranked = rank(outcomes, today)
    if file:
        curves = {name: replay(log, laws, by_day=True).by_day for name, laws in _two(ranked[0].laws, today)}
        last = max(1, len(next(iter(curves.values()))) - 1)
        write_text(
            file, picture({"Share of records that would have been kept": (curves, Axes(last, "days of the log"))})
        )
    if json:
        print_json(*(_row(each, place, each.laws == today) for place, each in enumerate(ranked, 1)))
        return
    _show(log, ranked, today, limit)
    if file:
        say(f"the picture is in {file}")


def _two(best: Strength, today: Strength) -> list[tuple[str, Strength]]:
    return [("today", today), ("best", best)]


def _tell_thin(log: RecallLog, json: bool) -> None:
    asked, days = len(log.asked), round(log.days, 1)
    if json:
        print_json({"thin": True, "asked_again": asked, "days": days, "wanted": [MIN_ASKED, MIN_DAYS]})
        return
    say(
        f"the log is too short for a result: in {days:g} days, {count_of(asked, 'record')} were asked for again; this"
        f" needs {MIN_ASKED}, in {MIN_DAYS} days"
    )


def _show(log: RecallLog, ranked: Sequence[Replayed], today: Strength, limit: int) -> None:
    now = next(each for each in ranked if each.laws == today)
    agreed = len(now.forgotten & log.forgotten)
    say(
        f"{count_of(len(log.asked), 'return')} of records that were asked for again,"
        f" {count_of(len(log.happened), 'recall')} and sleeps in {log.days:.0f} days;"
        f" {count_of(len(log.lives), 'record')}"
    )
    say(
        f"the replay with the current setting archives {len(now.forgotten)} records; {len(log.forgotten)} were in fact"
        f" archived, {agreed} in both\n"
    )
    columns = ("", "base", "cap", "passed over", "asleep", "lost", "held", "in vain")
    shown = [("today", now), *((f"{place}", each) for place, each in enumerate(ranked[:limit], 1))]
    print_table(columns, [_cells(name, each) for name, each in shown])
    best = ranked[0]
    if best.laws == today:
        say("\nthe current setting is the best of these")
        return
    words = " ".join(f"{name}={getattr(best.laws, name):g}" for name in FITTED)
    say(f"\nnothing was changed; this sets the first: mindstream memory policy {words}")


def _cells(name: str, each: Replayed) -> tuple[str, ...]:
    laws = each.laws
    return (
        name,
        f"{laws.base:g}",
        describe_span(laws.cap_s),
        describe_span(laws.passed_over_s),
        describe_span(laws.asleep_s),
        f"{each.lost} of {each.asked}",
        f"{each.held:,}",
        f"{each.idle:,}",
    )


def _row(each: Replayed, place: int, is_today: bool) -> dict[str, float | bool]:
    laws = {name: getattr(each.laws, name) for name in FITTED}
    return {
        "place": place,
        "today": is_today,
        **laws,
        "asked_again": each.asked,
        "lost": each.lost,
        "held": each.held,
        "in_vain": each.idle,
        "forgotten": len(each.forgotten),
    }
