"""Many processes admit to a learning pool, and one is killed: nothing is lost, and versions stay linear."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from pools import city_pool

from mindstream.sharing.admission import Pair, lay_in
from mindstream.sharing.learning import LEAST, PoolLearner
from mindstream.sharing.pool import Pool
from mindstream.sharing.ranking import Retriever

ANOTHER = Path(__file__).with_name("learning_process.py")
PROCESSES, EACH = 3, 4


def begin(folder: Path, writer: str) -> subprocess.Popen[str]:
    command = [sys.executable, str(ANOTHER), str(folder), writer, str(EACH)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


@pytest.mark.slow
async def test_versions_are_linear_and_cover_each_admission_once(folder: Path) -> None:
    async with city_pool(folder) as pool:
        pool.retriever = Retriever()
        laid = [Pair(f"Write a toast to thing {at}", f"Here is to {at}, and to you.") for at in range(LEAST)]
        await lay_in(pool, laid, "olga")
        others = [begin(folder, f"w{n}") for n in range(PROCESSES)]
        for each in others:
            assert each.stdout and each.stdout.readline() == "ready\n"
        for each in others:
            assert each.stdin
            each.stdin.write("\n")
            each.stdin.flush()
        assert others[0].stdout
        told = [others[0].stdout.readline().strip(), others[0].stdout.readline().strip()]
        others[0].kill()
        for each in others:
            out, _ = each.communicate(timeout=120)
            told += out.splitlines()
    async with Pool.open(folder, "cities") as pool:
        state = await pool.state()
        for id_ in told[:2] + [each for each in told if len(each) == len(told[0])]:
            assert state.standings[id_].judged, "acknowledged offers are stored"
        assert isinstance(pool.retriever, PoolLearner)
        if state.admitted > state.covered:  # the killed process made the last admission
            await pool.retriever.train("olga")
        state = await pool.state()
        rows = state.versions
        assert [each.number for each in rows] == list(range(1, len(rows) + 1))
        assert [each.parent for each in rows] == list(range(len(rows)))
        assert [each.after for each in rows] == [0, *(each.upto for each in rows[:-1])]
        admitted = [id_ for id_, each in state.standings.items() if each.verdict and each.verdict.verdict == "admitted"]
        assert all(state.covering(id_) for id_ in admitted) and len(admitted) >= LEAST + len(told)
