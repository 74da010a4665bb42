"""`mindstream town cause` and `beliefs`: what caused an outcome, and what a resident believes, compared with what
happened."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from mindstream.cli.shell.flags import AsJson, Yes, command, flag, group, switch, word
from mindstream.cli.shell.output import print_json, print_table, progress, say, short
from mindstream.engines import open_engine
from mindstream.errors import InputError
from mindstream.evaluation_cache import EvaluationCache
from mindstream.location import Location
from mindstream.models.cached_prompts import do_each
from mindstream.settings import Settings
from mindstream.text.words import count_of
from mindstream_town import opened as towns
from mindstream_town.commands.group import MODEL, ROLE, At, Name
from mindstream_town.inspect import cause as causes
from mindstream_town.inspect.history import read_history
from mindstream_town.inspect.lookup import find_resident, find_span, format_time
from mindstream_town.inspect.why import beliefs_of

app = group()


@command(
    app,
    "model roles fallback budget_calls budget_tokens budget_usd town embedder",
    'mindstream town cause "Klaus at the party" --data ./ville',
    'mindstream town cause "Klaus knows Sam is running for mayor" --seeds 20 --data ./ville',
    "mindstream town cause --against ./other --data ./ville",
    model=MODEL,
    roles=ROLE,
)
async def cause(
    settings: Settings,
    outcome: Annotated[
        str, word("OUTCOME", 'What to explain: "NAME at EVENT", "NAME at PLACE" or "NAME knows FACT".')
    ] = "",
    seeds: Annotated[int, flag("N", "Number of random seeds with which each fork is run.", min=1, max=1_000)] = 10,
    most: Annotated[int, flag("N", "Maximum number of memories to remove, one at a time.", min=1, max=100)] = 6,
    since: Annotated[
        str, flag("TIME", 'If OUTCOME is "NAME at PLACE": start of the period in which NAME was there.', "--from")
    ] = "",
    until: Annotated[
        str, flag("TIME", 'If OUTCOME is "NAME at PLACE": end of the period in which NAME was there.', "--to")
    ] = "",
    into: Annotated[
        Path | None, flag("FILE", "Keep the results in this file: after an interruption, the same command continues.")
    ] = None,
    against: Annotated[
        Path | None,
        flag("DIR", "Without OUTCOME: show the first event in which the town in DIR differs from this one."),
    ] = None,
    ray: Annotated[bool, switch("--ray", "Run the forks as Ray tasks (docs/ray.md).")] = False,
    yes: Yes = False,
    json: AsJson = False,
) -> None:
    """Show what caused an outcome: how often the outcome still happens in copies of the town that lack a memory.

    The copies of the town (forks) begin when the memory was made. For each memory that led to the outcome, forks
    without the memory are compared with forks that keep the memory, with the same seeds. As a control, other forks lack
    a memory that did not lead to the outcome.
    """
    if against is not None:
        await _show_difference(settings, against, json)
        return
    history = await read_history(settings.data)
    span = find_span(history.setting, since, until, history.step) if since or until else None
    wanted = causes.find_outcome(history, outcome, span)
    if history.step < wanted.end:
        raise InputError(
            f"the town must first run to {format_time(history.setting, wanted.end)}: `mindstream town run` continues it"
        )
    found = causes.find_causes(history, wanted, most)
    jobs = causes.jobs_of(settings, wanted, found, range(history.setting.seed, history.setting.seed + seeds))
    if not (towns.is_free(settings) or yes):
        steps = sum(max(0, wanted.end - job.step) for job in jobs)
        raise InputError(
            f"{count_of(len(jobs), 'fork')}, {count_of(steps, 'step')} in all, would run with a model (`town estimate`"
            " shows the cost): add --yes to approve"
        )
    cache = EvaluationCache(into)
    with progress("forks", len(jobs)) as told:
        async with open_engine(ray) as engine:

            async def run(job: causes.Job) -> None:
                cache.keep(job.key, {"happened": await engine.run(causes.live_fork, job)})

            missing = [job for job in jobs if cache.find(job.key) is None]
            await do_each("forks", missing, run, told, engine.workers)
    effects = causes.effects_of(found, jobs, {key: bool(row["happened"]) for key, row in cache.rows.items()})
    happens = wanted.happens(history)
    if json:
        rows = [{**each._asdict(), "cause": each.cause._asdict()} for each in effects]
        print_json({"outcome": outcome, "who": wanted.who, "happened": happens, "forks": len(jobs), "effects": rows})
        return
    how_many = f"{count_of(len(jobs), 'fork')}, {count_of(seeds, 'seed')}"
    say(f"{outcome}: {'happened' if happens else 'did not happen'}; {how_many}")
    setting, lines = history.setting, list[Sequence[str]]()
    for each in effects:
        low, high = each.interval
        share = f"{each.lost} of {each.seeds} ({low:.0%} to {high:.0%})"
        at = format_time(setting, each.cause.step)
        text = short(each.cause.text, 60)
        lines.append(
            (each.cause.whose, at, each.cause.how, text, f"{each.kept} of {each.seeds}", share, f"{each.p:.3f}")
        )
    print_table(("whose", "since", "how", "memory", "with it", "without it", "p"), lines, words=4)


async def _show_difference(settings: Settings, other: Path, json: bool) -> None:
    setting = (await read_history(settings.data, 0)).setting
    found = await causes.first_difference(settings.data, Location(other))
    if json:
        print_json({"difference": found._asdict() if found else None})
    elif found is None:
        say("the two towns do not differ")
    else:
        say(f"they first differ on {format_time(setting, found.step)}, {found.who}")
        say(f"  here:  {found.here or 'nothing'}")
        say(f"  there: {found.there or 'nothing'}")


@command(app, "town", "mindstream town beliefs klaus --data ./ville", 'mindstream town beliefs sam --at "Feb 14 12:00"')
async def beliefs(
    settings: Settings,
    name: Name,
    at: At = "",
    false: Annotated[
        bool,
        switch(
            "--false",
            "Show only beliefs that differ from what happened, and whispered ones (planted), which cannot be checked.",
        ),
    ] = False,
    json: AsJson = False,
) -> None:
    """Show a resident's beliefs next to what happened, and where each false belief began."""
    async with towns.look_in(settings) as look:
        step = towns.find_past_step(look.setting, at, look.now) if at else look.now
        history = await read_history(look.store, step)
        who = find_resident(look.setting, name)
    found = [each for each in beliefs_of(history, who, step) if each.is_false is not False or not false]
    if json:
        print_json(*(each.model_dump() for each in found))
        return
    say(f"{who} on {format_time(history.setting, step)}: {count_of(len(found), 'belief')}")
    words = {True: "differs", False: "holds", None: "planted"}
    print_table(
        ("about", "believed", "happened", "", "began"),
        [(e.about, short(e.believed, 50), short(e.happened, 50), words[e.is_false], e.origin) for e in found],
        words=2,
    )
