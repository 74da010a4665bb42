from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from fake_endpoint import Fails, FakeEndpoint, Says
from running import mistaken, run, terminal

from mindstream.service.cost import TURN, describe_turn, turn_usd
from mindstream.settings import Settings


def written(file: Path) -> dict[str, object]:
    return tomllib.loads(file.read_text("utf-8"))


def test_a_model_is_tested_and_written_where_settings_are_read(tmp_path: Path) -> None:
    file = tmp_path / "new" / "my.toml"
    with FakeEndpoint() as door:
        door.will(Says("I am ready."))
        done = run("init", "--model", f"{door.url}#any", "--user", "ann", "--settings", file)
    assert done.code == 0 and "answered in" in done.out and "10 tokens" in done.out and "I am ready." in done.out
    assert "is not known" in done.out and "mindstream chat" in done.out
    assert written(file) == {"model": f"{door.url}#any", "user": "ann"}
    assert file.stat().st_mode & 0o777 == 0o600 and [each.name for each in file.parent.iterdir()] == ["my.toml"]
    told = run("doctor", "--data", tmp_path / "data", "--json", MINDSTREAM_SETTINGS=str(file)).rows
    assert any(f"model from {file}" in row["found"] for row in told)


def test_without_a_named_file_it_is_the_user_s_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.delenv("MINDSTREAM_SETTINGS", raising=False)
    with FakeEndpoint() as door:
        (row,) = run("init", "--model", f"{door.url}#any", "--json").rows
    assert row["settings"] == str(tmp_path / "mindstream" / "settings.toml") and row["answer"] == "ok"
    assert written(Path(row["settings"])) == {"model": row["model"]}


def test_other_lines_stay_and_models_of_roles_go(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    file.write_text('# mine\ngate = "belief"\nmodel = "ollama:old"\n[roles]\nsafety = "rules"\n')
    assert run("init", "--model", "gguf:missing", "--no-test", "--settings", file).code == 2
    assert run("init", "--model", "ollama:qwen3", "--no-test", "--settings", file).code == 0
    assert file.read_text() == '# mine\ngate = "belief"\nmodel = "ollama:qwen3"\n'
    assert "costs nothing" in run("init", "--model", "rules", "--settings", file).out
    assert file.read_text() == '# mine\ngate = "belief"\n'


def test_a_model_that_fails_is_not_written(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    with FakeEndpoint() as door:
        door.will(Fails(401, "bad key"))
        refused = run("init", "--model", f"{door.url}#any", "--settings", file)
    assert "nothing was written (--no-test" in mistaken(refused) and not file.exists()
    assert "is not the name of a model" in mistaken(run("init", "--model", "gpt-5", "--settings", file))
    nothing = run("init", "--model", "openai:gpt-5-mini", "--settings", file, OPENAI_API_KEY="")
    assert "set OPENAI_API_KEY" in mistaken(nothing)
    file.write_text("model = ")
    assert "nothing was changed" in mistaken(run("init", "--model", "rules", "--settings", file))
    file.write_bytes(b"model = '\xff'")
    message = mistaken(run("init", "--model", "rules", "--settings", file))
    assert f"{file} is not UTF-8" in message, message


def test_without_a_terminal_the_model_is_a_flag(tmp_path: Path) -> None:
    assert "mindstream init --model" in mistaken(run("init", "--settings", tmp_path / "my.toml"))


def test_in_a_terminal_it_asks(tmp_path: Path) -> None:
    file = tmp_path / "my.toml"
    with FakeEndpoint() as door, terminal("init", "--settings", file, OPENAI_API_KEY="") as screen:
        assert "rules" in screen.until("A number, or a name")
        screen.until("[1]")
        screen.type(f"{door.url}#any\r")
        screen.until("next:")
        assert screen.ended() == 0
    assert written(file) == {"model": f"{door.url}#any"}


def test_a_turn_s_price_is_that_of_its_models(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-not-used-in-this-test")
    whole = turn_usd({"default": "openai:gpt-5-mini"})
    assert whole is not None and whole > 0
    talker = turn_usd({"default": "rules", "talker": "openai:gpt-5-mini"})
    assert talker is not None and 0 < talker < whole
    assert turn_usd({"default": "ollama:qwen3"}) == 0
    assert turn_usd({"default": "openai:no-such-model-at-all"}) is None
    assert describe_turn(Settings(model="openai:gpt-5-mini")).startswith(f"a turn of chat costs about ${whole:.2g} ")
    monkeypatch.delenv("OPENAI_API_KEY")
    assert "until all its models can be used" in describe_turn(Settings(model="openai:gpt-5-mini"))
    assert sum(map(sum, TURN.values())) == 2_400
