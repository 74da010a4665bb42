"""Read a chat that WhatsApp exported: `_chat.txt` of iOS, `WhatsApp Chat with ….txt` of Android, or its ZIP archive.

A line begins a message if it begins with a date and a time; other lines continue the message. The form of the dates is
that of the telephone's language; whether the day or the month comes first is found out from all dates of the chat.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from itertools import pairwise

from mindstream.clock import Moment
from mindstream.service.importing.items import Item, Tally
from mindstream.service.importing.reading import Source

MARKS = "\u200e\u200f\u202a\u202c\ufeff"
"""Invisible marks. A message that begins with one was written by the telephone, such as a media placeholder."""
LINE = re.compile(
    rf"[{MARKS}]*(\[)?(\d{{1,4}})([./-])(\d{{1,2}})\3(\d{{1,4}})\.?,?\s(\d{{1,2}})[:.](\d{{2}})(?:[:.](\d{{2}}))?"
    r"(?:\s?([ap])\.?\s?m\.?)?(?(1)\]\s?|\s[-–]\s)(.*)",
    re.IGNORECASE | re.DOTALL,
)
EDITED = re.compile(rf"[{MARKS}]<[^<>]*>\s*\Z")
"""The mark after an edited message."""
ORDERS = {"dmy": (2, 1, 0), "mdy": (2, 0, 1), "ymd": (0, 1, 2)}
"""For each order of a date: the indexes of year, month and day among its three numbers."""


def read(source: Source, tally: Tally) -> Iterator[Item]:
    """Yield the messages in the order of the file; notices, media and lines before the first message are counted as
    lost."""
    found: list[tuple[re.Match[str], list[str]]] = []
    for line in source.text().splitlines():
        if begun := LINE.fullmatch(line):
            found.append((begun, [begun[10]]))
        elif found:
            found[-1][1].append(line)
        elif line.strip(MARKS + " "):
            tally.lose("lines", line, "no message with a date begins before it")
    order = _order([begun for begun, _ in found])
    chat, same = _chat(source.name), Counter[object]()
    for begun, lines in found:
        by, colon, text = "\n".join(lines).partition(": ")
        text = EDITED.sub("", text).strip()
        if not colon or "\n" in by:
            tally.lose("notices", by, "it is not a message of a person")
        elif not text or text.startswith(tuple(MARKS)) or (text.startswith("<") and text.endswith(">")):
            tally.lose("media", text, "only texts are read")
        else:
            by, at = by.strip(MARKS + "~\u202f "), _moment(begun, order)
            same[at, by, text] += 1
            id_ = f"{at} {by} {same[at, by, text]} {text}"
            yield Item(text=text, source_id=id_, kind="observation", created=at, by=by, episode=chat)


def _chat(name: str) -> str:
    """Return the name of the chat: the name of its file, or of the file's folder if the file is `_chat.txt`."""
    parts = [part.rpartition(".")[0] or part for part in name.replace("\\", "/").split("/")]
    return next((part for part in reversed(parts) if part not in ("", "_chat")), "WhatsApp")


def _order(stamps: Sequence[re.Match[str]]) -> str:
    """Return the order of day, month and year in the dates.

    If the first date begins with four digits, the order is "ymd". Otherwise it is "dmy" or "mdy", decided by the first
    of these rules that distinguishes the two:

    - the order with which more dates are valid,
    - the order with which fewer dates are earlier than the date before them,
    - "mdy" if any date has slashes and a time with AM or PM, else "dmy".
    """
    if stamps and len(stamps[0][2]) == 4:
        return "ymd"
    is_american = any(each[3] == "/" and each[9] for each in stamps)

    def faults(order: str) -> tuple[int, int]:
        times = [_moment(each, order) for each in stamps]
        valid = [each for each in times if each is not None]
        return len(times) - len(valid), sum(later < earlier for earlier, later in pairwise(valid))

    return min(("mdy", "dmy") if is_american else ("dmy", "mdy"), key=faults)


def _moment(stamp: re.Match[str], order: str) -> Moment | None:
    """Return the time of a message, read as UTC; None if the date does not exist."""
    parts = [int(stamp[place]) for place in (2, 4, 5)]
    year, month, day = (parts[place] for place in ORDERS[order])
    hour = int(stamp[6])
    if stamp[9]:
        hour = hour % 12 + 12 * (stamp[9].lower() == "p")
    try:
        year += 2000 if year < 100 else 0
        return datetime(year, month, day, hour, int(stamp[7]), int(stamp[8] or 0), tzinfo=UTC).timestamp()
    except ValueError:
        return None
