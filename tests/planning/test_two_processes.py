"""Two living processes on one run: one continues, the other gets an error with the holder, and no call is repeated."""

from __future__ import annotations

import asyncio
import sys
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path

import kill_run
import pytest
from kill_run import WAYS, last_words, run
from killed import FORK

from mindstream.errors import Conflict
from mindstream.planning.planner import Strategy


def work(folder: Path, how: Strategy, told: Connection) -> None:
    kill_run.LEASE_S = 60.0  # both processes are alive, so that no lease may run out on a busy machine
    try:
        asyncio.run(run(folder, how, told.send))
    except Conflict as error:
        told.send(str(error))


@pytest.mark.skipif(sys.platform != "linux", reason="processes are forked")
@pytest.mark.parametrize("how", WAYS)
def test_two_processes_repeat_no_call(how: Strategy, tmp_path: Path) -> None:
    started = []
    for _ in range(2):
        ours, theirs = FORK.Pipe(duplex=False)
        process = FORK.Process(target=work, args=(tmp_path, how, theirs))
        process.start()
        theirs.close()
        started.append((process, ours))
    for _, told in started:
        assert told.recv() == "began"
    words = sorted(last_words(*each) for each in started)
    lines = Counter((tmp_path / "plain").read_text().splitlines())
    assert set(lines.values()) == {1}, lines
    assert words[0] == "answer done"
    assert words[1] == "answer done" or "is running the run 'killed'" in words[1]
