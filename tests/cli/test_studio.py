"""`mindstream studio`: it starts a server and names its page; where one answers already, it names that one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
from served import ServerProcess


def test_it_serves_its_page_and_names_it(folder: Path) -> None:
    words = [sys.executable, "-m", "mindstream", "studio", "--no-open", "--port", "0", "--data", str(folder)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"}) as one:
        assert one.stdout is not None
        said = one.stdout.readline().strip()
        address = said.removeprefix("the studio: ")
        assert httpx.get(address).status_code == 200
        again = ask("--port", address.rstrip("/").split(":")[-1].split("/")[0], "--data", str(folder))
        assert (again.returncode, again.stdout.strip()) == (0, said)
        one.send_signal(signal.SIGTERM)
    assert one.returncode == 0


def test_a_server_without_pages_is_named(folder: Path) -> None:
    with ServerProcess(folder) as server:
        refused = ask("--port", server.url.rpartition(":")[2], "--data", str(folder))
    assert refused.returncode == 2
    assert "has no studio" in refused.stderr and "--studio" in refused.stderr


def ask(*flags: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    words = [sys.executable, "-m", "mindstream", "studio", "--no-open", *flags]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
