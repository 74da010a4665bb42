"""Commands of `mindstream town` that show a town as of any step."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections import Counter
from typing import Annotated

import typer

from mindstream.cli.shell.flags import AsJson, command, flag, group, switch, word
from mindstream.cli.shell.output import complain, print_json, print_table, progress, say, say_lines, short, tell
from mindstream.errors import InputError
from mindstream.service.opening import answering
from mindstream.settings import Settings
from mindstream.text.words import count_of
from mindstream_town import opened as towns
from mindstream_town.commands.group import MODEL, ROLE, At, Name
from mindstream_town.inspect import why as reasons
from mindstream_town.inspect.history import History, read_history
from mindstream_town.inspect.lookup import find_place, find_resident, find_span, format_time
from mindstream_town.inspect.timeline import lines_of, read_timeline
from mindstream_town.journal import TownState
from mindstream_town.opened import Look
from mindstream_town.residents.interview import Condition, day_lines, open_interview
from mindstream_town.residents.places import is_home, with_article, words_of
from mindstream_town.setting import Setting
from mindstream_town.state import ResidentState
from mindstream_town.world.tree import ARENA, SECTOR

app = group()
LEAST_WIDTH = 60
"""Minimum width of the column with a resident's act, in characters."""


From = Annotated[str, flag("TIME", "Show only entries from this time on [the beginning].", "--from")]
To = Annotated[str, flag("TIME", "Show only entries up to this time [now].", "--to")]


@command(
    app,
    "town",
    "mindstream town status --data ./ville",
    'mindstream town status --data ./ville --resident isabella --at "Feb 13 10:00"',
)
async def status(
    settings: Settings,
    resident: Annotated[
        str, flag("NAME", "Show only this resident: its activity, its plan and its newest memories.")
    ] = "",
    at: At = "",
    limit: Annotated[
        int, flag("N", "With --resident: show at most this many memories, the newest.", "-n", min=0, max=1_000)
    ] = 10,
    json: AsJson = False,
) -> None:
    """Show the time in the town, and the place and activity of each resident.

    The summary counts the residents who are at home, out, on the way to another room, talking and asleep. Objects with
    which something is wrong, such as broken ones, are listed, too.
    """
    async with towns.look_in(settings) as look:
        name = find_resident(look.setting, resident) if resident else ""
        state, step = await look.at(at)
        if resident:
            await _show_mind(look, name, state.states.get(name, ResidentState(name=name)), step, limit, json)
        elif json:
            _print_json_status(look.setting, state, step)
        else:
            _print_status(look, state, step)


def _print_status(look: Look, state: TownState, step: int) -> None:
    setting = look.setting
    lived = "it has not run yet" if step < 0 else f"day {setting.day(step) + 1}, step {step:,}"
    say(f"{setting.name}: {format_time(setting, step)} ({lived})")
    rows = []
    for name, each in sorted(state.states.items()):
        rows.append((name, short(_doing(setting, each, step), _act_width()), _where(setting, each, step)))
    print_table(("who", "what", "where"), rows, words=3)
    for place, condition in sorted(state.conditions.items()):
        say(f"{with_article(words_of(place))} is {condition.text}, since {format_time(setting, condition.since)}")
    doing = Counter(_mood(setting, each, step) for each in state.states.values())
    counts = ", ".join(f"{n} {what}" for what, n in sorted(doing.items()))
    talks = sum(each.talked for each in state.states.values()) // 2
    say(f"{count_of(len(rows), 'resident')}: {counts}; {count_of(talks, 'talk')} so far")


