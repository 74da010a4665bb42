"""`mindstream memory`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from mindstream.cli.flags import MOST, AsJson, Data, Embedder, Kinds, Limit, Source, Target, User, Yes, group, settings

memory = group("Look into a user's memory, care for it, carry it elsewhere.")


@memory.command(epilog="\b\nExample:\n  mindstream memory search what disturbs the sleep")
def search(
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="What to look for.")],
    kind: Kinds = None,
    limit: Limit = 10,
    data: Data = None,
    user: User = None,
    embedder: Embedder = None,
    json: AsJson = False,
) -> int:
    """Find what answers best, and why.

    Shows the parts of each score. Nothing is written: looking does not strengthen a memory.
    """
    from mindstream.cli.memory import search

    return search(settings(data, user, embedder), " ".join(words), kind or [], limit, json)


@memory.command(epilog='\b\nExample:\n  mindstream memory keep "The spare key hangs behind the door."')
def keep(
    words: Annotated[list[str], typer.Argument(metavar="WORDS", help="What is to be remembered, as it stands.")],
    data: Data = None,
    user: User = None,
    embedder: Embedder = None,
    json: AsJson = False,
) -> int:
    """Remember something as a note of yours; no model is asked."""
    from mindstream.cli.memory import keep

    return keep(settings(data, user, embedder), " ".join(words), json)


@memory.command(epilog="\b\nExample:\n  mindstream memory show --kind note -n 20")
def show(kind: Kinds = None, limit: Limit = 5, data: Data = None, user: User = None, json: AsJson = False) -> int:
    """Show belief, plan, and the newest records of each kind."""
    from mindstream.cli.memory import show

    return show(settings(data, user), kind or [], limit, json)


@memory.command(epilog="\b\nExample:\n  mindstream memory export ann.jsonl --user ann")
def export(
    file: Target = None,
    data: Data = None,
    user: User = None,
    json: Annotated[bool, typer.Option("--json", hidden=True)] = False,  # noqa: ARG001 (it is JSON anyway)
) -> int:
    """Write a memory as JSON Lines.

    The first line is a header with the format's version, then come all records, without vectors. The file can be read
    by its owner only; links and devices are not written over.
    """
    from mindstream.cli.memory import export

    return export(settings(data, user), file)


@memory.command("import", epilog="\b\nExample:\n  mindstream memory import ann.jsonl --user ann --data elsewhere")
def import_file(
    file: Source = None,
    data: Data = None,
    user: User = None,
    embedder: Embedder = None,
    json: AsJson = False,
) -> int:
    """Take in what export wrote.

    All of it is checked before anything is written, and a line that is wrong is named. Records that are known are left
    out, so twice is as good as once; so are beliefs and plans of which this memory has its own versions. Texts are
    embedded anew.
    """

    from mindstream.cli.memory import import_memory

    return import_memory(settings(data, user, embedder), file, json)


@memory.command(epilog="\b\nExample:\n  mindstream memory sleep -n 50 --user ann")
def sleep(
    n: Annotated[
        int, typer.Option("-n", min=0, max=MOST, metavar="N", help="How many records it draws.", show_default=True)
    ] = 20,
    model: Annotated[
        str | None, typer.Option(metavar="NAME", help="Who dreams and rates, as for chat [rules].")
    ] = None,
    review: Annotated[
        bool, typer.Option("--review", help="Show what it would do first; ask before anything is changed.")
    ] = False,
    accept: Annotated[Path | None, typer.Option(metavar="FILE", help="Do what --review --json wrote there.")] = None,
    keep: Annotated[
        list[str] | None, typer.Option(metavar="ID", help="Of that, leave this record as it is; repeatable.")
    ] = None,
    yes: Yes = False,
    data: Data = None,
    user: User = None,
    embedder: Embedder = None,
    json: AsJson = False,
) -> int:
    """Sleep: let what is not used fade, dream of it, keep house.

    Records that are drawn and were not returned for a fortnight are held less well, or forgotten: out of reach, but in
    the archive until `memory purge`. A dream is made of what is forgotten; then importance is rated, near-duplicates
    are merged, what is over is put away, and the file is compacted.

    --review shows what would be forgotten and merged, and the dream. What you keep counts as recalled: it is not
    proposed again for a fortnight. `memory undo-sleep` takes a sleep back.
    """
    from mindstream.cli import sleeping
    from mindstream.errors import InputError

    chosen = settings(data, user, embedder, model)
    if accept is not None:
        return sleeping.accept(chosen, accept, keep or [], json)
    if review:
        return sleeping.review(chosen, n, keep or [], yes, json)
    if keep:
        raise InputError("--keep leaves something out of a sleep that is shown first: say --review or --accept, too")
    return sleeping.sleep(chosen, n, json)


@memory.command("undo-sleep", epilog="\b\nExample:\n  mindstream memory undo-sleep --user ann")
def undo_sleep(
    row: Annotated[
        int, typer.Argument(min=0, metavar="[ROW]", help="Which: the row of the log in which it began [the last one].")
    ] = 0,
    data: Data = None,
    user: User = None,
    json: AsJson = False,
) -> int:
    """Take a sleep back: hold again what it forgot and merged.

    All is held as it was, but what was recalled since; the dream and the merged records go to the archive. It cannot be
    undone where something of it was purged, or corrected since.
    """
    from mindstream.cli.sleeping import undo

    return undo(settings(data, user), row, json)


@memory.command(epilog="\b\nExample:\n  mindstream memory curve --days 180 --svg curve.svg")
def curve(
    days: Annotated[int, typer.Option(min=1, max=3650, metavar="N", help="How far.", show_default=True)] = 90,
    sleeps: Annotated[float, typer.Option(min=0, max=24, metavar="X", help="Sleeps a day.", show_default=True)] = 1.0,
    n: Annotated[
        int, typer.Option("-n", min=0, max=MOST, metavar="N", help="How many records a sleep draws.", show_default=True)
    ] = 20,
    passed_over: Annotated[
        float,
        typer.Option(
            min=0, max=1000, metavar="X", help="How often a day a record comes up while others are returned.",
            show_default=True,
        ),
    ] = 0.0,
    svg: Annotated[Path | None, typer.Option(metavar="FILE", help="Draw it there, too.")] = None,
    data: Data = None,
    user: User = None,
    json: AsJson = False,
) -> int:  # fmt: skip
    """Show how what is not returned any more will be forgotten.

    By the laws of docs/memory.md, for each level at which a record can be held, and by how many records a sleep can
    draw from this memory.
    """
    from mindstream.cli.curve import curve
    from mindstream.service.upkeep import Habit

    return curve(settings(data, user), Habit(days, sleeps, n, passed_over), svg, json)


@memory.command(epilog="\b\nExample:\n  mindstream memory audit --user ann")
def audit(data: Data = None, user: User = None, embedder: Embedder = None, json: AsJson = False) -> int:
    """Look for what should not be there: duplicates, junk, echoes.

    Nothing is changed.
    """
    from mindstream.cli.memory_care import audit

    return audit(settings(data, user, embedder), json)


@memory.command(epilog="\b\nExample:\n  mindstream memory purge --older 365 --yes")
def purge(
    older: Annotated[
        float | None, typer.Option(min=0, metavar="DAYS", help="Only what was forgotten longer ago than so many days.")
    ] = None,
    yes: Yes = False,
    data: Data = None,
    user: User = None,
    json: AsJson = False,
) -> int:
    """Delete what is forgotten, for good.

    Its words go from the log, too, and from dreams and thoughts that were drawn from it. What the user said in a chat
    stays: `memory erase` is for that. Asks first.
    """
    from mindstream.cli.memory_care import purge

    return purge(settings(data, user), older, yes, json)


@memory.command(epilog="\b\nExample:\n  mindstream memory reembed --embedder st:all-MiniLM-L6-v2")
def reembed(data: Data = None, user: User = None, embedder: Embedder = None, json: AsJson = False) -> int:
    """Give each record a vector of another embedder.

    Those that have one are passed over, so it can be broken off and gone on with.
    """
    from mindstream.cli.memory_care import reembed

    return reembed(settings(data, user, embedder), json)


@memory.command(epilog="\b\nExample:\n  mindstream memory evidence 1jatk3k2m0x7c5v9qz")
def evidence(
    id_: Annotated[str, typer.Argument(metavar="ID", help="A record's id, as `memory search` shows it.")],
    data: Data = None,
    user: User = None,
    json: AsJson = False,
) -> int:
    """Show what a record was drawn from, down to what was seen."""
    from mindstream.cli.memory_care import evidence

    return evidence(settings(data, user), id_, json)


@memory.command(epilog='\b\nExample:\n  mindstream memory forget --about "the red bicycle"')
def forget(
    ids: Annotated[
        list[str] | None, typer.Argument(metavar="ID", help="Records, as `memory search` shows their ids.")
    ] = None,
    about: Annotated[str, typer.Option(metavar="WORDS", help="What mentions this subject.")] = "",
    session: Annotated[str, typer.Option(metavar="NAME", help="Of this session; `memory sessions` lists them.")] = "",
    since: Annotated[
        str | None, typer.Option(metavar="TIME", help="Written then or later: 2026-11-20, or 2026-11-20T21:30 (UTC).")
    ] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Written then or before; a date: its end.")] = None,
    yes: Yes = False,
    data: Data = None,
    user: User = None,
    json: AsJson = False,
) -> int:
    """Forget for good: records, a subject, a session, a span of time.

    Shows what goes and asks. With it goes what was drawn from it alone: answers, notes, thoughts, dreams, what is
    believed and planned. What was drawn from other things too stays without the words; what others said stays. --about,
    --session, --since and --until together mean what meets all of them. No byte of it is left in the data folder;
    exports and recordings that lie elsewhere are yours to delete.
    """
    from mindstream.cli.forgetting import forget, parse_request

    return forget(settings(data, user), parse_request(ids or [], about, session, since, until), yes, json)


@memory.command(epilog='\b\nExample:\n  mindstream memory correct 1jatk3k2m0x7c5v9qz "Goes to bed at ten"')
def correct(
    id_: Annotated[str, typer.Argument(metavar="ID", help="A record's id, as `memory search` shows it.")],
    words: Annotated[str, typer.Argument(metavar="WORDS", help="What is true instead.")],
    data: Data = None,
    user: User = None,
    json: AsJson = False,
) -> int:
    """Put new words in a record's place.

    The old ones are history; the log says `corrected`. Shows what was drawn from them and is still believed.
    """
    from mindstream.cli.forgetting import correct

    return correct(settings(data, user), id_, words, json)


@memory.command(epilog="\b\nExample:\n  mindstream memory sessions --user ann")
def sessions(data: Data = None, user: User = None, json: AsJson = False) -> int:
    """List the sessions: when, how long, how they began."""
    from mindstream.cli.forgetting import sessions

    return sessions(settings(data, user), json)


@memory.command(epilog="\b\nExample:\n  mindstream memory erase --user ann")
def erase(
    user: Annotated[str, typer.Option("--user", metavar="NAME", help="Who; there is no default.")],
    yes: Yes = False,
    data: Data = None,
    json: AsJson = False,
) -> int:
    """Erase all that is kept of a user, for good.

    Records, vectors, log, work and typed history; asks for the name again. Then the file is written anew and searched,
    byte by byte, for what the user said. If it is broken off, it is finished when the folder is opened next. Close
    other programs on that mind first. Exports and recordings that lie elsewhere are yours to delete.
    """
    from mindstream.cli.memory_care import erase

    return erase(settings(data, user), yes, json)
