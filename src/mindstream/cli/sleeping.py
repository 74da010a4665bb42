"""`mindstream memory`: sleep, look at a sleep before it is applied, undo it."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Callable, Collection, Coroutine, Sequence
from dataclasses import asdict
from pathlib import Path

from mindstream.cli.asking import ask, is_answerable
from mindstream.cli.clean import clean, say, short
from mindstream.cli.json_lines import print_json
from mindstream.cli.progress import progress
from mindstream.errors import InputError
from mindstream.log.events import Slept
from mindstream.memory.proposal import Proposal
from mindstream.memory.undo_sleep import UndoneSleep
from mindstream.paths import read_text
from mindstream.service import sleeping
from mindstream.service.memory import memory
from mindstream.service.sleeping import Review
from mindstream.settings import Settings

MOST_BYTES = 64_000_000
SHOWN = 50
"""So many records of a sort are shown; the others are counted."""
HOW = """nothing was changed. To answer without a terminal: --review --yes [--keep ID] takes a sleep like this one as it
comes; to answer to this very one: --review --json > FILE, then --accept FILE [--keep ID]"""
QUESTION = "Sleep like this? yes; no, keep all of it; or the ids to keep"


def sleep(settings: Settings, n: int, json: bool) -> int:
    """Let a memory sleep; print each step as it is done, then the dream."""

    async def slept(told: Callable[[Slept], None]) -> str:
        async with memory(settings, own=True) as opened:
            return await sleeping.sleep(opened, settings, n, told)

    return _sleep(settings, slept, json)


def review(settings: Settings, n: int, keep: Collection[str], yes: bool, json: bool) -> int:
    """Show what a sleep would do, and do what the person says."""

    async def look() -> Review:
        async with memory(settings, own=True) as opened:
            return await sleeping.review(opened, settings, n)

    found = asyncio.run(look())
    texts = {record.id: record.text for record in found.records.values()}
    if json and not yes:
        print_json(found.proposal.model_dump(mode="json") | {"texts": texts})
        return 0
    for line in [] if json else describe(found.proposal, texts):
        say(line)
    if not found.proposal.ids:
        return 0
    if not yes:
        if not is_answerable():
            say(" ".join(HOW.split()), sys.stderr)
            return 0
        keep = [*keep, *_read_answer(found.proposal)]  # asked outside: a loop would hold Ctrl-C back
    return _accept(settings, found.proposal, set(keep) & set(found.proposal.ids), json)


def accept(settings: Settings, file: Path, keep: Collection[str], json: bool) -> int:
    """Do what was proposed, but for what is to be kept."""
    try:
        proposal = sleeping.read_proposal(read_text(file, MOST_BYTES))
    except InputError as error:
        raise InputError(f"{file} {error}") from None
    return _accept(settings, proposal, keep, json)


def undo(settings: Settings, row: int, json: bool) -> int:
    """Undo a sleep, and say what is held again."""

    async def undone() -> UndoneSleep:
        async with memory(settings, own=True) as opened:
            return await sleeping.undo(opened, row)

    done = asyncio.run(undone())
    if json:
        print_json(asdict(done))
        return 0
    say(f"the sleep of row {done.sleep} is undone: {_count(done.held_again)} held again as before")
    if done.archived:
        say(f"{_count(done.archived)} that it had made went to the archive")
    if done.left:
        say(f"{_count(done.left)} recalled or forgotten since stay as they are")
    return 0


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
    for group in proposal.merging:
        lines += ["would become one, in the words of the first:", *named(group)]
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


def _accept(settings: Settings, proposal: Proposal, keep: Collection[str], json: bool) -> int:
    async def accepted(told: Callable[[Slept], None]) -> str:
        async with memory(settings, own=True) as opened:
            return await sleeping.accept(opened, settings, proposal, keep, told)

    return _sleep(settings, accepted, json)


def _sleep(settings: Settings, run: Callable[[Callable[[Slept], None]], Coroutine[None, None, str]], json: bool) -> int:
    def told(step: Slept) -> None:
        if json:
            print_json({"step": step.step, **step.model_dump(mode="json", exclude={"step"})})
        elif step.step != "dream" or step.error:
            say(f"{step.step:12} {_step(step)}")

    with contextlib.nullcontext() if json else progress(f"{settings.user} sleeps"):
        dream = asyncio.run(run(told))
    if not json:
        say(f"\n{clean(dream)}" if dream else "\nno dream: nothing was forgotten, or nobody could make one")
    return 0


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


def _count(ids: Sequence[str]) -> str:
    return f"{len(ids)} record{'s' * (len(ids) != 1)}"
