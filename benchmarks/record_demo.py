"""Record a demonstration for `mindstream demo`: the log of a real conversation, or a part of an existing log.

    python benchmarks/record_demo.py coach --model http://127.0.0.1:8000/v1#mind --who "A language mind"
    python benchmarks/record_demo.py life --from DATA --user museum --rows 1-70 --who "A language mind" --on 2026-11-22

The first form opens a new memory, sends the user's messages of the present recording (or each line of --said FILE),
waits for all reasoning, and writes the log into the recordings of mindstream-studio. The second form copies rows of an
existing data folder: create them with `mindstream solve`, `live`, `town run` or `pool`, with the model. A recording
contains events, so it need be repeated only if answers have become better, not if a prompt has changed. --untimed: the
durations are those of a person who answered by hand, and are not shown.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path

from keys import key_of
from mindstream_studio.commands.demo import FOLDER, ORDER, Demo, Head, load_demo
from mindstream_town.events import TownBegan

from mindstream import Coach
from mindstream.clock import SystemClock
from mindstream.identifiers import StreamName
from mindstream.log.events import Heard, Logged, Said
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.minds.mind import Mind
from mindstream.minds.responder import Timeouts
from mindstream.models.roles import Models

PATIENT_S = 3_600.0
TALK = (
    "heard", "waiting", "said", "thought", "belief_changed", "plan_made", "tool_called", "observed", "remembered",
    "follow_up", "alarmed",
)  # fmt: skip
KINDS: dict[str, tuple[str, ...]] = {
    "coach": TALK,
    "plan": ("solving", "run_planned", "step_began", "step_found", "answer_missing", "plan_kept", "solved"),
    "life": (
        "life_began", "task_changed", "turn_began", "turn_ended", "replied", "tool_called", "observed", "questioned",
        "answered", "heard", "folded", "rested", "leave_asked", "leave_given",
    ),
    "town": ("day_planned", "resident_acted", "residents_talked", "object_changed", "reflected"),
    "pool": ("pool_created", "rubric_frozen", "heard", "said", "exemplar_offered", "exemplar_judged"),
}  # fmt: skip
"""Kinds of events to keep for each demonstration; all others are left out."""


async def talk(models: dict[str, str], said: list[str], gate: str) -> list[Logged]:
    """Send these lines to a new mind, one after the other; return its log."""
    slow = Timeouts(PATIENT_S, PATIENT_S, PATIENT_S, PATIENT_S)
    named = Models.named(models, patience_s=PATIENT_S)
    with tempfile.TemporaryDirectory() as folder:
        opened = Mind.open(
            folder, user="you", session="demo", model=named, responder=Coach.using(gate=gate), timeouts=slow
        )
        async with named, opened as mind:
            for line in said:
                said_back = [row.event.text async for row in mind.hear(line) if isinstance(row.event, Said)]
                print(f"you: {line}\n{mind.responder.title}: {' '.join(said_back)}", flush=True)
                await mind.settled()
            return await mind.memory.store.events(key_of("you"), limit=100_000)


def write_demo(demo: Demo, path: Path) -> None:
    """Write a recording."""
    lines = [demo.head.model_dump_json(exclude_defaults=True), *_rows(demo.rows)]
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")


def _rows(rows: Iterable[Logged]) -> Iterator[str]:
    for row in rows:
        named, payload = row.event.entry()
        head = {"seq": row.seq, "mind": row.mind, "at": row.at, "by": row.by, "kind": named}
        head |= {"system": True} if row.system else {}
        yield json.dumps({**head, "payload": json.loads(payload)}, ensure_ascii=False)


async def read(folder: Path, user: str | None) -> list[Logged]:
    """Return the log of a user, or of all users, in a data folder."""
    store = SqliteStore(folder)
    try:
        return await store.events(StreamName("user", user).key if user else None, limit=100_000)
    finally:
        await store.close()


def tidy(row: Logged, who: str) -> Logged:
    """Return a row with `who` in place of the model's name, which may contain an address."""
    event = row.event
    if getattr(event, "model", "") not in ("", "rules", "safety"):
        event = event.model_copy(update={"model": who})
    return replace(row, event=event)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("demo", choices=ORDER)
    parser.add_argument("--model", help="the model for all roles")
    parser.add_argument("--role", action="append", default=[], metavar="ROLE=NAME")
    parser.add_argument("--gate", default="belief")
    parser.add_argument("--said", type=Path, help="utterances, one per line [those of the present recording]")
    parser.add_argument("--from", dest="folder", type=Path, help="copy the log of this data folder instead")
    parser.add_argument("--user", help="user whose log is copied [all]")
    parser.add_argument("--rows", default="1-1000000", metavar="A-B", help="rows to copy")
    parser.add_argument("--who", required=True, help="kind of model that answered")
    parser.add_argument("--on", type=date.fromisoformat, help="date of the answers [today]")
    parser.add_argument("--title", help="title of the demonstration [that of the present recording]")
    parser.add_argument("--source", help="the pattern that it shows [as in the present recording]")
    parser.add_argument("--untimed", action="store_true")
    parser.add_argument("--into", type=Path)
    args = parser.parse_args()
    into = args.into or FOLDER / f"{args.demo}.jsonl"
    present = load_demo(args.demo) if (FOLDER / f"{args.demo}.jsonl").exists() else None
    if args.folder:
        rows = asyncio.run(read(args.folder, args.user))
    else:
        told = [row.event.text for row in present.rows if isinstance(row.event, Heard)] if present else []
        said = args.said.read_text("utf-8").splitlines() if args.said else told
        rows = asyncio.run(
            talk({"default": args.model} | dict(each.split("=", 1) for each in args.role), said, args.gate)
        )
    first, last = map(int, args.rows.split("-"))
    kept = [tidy(row, args.who) for row in rows if row.event.kind in KINDS[args.demo] and first <= row.seq <= last]
    began = next((row.event.start for row in rows if isinstance(row.event, TownBegan)), None)
    head = Head(
        demo=args.demo,
        title=args.title or (present.head.title if present else args.demo),
        recorded=args.on or datetime.fromtimestamp(SystemClock().now(), UTC).date(),
        who=args.who,
        source=args.source or (present.head.source if present else ""),
        timed=not args.untimed,
        start=datetime.fromtimestamp(began, UTC).isoformat() if began is not None else "",
    )
    write_demo(Demo(head, tuple(kept)), into)
    print(f"{into}: {len(kept)} rows, {into.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()
