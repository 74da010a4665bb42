"""`mindstream town`: look into a town, at any step; nothing is written."""

from __future__ import annotations

import asyncio
import shutil
import sys
from collections import Counter
from dataclasses import dataclass

from mindstream.cli.clean import complain, say, short
from mindstream.cli.json_lines import print_json
from mindstream.cli.progress import progress
from mindstream.cli.tables import print_table
from mindstream.errors import InputError
from mindstream.service import town as towns
from mindstream.service.town import Look
from mindstream.settings import Settings
from mindstream.text.counting import count_of
from mindstream.town import why
from mindstream.town.history import History, read_history
from mindstream.town.interview import Condition, Interview, day_lines, open_interview
from mindstream.town.journal import TownState
from mindstream.town.lookup import find_resident, find_span
from mindstream.town.places import is_home, with_article, words_of
from mindstream.town.setting import Setting
from mindstream.town.state import ResidentState
from mindstream.town.time_words import format_time
from mindstream.town.timeline import lines_of, read_timeline

LEAST_WIDTH = 60
"""An act is never cut shorter than this."""


def show_status(settings: Settings, at: str, json: bool) -> int:
    """Print who is where and does what."""

    async def run() -> None:
        async with towns.look_in(settings) as look:
            step = towns.find_past_step(look.setting, at, look.now) if at else look.now
            state = await look.state(step if at else None)
            _print_json_status(look.setting, state, step) if json else _print_status(look, state, step)

    asyncio.run(run())
    return 0


