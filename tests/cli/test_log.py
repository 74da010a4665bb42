from __future__ import annotations

import json
import subprocess
from pathlib import Path

from running import COMMAND, run


def test_the_log_can_be_read_from_a_row_on(folder: Path) -> None:
    run("chat", "--data", folder, said="The noise keeps me awake.\n")
    rows = run("log", "--data", folder, "--json").rows
    assert rows[0]["event"] == "opened"
    assert run("log", "--data", folder, "--json", "--after", str(rows[2]["seq"])).rows == rows[3:]
    assert run("log", "--data", folder, "--json", "-n", "2").rows == rows[-2:]
    told = run("log", "--data", folder).out.splitlines()
    assert len(told) == len(rows) and "The noise keeps me awake." in told[1]
    assert run("log", "--data", folder, "--user", "bob", "--json").rows == []
    assert run("log", "--data", folder, "--user", "bob", "--all", "--json").rows[0]["mind"] == "you"


def test_a_log_that_is_followed_shows_what_another_process_writes(folder: Path) -> None:
    run("chat", "--data", folder, said="hello\n")
    following = subprocess.Popen(
        [*COMMAND, "log", "--follow", "--json", "--data", str(folder)], stdout=subprocess.PIPE, text=True
    )
    assert following.stdout
    try:
        assert json.loads(following.stdout.readline())["event"] == "opened"
        said = run("chat", "--data", folder, "--json", said="The noise keeps me awake.\n").events("said")[0]
        while (row := json.loads(following.stdout.readline()))["seq"] != said["seq"]:
            pass
        assert row["text"] == said["text"]
    finally:
        following.kill()
        following.wait()
        following.stdout.close()
