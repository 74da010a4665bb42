"""Estimate the resources for many users: measured cost of one utterance, times the number of utterances.

    python benchmarks/scale_paper.py [--users 10000000] [--active .1] [--utterances 6] [--tokens 4000] [--json]

Measured: minds of the coach on a PostgreSQL server from the wheel, without a model (the rule-based default writes texts
of the same length as models): rows, bytes in tables and indexes, bytes of the write-ahead log, transactions and CPU
time per utterance, and the time to open an existing mind. Assumed: tokens per turn (docs/talker-reasoner.md) and the
users' behaviour. Peak: four times the mean.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import statistics
import time
from typing import Any

import psycopg
import scale_texts
from own_postgres import OwnPostgres

from mindstream import Coach, Mind

MINDS, SAID, PEAK, DAY_S, DAYS = 20, 25, 4, 86_400, 365


def standing(url: str) -> dict[str, float]:
    """Return the size and the counters of the database."""
    with psycopg.connect(url) as connection:
        connection.execute("SET mindstream.tenant = ''")
        rows = connection.execute(
            "SELECT (SELECT count(*) FROM log), (SELECT count(*) FROM records),"
            " (SELECT sum(pg_total_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relowner ="
            " (SELECT oid FROM pg_roles WHERE rolname = current_user)),"
            " pg_current_wal_lsn() - '0/0'::pg_lsn,"
            " (SELECT xact_commit FROM pg_stat_database WHERE datname = current_database())"
        ).fetchone()
    assert rows is not None
    return dict(zip(("log_rows", "records", "bytes", "wal_bytes", "transactions"), map(float, rows), strict=True))


async def talk(url: str, user: str, said: list[str]) -> float:
    """Send all utterances to a user's mind; return the seconds to open it."""
    began = time.perf_counter()
    async with Mind.open(url, user=user, responder=Coach.using(pack="sleep")) as mind:
        opened = time.perf_counter() - began
        for text in said:
            await mind.send(text)
        await mind.settled()
    return opened


async def measured() -> dict[str, float]:
    """Measure the cost of an utterance."""
    server = OwnPostgres()
    try:
        said = scale_texts.questions(2 * SAID, seed=5)
        await asyncio.gather(*(talk(server.url, f"user{n}", said[:5]) for n in range(MINDS)))  # warm-up
        await asyncio.sleep(1.5)  # the server updates its counters with a delay of a second
        before, cpu = standing(server.url), time.process_time()
        opened = [await talk(server.url, f"user{n}", said[5 : 5 + SAID]) for n in range(MINDS)]
        cpu = time.process_time() - cpu
        await asyncio.sleep(1.5)
        after = standing(server.url)
    finally:
        server.close()
    each = {name: (after[name] - before[name]) / (MINDS * SAID) for name in before}
    return each | {"cpu_ms": cpu * 1000 / (MINDS * SAID), "open_ms": statistics.median(opened) * 1000}


def on_paper(one: dict[str, float], users: float, active: float, utterances: float, tokens: float) -> dict[str, float]:
    """Return the estimate for many users."""
    a_day = users * active * utterances
    peak = a_day / DAY_S * PEAK
    return {
        "utterances_a_day": a_day,
        "utterances_a_second_at_peak": peak,
        "transactions_a_second_at_peak": peak * one["transactions"],
        "wal_mb_a_second_at_peak": peak * one["wal_bytes"] / 1e6,
        "cores_at_peak": peak * one["cpu_ms"] / 1000,
        "rows_a_year": a_day * DAYS * (one["log_rows"] + one["records"]),
        "tb_a_year": a_day * DAYS * one["bytes"] / 1e12,
        "tokens_a_day": a_day * tokens,
    }


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--users", type=float, default=1e7)
    parser.add_argument("--active", type=float, default=0.1, help="share of users who are active on a day")
    parser.add_argument("--utterances", type=float, default=6, help="utterances per active user and day")
    parser.add_argument("--tokens", type=float, default=4000, help="tokens per turn, including reasoning")
    parser.add_argument("--json", action="store_true")
    args = parser.parse_args()
    one = asyncio.run(measured())
    result: dict[str, Any] = {
        "an_utterance": {name: round(value, 1) for name, value in one.items()},
        "on_paper": {
            name: float(f"{value:.3g}")
            for name, value in on_paper(one, args.users, args.active, args.utterances, args.tokens).items()
        },
    }
    if args.json:
        print(json.dumps(result, indent=1))
        return
    for part, figures in result.items():
        print(part.replace("_", " "))
        for name, value in figures.items():
            print(f"  {name.replace('_', ' '):32} {value:>18,g}")


if __name__ == "__main__":
    main()
