"""Tasks are done elsewhere, several at a time; one whose worker dies is done again; one that is stopped saves."""

from __future__ import annotations

import asyncio
import os
import pickle
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from doing import (
    ENGINES,
    bring,
    die,
    die_once,
    leave,
    meet,
    needs_ray,
    opened,
    refuse,
    wait_for,
    where,
    whereabouts,
    work_until_stopped,
)

from mindstream.engines.engine import open_engine
from mindstream.errors import RateLimited, SettingsError, WorkerLost


@ENGINES
async def test_tasks_are_done_elsewhere_several_at_a_time(ray: bool, tmp_path: Path) -> None:
    async with opened(ray) as engine:
        assert engine.workers == 2
        assert await engine.run(where) != os.getpid()
        met = await asyncio.gather(engine.run(meet, tmp_path, "a", "b"), engine.run(meet, tmp_path, "b", "a"))
        assert list(met) == ["a", "b"]
        with pytest.raises(RateLimited, match="wait a little") as refused:
            await engine.run(refuse)
        assert refused.value.retry_after_s == 7.5


@ENGINES
async def test_paths_are_relative_to_the_callers_folder(
    ray: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(ray) as engine:
        monkeypatch.chdir(tmp_path)
        assert await engine.run(whereabouts) == str(tmp_path)


@ENGINES
async def test_a_task_whose_worker_is_killed_is_done_by_another(ray: bool, tmp_path: Path) -> None:
    async with opened(ray) as engine:
        beside = asyncio.ensure_future(engine.run(meet, tmp_path, "a", "b"))
        assert await engine.run(die_once, tmp_path / "died") != os.getpid()
        assert await engine.run(meet, tmp_path, "b", "a") == "b"
        assert await beside == "a"
        assert (tmp_path / "a").read_text() == "begun\n", "its neighbour is not begun again"


@ENGINES
async def test_a_task_at_which_every_worker_dies_is_given_up(ray: bool) -> None:
    async with opened(ray) as engine:
        with pytest.raises(WorkerLost, match="died in succession"):
            await engine.run(die)
        assert await engine.run(where) != os.getpid(), "the engine lives on"


@ENGINES
async def test_a_task_that_is_stopped_saves_and_its_worker_does_the_next(ray: bool, tmp_path: Path) -> None:
    async with opened(ray, 1) as engine:
        task = asyncio.ensure_future(engine.run(work_until_stopped, tmp_path))
        await asyncio.to_thread(wait_for, tmp_path / "begun")
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert (tmp_path / "saved").exists()
        assert await engine.run(where) != os.getpid()


async def test_an_untransferable_result_is_an_error_and_the_worker_survives() -> None:
    async with opened(False, 1) as engine:
        worker = await engine.run(where)
        with pytest.raises((AttributeError, pickle.PicklingError)):
            await engine.run(lambda: where())
        with pytest.raises(TypeError, match="pickle"):
            await engine.run(bring, False)
        with pytest.raises(RuntimeError, match="UnableError: onetwo"):
            await engine.run(bring, True)
        assert await engine.run(where) == worker


async def test_a_task_that_dies_outside_of_python_s_errors_is_not_waited_for() -> None:
    async with opened(False, 1) as engine:
        with pytest.raises(WorkerLost):
            await engine.run(leave)


def begin(folder: Path, code: str, *words: str) -> subprocess.Popen[str]:
    """Begin a program that workers import, too: a file."""
    (folder / "main.py").write_text(code)
    paths = os.pathsep.join(each for each in sys.path if each)
    return subprocess.Popen(
        [sys.executable, str(folder / "main.py"), *words], env={**os.environ, "PYTHONPATH": paths}, cwd=folder,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_workers_save_and_end_when_their_process_is_killed(tmp_path: Path) -> None:
    code = (
        "import asyncio, sys; from pathlib import Path\n"
        "from doing import opened, work_until_stopped\n"
        "async def main():\n"
        "    async with opened(False) as engine: await engine.run(work_until_stopped, Path(sys.argv[1]))\n"
        "if __name__ == '__main__': asyncio.run(main())\n"
    )
    holder = begin(tmp_path, code, str(tmp_path))
    wait_for(tmp_path / "begun")
    os.kill(holder.pid, signal.SIGKILL)
    holder.communicate()
    wait_for(tmp_path / "saved")
    worker = int((tmp_path / "begun").read_text())
    while Path(f"/proc/{worker}/cmdline").exists() and Path(f"/proc/{worker}/cmdline").read_bytes():
        time.sleep(0.02)


def test_ctrl_c_does_not_end_a_worker_that_only_begins(tmp_path: Path) -> None:
    code = (
        "import asyncio, os, signal\n"
        "from doing import opened, where\n"
        "async def main():\n"
        "    async with opened(False) as engine: print(await engine.run(where))\n"
        "if __name__ == '__main__': asyncio.run(main())\n"
        "else: os.kill(os.getpid(), signal.SIGINT)\n"
    )
    program = begin(tmp_path, code)
    out, err = program.communicate()
    assert program.returncode == 0 and int(out) and not err, err


@needs_ray
@pytest.mark.skipif(not Path("/proc/self/task").exists(), reason="who began what is known by /proc")
def test_a_ray_of_its_own_begins_what_is_used_and_no_more(tmp_path: Path) -> None:
    code = (
        "import asyncio, os; from pathlib import Path\n"
        "from doing import die_once, where\n"
        "from mindstream.engines.engine import open_engine\n"
        "async def main():\n"
        "    async with open_engine(True, 1) as engine:\n"
        "        assert await engine.run(die_once, Path('died')) != os.getpid()\n"
        "        assert await engine.run(where) != os.getpid()\n"
        "        for task in Path('/proc/self/task').iterdir():\n"
        "            for child in (task / 'children').read_text().split():\n"
        "                print(Path(f'/proc/{child}/cmdline').read_text().replace('\\0', ' '))\n"
        "asyncio.run(main())\n"
    )
    program = begin(tmp_path, code)
    out, err = program.communicate()
    assert program.returncode == 0, err
    assert "raylet" in out and "gcs_server" in out
    assert "monitor.py" not in out, "neither who scales a cluster nor who reads logs"
    assert "(raylet)" not in out, "nor does Ray speak among our results, of the worker that died"


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://[::1]:1"])
async def test_a_cluster_that_is_not_there_is_said_at_once(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    errors = SimpleNamespace(RayError=RuntimeError)
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(is_initialized=lambda: False, exceptions=errors))
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(SettingsError, match=re.escape(f"Ray is not available ({address})")):
        async with open_engine(True):
            pass


async def test_without_ray_it_is_said_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SettingsError, match=r"pip install 'mindstream\[ray\]'"):
        async with open_engine(True):
            pass
