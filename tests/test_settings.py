from __future__ import annotations

from pathlib import Path

import pytest

from mindstream.errors import SettingsError
from mindstream.settings import choose, unknown_variables


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


def test_flags_come_before_the_environment_and_that_before_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("mindstream.toml").write_text('user = "file"\npack = "file"\ngate = "quick"\n')
    monkeypatch.setenv("MINDSTREAM_USER", "variable")
    monkeypatch.setenv("MINDSTREAM_PACK", "variable")
    chosen = choose({"user": "flag", "pack": None})
    settings = chosen.settings
    assert (settings.user, settings.pack, settings.gate) == ("flag", "variable", "quick")
    assert chosen.origins == {"user": "--user", "pack": "MINDSTREAM_PACK", "gate": "mindstream.toml"}


def test_without_settings_the_memory_lies_in_the_home_of_its_owner(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_DATA_HOME")
    assert choose().settings.data == Path.home() / ".local" / "share" / "mindstream"
    monkeypatch.setenv("XDG_DATA_HOME", "/elsewhere")
    assert choose().settings.data == Path("/elsewhere/mindstream")


def test_roles_are_a_table_that_each_source_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("mindstream.toml").write_text('model = "ollama:a"\n[roles]\ntalker = "ollama:b"\nreasoner = "ollama:c"\n')
    monkeypatch.setenv("MINDSTREAM_ROLES", "talker=openai:d@http://host/v1")
    assert choose({"roles": ["reasoner=ollama:e"]}).settings.models == {
        "default": "ollama:a", "talker": "openai:d@http://host/v1", "reasoner": "ollama:e",
    }  # fmt: skip


def test_who_names_a_model_means_all_roles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDSTREAM_ROLES", '{"talker": "ollama:b"}')
    assert choose({"model": "rules"}).settings.models == {"default": "rules"}
    assert choose({"roles": ["default=rules"]}).settings.models == {"default": "rules"}


def test_paths_in_the_file_start_from_its_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    file = tmp_path / "home" / "my.toml"
    file.write_text('data = "memory"\npack = "./coach"\nprompts = "/words"\n')
    monkeypatch.setenv("MINDSTREAM_SETTINGS", str(file))
    settings = choose().settings
    assert settings.data == tmp_path / "home" / "memory"
    assert Path(settings.pack) == tmp_path / "home" / "coach"
    assert settings.prompts == Path("/words")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('usr = "ann"', "mindstream.toml: unknown key 'usr'; did you mean 'user'?"),
        ("user = ", "mindstream.toml is not TOML"),
        ("deadline_s = -1", "mindstream.toml: deadline_s"),
        ('deadline_s = "soon"', "mindstream.toml: deadline_s"),
        ("user = 3", "mindstream.toml: user"),
        ('roles = "talker"', "talker=openai"),
        ("[roles]\nsinger = 'rules'", "mindstream.toml: there is no role 'singer'"),
        ("[roles]\ntalker = 3", "mindstream.toml: roles is a table"),
    ],
)
def test_a_mistake_in_the_file_is_named_with_the_file(text: str, told: str) -> None:
    Path("mindstream.toml").write_text(text)
    with pytest.raises(SettingsError) as caught:
        choose()
    assert told in str(caught.value)


def test_a_mistake_in_a_variable_is_named_with_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDSTREAM_BUDGET_USD", "much")
    with pytest.raises(SettingsError, match=r"^MINDSTREAM_BUDGET_USD: "):
        choose()


def test_a_settings_file_that_is_named_must_be_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDSTREAM_SETTINGS", "nowhere.toml")
    with pytest.raises(SettingsError, match=r"nowhere\.toml"):
        choose()


def test_variables_that_nothing_reads_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDSTREAM_MODLE", "rules")
    assert unknown_variables() == ["MINDSTREAM_MODLE"]


def test_a_window_is_one_number_or_a_table_by_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("MINDSTREAM_CONTEXT", "8192")
    assert choose().settings.context == 8192
    monkeypatch.delenv("MINDSTREAM_CONTEXT")
    file = tmp_path / "my.toml"
    file.write_text('[context]\n"ollama:qwen3" = 4096\n')
    monkeypatch.setenv("MINDSTREAM_SETTINGS", str(file))
    assert choose().settings.context == {"ollama:qwen3": 4096}
    monkeypatch.setenv("MINDSTREAM_CONTEXT", "12")
    with pytest.raises(SettingsError, match="MINDSTREAM_CONTEXT"):
        choose()
