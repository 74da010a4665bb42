"""`mindstream memory`: sleep, review a sleep before it is applied, undo it; predict what will be archived."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, TypeVar

from pydantic import ValidationError

from mindstream import chance
from mindstream.cli.shell.files import write_text
from mindstream.cli.shell.flags import MAX_ROWS, AsJson, Svg, Yes, command, flag, group, switch, word
from mindstream.cli.shell.output import (
    Axes,
    ask,
    clean,
    is_answerable,
    list_some,
    picture,
    plot,
    print_json,
    progress,
    say,
    say_lines,
    short,
    tell,
)
from mindstream.clock import format_iso
from mindstream.errors import InputError
from mindstream.log.events import Logged
from mindstream.log.events import Slept as SleepStep
from mindstream.memory.lifecycle.proposal import Proposal
from mindstream.memory.store.record import Record
from mindstream.minds.calls import CallLog
from mindstream.paths import read_text
from mindstream.service.calling import LocalCaller, calling, open_user_memory
from mindstream.service.memory import Habit, predict_forgetting
from mindstream.service.operations.care import Slept
from mindstream.settings import Settings
from mindstream.text.words import count_of, sentences

Result = TypeVar("Result")
app = group()
MAX_BYTES = 64_000_000
SHOWN = 50
"""Maximum number of records that are listed under a title; further ones are only counted."""
HOW = (
    "nothing was changed. Without a terminal, --review --yes [--keep ID] applies a sleep like this one. To apply"
    " exactly this sleep, use --review --json > FILE, then --accept FILE [--keep ID]"
)
KEEPS = (
    "this memory keeps everything: nothing is archived or merged, and there is no dream;\n"
    "`mindstream memory policy retention=decay` lets it archive unused records"
)
QUESTION = "Apply this? Type yes, no (changes nothing), or the ids of records to keep"


@command(
    app,
    "model data user embedder",
    "mindstream memory sleep -n 50 --user ann",
    model="The model that dreams and rates; same values as for `mindstream chat` [rules].",
)
def sleep(
    settings: Settings,
    n: Annotated[
        int | None,
        flag(
            "N",
            "Number of records to select for fading, with retention=decay [20; see `memory policy`].",
            "-n",
            min=0,
            max=MAX_ROWS,
        ),
    ] = None,
    review: Annotated[
        bool, switch("--review", "Show the proposed changes first, and ask before they are applied.")
    ] = False,
    accept: Annotated[
        Path | None, flag("FILE", "Apply the proposal in this file: the saved output of --review --json.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        flag(
            "ID",
            "With --review or --accept: do not weaken, archive or merge this record; it counts as recalled;"
            " repeatable.",
        ),
    ] = None,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Maintain a memory ("sleep"): archive unused records, write a dream (summary) of them, compact the file.

    Under the retention policy `keep` (the default, see `memory policy`) nothing is archived or merged, and no dream is
    made: importance is rated, and the file is compacted.

    Under `decay`, N records are selected. Those that no recall returned for a fortnight lose a level of strength, or
    are archived at the lowest level: no recall finds them until `memory undo-sleep`, and `memory purge` deletes them.
    A model writes a dream from the archived records. Then importance is rated, near-duplicates are merged, expired
    records are archived, and the file is compacted.

    --review shows the records that would be archived and merged, and the dream. A record that you keep counts as
    recalled: it is not proposed again for a fortnight. `memory undo-sleep` undoes a sleep.
    """
    if accept is not None:
        _accept(settings, _read_proposal(accept), keep or (), json)
    elif review:
        _review(settings, n, keep or (), yes, json)
    elif keep:
        raise InputError("--keep names records of a proposed sleep: use it with --review or --accept")
    else:

        async def run(call: LocalCaller) -> str:
            if (await call.memory()).keeps_all:
                say(KEEPS, sys.stderr)
            slept: Slept = await call("memory.sleep", n=n)
            return slept.dream

        _sleep(settings, run, json)


