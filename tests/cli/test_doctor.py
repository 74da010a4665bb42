from __future__ import annotations

import contextlib
import json
import os
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from running import Done, run


@contextmanager
def endpoint(status: int = 200, models: tuple[str, ...] = ()) -> Iterator[str]:
    """An endpoint that lists its models."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = json.dumps({"data": [{"id": name} for name in models]}).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    finally:
        server.shutdown()
        server.server_close()


def found(done: Done, topic: str) -> list[dict[str, Any]]:
    return [row for row in done.rows if row["topic"] == topic]


def test_a_fresh_machine_is_healthy_and_reports_that_rules_answer(folder: Path) -> None:
    done = run("doctor", "--data", folder, "--json")
    assert done.code == 0 and not folder.exists()
    (models,) = found(done, "models")
    assert models["state"] == "note" and "rules answer" in models["found"] and "--model" in models["mend"]
    assert "nothing is broken" in run("doctor", "--data", folder).out


def test_the_doctor_reports_the_source_of_each_setting(folder: Path, tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text('gate = "belief"\n')
    done = run(
        "doctor", "--data", folder, "--json", MINDSTREAM_SETTINGS=str(file), MINDSTREAM_USER="ann", MINDSTREAM_X="1"
    )
    settings, stray = found(done, "settings")
    assert "data from --data" in settings["found"] and "user from MINDSTREAM_USER" in settings["found"]
    assert f"gate from {file}" in settings["found"]
    assert stray["state"] == "note" and "MINDSTREAM_X" in stray["found"]


def test_the_doctor_checks_whether_models_are_available(folder: Path) -> None:
    with endpoint(models=("small", "large")) as url:
        assert run("doctor", "--data", folder, "--model", f"{url}#small").code == 0
        done = run("doctor", "--data", folder, "--role", f"talker={url}#medium", "--json")
        (model,), (roles,) = found(done, "model"), found(done, "models")
        assert done.code == 1 and model["state"] == "broken" and "it offers large, small" in model["found"]
        assert roles["state"] == "broken" and roles["found"] == "no model is named for the role reasoner"
    gone = run("doctor", "--data", folder, "--model", f"{url}#small")
    assert gone.code == 1 and "cannot be reached" in gone.out
    with endpoint(401) as url:
        assert "refuses the key" in run("doctor", "--data", folder, "--model", f"{url}#small").out
    with endpoint(404) as url:
        assert run("doctor", "--data", folder, "--model", f"{url}#small").code == 0


def test_a_missing_api_key_is_named(folder: Path) -> None:
    done = run("doctor", "--data", folder, "--model", "openai:gpt-5")
    assert done.code == 1 and "OPENAI_API_KEY" in done.out


def test_a_damaged_memory_is_reported(folder: Path) -> None:
    folder.mkdir()
    (folder / "mindstream.db").write_bytes(b"this is no database " * 500)
    done = run("doctor", "--data", folder)
    assert done.code == 1 and "cannot be read" in done.out and "→ move the file away" in done.out


def test_an_unknown_pack_is_reported(folder: Path) -> None:
    done = run("doctor", "--data", folder, "--pack", "nowhere")
    assert done.code == 1 and "no pack 'nowhere'" in done.out


def test_the_doctor_reports_which_prompts_fit_the_context(folder: Path) -> None:
    wide = found(run("doctor", "--data", folder, "--context", "200000", "--json"), "window")
    assert {row["state"] for row in wide} == {"ok"} and any(row["found"].startswith("talk: about") for row in wide)
    some = found(run("doctor", "--data", folder, "--context", "8192", "--json"), "window")
    assert "note" in {row["state"] for row in some} and "broken" not in {row["state"] for row in some}
    narrow = run("doctor", "--data", folder, "--context", "1024", "--json")
    assert narrow.code == 1 and any("cannot be cut" in row["found"] for row in found(narrow, "window"))
    assert not found(run("doctor", "--data", folder, "--json"), "window")


def test_damaged_rows_are_reported_and_repaired(folder: Path) -> None:
    assert run("chat", "--data", folder, "--user", "ann", said="I wake at three.\n").code == 0
    assert "not damaged" in run("doctor", "--data", folder).out
    with contextlib.closing(sqlite3.connect(folder / "mindstream.db")) as connection:
        connection.execute("UPDATE records SET kind = 'telepathy' WHERE number = 1")
        connection.execute("UPDATE records SET data = '{broken' WHERE kind = 'belief'")
        connection.commit()
    for command in (
        ("memory", "list"),
        ("memory", "recall", "sleep"),
        ("memory", "audit"),
        ("log",),
        ("memory", "export"),
    ):
        assert run(*command, "--data", folder, "--user", "ann").code == 0
    broken = run("doctor", "--data", folder, "--json")
    assert broken.code == 1
    told = " ".join(row["found"] for row in found(broken, "data"))
    assert "records whose kind cannot be read as it stands (of ann; " in told and "records whose data cannot" in told
    mended = run("doctor", "--data", folder, "--mend", "--json")
    assert mended.code == 0
    (copy,) = folder.glob("mended-*")
    assert str(copy) in found(mended, "mended")[0]["mend"]
    assert run("chat", "--data", folder, "--user", "ann", said="Coffee keeps me up.\n").code == 0
    assert run("memory", "erase", "--yes", "--data", folder, "--user", "ann").code == 0
    assert not copy.exists()


def test_a_pipe_instead_of_the_database_is_reported_at_once(folder: Path) -> None:
    folder.mkdir()
    os.mkfifo(folder / "mindstream.db")
    for command in (("doctor",), ("memory", "list"), ("chat",)):
        done = run(*command, "--data", folder, said="hello\n")
        assert done.code in (1, 2) and "is a pipe" in done.out + done.err


def test_the_lines_about_models_of_this_machine_agree(folder: Path) -> None:
    lines = [each["found"] + each["mend"] for each in found(run("doctor", "--json", "--data", folder), "model")]
    is_installed = any("SmolLM2-135M is installed" in each for each in lines)
    offers = [each for each in lines if "mindstream model get" in each or "no model file is installed" in each]
    assert lines and not (is_installed and offers)
