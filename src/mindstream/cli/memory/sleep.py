"""`mindstream memory`: sleep, look at a sleep before it is applied, undo it; what forgetting will do."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import ValidationError

from mindstream.cli.shell.files import write_text
from mindstream.cli.shell.flags import MOST, AsJson, Svg, Yes, command, flag, group, switch, word
from mindstream.cli.shell.output import (
    Axes,
    ask,
    clean,
    is_answerable,
    picture,
    plot,
    print_json,
    progress,
    say,
    say_lines,
    short,
    tell,
)
from mindstream.errors import InputError
from mindstream.log.events import Logged, Slept
from mindstream.memory.lifecycle.proposal import Proposal
from mindstream.minds.calls import CallLog
from mindstream.models.roles import Models
from mindstream.paths import read_text
from mindstream.service.memory import UserMemory, open_user_memory
from mindstream.service.opening import answering
from mindstream.service.upkeep import Forgetting, Habit, predict_forgetting
from mindstream.settings import Settings
from mindstream.text.words import count_of

Result = TypeVar("Result")
app = group()
MOST_BYTES = 64_000_000
SHOWN = 50
"""So many records of a sort are shown; the others are counted."""
HOW = """nothing was changed. To answer without a terminal: --review --yes [--keep ID] takes a sleep like this one as it
comes; to answer to this very one: --review --json > FILE, then --accept FILE [--keep ID]"""
KEEPS = """this memory keeps everything: nothing is archived or merged, and there is no dream;
`mindstream memory policy retention=decay` lets it archive what is not used"""
QUESTION = "Sleep like this? yes; no, keep all of it; or the ids to keep"


@command(
    app,
    "model data user embedder",
    "mindstream memory sleep -n 50 --user ann",
    model="Who dreams and rates, as for chat [rules].",
)
def sleep(
    settings: Settings,
    n: Annotated[
        int | None, flag("N", "How many records it draws [20; see `memory policy`].", "-n", min=0, max=MOST)
    ] = None,
    review: Annotated[bool, switch("--review", "Show what it would do first; ask before anything is changed.")] = False,
    accept: Annotated[Path | None, flag("FILE", "Do what --review --json wrote there.")] = None,
    keep: Annotated[list[str] | None, flag("ID", "Of that, leave this record as it is; repeatable.")] = None,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Sleep: archive what is not used, dream of it, keep house.

    Under the retention policy keep (the default, see `memory policy`) nothing is archived or merged, and there is no
    dream: importance is rated, and the file is compacted.

    Under decay, records that are drawn and were not returned for a fortnight lose a level, or are archived: out of
    reach until `memory undo-sleep`, or erased by `memory purge`. A dream is made of what is archived; then importance
    is rated, near-duplicates are merged, what is over is archived, and the file is compacted.

    --review shows what would be forgotten and merged, and the dream. What you keep counts as recalled: it is not
    proposed again for a fortnight. `memory undo-sleep` takes a sleep back.
    """
    if accept is not None:
        _accept(settings, _read_proposal(accept), keep or (), json)
    elif review:
        _review(settings, n, keep or (), yes, json)
    elif keep:
        raise InputError("--keep leaves something out of a sleep that is shown first: say --review or --accept, too")
    else:

        def run(opened: UserMemory, models: Models) -> Awaitable[str]:
            drawn = opened.policy.drawn if n is None else n
            if opened.memory.keeps_all:
                say(KEEPS, sys.stderr)
            return opened.memory.sleep(models.of("M1"), drawn, rater=models.of("importance", "reasoner"))

        _sleep(settings, run, json)