@command(app, "data user", "mindstream memory undo-sleep --user ann", name="undo-sleep")
async def undo_sleep(
    settings: Settings,
    row: Annotated[
        int, word("[ROW]", "The row of the log in which the sleep began [the last one that is not undone].", min=0)
    ] = 0,
    json: AsJson = False,
) -> None:
    """Undo a sleep: restore the records that it archived, weakened, or replaced by a merged one.

    Expired records stay archived. Weakened records that were recalled, archived, deleted or made long-term since stay
    as they are. The dream and the merged records that the sleep wrote are archived.

    A sleep cannot be undone if a record that it archived or merged was changed or deleted since. The same applies if a
    record that it wrote was corrected, or a merged record that it wrote was deleted.
    """
    async with calling(settings, own=True, known=True) as call:
        done = await call("memory.undo_sleep", sleep=row)
    lines = [f"the sleep of row {done.sleep} is undone: {count_of(len(done.held_again), 'record')} restored"]
    if done.archived:
        lines.append(f"{count_of(len(done.archived), 'record')} made by the sleep archived")
    if done.left:
        lines.append(f"{count_of(len(done.left), 'weakened record')} recalled or changed since stay as they are")
    tell(json, done.model_dump(mode="json"), *lines)


@command(app, "data user", "mindstream memory curve --days 180 --svg curve.svg")
async def curve(
    settings: Settings,
    days: Annotated[int, flag("N", "Number of days to predict.", min=1, max=3650)] = 90,
    sleeps: Annotated[float, flag("X", "Assumed number of sleeps a day.", min=0, max=24)] = 1.0,
    n: Annotated[
        int, flag("N", "Assumed number of records that each sleep selects for fading.", "-n", min=0, max=MAX_ROWS)
    ] = 20,
    passed_over: Annotated[
        float, flag("X", "Assumed number of recalls a day that find a record without returning it.", min=0, max=1000)
    ] = 0.0,
    file: Svg = None,
    json: AsJson = False,
) -> None:
    """Predict how fast sleep would archive records that no recall returns any more.

    The prediction is made for each level of strength, by the rules in docs/memory.md; it depends on the number of
    records in this memory.
    """
    async with open_user_memory(settings, known=True) as opened:
        drawn, levels = await predict_forgetting(opened, Habit(days, sleeps, n, passed_over))
    title = f"Share of records that {settings.user} keeps without recalling them"
    names = [f"{each.level} (lasting)" if each.lasting else f"level {each.level}" for each in levels]
    shares = [[point.kept for point in each.points] for each in levels]
    if file:
        write_text(file, picture({title: (dict(zip(names, shares, strict=True)), Axes(days))}))
    if json:
        for each in levels:
            points = [{"day": point.day, "kept": round(point.kept, 4)} for point in each.points]
            print_json({"level": each.level, "lasting": each.lasting, "records": each.records, "points": points})
        return
    say(f"{title}, by days since a recall last returned them\n")
    marks = {str(each.level): kept for each, kept in zip(levels, shares, strict=True)}
    say("\n".join(plot(dict(reversed(marks.items())), Axes(days))))
    say(f"\nEach sleep selects a record with a chance of {drawn:.0%}; {sleeps:g} sleeps a day.")
    for name, each, kept in zip(names, levels, shares, strict=True):
        say(f"  {name:16} {count_of(each.records, 'record'):>13} now; after {count_of(days, 'day')} {kept[-1]:.0%}")
    if file:
        say(f"the picture is in {file}")


