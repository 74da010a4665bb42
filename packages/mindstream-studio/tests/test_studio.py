"""`mindstream studio`: it starts a server and prints its page; if one is running already, it prints that one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import httpx
from served import ServerProcess
from studio import serve_studio


def test_studio_starts_a_server_and_prints_its_address(folder: Path, tmp_path: Path) -> None:
    words = [sys.executable, "-m", "mindstream", "studio", "--no-open", "--port", "0", "--data", str(folder)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONUNBUFFERED": "1"}) as one:
        assert one.stdout is not None
        said = one.stdout.readline().strip()
        address = said.removeprefix("the studio: ")
        assert httpx.get(address).status_code == 200
        again = ask("--port", address.rstrip("/").split(":")[-1].split("/")[0], "--data", str(folder))
        assert (again.returncode, again.stdout.strip(), again.stderr) == (0, said, "")
        port, other = ["--port", address.split(":")[2].split("/")[0]], tmp_path / "other"
        refused = ask(*port, "--data", str(other))
        assert (refused.returncode, refused.stdout) == (2, "") and not other.exists()
        assert str(folder.resolve()) in refused.stderr and str(other) in refused.stderr and "--port" in refused.stderr
        refused = ask(*port, "--data", str(folder), "--town", "v=./nope", "--model", "rules")
        assert (refused.returncode, refused.stdout) == (2, "") and "--town, --model would have no" in refused.stderr
        one.send_signal(signal.SIGTERM)
    assert one.returncode == 0


def test_a_server_without_the_studio_is_reported(folder: Path) -> None:
    with ServerProcess(folder) as server:
        refused = ask("--port", server.url.rpartition(":")[2], "--data", str(folder))
    assert refused.returncode == 2
    assert "has no studio" in refused.stderr and "--studio" in refused.stderr


def test_only_programs_that_need_no_token_are_told_where_the_data_is(folder: Path) -> None:
    for more, told in (({}, str(folder.resolve())), ({"require_token": True}, None)):
        with serve_studio(folder, **more) as served, httpx.Client(base_url=served.url) as client:
            assert client.get("/studio/about.json").json().get("data") == told
            asked = ask("--port", served.url.rpartition(":")[2], "--data", str(folder))
            assert asked.returncode == 0 and ("does not say" in asked.stderr) == (told is None)


def ask(*flags: str) -> subprocess.CompletedProcess[str]:
    """Run the command to its end."""
    words = [sys.executable, "-m", "mindstream", "studio", "--no-open", *flags]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)


def test_recorded_conversations_and_tasks_can_be_saved_as_files(tmp_path: Path) -> None:
    for flags in (["--talk", "evening", "--user", "ann"], ["--plan", "0exw90akeq26", "--user", "dora", "--with-calls"]):
        out = tmp_path / f"{flags[0][2:]}.html"
        saved = save(*flags, "--recorded", "--out", str(out))
        assert saved.returncode == 0 and str(out.stat().st_size) in saved.stdout
        assert save(*flags, "--recorded", "--out", str(out)).returncode == 0, "an older export is overwritten"
    calls = save("--talk", "evening", "--user", "ann", "--with-calls", "--recorded", "--out", str(out))
    assert "no model call" in calls.stderr


def test_invalid_export_flags_are_refused_with_the_reason(folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    for flags, why in (
        ([], "--talk SESSION, --plan RUN and --town DIR"),
        (["--talk", "a", "--plan", "b"], "exactly one of"),
        (["--talk", "a", "--from", "Feb 14"], "need --town"),
        (["--town", str(folder), "--with-calls"], "need --talk or --plan"),
        (["--talk", "a", "--data", str(folder)], "there is no memory in"),
        (["--talk", "none", "--user", "ann", "--recorded"], "ann has no conversation 'none'"),
    ):
        refused = save(*flags, "--out", str(out))
        assert refused.returncode == 2 and why in refused.stderr, refused.stderr
    assert not out.exists() and not list(folder.glob("*"))


def save(*flags: str) -> subprocess.CompletedProcess[str]:
    """Save a page to a file."""
    words = [sys.executable, "-m", "mindstream", "studio", "export", *flags]
    return subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
