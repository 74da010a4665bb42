"""Twenty short dialogues, each held twice with one model: by a talker with reasoners, and by a single agent.

    python benchmarks/dialogues.py --model NAME --out FILE [--first N] [--last N]      hold them, resumably
    python benchmarks/dialogues.py --blind FILE [FILE …] --out FOLDER [--seed N]       pairs for a judge, and the key

The utterances are fixed (benchmarks/dialogues.txt); the model, whoever it is, answers for both.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from pathlib import Path

from keys import key_of
from single_agent import Agent

from mindstream import Coach, Mind, Models, Timeouts, chance
from mindstream.coach.packs.load import load
from mindstream.log.events import FollowUp, Said

UTTERANCES = Path(__file__).with_name("dialogues.txt")


def dialogues() -> list[list[str]]:
    """Read the dialogues: one utterance a line, an empty line between two of them."""
    blocks = UTTERANCES.read_text("utf-8").strip().split("\n\n")
    return [block.splitlines() for block in blocks]


async def by_two(models: Models, utterances: list[str], gate: str) -> list[tuple[str, str]]:
    """Hold a dialogue with a talker and its reasoners; what follows up is part of the answer."""
    lines: list[tuple[str, str]] = []
    with tempfile.TemporaryDirectory() as folder:
        timeouts = Timeouts(deadline_s=1_800, thinking_s=1_800)
        async with Mind.open(
            folder, user="judge", session="s", models=models, responder=Coach.using(gate=gate), timeouts=timeouts
        ) as mind:
            for text in utterances:
                heard, *_ = [row.seq async for row in mind.hear(text)]
                await mind.settled()
                rows = await mind.memory.store.events(key_of("judge"), after=heard)
                said = [row.event.text for row in rows if isinstance(row.event, Said | FollowUp)]
                lines.append((text, "\n".join(said)))
    return lines


async def by_one(models: Models, utterances: list[str], _gate: str) -> list[tuple[str, str]]:
    """Hold a dialogue with one agent that reasons before it speaks."""
    agent = Agent(models.of("agent"), load("sleep"))
    return [(text, await agent.hear(text)) for text in utterances]


def held_already(out: Path) -> set[tuple[int, str]]:
    """Say which dialogues are in the file, and held in which way."""
    rows = map(json.loads, out.read_text("utf-8").splitlines()) if out.exists() else ()
    return {(row["n"], row["way"]) for row in rows}


async def hold(model: str, out: Path, first: int, last: int, ways: list[str], gate: str) -> None:
    """Hold the dialogues that are not in the file yet, in both ways."""
    done = held_already(out)
    async with Models.named({"default": model}, patience_s=1_800) as models:
        for n, utterances in list(enumerate(dialogues(), 1))[first - 1 : last]:
            for way, held in (("two", by_two), ("one", by_one)):
                if way in ways and (n, way) not in done:
                    lines = await held(models, utterances, gate)
                    keep(out, {"n": n, "way": way, "lines": lines})
                    print(f"dialogue {n} {way}: {len(lines)} turns", flush=True)


def keep(out: Path, row: dict[str, object]) -> None:
    """Add a dialogue to the file."""
    with out.open("a", encoding="utf-8") as file:
        file.write(json.dumps(row, ensure_ascii=False) + "\n")


def blind(files: list[Path], out: Path, seed: int) -> None:
    """Write each pair as A and B in an order that only the key knows."""
    held = [json.loads(line) for file in files for line in file.read_text("utf-8").splitlines()]
    out.mkdir(parents=True, exist_ok=True)
    key = {}
    for n in sorted({row["n"] for row in held}):
        ways = {row["way"]: row["lines"] for row in held if row["n"] == n}
        if len(ways) == 2:
            order = ["two", "one"] if chance.fraction(seed, n) < 0.5 else ["one", "two"]
            key[n] = dict(zip("AB", order, strict=True))
            pages = [
                f"## {name}\n\n" + "\n\n".join(f"USER: {u}\n\nCOACH: {c}" for u, c in ways[way])
                for name, way in key[n].items()
            ]
            (out / f"{n:02}.md").write_text("\n\n".join(pages), "utf-8")
    (out.parent / f"{out.name}.key.json").write_text(json.dumps(key), "utf-8")


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="rules", help="who answers, for both ways")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--last", type=int, default=1_000)
    parser.add_argument(
        "--ways", nargs="*", default=["two", "one"], help="two: talker and reasoners; one: a single agent"
    )
    parser.add_argument("--gate", default="belief", help="belief or talker")
    parser.add_argument("--blind", type=Path, nargs="*")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.blind:
        blind(given.blind, given.out, given.seed)
    else:
        asyncio.run(hold(given.model, given.out, given.first, given.last, given.ways, given.gate))


if __name__ == "__main__":
    main()
