from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from running import COMMAND, run


def test_the_log_can_be_read_from_a_given_row(folder: Path) -> None:
    run("chat", "--data", folder, said="The noise keeps me awake.\n")
    rows = run("log", "--data", folder, "--json").rows
    assert rows[0]["event"] == "opened"
    assert run("log", "--data", folder, "--json", "--after", str(rows[2]["seq"])).rows == rows[3:]
    assert run("log", "--data", folder, "--json", "-n", "2").rows == rows[-2:]
    told = run("log", "--data", folder).out.splitlines()
    assert len(told) == len(rows) and "The noise keeps me awake." in told[1]
    assert run("log", "--data", folder, "--user", "bob", "--json").rows == []
    assert run("log", "--data", folder, "--user", "bob", "--all", "--json").rows[0]["mind"] == "you"


def test_log_follow_shows_rows_of_other_processes(folder: Path) -> None:
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


def test_a_log_can_be_sent_to_a_collector_as_spans(folder: Path) -> None:
    pytest.importorskip(
        "opentelemetry.exporter.otlp.proto.http.trace_exporter", reason="the extra otlp is not installed"
    )
    from collector import attributes, collecting

    run("chat", "--data", folder, said="The noise keeps me awake.\n")
    with collecting() as collector:
        told = run("log", "--data", folder, "--otlp", collector.url, "--json")
        assert told.rows == [{"spans": len(collector.spans), "to": collector.url}] and collector.spans
        assert not any("noise" in str(span) for span in collector.spans)
        run("log", "--data", folder, "--otlp", collector.url, "--with-content")
        assert any("noise" in attributes(span).get("gen_ai.input.messages", "") for span in collector.spans)
    gone = run("log", "--data", folder, "--otlp", "http://127.0.0.1:9")
    assert gone.code and "did not accept the spans" in gone.err
    assert (
        "cannot be used with --follow" in run("log", "--data", folder, "--otlp", "http://127.0.0.1:9", "--follow").err
    )
