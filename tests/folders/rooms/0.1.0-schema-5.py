"""Make a data folder with data of each package, and a town.

    cd CHECKOUT; PYTHONPATH=$PWD/src TZ=UTC python …/tests/folders/rooms/0.1.0-schema-5.py

Writes 0.1.0-schema-5.tar.gz next to this file: `people`, where users talk, solve, live and share, and `town`. CHECKOUT
has the folder's version (f9b4dfe): its tests/recordings contain the language model's replies to its prompts. Later
versions get a file of their own; this one is never remade.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
ROOT = Path.cwd()
"""The checkout whose code is imported; its recordings are played."""
sys.path += [str(ROOT / "tests" / "folders"), str(ROOT / "tests" / "town")]

from hamlet import hamlet  # noqa: E402
from make import remember  # noqa: E402

from mindstream import Mind, Models  # noqa: E402
from mindstream.models.model import Part, Piece, Request, Usage  # noqa: E402
from mindstream.models.recording import Playback  # noqa: E402
from mindstream.models.rules import Rules  # noqa: E402
from mindstream.town.town import Town  # noqa: E402

RECORDINGS = ROOT / "tests" / "recordings"
ALARMING = [
    "I can't sleep, my neighbours are loud.", "Some nights I wish I would not wake up.", "hello again",
    "The noise machine helped.", "I am going to kill myself tonight.",
]  # fmt: skip
RUBRIC = """domain = "Short answers to learners who mix up two words"
threshold = 60

[[criteria]]
name = "Decision rule"
asks = "Does it give one short question by which the learner decides?"
points = 50

[[criteria]]
name = "Practice"
asks = "Does it end with something to try?"
points = 30

[[criteria]]
name = "Use to the other agents"
asks = "Would it help those who answer learners of another language?"
points = 20
others = true
"""
PAIRS = [
    ("What is the difference between ser and estar?", "Ser says what something is, estar how it is just now. Try it."),
    ("Do I say ins Kino or im Kino?", "Where to? Ins Kino. Where? Im Kino. Try it: the cat jumps … Bett?"),
    ("When is it c'est and when il est?", "C'est comes before a noun with its article, il est before an adjective."),
]


class Babbling:
    """A model whose replies are of no use."""

    name = "babbling"

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        yield Piece("hm")
        yield Usage(1, 1)


def command(folder: Path, *words: str | Path, said: str = "", codes: tuple[int, ...] = (0,)) -> str:
    """Run a command on a data folder; return its output."""
    whole = [sys.executable, "-m", "mindstream.cli", *map(str, words), "--data", str(folder)]
    done = subprocess.run(whole, input=said, text=True, capture_output=True)
    assert done.returncode in codes, (whole, done.returncode, done.stdout, done.stderr)
    return done.stdout


async def talk_with_a_mind(folder: Path) -> None:
    """Let ann talk for twenty turns with a language mind: belief, facts, plan, tools, feedback, an injection."""
    utterances = (RECORDINGS / "sleep_twenty_turns.txt").read_text("utf-8").splitlines()
    recorded = Models.named({"default": f"playback:{RECORDINGS / 'sleep_twenty_turns.jsonl'}"})
    async with recorded, Mind.open(folder, user="ann", session="door", models=recorded, gate="belief") as mind:
        for utterance in utterances:
            await mind.say(utterance)
            await mind.settled()


def solve(folder: Path, scratch: Path) -> None:
    """Solve with and without a language model, and plan a task that is never finished."""
    runs = [json.loads(line) for line in (RECORDINGS / "planning.jsonl").read_text("utf-8").splitlines()]
    recording = scratch / "planning.jsonl"
    recording.write_text("".join(json.dumps(line) + "\n" for line in runs if line["run"] == 0), "utf-8")
    seed = "What is the hometown of the winner of the men's 2024 Australian Open?"
    docs = ("--docs", str(ROOT / "examples" / "documents"), "--user", "dora")
    command(folder, "solve", seed, *docs, "--tools", "calculator,llm", "--model", f"playback:{recording}")
    command(folder, "solve", "17.5% of 2480", *docs)
    command(folder, "solve", seed, *docs, "--tool-calls", "0", codes=(0, 1))


def live(folder: Path) -> None:
    """Live a few turns by rules, with a standing order, and pause."""
    docs = ROOT / "examples" / "a_month" / "documents"
    goal = "Write a brief with sources on the ferry Marta: who built her, why she stopped running"
    orders = ("--every", "day at 8: ask me how I slept")
    command(folder, "live", "--goal", goal, "--docs", docs, *orders, "--turns", "4", "--user", "emil", codes=(0, 1))
    command(folder, "life", "say", "Leave the older reports aside.", "--user", "emil")
    command(folder, "life", "add", "Compare both reports", "--user", "emil")
    command(folder, "life", "pause", "lunch", "--user", "emil")


def share(folder: Path, scratch: Path) -> None:
    """Make a pool with a rubric, seeds, offers and a reader's grant."""
    rubric, pairs = scratch / "rubric.toml", scratch / "pairs.jsonl"
    rubric.write_text(RUBRIC, "utf-8")
    pairs.write_text("".join(json.dumps(_pair(*pair)) + "\n" for pair in PAIRS[1:]), "utf-8")
    command(folder, "pool", "create", "tongues", "--domain", "mixed-up words", "--user", "olga")
    command(folder, "pool", "rubric", "tongues", "--freeze", rubric, "--user", "olga")
    query, answer = PAIRS[0]
    command(folder, "pool", "add", "tongues", "--query", query, "--answer", answer, "--user", "olga")
    offered = ("--writer", "ann", "--user", "ann")
    command(folder, "pool", "add", "tongues", "--file", pairs, *offered, codes=(0, 1))
    command(folder, "pool", "grant", "tongues", "olga", "--user", "ann")


