"""A passage as its paragraphs and items of lists, each with the headings that it stands under."""

from __future__ import annotations

from collections.abc import Iterator

from mindstream.text.headings import UNDERLINE, find_headings, open_headings


def read_sections(text: str) -> Iterator[tuple[tuple[str, ...], str]]:
    """Yield each paragraph or item on one line, under its headings, the title first."""
    lines = text.splitlines()
    headings = {at: (level, words) for at, level, words in find_headings(lines)}
    above: list[tuple[int, str]] = []
    held: list[str] = []
    for at, line in enumerate([*lines, ""]):
        words = line.strip()
        if held and (at in headings or words[:1] in ("-", "*", ">", "|", "")):
            yield tuple(each for _, each in above), " ".join(" ".join(held).split()).lstrip("-*> ")
            held = []
        if at in headings:
            above = open_headings(above, *headings[at])
        elif words and not UNDERLINE.match(words):
            held.append(words)
