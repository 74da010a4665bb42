"""Tasks run in worker processes, are repeated if a worker dies, and save when cancelled."""

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

from mindstream.engines import open_engine
from mindstream.errors import RateLimited, SettingsError, WorkerLost


@ENGINES
async def test_tasks_run_in_other_processes_concurrently(ray: bool, tmp_path: Path) -> None:
    async with opened(ray) as engine:
        assert engine.workers == 2
        assert await engine.run(where) != os.getpid()
        met = await asyncio.gather(engine.run(meet, tmp_path, "a", "b"), engine.run(meet, tmp_path, "b", "a"))
        assert list(met) == ["a", "b"]
        with pytest.raises(RateLimited, match="wait a little") as refused:
            await engine.run(refuse)
        assert refused.value.retry_after_s == 7.5


@ENGINES
async def test_paths_are_relative_to_the_working_directory_of_the_caller(
    ray: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(ray) as engine:
        monkeypatch.chdir(tmp_path)
        assert await engine.run(whereabouts) == str(tmp_path)


@ENGINES
async def test_a_task_of_a_killed_worker_is_done_by_another(ray: bool, tmp_path: Path) -> None:
    async with opened(ray) as engine:
        beside = asyncio.ensure_future(engine.run(meet, tmp_path, "a", "b"))
        assert await engine.run(die_once, tmp_path / "died") != os.getpid()
        assert await engine.run(meet, tmp_path, "b", "a") == "b"
        assert await beside == "a"
        assert (tmp_path / "a").read_text() == "begun\n", "the other task is not started again"


@ENGINES
async def test_a_task_that_kills_every_worker_is_given_up(ray: bool) -> None:
    async with opened(ray) as engine:
        with pytest.raises(WorkerLost, match="died in succession"):
            await engine.run(die)
        assert await engine.run(where) != os.getpid(), "the engine still works"


@ENGINES
async def test_a_cancelled_task_saves_and_its_worker_continues(ray: bool, tmp_path: Path) -> None:
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


async def test_a_worker_that_exits_during_a_task_raises_worker_lost() -> None:
    async with opened(False, 1) as engine:
        with pytest.raises(WorkerLost):
            await engine.run(leave)


def begin(folder: Path, code: str, *words: str) -> subprocess.Popen[str]:
    """Start a program from a file, which workers import, too."""
    (folder / "main.py").write_text(code)
    paths = os.pathsep.join(each for each in sys.path if each)
    return subprocess.Popen(
        [sys.executable, str(folder / "main.py"), *words], env={**os.environ, "PYTHONPATH": paths}, cwd=folder,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_workers_save_and_exit_when_their_parent_is_killed(tmp_path: Path) -> None:
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


def test_ctrl_c_does_not_end_a_starting_worker(tmp_path: Path) -> None:
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
def test_a_private_ray_starts_only_the_processes_it_needs(tmp_path: Path) -> None:
    code = (
        "import asyncio, os; from pathlib import Path\n"
        "from doing import die_once, where\n"
        "from mindstream.engines import open_engine\n"
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
    assert "monitor.py" not in out, "neither the autoscaler nor the log monitor is started"
    assert "(raylet)" not in out, "Ray prints nothing about the dead worker"


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://[::1]:1"])
async def test_an_unreachable_cluster_is_reported_at_once(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    errors = SimpleNamespace(RayError=RuntimeError)
    monkeypatch.setitem(sys.modules, "ray", SimpleNamespace(is_initialized=lambda: False, exceptions=errors))
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(SettingsError, match=re.escape(f"Ray is not available ({address})")):
        async with open_engine(True):
            pass


async def test_without_ray_the_error_names_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(SettingsError, match=r"pip install 'mindstream\[ray\]'"):
        async with open_engine(True):
            pass