def _act_width() -> int:
    """Return the maximum number of characters of an act.

    In a terminal, this is half the terminal's width, but at least LEAST_WIDTH; otherwise 500.
    """
    return max(LEAST_WIDTH, shutil.get_terminal_size().columns // 2) if sys.stdout.isatty() else 500


def _print_json_status(setting: Setting, state: TownState, step: int) -> None:
    residents = [
        {
            "name": name,
            "doing": _doing(setting, each, step),
            "place": str(setting.world.address_at(each.spot(max(step, 0)))),
            "spot": list(each.spot(max(step, 0))),
            "asleep": each.asleep,
            "talking_with": each.partner,
        }
        for name, each in sorted(state.states.items())
    ]
    conditions = [
        {"place": place, "condition": each.text, "since": each.since}
        for place, each in sorted(state.conditions.items())
    ]
    print_json(
        {
            "town": setting.name,
            "seed": setting.seed,
            "step": step,
            "time": setting.when(max(step, 0)).isoformat(),
            "day": setting.day(max(step, 0)) + 1,
            "residents": residents,
            "conditions": conditions,
            "talks": sum(each.talked for each in state.states.values()) // 2,
        }
    )


def _doing(setting: Setting, state: ResidentState, step: int) -> str:
    if state.act is None:
        return "not up yet"
    return f"on the way: {state.act.what}" if _is_walking(setting, state, step) else state.act.what


def _is_walking(setting: Setting, state: ResidentState, step: int) -> bool:
    """Return whether a resident is on the way to another room."""
    step = max(step, 0)
    if state.act is None or state.act.has_arrived(step):
        return False
    room = setting.addresses.get(":".join(state.act.place.split(":")[:4]))
    return room is None or not setting.world.address_at(state.spot(step)).is_within(room.upto(3))


def _where(setting: Setting, state: ResidentState, step: int) -> str:
    address = str(setting.world.address_at(state.spot(max(step, 0))))
    return words_of(address) if ":" in address else "in the street"


def _mood(setting: Setting, state: ResidentState, step: int) -> str:
    """Return a resident's state in a word or two."""
    if state.act is None or state.asleep:
        return "asleep"
    if state.is_talking(step):
        return "talking"
    if _is_walking(setting, state, step):
        return "on the way"
    return (
        "at home" if is_home(setting.people[state.name], state.act.place or setting.people[state.name].home) else "out"
    )


async def _show_mind(look: Look, name: str, state: ResidentState, step: int, limit: int, json: bool) -> None:
    """Print one resident's plan and newest memories."""
    newest = await look.newest(name, step, limit)
    if json:
        records = [
            {
                "id": each.id,
                "kind": each.kind,
                "text": each.text,
                "by": each.by,
                "importance": each.importance,
                "at": look.setting.when(look.step_of(each.created)).isoformat(),
            }
            for each in newest
        ]
        print_json({**state.model_dump(mode="json"), "step": step, "memories": records})
        return
    doing, where = _doing(look.setting, state, step), _where(look.setting, state, step)
    say(f"{name}, {format_time(look.setting, step)}: {doing}, {where}")
    say(look.setting.people[name].identity(state.currently))
    plan = day_lines(look.setting, state, step)
    say_lines(["the day's plan:", *(f"  {each}" for each in plan)] if plan else ())
    say("newest memories:")
    for each in newest:
        when = look.setting.when(look.step_of(each.created))
        who = f"{each.by}: " if each.kind == "chat" else ""
        say(f"  {when:%b} {when.day} {when:%H:%M}  {each.kind} {each.importance or 0:g}  {who}{short(each.text)}")


@command(app, "town", 'mindstream town why "John Lin" --at "Feb 13 08:10" --data ./ville')
def why(settings: Settings, name: Name, at: At = "", json: AsJson = False) -> None:
    """Explain why a resident does what it does.

    Lists the perceptions, recalled memories, decisions and plans behind the current act.
    """
    name, history = _read_of(settings, name)
    step = towns.find_past_step(history.setting, at, history.step) if at else history.step
    reason = reasons.explain(history, name, step)
    tell(json, reason.as_json(), *reason.lines())


@command(app, "town", 'mindstream town timeline "John Lin" --to "Feb 13 12:00" --data ./ville')
def timeline(
    settings: Settings,
    name: Name,
    since: From = "",
    until: To = "",
    about: Annotated[str, flag("WORDS", "Show only entries that contain this text.")] = "",
    full: Annotated[bool, switch("--full", "Show each act separately, and all lines of talks.")] = False,
    json: AsJson = False,
) -> None:
    """Show what a resident did, said and thought, day by day.

    Related acts are combined into one line. If --to names no day, it is on the day of --from.
    """
    name, history = _read_of(settings, name)
    setting = history.setting
    start, end = find_span(setting, since, until, history.step)
    if start > history.step:
        towns.find_past_step(setting, since, history.step)  # raises InputError for a future time
    end = min(end, history.step)
    if about and not any(
        about.casefold() in each.text.casefold() for records in history.records.values() for each in records
    ):
        complain(f"no memory contains {about!r:.99}: check the spelling")
    moments = read_timeline(history, name, start, end, about, full=full)
    if json:
        for each in moments:
            times = {"time": setting.when(each.step).isoformat(), "until": setting.when(each.end).isoformat()}
            where = {"place": each.place, "because": each.because, "tasks": list(each.tasks)}
            print_json({"resident": name, **times, "what": each.text, **where})
        return
    say(f"{name}, {format_time(setting, start)} to {format_time(setting, end)}")
    say_lines(lines_of(history, moments, full=full))
    if not moments:
        named = f" that contains {about!r:.99}" if about else ""
        complain(f"{name} has no act, talk or thought{named} in this time")


def _read_of(settings: Settings, typed: str) -> tuple[str, History]:
    """Find a resident by name first, which is fast, then read the town's whole history."""

    async def find() -> str:
        async with towns.look_in(settings) as look:
            return find_resident(look.setting, typed)

    return asyncio.run(find()), read(settings)


@command(
    app,
    "model roles town embedder",
    'mindstream town interview isabella "What are you planning?" --data ./ville',
    'mindstream town interview sam "Who are you?" --at "Feb 13 12:00" --condition no_reflection',
    model=MODEL,
    roles=ROLE,
)
async def interview(
    settings: Settings,
    name: Name,
    question: Annotated[str, word("QUESTION", "The question to the resident.")],
    at: At = "",
    condition: Annotated[
        Condition,
        typer.Option(
            help="The memories that the resident may use: all (full), all but thoughts (no_reflection), all but"
            " thoughts and plans (no_reflection_no_plan), or none."
        ),
    ] = "full",
    json: AsJson = False,
) -> None:
    """Ask a resident a question, as of now or any past time (--at).

    The resident does not remember the interview.
    """
    async with towns.look_in(settings) as look:
        name, setting = find_resident(look.setting, name), look.setting
        step = towns.find_past_step(setting, at, look.now) if at else None
        async with (
            towns.counting(look, settings) as calls,
            answering(settings, on_call=None if towns.is_free(settings) else calls.take) as models,
            open_interview(look.store, step, models=models, embed=settings.embedder) as interviewer,
        ):
            found = await interviewer.ask(name, question, condition)
    rests_on = [{"id": each.id, "kind": each.kind, "text": each.text} for each in found.rests_on]
    recalled = [{"id": each.record.id, "score": round(each.score, 4)} for each in found.memories]
    row = {"resident": found.name, "question": question, "answer": found.answer, "condition": condition}
    told = [f"{found.name} ({format_time(setting, found.step)}): {found.answer}"]
    told += [f"  based on: {short(each.text)}" for each in found.rests_on[:5]]
    tell(json, {**row, "step": found.step, "rests_on": rests_on, "recalled": recalled}, *told)


def read(settings: Settings, upto: int | None = None) -> History:
    """Read the history of the town in the data folder; raise InputError if the town has not run yet."""

    async def run() -> History:
        async with towns.look_in(settings) as look:
            if look.now < 0:
                raise InputError(f"{look.setting.name} has not run yet: run it with `mindstream town run --days 1`")
            return await read_history(look.store, upto)

    with progress("reading what happened"):
        return asyncio.run(run())


@command(app, "town", "mindstream town places --data ./ville", "mindstream town places cafe --data ./ville --json")
async def places(
    settings: Settings,
    place: Annotated[str, word("PLACE", 'Only this place; the end of its address is enough, such as "cafe".')] = "",
    at: At = "",
    json: AsJson = False,
) -> None:
    """List places, the objects in them, and the residents there."""
    async with towns.look_in(settings) as look:
        setting = look.setting
        state, step = await look.at(at)
    within = setting.addresses[find_place(setting, place)] if place else None
    there: dict[str, list[str]] = {}
    for name, each in sorted(state.states.items()):
        spot = setting.world.address_at(each.spot(max(step, 0)))
        there.setdefault(str(spot.upto(ARENA)), []).append(name)
    sector = ""
    for text, address in setting.addresses.items():
        is_room = address.level == ARENA or (address.level == SECTOR and not _has_rooms(setting, text))
        if not is_room or (within is not None and not (address.is_within(within) or within.is_within(address))):
            continue
        objects = setting.objects_in(text)
        conditions = {each: state.conditions[each].text for each in objects if each in state.conditions}
        if json:
            rows = [
                {"name": each.rpartition(":")[2], "address": each, "condition": conditions.get(each, "")}
                for each in objects
            ]
            print_json({"place": text, "objects": rows, "residents": there.get(text, [])})
            continue
        if sector != (sector := str(address.upto(SECTOR))):
            say(sector.partition(":")[2])
        things = [
            each.rpartition(":")[2] + (f" ({conditions[each]})" if each in conditions else "") for each in objects
        ]
        who = f"; there: {', '.join(there[text])}" if text in there else ""
        say(f"  {address.last}: {', '.join(things) or 'nothing'}{who}")


def _has_rooms(setting: Setting, sector: str) -> bool:
    return any(each.startswith(f"{sector}:") for each in setting.addresses)
