"""`make soak`: eight processes write to one stream and recall from it for a minute."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from keys import key_of

from mindstream import SqliteStore

SOAKING = Path(__file__).with_name("soaking.py")
PROCESSES, SECONDS = 8, float(os.environ.get("SOAK_S", "60"))


def run(folder: Path) -> list[dict[str, Any]]:
    """Start all processes, let them begin together, and return the results of each."""
    processes = [
        subprocess.Popen(
            [sys.executable, str(SOAKING), str(folder), f"p{n}", str(SECONDS)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for n in range(PROCESSES)
    ]  # fmt: skip
    for process in processes:
        assert process.stdout
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    noted = [json.loads(process.communicate(timeout=SECONDS + 120)[0]) for process in processes]
    assert [process.returncode for process in processes] == [0] * PROCESSES
    return noted


@pytest.mark.soak
async def test_eight_processes_lose_no_write_and_see_each_others_writes(folder: Path) -> None:
    store = SqliteStore(folder)
    await store.close()
    noted = run(folder)
    acked = {id_: at for each in noted for id_, at in each["acked"].items()}
    stopped = min(each["stopped"] for each in noted) - 1
    store = SqliteStore(folder)
    records = (await store.changes(key_of("ann"), 0)).records
    assert sorted(record.id for record in records) == sorted(acked)
    assert len({(record.kind, record.text) for record in records}) == len(records)
    assert all(record.forgotten is None and record.level in (0, 1) for record in records)
    assert max(record.accessed for record in records) > max(record.created for record in records) - SECONDS / 2
    waits: list[float] = []
    missed = 0
    for each in noted:
        others = {id_: at for id_, at in acked.items() if id_ not in each["acked"] and at < stopped}
        assert others.keys() <= each["seen"].keys(), "a record of another process was never seen"
        waits += [each["seen"][id_][0] - at for id_, at in others.items()]
        missed += sum(each["seen"][id_][1] > at for id_, at in others.items())
    took = [seconds for each in noted for seconds in each["took"]]
    print(f"\n{len(acked):,} records by {PROCESSES} processes in {SECONDS:.0f} s on {os.cpu_count()} cores")
    print(f"a write took {told(took)}; looks every 20 ms saw another's record after {told(waits)}")
    assert missed == 0, "a look that began after the acknowledgement did not see the record"
    await store.close()


def told(seconds: list[float]) -> str:
    steps = statistics.quantiles(seconds, n=100)
    return f"p50 {steps[49] * 1000:.1f}, p99 {steps[98] * 1000:.1f}, max {max(seconds) * 1000:.1f} ms"
