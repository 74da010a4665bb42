"""Whatever a command finds itself in: it does what was asked for, or says in one sentence why it cannot."""

from __future__ import annotations

import asyncio
import os
import subprocess
from pathlib import Path

import pytest
from running import COMMAND, PATIENCE_S, run_here

from mindstream import ManualClock, SqliteStore, Stream
from mindstream.cli import edge
from mindstream.log.events import Remembered
from mindstream.memory.store import Entry
from mindstream.memory.stream import New
from mindstream.models.embedders.wordllama import WordLlama

WORDS = "The neighbour's dog keeps me awake, 每天晚上."
NOTE = New(text=WORDS, kind="note")


@pytest.fixture(scope="module")
def remembered(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("remembered") / os.fsdecode(b"d\xff")  # a name that is no UTF-8

    async def write() -> None:
        store = SqliteStore(folder)
        async with Stream(store, "you", WordLlama(), ManualClock(1e9)) as stream:
            await stream.commit(Entry(Remembered(count=1, kinds={}), "you", tuple(await stream.build_records([NOTE]))))
        await store.close()

    asyncio.run(write())
    return folder


@pytest.mark.parametrize("columns", ["0", "1", "-1", "wide", "9" * 30])
def test_words_are_shown_however_wide_the_terminal_says_it_is(
    columns: str, remembered: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    done = run_here("memory", "show", "--data", remembered)
    assert done.code == 0 and WORDS in done.out.replace("\n", "")


@pytest.mark.parametrize("command", ["doctor", "memory show", "memory audit", "log", "cost", "memory export"])
def test_a_folder_whose_name_is_no_text_is_a_folder(command: str, remembered: Path) -> None:
    done = run_here(*command.split(), "--data", remembered)
    assert done.code == 0 and "fault" not in done.err


@pytest.mark.parametrize("error", [MemoryError(), RuntimeError("can't start new thread")])
def test_a_system_that_gives_no_more_is_not_our_fault(error: Exception, capsys: pytest.CaptureFixture[str]) -> None:
    assert edge._told(error) == edge.MISTAKE
    assert "no more memory or threads" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("shell", "told"),
    [
        ("python -OO -m mindstream.cli prompts", "it cannot run under `python -OO`"),
        ("mindstream memory show > /dev/full", "the output cannot be written: No space left on device"),
        ("mkdir gone && cd gone && rmdir ../gone && mindstream doctor --data x", "x cannot be made"),
    ],
)
def test_a_shell_that_gives_little_is_told_so(shell: str, told: str, remembered: Path, tmp_path: Path) -> None:
    python, *module = COMMAND
    begin = f'python() {{ "{python}" "$@"; }}; mindstream() {{ python {" ".join(module)} "$@"; }}; '
    done = subprocess.run(
        ["bash", "-c", begin + shell], cwd=tmp_path, env={**os.environ, "MINDSTREAM_DATA": str(remembered)},
        timeout=PATIENCE_S, capture_output=True, text=True,
    )  # fmt: skip
    assert told in done.stdout + done.stderr
    assert "Traceback" not in done.stderr and "fault of mindstream" not in done.stderr
