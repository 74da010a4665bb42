"""A talk as one HTML file: what was said, what the mind made of it, and why, at each moment."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mindstream.errors import InputError
from mindstream.studio.saved_studio import Data, Reading, Saved

KINDS = (
    "opened",
    "heard",
    "waiting",
    "said",
    "follow_up",
    "left_unsaid",
    "thought",
    "set_aside",
    "believed",
    "belief_changed",
    "plan_made",
    "tool_called",
    "observed",
    "model_called",
    "decided",
    "judged",
    "alarmed",
    "error",
)
"""Kinds of rows that a talk is made of, as the page has them (pages/talk/shapes.js)."""
HELD = ("belief_changed", "plan_made")
RECALLED = {"k": 5, "kinds": ["note", "thought", "observation", "document", "chat"], "touch": False}
"""How the page asks what words bring to mind (pages/talk/why_answered.js)."""


async def save_talk(reading: Reading, session: str, *, with_calls: bool = False) -> Saved:
    """Return a talk as it goes into a file.

    What is believed and planned goes with it from the beginning, with the thoughts that it came of; of other talks no
    word that was said, and nothing that was recalled from them, unless the calls go with it, which hold all that.

    Args:
        session: which one.
        with_calls: with the calls of models, word by word where that is kept.

    Raises:
        InputError: there is no such talk.
    """
    talks = await reading.all_of("minds.sessions", "sessions")
    talk = next((each for each in talks if each["session"] == session), None)
    if talk is None:
        raise InputError(
            f"no talk of {reading.who.user} is called {session!r}: `mindstream memory sessions` lists them"
        )
    rows = rows_of_talk(await reading.all_of("log.rows", "rows", kinds=",".join(KINDS)), session)
    heard = [row for row in rows if row["event"] == "heard"]
    saved = Saved(
        page="talk",
        title=f"A talk of {reading.who.user}",
        link={"talk": session},
        models=[row["model"] for row in rows if row["event"] == "said"],
        answers={reading.path("sessions"): {"sessions": [talk], "next": ""}},
        rows=rows,
    )
    saved.recalls = [await _recall(reading, row, "" if with_calls else session) for row in heard]
    if with_calls:
        await reading.add_calls(saved, [row["seq"] for row in rows if row["event"] == "model_called"])
    return saved


async def _recall(reading: Reading, heard: Data, session: str) -> Data:
    """Recall what words brought to mind, as of then; `session`: from one talk alone."""
    asked = {"query": heard["text"], "as_of": heard["at"]}
    return {**asked, "answer": await reading.ask("memory.recall", **asked, **RECALLED, session=session)}


def rows_of_talk(rows: Sequence[Data], session: str) -> list[Data]:
    """Return the rows of a talk, and those that made what was believed and planned by its end.

    Args:
        rows: of the kinds of a talk, oldest first.
    """
    ours = list(_own(rows, session))
    end = max((row["seq"] for row in ours), default=0)
    before = [row for row in rows if row["seq"] <= end]
    held = [row for row in before if row["event"] in HELD]
    moments = {(row.get("slot", row["by"]), row["at"]) for row in held}
    behind = [row for row in before if row["event"] == "thought" and (row["slot"], row["at"]) in moments]
    together = {row["seq"]: row for row in (*ours, *held, *behind)}
    return [together[seq] for seq in sorted(together)]


def _own(rows: Sequence[Data], session: str) -> Iterator[Data]:
    """Yield the rows of a talk alone, as the page tells them apart (pages/talk/rows.js)."""
    talks: dict[int, str] = {}
    current = ""
    for row in rows:
        if row["event"] == "heard":
            talks[row["seq"]] = row["session"]
        about = [row["answers"]] if row.get("answers") else row.get("about") or []
        about = about if isinstance(about, list) else [about]
        if "session" in row:
            current = row["session"]
        elif about:
            current = talks.get(about[-1], "")
        if current == session:
            yield row
