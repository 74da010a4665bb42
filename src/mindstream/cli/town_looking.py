"""`mindstream town`: look into a town, at any step; nothing is written."""

from __future__ import annotations

import asyncio
from collections import Counter

from mindstream.cli.clean import complain, say, short
from mindstream.cli.json_lines import print_json
from mindstream.cli.tables import print_table
from mindstream.errors import InputError
from mindstream.service import town as towns
from mindstream.service.town import Look, format_time
from mindstream.settings import Settings
from mindstream.text.counting import count_of
from mindstream.town import why
from mindstream.town.history import History, read_history
from mindstream.town.interview import Condition, Interview, day_lines, open_interview
from mindstream.town.journal import TownState
from mindstream.town.lookup import find_resident, find_step
from mindstream.town.places import words_of
from mindstream.town.setting import Setting
from mindstream.town.state import ResidentState

WIDTH = 60


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
        rows.append((name, short(_doing(each, step), WIDTH), _where(setting, each, step)))
    print_table(("who", "what", "where"), rows, words=3)
    for place, condition in sorted(state.conditions.items()):
        say(f"the {words_of(place)} is {condition.text}, since {format_time(setting, condition.since)}")
    doing = Counter(_mood(each, step) for each in state.states.values())
    counts = ", ".join(f"{n} {what}" for what, n in sorted(doing.items()))
    talks = sum(each.talked for each in state.states.values()) // 2
    say(f"{count_of(len(rows), 'resident')}: {counts}; {count_of(talks, 'talk')} so far")


def _print_json_status(setting: Setting, state: TownState, step: int) -> None:
    residents = [
        {
            "name": name, "doing": _doing(each, step), "place": str(setting.world.address_at(each.spot(max(step, 0)))),
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


def _doing(state: ResidentState, step: int) -> str:
    if state.act is None:
        return "not up yet"
    return state.act.what if state.act.has_arrived(max(step, 0)) else f"on the way: {state.act.what}"


def _where(setting: Setting, state: ResidentState, step: int) -> str:
    address = str(setting.world.address_at(state.spot(max(step, 0))))
    return words_of(address) if ":" in address else "in the street"


def _mood(state: ResidentState, step: int) -> str:
    if state.act is None or state.asleep:
        return "asleep"
    if state.is_talking(step):
        return "talking"
    return "about their work" if state.act.has_arrived(max(step, 0)) else "on the way"


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
            say(
                f"{name}, {format_time(look.setting, step)}: {_doing(state, step)}, {_where(look.setting, state, step)}"
            )
            say(look.setting.people[name].identity(state.currently))
            plan = day_lines(look.setting, state, step)
            for line in ["the day's plan:", *(f"  {each}" for each in plan)] if plan else ():
                say(line)
            say("newest memories:")
            for each in newest:
                when = look.setting.when(look.step_of(each.created))
                who = f"{each.by}: " if each.kind == "chat" else ""
                say(f"  {when:%b %d %H:%M}  {each.kind} {each.importance or 0:g}  {who}{short(each.text)}")

    asyncio.run(run())
    return 0


def explain(settings: Settings, typed: str, at: str, json: bool) -> int:
    """Print why somebody does what it does."""
    history = read(settings)
    name = find_resident(history.setting, typed)
    reason = why.explain(history, name, towns.find_past_step(history.setting, at, history.step) if at else history.step)
    if json:
        print_json(reason.as_json())
    for line in () if json else reason.lines():
        say(line)
    return 0


def show_timeline(settings: Settings, typed: str, since: str, until: str, about: str, json: bool) -> int:
    """Print what somebody did, said and thought."""
    history = read(settings)
    setting, name = history.setting, find_resident(history.setting, typed)
    start = towns.find_past_step(setting, since, history.step) if since else 0
    end = find_step(setting, until, history.step) if until else None
    if end is not None and end < start:
        raise InputError(f"--to {until!r:.99} is before --from {since!r:.99}")
    lines = why.timeline(history, name, start, end, about)
    for line in lines:
        when, _, what = line.partition("  ")
        print_json({"resident": name, "time": when, "what": what}) if json else say(line)
    if not lines and not json:
        complain(f"nothing is known of {name} in that time")
    return 0


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

    return asyncio.run(run())
