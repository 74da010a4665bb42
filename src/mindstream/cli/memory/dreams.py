"""`mindstream memory dreams`: sentences of dreams next to their sources, for a reader to compare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Annotated

from mindstream import chance
from mindstream.cli.shell.flags import AsJson, command, flag, group
from mindstream.cli.shell.output import say, short, tell
from mindstream.clock import format_iso
from mindstream.memory.store.record import Record
from mindstream.service.calling import open_user_memory
from mindstream.settings import Settings
from mindstream.text.words import sentences

app = group()
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
    n: Annotated[int, flag("N", "Number of sentences.", "-n", min=1, max=10_000)] = 20,
    seed: Annotated[int, flag("N", "Seed of the random sample.", "--seed")] = 0,
    json: AsJson = False,
) -> None:
    """Show a random sample of sentences from dreams, each with its sources, to check that the sources support it.

    Archived dreams are included.
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
