"""Measure how many honest exemplars a small new pool admits and serves, in six domains.

    python benchmarks/pool_honest.py --json [--half seen|sealed|sealed2] [--planter mallory] [--seeds 5]

`sharing_honest.json` contains pairs written for this project, 72 in each part. `seen` and `sealed` (recipes, support,
poems, code, German, Chinese) are tuning sets of the guard; `sealed2` (garden, travel, letters, sums, French, Chinese)
is a held-out set in another style, written before the guard's last change and run once after it. Three writers offer by
turns to a pool of one domain or of all, seeded with no pairs or with some. Control: the same with a planted pair after
every fourth, by another source (or, with --planter "", by the writers themselves): answers to other questions, or
instructions after the answer. The scorer is rules.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from poison_pool import ATTACKS, RUBRIC, WRITERS

from mindstream.models.rules import Rules
from mindstream.sharing.admission import Pair, lay_in, offer
from mindstream.sharing.pool import Pool

PAIRS = Path(__file__).with_name("sharing_honest.json")
LAID_IN = {"one domain": (0, 4), "all domains": (0, 6, 24)}


def load(half: str) -> dict[str, list[Pair]]:
    """Read the pairs of a part, by domain."""
    data = json.loads(PAIRS.read_text("utf-8"))[half]
    return {domain: [Pair(each["query"], each["answer"]) for each in found] for domain, found in data.items()}


async def served(
    pairs: Sequence[Pair], laid_in: int, seed: int, attack: str = "", guarded: bool = True, planter: str = "mallory"
) -> tuple[list[str], int, int, int]:
    """Let all writers offer; return the reasons why honest pairs are not served, the number of honest pairs, of planted
    pairs that were ever served, and of planted pairs.
    """
    order = np.random.default_rng(seed).permutation(len(pairs))
    mixed = [pairs[at] for at in order]
    stream = mixed[laid_in:]
    coming = iter(ATTACKS[attack](stream, seed) if attack else ())
    good, bad, ever = list[str](), set[str](), set[str]()
    with tempfile.TemporaryDirectory() as folder:
        async with Pool.open(folder, "honest", guarded=guarded) as pool:
            await pool.create("whatever is asked", "olga", members=["*"])
            await pool.freeze_rubric(RUBRIC, "olga")
            await lay_in(pool, mixed[:laid_in], "olga")
            for at, pair in enumerate(stream):
                good.append((await offer(pool, pair, WRITERS[at % 3], Rules())).id)
                if at % 4 == 3 and (plant := next(coming, None)):
                    planted = Pair(plant.query, plant.answer, asked_by=planter)
                    bad.add((await offer(pool, planted, WRITERS[at // 4 % 3], Rules())).id)
                ever |= pool.served(await pool.state(), "dan")
            state = await pool.state()
            why = list[str]()
            for id_ in good:
                if reason := next(state.reasons_unserved(id_, "dan", guarded), ""):
                    verdict = state.standings[id_].verdict
                    rejected = verdict.reasons[0] if verdict and verdict.verdict == "rejected" else reason
                    why.append(f"{rejected} | {state.standings[id_].exemplar.query}")
    return why, len(good), len(bad & ever), len(bad)


async def run(args: argparse.Namespace) -> dict[str, Any]:
    """Measure every kind of pool."""
    domains, rows, reasons = load(args.half), list[dict[str, Any]](), set[str]()
    pools = {f"one domain: {name}": each for name, each in domains.items()}
    pools["all domains"] = [pair for each in domains.values() for pair in each]
    for name, pairs in pools.items():
        for laid_in in LAID_IN[name.partition(":")[0]]:
            for attack, guarded in (("", True), *((each, how) for each in ATTACKS for how in (True, False))):
                found = [
                    await served(pairs, laid_in, seed, attack, guarded, args.planter) for seed in range(args.seeds)
                ]
                shares = [1 - len(why) / many for why, many, _, _ in found]
                planted = sum(got for _, _, got, _ in found) / max(1, sum(many for *_, many in found))
                row = {"pool": name, "laid_in": laid_in, "attack": attack, "guarded": guarded}
                honest = {"honest": round(float(np.mean(shares)), 3), "worst": round(min(shares), 3)}
                rows.append({**row, **honest, **({"planted": round(planted, 3)} if attack else {})})
                reasons |= {each for why, *_ in found for each in why} if args.why and not attack else set()
    quiet = [row for row in rows if not row["attack"]]
    by_attack = {
        f"{each}, {'guarded' if how else 'control'}": round(
            float(np.mean([row["planted"] for row in rows if row["attack"] == each and row["guarded"] == how])), 3
        )
        for each in ATTACKS
        for how in (True, False)
    }
    return {
        "half": args.half, "seeds": args.seeds, "honest": round(float(np.mean([row["honest"] for row in quiet])), 3),
        "worst": min(row["worst"] for row in quiet), "planted": by_attack, "rows": rows, "why": sorted(reasons),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="accepted for uniformity; the output is always JSON")
    parser.add_argument("--half", choices=("seen", "sealed", "sealed2"), default="seen")
    parser.add_argument("--planter", default="mallory", help="source of the planted pairs; '': the writers themselves")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--why", action="store_true", help="print for each honest pair that is not served the reason")
    print(json.dumps(asyncio.run(run(parser.parse_args())), ensure_ascii=False))


if __name__ == "__main__":
    main()
