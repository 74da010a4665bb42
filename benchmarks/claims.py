"""Measure commits and work claims by several stores on one PostgreSQL database at the same time.

    python benchmarks/claims.py [--json]

`gathered`: 200 concurrent commits, milliseconds per commit; `single`: the same number one after the other. `claims`:
four stores claim the work of 400 minds, ten at a time, with FOR UPDATE SKIP LOCKED as `mindstream work` does;
`under_lock`: the same while holding the tenant's row lock.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from typing import Any

from mindstream_evals.conformance.samples import THEN, build_event
from own_postgres import OwnPostgres

from mindstream.identifiers import StreamName
from mindstream.log.events import Heard
from mindstream.memory.store.postgres.postgres import PostgresStore
from mindstream.memory.store.sql_store import SqlStore
from mindstream.memory.store.store import Commit, Entry, NewWork

AT_ONCE, SINGLES, MINDS, STORES, PORTION = 200, 50, 400, 4, 10


def build_commit(mind: str, *, heard: bool = False) -> Commit:
    key = StreamName("user", mind).key
    event = Heard(text="hello", session="s", record="r") if heard else build_event()
    wake = NewWork(("sleep",), "nobody", 0.0) if heard else None
    return Commit(mind=key, at=THEN, entries=(Entry(event, mind),), wake=wake)


async def commits(store: PostgresStore) -> tuple[float, float]:
    """Return the milliseconds per commit: concurrent commits, and commits one after the other."""
    await store.commit(build_commit("ann"))
    begun = time.perf_counter()
    await asyncio.gather(*(store.commit(build_commit(f"user{n}")) for n in range(AT_ONCE)))
    gathered = (time.perf_counter() - begun) / AT_ONCE
    begun = time.perf_counter()
    for n in range(SINGLES):
        await store.commit(build_commit(f"user{n}"))
    return gathered * 1000, (time.perf_counter() - begun) / SINGLES * 1000


async def claims(stores: list[PostgresStore], *, skip: bool) -> float:
    """Let all stores claim work until none is left; return the milliseconds per mind."""
    await asyncio.gather(*(stores[0].commit(build_commit(f"user{n}", heard=True)) for n in range(MINDS)))
    taken = 0

    async def take(number: int) -> None:
        nonlocal taken
        while True:
            claim = PostgresStore.take_work if skip else SqlStore.take_work
            found = await claim(stores[number], f"s{number}", 1e9, 1e9 + 60, PORTION, answers=False)
            taken += len(found)
            if not found:
                return

    begun = time.perf_counter()
    await asyncio.gather(*map(take, range(len(stores))))
    took = (time.perf_counter() - begun) / max(1, taken) * 1000
    await stores[0]._database.write(lambda rows: rows.execute("UPDATE work SET done = 1 WHERE done IS NULL"))
    return took


async def run() -> dict[str, Any]:
    """Measure both."""
    postgres = OwnPostgres()
    stores = [PostgresStore(postgres.url) for _ in range(STORES)]
    try:
        gathered, single = await commits(stores[0])
        locked = await claims(stores, skip=False)
        skipped = await claims(stores, skip=True)
    finally:
        for each in stores:
            await each.close()
        postgres.close()
    return {
        "gathered_ms": round(gathered, 2), "single_ms": round(single, 2), "claim_ms": round(skipped, 2),
        "claim_under_lock_ms": round(locked, 2),
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    row = asyncio.run(run())
    print(json.dumps(row) if given.json else "\n".join(f"{name}: {value}" for name, value in row.items()))


if __name__ == "__main__":
    main()