@command(app, "data user", "mindstream memory undo-sleep --user ann", name="undo-sleep")
async def undo_sleep(
    settings: Settings,
    row: Annotated[int, word("[ROW]", "Which: the row of the log in which it began [the last one].", min=0)] = 0,
    json: AsJson = False,
) -> None:
    """Take a sleep back: hold again what it forgot and merged.

    All is held as it was, but what was recalled since; the dream and the merged records go to the archive. It cannot be
    undone where something of it was purged, or corrected since.
    """
    async with open_user_memory(settings, own=True, known=True) as opened:
        done = await opened.memory.undo_sleep(row)
    told = [f"the sleep of row {done.sleep} is undone: {count_of(len(done.held_again), 'record')} held again as before"]
    if done.archived:
        told.append(f"{count_of(len(done.archived), 'record')} that it had made went to the archive")
    if done.left:
        told.append(f"{count_of(len(done.left), 'record')} recalled or forgotten since stay as they are")
    tell(json, asdict(done), *told)


@command(app, "data user", "mindstream memory curve --days 180 --svg curve.svg")
async def curve(
    settings: Settings,
    days: Annotated[int, flag("N", "How far.", min=1, max=3650)] = 90,
    sleeps: Annotated[float, flag("X", "Sleeps a day.", min=0, max=24)] = 1.0,
    n: Annotated[int, flag("N", "How many records a sleep draws.", "-n", min=0, max=MOST)] = 20,
    passed_over: Annotated[
        float, flag("X", "How often a day a record comes up while others are returned.", min=0, max=1000)
    ] = 0.0,
    file: Svg = None,
    json: AsJson = False,
) -> None:
    """Show how what is not returned any more will be forgotten.

    By the laws of docs/memory.md, for each level at which a record can be held, and by how many records a sleep can
    draw from this memory.
    """
    async with open_user_memory(settings, known=True) as opened:
        drawn, levels = await predict_forgetting(opened, Habit(days, sleeps, n, passed_over))
    title = f"What {settings.user} will still hold of what is not returned any more"
    if file:
        write_text(file, picture({title: ({_name(each): _shares(each) for each in levels}, Axes(days))}))
    if json:
        for each in levels:
            points = [{"day": point.day, "kept": round(point.kept, 4)} for point in each.points]
            print_json({"level": each.level, "lasting": each.lasting, "records": each.records, "points": points})
        return
    say(f"{title}, by days since it was last returned\n")
    say("\n".join(plot({str(each.level): _shares(each) for each in reversed(levels)}, Axes(days))))
    say(f"\nEach sleep draws a record with a chance of {drawn:.0%}; {sleeps:g} a day.")
    for each in levels:
        say(f"  {_name(each):16} {each.records:5,} records now; after {days} days {each.points[-1].kept:.0%}")
    if file:
        say(f"the picture is in {file}")


def _review(settings: Settings, n: int | None, keep: Collection[str], yes: bool, json: bool) -> None:
    """Show what a sleep would do, and do what the person says."""

    async def look(opened: UserMemory, models: Models) -> tuple[Proposal, dict[str, str]]:
        stream = opened.memory
        found = await stream.propose_sleep(models.of("M1"), opened.policy.drawn if n is None else n)
        return found, {each.id: each.text for each in await stream.store.records(stream.key, found.ids)}

    proposal, texts = asyncio.run(_asleep(settings, look))
    if json and not yes:
        print_json(proposal.model_dump(mode="json") | {"texts": texts})
        return
    say_lines([] if json else describe(proposal, texts))
    if not proposal.ids:
        return
    if not yes:
        if not is_answerable():
            say(" ".join(HOW.split()), sys.stderr)
            return
        keep = [*keep, *_read_answer(proposal)]  # asked outside: a loop would hold Ctrl-C back
    _accept(settings, proposal, set(keep) & set(proposal.ids), json)


def _read_proposal(file: Path) -> Proposal:
    try:
        return Proposal.model_validate_json(read_text(file, MOST_BYTES))
    except InputError as error:
        raise InputError(f"{file} {error}") from None
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) or "the text"
        raise InputError(f"{file} is not what `memory sleep --review --json` printed: {where} is wrong") from None