def _print_status(look: Look, state: TownState, step: int) -> None:
    setting = look.setting
    lived = "it has not lived yet" if step < 0 else f"day {setting.day(step) + 1}, step {step:,}"
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
    """Return how long an act may be: all of it, where no terminal has to show it on a line."""
    return max(LEAST_WIDTH, shutil.get_terminal_size().columns // 2) if sys.stdout.isatty() else 500


def _print_json_status(setting: Setting, state: TownState, step: int) -> None:
    residents = [
        {
            "name": name, "doing": _doing(setting, each, step),
            "place": str(setting.world.address_at(each.spot(max(step, 0)))),
            "spot": list(each.spot(max(step, 0))), "asleep": each.asleep, "talking_with": each.partner,
        }
        for name, each in sorted(state.states.items())
    ]  # fmt: skip
    conditions = [
        {"place": place, "condition": each.text, "since": each.since}
        for place, each in sorted(state.conditions.items())
    ]
    print_json(
        {
            "town": setting.name, "seed": setting.seed, "step": step, "time": setting.when(max(step, 0)).isoformat(),
            "day": setting.day(max(step, 0)) + 1, "residents": residents, "conditions": conditions,
            "talks": sum(each.talked for each in state.states.values()) // 2,
        }
    )  # fmt: skip


def _doing(setting: Setting, state: ResidentState, step: int) -> str:
    if state.act is None:
        return "not up yet"
    return f"on the way: {state.act.what}" if _is_walking(setting, state, step) else state.act.what


def _is_walking(setting: Setting, state: ResidentState, step: int) -> bool:
    """Tell whether somebody is on the way to another room: to another seat of the same room is no way."""
    step = max(step, 0)
    if state.act is None or state.act.has_arrived(step):
        return False
    room = setting.addresses.get(":".join(state.act.place.split(":")[:4]))
    return room is None or not setting.world.address_at(state.spot(step)).is_within(room.upto(3))


def _where(setting: Setting, state: ResidentState, step: int) -> str:
    address = str(setting.world.address_at(state.spot(max(step, 0))))
    return words_of(address) if ":" in address else "in the street"


def _mood(setting: Setting, state: ResidentState, step: int) -> str:
    """Say in a word or two what somebody does: where it is done, since what people do has no list."""
    if state.act is None or state.asleep:
        return "asleep"
    if state.is_talking(step):
        return "talking"
    if _is_walking(setting, state, step):
        return "on the way"
    return (
        "at home" if is_home(setting.people[state.name], state.act.place or setting.people[state.name].home) else "out"
    )


def show_mind(settings: Settings, typed: str, at: str, limit: int, json: bool) -> int:
    """Print what one resident has in mind."""

    async def run() -> None:
        async with towns.look_in(settings) as look:
            name = find_resident(look.setting, typed)
            step = towns.find_past_step(look.setting, at, look.now) if at else look.now
            state = (await look.state(step if at else None)).states.get(name, ResidentState(name=name))
            newest = await look.newest(name, step, limit)
            if json:
                records = [
                    {"id": each.id, "kind": each.kind, "text": each.text, "by": each.by, "importance": each.importance,
                     "at": look.setting.when(look.step_of(each.created)).isoformat()}
                    for each in newest
                ]  # fmt: skip
                print_json({**state.model_dump(mode="json"), "step": step, "memories": records})
                return
            doing, where = _doing(look.setting, state, step), _where(look.setting, state, step)
            say(f"{name}, {format_time(look.setting, step)}: {doing}, {where}")
            say(look.setting.people[name].identity(state.currently))
            plan = day_lines(look.setting, state, step)
            for line in ["the day's plan:", *(f"  {each}" for each in plan)] if plan else ():
                say(line)
            say("newest memories:")
            for each in newest:
                when = look.setting.when(look.step_of(each.created))
                who = f"{each.by}: " if each.kind == "chat" else ""
                kind = f"{each.kind} {each.importance or 0:g}"
                say(f"  {when:%b} {when.day} {when:%H:%M}  {kind}  {who}{short(each.text)}")

    asyncio.run(run())
    return 0


def explain(settings: Settings, typed: str, at: str, json: bool) -> int:
    """Print why somebody does what it does."""
    name = asyncio.run(_resident(settings, typed))
    history = read(settings)
    reason = why.explain(history, name, towns.find_past_step(history.setting, at, history.step) if at else history.step)
    if json:
        print_json(reason.as_json())
    for line in () if json else reason.lines():
        say(line)
    return 0


@dataclass(frozen=True)
class Stretch:
    """What a timeline is asked for: between which times, about what, and whether each act by itself."""

    since: str = ""
    until: str = ""
    about: str = ""
    full: bool = False


def show_timeline(settings: Settings, typed: str, asked: Stretch, json: bool) -> int:
    """Print what somebody did, said and thought."""
    name = asyncio.run(_resident(settings, typed))
    history = read(settings)
    setting = history.setting
    start, end = find_span(setting, asked.since, asked.until, history.step)
    if start > history.step:
        towns.find_past_step(setting, asked.since, history.step)  # which says that nothing is known of then
    end = min(end, history.step)
    if asked.about and not any(
        asked.about.casefold() in each.text.casefold() for records in history.records.values() for each in records
    ):
        complain(f"nobody has a memory that names {asked.about!r:.99}; is it spelled so?")
    moments = read_timeline(history, name, start, end, asked.about, full=asked.full)
    if json:
        for each in moments:
            times = {"time": setting.when(each.step).isoformat(), "until": setting.when(each.end).isoformat()}
            where = {"place": each.place, "because": each.because, "tasks": list(each.tasks)}
            print_json({"resident": name, **times, "what": each.text, **where})
        return 0
    say(f"{name}, {format_time(setting, start)} to {format_time(setting, end)}")
    for line in lines_of(history, moments, full=asked.full):
        say(line)
    if not moments:
        about = f" that names {asked.about!r:.99}" if asked.about else ""
        complain(f"{name} did, said and thought nothing{about} in that time")
    return 0


async def _resident(settings: Settings, typed: str) -> str:
    """Find somebody before all is read, since that takes a while."""
    async with towns.look_in(settings) as look:
        return find_resident(look.setting, typed)


def interview(settings: Settings, typed: str, question: str, at: str, condition: Condition, json: bool) -> int:
    """Ask somebody something and print the answer, and what it rests on."""

    async def ask() -> tuple[Setting, Interview]:
        async with towns.look_in(settings) as look:
            name, setting = find_resident(look.setting, typed), look.setting
            step = towns.find_past_step(setting, at, look.now) if at else None
            async with (
                towns.open_answerer(settings) as models,
                open_interview(look.store, step, models=models, embed=settings.embedder) as interviewer,
            ):
                return setting, await interviewer.ask(name, question, condition)

    setting, found = asyncio.run(ask())
    if json:
        rests_on = [{"id": each.id, "kind": each.kind, "text": each.text} for each in found.rests_on]
        recalled = [{"id": each.record.id, "score": round(each.score, 4)} for each in found.memories]
        who = {"resident": found.name, "question": question, "answer": found.answer, "condition": condition}
        print_json({**who, "step": found.step, "rests_on": rests_on, "recalled": recalled})
        return 0
    say(f"{found.name} ({format_time(setting, found.step)}): {found.answer}")
    for each in found.rests_on[:5]:
        say(f"  from: {short(each.text)}")
    return 0


def read(settings: Settings, upto: int | None = None) -> History:
    """Read what happened in the town of the data folder."""

    async def run() -> History:
        async with towns.look_in(settings) as look:
            if look.now < 0:
                raise InputError(f"{look.setting.name} has not lived yet: mindstream town run --days 1")
            return await read_history(look.store, upto)

    with progress("reading what happened"):
        return asyncio.run(run())