def _review(settings: Settings, n: int | None, keep: Collection[str], yes: bool, json: bool) -> None:
    """Show the changes that a sleep proposes, and apply those that the user accepts."""

    async def look(call: LocalCaller) -> tuple[Proposal, dict[str, str]]:
        memory, calls = await call.memory(), CallLog()
        drawn = (await call.runtime.policy(call.principal)).drawn if n is None else n
        async with calls.writing(memory):
            found = await memory.propose_sleep(call.models(calls.take).of("M1"), drawn)
        return found, {each.id: each.text for each in await memory.records(found.ids)}

    proposal, texts = asyncio.run(_asleep(settings, look))
    if json and not yes:
        print_json(proposal.model_dump(mode="json") | {"texts": texts})
        return
    say_lines([] if json else describe(proposal, texts))
    if not proposal.ids:
        return
    if not yes:
        if not is_answerable():
            say(HOW, sys.stderr)
            return
        keep = [*keep, *_read_answer(proposal)]  # asked outside the event loop, so that Ctrl-C works
    _accept(settings, proposal, set(keep) & set(proposal.ids), json)


def _read_proposal(file: Path) -> Proposal:
    try:
        return Proposal.model_validate_json(read_text(file, MAX_BYTES))
    except InputError as error:
        raise InputError(f"{file} {error}") from None
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"])) or "the text"
        raise InputError(
            f"{file} must hold the output of `memory sleep --review --json`; this part of it is not valid: {where}"
        ) from None


def describe(proposal: Proposal, texts: dict[str, str]) -> list[str]:
    """Return lines that describe the changes that a sleep proposes."""

    def named(title: str, ids: Sequence[str]) -> list[str]:
        return list_some(title, [f"{id_} {short(texts.get(id_, ''), 120)}" for id_ in ids], SHOWN)

    weaker = [each.id for each in proposal.weakened if each.level > 0]
    return [
        *([] if proposal.ids else [f"{count_of(proposal.looked_at, 'record')} selected: none is archived or merged"]),
        *named(f"would be archived: {len(proposal.forgotten)}", proposal.forgotten),
        *named(f"would lose a level: {len(weaker)}", weaker),
        *(line for ids in proposal.merging for line in named("would be merged, with the text of the first:", ids)),
        *(["would be dreamt:", f"  {clean(proposal.dream)}"] if proposal.dream else []),
        *([f"no model could dream of it: {short(proposal.error, 300)}"] if proposal.error else []),
    ]


def _read_answer(proposal: Proposal) -> tuple[str, ...]:
    """Ask until the answer is valid; return the ids of the records to keep: () for yes, all for no."""
    while True:
        answer = ask(QUESTION).replace(",", " ").split()
        if [each.lower() for each in answer] in (["yes"], ["y"]):
            return ()
        if [each.lower() for each in answer] in (["no"], ["n"]):
            return proposal.ids
        if answer and set(answer) <= set(proposal.ids):
            return tuple(answer)
        say("expected yes, no, or ids of the records above", sys.stderr)


def _accept(settings: Settings, proposal: Proposal, keep: Collection[str], json: bool) -> None:
    async def run(call: LocalCaller) -> str:
        memory, calls = await call.memory(), CallLog()
        models = call.models(calls.take)
        async with calls.writing(memory):
            return await memory.accept(proposal, keep, model=models.of("M1"), rater=models.of("importance", "reasoner"))

    _sleep(settings, run, json)


def _sleep(settings: Settings, run: Callable[[LocalCaller], Awaitable[str]], json: bool) -> None:
    """Print each finished step, then the dream; with `json` the dream is only one of the steps."""

    def show(step: SleepStep) -> None:
        if json:
            print_json({"step": step.step, **step.model_dump(mode="json", exclude={"step"})})
        elif step.step != "dream" or step.error:
            say(f"{step.step:12} {_step(step)}")

    with contextlib.nullcontext() if json else progress(f"{settings.user} sleeps"):
        dream = asyncio.run(_asleep(settings, run, show))
    if not json:
        say(f"\n{dream}" if dream else "\nno dream: nothing was archived, or no model could make one")


