"""`mindstream memory policy` and `fit`: show or set how a memory recalls and whether it decays; replay the log with
other decay settings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Annotated

import typer
from pydantic import JsonValue

from mindstream.cli.shell.files import write_text
from mindstream.cli.shell.flags import AsJson, Svg, command, flag, group, switch
from mindstream.cli.shell.output import Axes, picture, print_json, print_table, progress, say
from mindstream.clock import DAY_S, HOUR_S
from mindstream.json_values import JsonObject
from mindstream.log.events import PolicySet
from mindstream.memory import forgetting_curve
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
from mindstream.memory.policy import own_policy, parse_settings, read_policy
from mindstream.memory.store.store import Entry
from mindstream.service.calling import open_user_memory
from mindstream.service.memory import policy_given
from mindstream.settings import Chosen, Settings
from mindstream.text.words import count_of

app = group()
MEANS = {
    "retention": "keep: nothing is archived; decay: recall and sleep archive unused records",
    "reranker": "the reranker of recall results: none, model, cross:NAME",
    "reranked": "number of results that the reranker gets",
    "returned": "number of memories that recall returns in a life (tool R)",
    "drawn": "number of records that a sleep selects",
    "first_s": "T at level 0, in seconds (T: minimum time between two returns that raise a level)",
    "base": "factor by which T grows with each level",
    "cap_s": "largest T, in seconds; a record that reaches it is lasting",
    "passed_over_s": (
        "a record not returned for this many seconds loses a level if a recall finds it, but does not return it"
    ),
    "asleep_s": "a record not returned for this many seconds loses a level if a sleep selects it",
}
NOTES = """The settings of the process that opens a memory ([memory] in the settings file,
MINDSTREAM_MEMORY='{"base": 3}', --reranker) override those of the memory. A change
applies when the memory is opened next. `mindstream memory fit` shows what other
settings would have kept."""


@command(
    app,
    "data user reranker",
    "mindstream memory policy --user ann",
    "mindstream memory policy retention=decay",
    "mindstream memory policy base=3 cap_s=259200 --user ann",
    notes=NOTES,
)
async def policy(
    chosen: Chosen,
    words: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME=VALUE]...", help="A setting of this memory, and its new value.")
    ] = None,
    reset: Annotated[bool, switch("--reset", "Remove all settings that were set for this memory.")] = False,
    json: AsJson = False,
) -> None:
    """Show or change the settings of a memory: how it recalls, and whether unused records are archived.

    Retention `keep` (the default) archives nothing; `decay` archives unused records, by rules with the constants shown.
    """
    given = policy_given(chosen.settings)
    wanted = parse_settings(words or ())
    async with open_user_memory(chosen.settings, new=bool(wanted), own=bool(wanted or reset)) as opened:
        own = {} if reset else dict(await own_policy(opened.store, opened.key))
        if wanted or reset:
            own |= wanted
            read_policy(own)  # raises an error before anything is written
            await opened.commit(Entry(PolicySet(policy=own), opened.name))
        kept = read_policy(own, given)
    rows = [_row(name, value, own, given, chosen) for name, value in kept.model_dump().items()]
    if json:
        print_json(*rows)
        return
    for row in rows:
        say(f"{row['name']:14} {_value(row['value']):>10}  {row['from']:22} {row['means']}")
    say("\n" + "\n".join(describe_laws(kept.laws)))
    if kept.laws.keeps_all:
        say("retention=keep: nothing loses a level, and nothing is archived unless you ask")


def _row(name: str, value: JsonValue, own: JsonObject, given: JsonObject, chosen: Chosen) -> JsonObject:
    where = chosen.origins.get("reranker" if name == "reranker" and chosen.settings.reranker else "memory", "")
    origin = where if name in given else "this memory" if name in own else "default"
    if name in given and name in own and own[name] != given[name]:
        origin += f", over its own {own[name]}"
    return {"name": name, "value": value, "from": origin, "means": MEANS[name]}


def _value(value: JsonValue) -> str:
    return f"{value:.7g}" if isinstance(value, float) else str(value or "none")


def describe_laws(laws: Strength) -> list[str]:
    """Return lines that explain the constants of decay."""
    steps = ", ".join(describe_span(laws.interval_s(level)) for level in range(laws.lasting_level))
    earliest = describe_span(forgetting_curve.rehearsals(laws)[-1])
    return [
        f"T of each level: {steps}; lasting at level {laws.lasting_level}, after"
        f" {count_of(laws.lasting_level, 'return')} in at least {earliest}",
        f"a record not returned for {describe_span(laws.passed_over_s)} loses a level when a recall finds it but does"
        f" not return it; a record not returned for {describe_span(laws.asleep_s)} loses a level when a sleep selects"
        " it",
    ]


def describe_span(seconds: float) -> str:
    """Return a duration in words, such as `90 minutes`, `16 hours` or `30 days`."""
    if seconds >= 2 * DAY_S:
        return f"{seconds / DAY_S:.3g} days"
    if seconds >= 2 * HOUR_S:
        return f"{seconds / HOUR_S:.3g} hours"
    minutes = f"{seconds / 60:.3g}"
    return f"{minutes} minute{'s' * (minutes != '1')}"


FITTED = ("base", "cap_s", "passed_over_s", "asleep_s")
FIT_NOTES = """The log holds every recall that strengthens a memory, with the records that it
returned and those that it found but did not return, and every sleep. They are
replayed with each setting. A record is "asked for again" if a recall returns it
an hour or more after it was stored or last returned.