def _pair(query: str, answer: str) -> dict[str, Any]:
    return {"messages": [{"role": "user", "content": query}, {"role": "assistant", "content": answer}]}


async def inhabit(folder: Path) -> None:
    """Let three residents live a morning with a language mind, and two hours more with one that says nothing to use."""
    story: dict[str, Any] = json.loads((RECORDINGS / "town.json").read_text("utf-8"))
    models = Models(Playback(RECORDINGS / "town.jsonl", strict=True), {"importance": Rules()})
    async with Town.open(folder, hamlet(**story["profile"]), models=models) as town:
        await town.run(until=town.setting.step_at(0, story["leaks_at"]))
        await town.set_object(story["leaks"], "leaking")
        await town.run(until=town.setting.step_at(0, story["until"]))
    async with Town.open(folder, models=Models(Babbling(), {"importance": Rules()})) as town:
        await town.run(until=town.setting.step_at(0, 11 * 60 + 30))


def make(name: str, into: Path) -> Path:
    """Make both folders and pack them."""
    with tempfile.TemporaryDirectory() as place:
        scratch = Path(place)
        people, town = scratch / "people", scratch / "town"
        asyncio.run(talk_with_a_mind(people))
        command(people, "chat", "--user", "bob", "--session", "night", "--gate", "learned", said="\n".join(ALARMING))
        asyncio.run(remember(people))
        solve(people, scratch)
        live(people)
        share(people, scratch)
        asyncio.run(inhabit(town))
        packed = into / f"{name}.tar.gz"
        with tarfile.open(packed, "w:gz", compresslevel=9) as tar:
            for folder in (people, town):
                with contextlib.closing(sqlite3.connect(folder / "mindstream.db")) as connection:
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                    connection.execute("VACUUM")
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                for path in sorted(folder.rglob("*")):
                    if path.is_file() and not path.name.endswith(("-wal", "-shm")):
                        tar.add(path, f"{folder.name}/{path.relative_to(folder)}")
    return packed


if __name__ == "__main__":
    made = make(Path(__file__).stem, HERE)
    print(f"{made}: {made.stat().st_size / 1000:.0f} kB")