def describe(proposal: Proposal, texts: dict[str, str]) -> list[str]:
    """Say what a sleep would do, a line each."""

    def named(ids: Sequence[str]) -> list[str]:
        lines = [f"  {id_} {short(texts.get(id_, ''), 120)}" for id_ in ids[:SHOWN]]
        return lines + ([f"  … and {len(ids) - SHOWN} more; --json has them all"] if len(ids) > SHOWN else [])

    weaker = [each.id for each in proposal.weakened if each.level > 0]
    lines = [f"{proposal.looked_at} drawn: nothing would be forgotten or merged"] if not proposal.ids else []
    if proposal.forgotten:
        lines += [f"would be forgotten: {len(proposal.forgotten)}", *named(proposal.forgotten)]
    if weaker:
        lines += [f"would be held less well: {len(weaker)}", *named(weaker)]
    for ids in proposal.merging:
        lines += ["would become one, in the words of the first:", *named(ids)]
    if proposal.dream:
        lines += ["would be dreamt:", f"  {clean(proposal.dream)}"]
    return lines + ([f"nobody could dream of it: {short(proposal.error, 300)}"] if proposal.error else [])


def _read_answer(proposal: Proposal) -> tuple[str, ...]:
    """Ask until the answer can be read; return the ids to keep."""
    while True:
        answer = ask(QUESTION).replace(",", " ").split()
        if [each.lower() for each in answer] in (["yes"], ["y"]):
            return ()
        if [each.lower() for each in answer] in (["no"], ["n"]):
            return proposal.ids
        if answer and set(answer) <= set(proposal.ids):
            return tuple(answer)
        say("that is neither yes nor no nor ids of records that it names", sys.stderr)


def _accept(settings: Settings, proposal: Proposal, keep: Collection[str], json: bool) -> None:
    def run(opened: UserMemory, models: Models) -> Awaitable[str]:
        model, rater = models.of("M1"), models.of("importance", "reasoner")
        return opened.memory.accept(proposal, keep, model=model, rater=rater)

    _sleep(settings, run, json)


def _sleep(settings: Settings, run: Callable[[UserMemory, Models], Awaitable[str]], json: bool) -> None:
    """Print each step as it is done, then the dream."""

    def told(step: Slept) -> None:
        if json:
            print_json({"step": step.step, **step.model_dump(mode="json", exclude={"step"})})
        elif step.step != "dream" or step.error:
            say(f"{step.step:12} {_step(step)}")

    with contextlib.nullcontext() if json else progress(f"{settings.user} sleeps"):
        dream = asyncio.run(_asleep(settings, run, told))
    if not json:
        say(f"\n{clean(dream)}" if dream else "\nno dream: nothing was forgotten, or nobody could make one")


async def _asleep(
    settings: Settings,
    run: Callable[[UserMemory, Models], Awaitable[Result]],
    told: Callable[[Slept], None] = lambda _: None,
) -> Result:
    """Do something to a memory with the models of the settings; `told` gets each step of a sleep as it is done."""
    async with open_user_memory(settings, own=True, known=True) as opened:
        stream, calls = opened.memory, CallLog()
        async with answering(settings, calls.take) as models:
            with stream.feed.listening() as events:
                try:
                    async with asyncio.TaskGroup() as group:
                        group.create_task(_tell(events, told))
                        result = await run(opened, models)
                        stream.feed.close()
                finally:
                    await calls.flush(stream)
        return result


async def _tell(events: AsyncIterator[Logged], told: Callable[[Slept], None]) -> None:
    async for logged in events:
        if isinstance(logged.event, Slept):
            told(logged.event)


def _step(step: Slept) -> str:
    if step.error:
        return f"came to nothing: {short(step.error, 300)}"
    match step.step:
        case "fading":
            return f"{step.looked_at} drawn, {step.changed} held less well, {len(step.records)} forgotten"
        case "importance":
            return f"{step.changed} rated" + (f" by {step.model}" if step.changed else "")
        case "duplicates":
            return f"{step.changed} near-duplicates became {len(step.records)}"
        case "expiry":
            return f"{step.changed} whose time is over put into the archive"
        case _:
            return "done"


def _name(each: Forgetting) -> str:
    return f"{each.level} (lasting)" if each.lasting else f"level {each.level}"


def _shares(each: Forgetting) -> list[float]:
    return [point.kept for point in each.points]