The column "lost" counts the returns of records that were asked for again, but that
the setting would have archived before. "held" counts the valid records that it would
not have archived by the end; "in vain" counts those of them that were never asked
for again. The row "today" is the current setting.

The result is one-sided: records that the current setting had archived could not
be returned, so the gain of a setting that keeps them is not seen."""


@command(app, "data user", "mindstream memory fit --user ann", "mindstream memory fit --svg held.svg", notes=FIT_NOTES)
async def fit(
    settings: Settings,
    limit: Annotated[
        int, flag("N", "Maximum number of decay settings to show, the best first.", "-n", "--limit", min=1)
    ] = 10,
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
        print_json(*(_setting_row(each, place, each.laws == today) for place, each in enumerate(ranked, 1)))
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
        f"the log is too short for a result: it has {count_of(asked, 'return')} of records that were asked for again,"
        f" in {days:g} day{'s' * (days != 1)}; at least {MIN_ASKED} such returns and {MIN_DAYS} days are needed"
    )


def _show(log: RecallLog, ranked: Sequence[Replayed], today: Strength, limit: int) -> None:
    now = next(each for each in ranked if each.laws == today)
    agreed = len(now.forgotten & log.forgotten)
    say(
        f"{count_of(len(log.asked), 'return')} of records that were asked for again,"
        f" {count_of(len(log.happened), 'recall')} and sleeps in {count_of(round(log.days), 'day')};"
        f" {count_of(len(log.lives), 'record')}"
    )
    say(
        f"the replay with the current setting archives {count_of(len(now.forgotten), 'record')}; in fact"
        f" {len(log.forgotten)} were archived; {agreed} of these are archived by the replay, too\n"
    )
    columns = ("", "base", "cap", "passed over", "asleep", "lost", "held", "in vain")
    shown = [("today", now), *((f"{place}", each) for place, each in enumerate(ranked[:limit], 1))]
    print_table(columns, [_cells(name, each) for name, each in shown])
    best = ranked[0]
    if best.laws == today:
        say("\nthe current setting is the best of these")
        return
    words = " ".join(f"{name}={getattr(best.laws, name):g}" for name in FITTED)
    say(f"\nnothing was changed; to apply setting 1: mindstream memory policy {words}")


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


def _setting_row(each: Replayed, place: int, is_today: bool) -> dict[str, float | bool]:
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