async def _asleep(
    settings: Settings,
    run: Callable[[LocalCaller], Awaitable[Result]],
    show: Callable[[SleepStep], None] = lambda _: None,
) -> Result:
    """Run a coroutine with a user's data; `show` gets each finished step of a sleep."""

    async def show_steps(events: AsyncIterator[Logged]) -> None:
        async for logged in events:
            if isinstance(logged.event, SleepStep):
                show(logged.event)

    async with calling(settings, own=True, known=True) as call:
        feed = (await call.memory()).feed
        with feed.listening() as events:
            async with asyncio.TaskGroup() as group:
                group.create_task(show_steps(events))
                result = await run(call)
                feed.close()
        return result


def _step(step: SleepStep) -> str:
    if step.error:
        return f"failed: {short(step.error, 300)}"
    return {
        "fading": f"{step.looked_at} selected, {step.changed} lost a level, {len(step.records)} archived",
        "importance": f"{step.changed} rated" + (f" by {step.model}" if step.changed else ""),
        "duplicates": f"{step.changed} near-duplicates became {len(step.records)}",
        "expiry": f"{step.changed} expired, archived",
    }.get(step.step, "done")


SOURCES = 20
"""Maximum number of sources of a dream that are shown; --json has them all."""


@dataclass(frozen=True)
class DreamSentence:
    """A sentence of a dream, the dream, and the archived records that the dream was made of, except erased ones."""

    text: str
    dream: Record
    sources: tuple[Record, ...]


@command(app, "data user", "mindstream memory dreams", "mindstream memory dreams -n 50 --seed 2 --json")
async def dreams(
    settings: Settings,
    n: Annotated[int, flag("N", "Maximum number of sentences to show.", "-n", min=1, max=10_000)] = 20,
    seed: Annotated[int, flag("N", "Seed of the random sample.", "--seed")] = 0,
    json: AsJson = False,
) -> None:
    """Show random sentences from dreams (summaries that sleep wrote), each with the records that its dream summarizes.

    Use this command to check that dreams are true to their records. Archived dreams are included.
    """
    async with open_user_memory(settings, known=True) as opened:
        records = {each.id: each for each in (await opened.store.changes(opened.key, 0)).records}
    drawn = draw_sentences(list(records.values()), n, seed)
    if not drawn and not json:
        say("there is no dream yet; `mindstream memory sleep` makes them")
    for number, each in enumerate(drawn, 1):
        sources = {source.id: source.text for source in each.sources}
        row = {"sentence": each.text, "dream": each.dream.id, "by": each.dream.by, "sources": sources}
        lines = [f"{number}. {each.text}", f"    {format_iso(each.dream.created)[:10]} {each.dream.id}"]
        lines += [f"    - {short(text, 300)}" for text in list(sources.values())[:SOURCES]]
        if len(sources) > SOURCES:
            lines.append(f"    … and {len(sources) - SOURCES} more")
        tell(json, row, *lines)


def _whole_sentences(text: str) -> Iterator[str]:
    """Yield the sentences of a text; neither a semicolon nor the point in a number ends a sentence."""
    whole = ""
    for piece in sentences(text):
        goes_on = whole.endswith((";", "；")) or (whole[-1:] == "." and whole[-2:-1].isdigit() and piece[0].isdigit())
        if whole and not goes_on:
            yield whole
            whole = ""
        whole += piece if whole.endswith((".", "；")) else f" {piece}" if whole else piece
    if any(sign.isalnum() for sign in whole):
        yield whole


def draw_sentences(records: Sequence[Record], n: int, seed: int) -> list[DreamSentence]:
    """Draw n sentences from all dreams among these records, in the order of the dreams."""
    by_id = {each.id: each for each in records}
    every = [(dream, text) for dream in records if dream.kind == "dream" for text in _whole_sentences(dream.text)]
    chosen = sorted(chance.sample(range(len(every)), n, seed, "dream sentences"))
    return [
        DreamSentence(text, dream, tuple(by_id[id_] for id_ in dream.evidence if id_ in by_id))
        for dream, text in (every[at] for at in chosen)
    ]
