from __future__ import annotations

import os
from pathlib import Path

import pytest

from mindstream.errors import SettingsError
from mindstream.location import Location
from mindstream.settings import Chosen, Settings, choose, unknown_variables


@pytest.fixture(autouse=True)
def elsewhere(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def file(monkeypatch: pytest.MonkeyPatch) -> Path:
    """A settings file named by the environment."""
    monkeypatch.setenv("MINDSTREAM_SETTINGS", "mindstream.toml")
    return Path("mindstream.toml")


def test_flags_override_the_environment_which_overrides_the_file(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    file.write_text('user = "file"\npack = "file"\ngate = "belief"\n')
    monkeypatch.setenv("MINDSTREAM_USER", "variable")
    monkeypatch.setenv("MINDSTREAM_PACK", "variable")
    chosen = choose({"user": "flag", "pack": None})
    settings = chosen.settings
    assert (settings.user, settings.pack, settings.gate) == ("flag", "variable", "belief")
    assert chosen.origins == {"user": "--user", "pack": "MINDSTREAM_PACK", "gate": "mindstream.toml"}


def test_the_default_data_folder_is_in_the_users_home(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_DATA_HOME")
    assert choose().settings.data == Location(Path.home() / ".local" / "share" / "mindstream")
    monkeypatch.setenv("XDG_DATA_HOME", "/elsewhere")
    assert choose().settings.data == Location(Path("/elsewhere/mindstream"))


def test_role_models_are_merged_from_all_sources(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    file.write_text('model = "ollama:a"\n[roles]\ntalker = "ollama:b"\nreasoner = "ollama:c"\n')
    monkeypatch.setenv("MINDSTREAM_ROLES", "talker=openai:d@http://host/v1")
    assert choose({"roles": ["reasoner=ollama:e"]}).settings.models == {
        "default": "ollama:a", "talker": "openai:d@http://host/v1", "reasoner": "ollama:e",
    }  # fmt: skip


def test_a_model_flag_applies_to_all_roles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDSTREAM_ROLES", '{"talker": "ollama:b"}')
    assert choose({"model": "rules"}).settings.models == {"default": "rules"}
    assert choose({"roles": ["default=rules"]}).settings.models == {"default": "rules"}


def test_rules_are_used_only_if_no_model_is_named(file: Path) -> None:
    file.write_text("")
    assert choose().settings.models == {"default": "rules"}
    assert choose({"roles": ["talker=ollama:b"]}).settings.models == {"talker": "ollama:b"}
    file.write_text('roles = {reasoner = "ollama:c"}\n')
    assert choose({"roles": ["talker=ollama:b"]}).settings.models == {"reasoner": "ollama:c", "talker": "ollama:b"}


def test_patience_is_a_number_or_a_table_by_model(monkeypatch: pytest.MonkeyPatch, file: Path) -> None:
    file.write_text("")
    monkeypatch.setenv("MINDSTREAM_PATIENCE_S", "300")
    assert choose().settings.patience_s == 300
    assert choose({"patience_s": 20.0}).origins["patience_s"] == "--patience"
    monkeypatch.delenv("MINDSTREAM_PATIENCE_S")
    file.write_text('fallback = "rules"\n[patience_s]\n"ollama:qwen3" = 900\n')
    assert choose().settings.patience_s == {"ollama:qwen3": 900} and choose().settings.fallback == "rules"
    file.write_text("patience_s = 0\n")
    with pytest.raises(SettingsError, match="patience_s"):
        choose()


def test_paths_in_the_file_are_relative_to_its_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "home").mkdir()
    file = tmp_path / "home" / "my.toml"
    file.write_text('data = "memory"\npack = "./coach"\nprompts = "/words"\n')
    monkeypatch.setenv("MINDSTREAM_SETTINGS", str(file))
    settings = choose().settings
    assert settings.data == Location(tmp_path / "home" / "memory")
    assert Path(settings.pack) == tmp_path / "home" / "coach"
    assert settings.prompts == Path("/words")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('usr = "ann"', "mindstream.toml: unknown key 'usr'; did you mean 'user'?"),
        ("user = ", "mindstream.toml is not valid TOML"),
        ("deadline_s = -1", "mindstream.toml: deadline_s"),
        ('deadline_s = "soon"', "mindstream.toml: deadline_s"),
        ("user = 3", "mindstream.toml: user"),
        ('roles = "talker"', "talker=openai"),
        ("[roles]\nsinger = 'rules'", "mindstream.toml: there is no role 'singer'"),
        ("[roles]\ntalker = 3", "mindstream.toml: a table from role to model name"),
        ("roles = [1]", "mindstream.toml: a table from role to model name"),
        ("data = [1]", "mindstream.toml: data: a path is expected, found [1]"),
        ('data = "a\\u0000b"', "mindstream.toml: data: 'a\\x00b' cannot be a path"),
        ('data = "~nosuchuser/x"', "the home directory of an unknown user"),
        (f'prompts = "{"p" * 300}"', "too long for a path"),
        ("data = " + "[" * 5000, "nested too deeply"),
        ("deadline_s = " + "9" * 5000, "mindstream.toml is not valid TOML"),
        ("#" * 200_000, "mindstream.toml is too large: at most 100,000 bytes are read"),
    ],
    ids=lambda value: value[:30],
)
def test_errors_in_the_file_name_the_file(text: str, told: str, file: Path) -> None:
    file.write_text(text)
    with pytest.raises(SettingsError) as caught:
        choose()
    assert told in str(caught.value)


def test_errors_in_a_variable_name_the_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDSTREAM_BUDGET_USD", "much")
    with pytest.raises(SettingsError, match=r"^MINDSTREAM_BUDGET_USD: "):
        choose()


def test_a_named_settings_file_must_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDSTREAM_SETTINGS", "nowhere.toml")
    with pytest.raises(SettingsError, match=r"nowhere\.toml"):
        choose()


def test_unknown_variables_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("MINDSTREAM_MODLE", "Mindstream_Pack", "MINDSTREAM_OTHER_PROGRAM"):
        monkeypatch.setenv(name, "rules")
    monkeypatch.setenv("MINDSTREAM_WEBHOOK_SECRET", "read by serve")
    assert unknown_variables() == {
        "MINDSTREAM_MODLE": "MINDSTREAM_MODEL", "MINDSTREAM_OTHER_PROGRAM": "", "Mindstream_Pack": "MINDSTREAM_PACK",
    }  # fmt: skip


@pytest.mark.parametrize("blank", ["", " ", "\t\r\n", '""', "''", '" "', "\ufeff"])
@pytest.mark.parametrize("name", list(Settings.model_fields))
def test_a_blank_variable_is_unset(name: str, blank: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(f"MINDSTREAM_{name.upper()}", blank)
    monkeypatch.setenv("MINDSTREAM_SETTINGS", blank)
    assert choose() == Chosen(Settings(), {}, None)


@pytest.mark.parametrize("text", ["{}", " {}\n", "{}\r\n", '"{}"', "'{}'\r\n", "\ufeff{}", '" {} "'])
@pytest.mark.parametrize(
    ("name", "value", "read"),
    [
        ("model", "ollama:library/llama3:8b", "ollama:library/llama3:8b"),
        ("keep_prompts", "off", False),
        ("keep_prompts", "Yes", True),
        ("budget_tokens", "1_000", 1000),
        ("data", "/a b/Größe", Location(Path("/a b/Größe"))),
        ("roles", "talker=openai:a@b@https://h/v1", {"talker": "openai:a@b@https://h/v1"}),
        ("patience_s", '{"ollama:a": 900}', {"ollama:a": 900}),
        ("timezone", "Europe/Berlin", "Europe/Berlin"),
    ],
)
def test_quotes_and_whitespace_of_env_files_are_removed(
    name: str, value: str, read: object, text: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"MINDSTREAM_{name.upper()}", text.replace("{}", value))
    assert getattr(choose().settings, name) == read


@pytest.mark.parametrize(
    ("name", "value", "told"),
    [
        ("deadline_s", "30s", "a number without a unit is expected, such as 30 or 2.5, found '30s'"),
        ("deadline_s", "nan", "a finite number is expected, found 'nan'"),
        ("deadline_s", "-1e9", "a number above 0 is expected"),
        ("budget_usd", "$5", "a number without a unit is expected"),
        ("budget_tokens", "10k", "a whole number without a unit is expected"),
        ("budget_tokens", "9" * 400, "a number of at most 1,000,000,000,000,000 is expected"),
        ("context", '{"ollama:a": "big"}', "MINDSTREAM_CONTEXT.ollama:a: a whole number"),
        ("keep_prompts", "maybe", "true or false is expected, found 'maybe'"),
        ("memory", '{"base": 2, "base": 3}', "the key 'base' occurs twice"),
        ("roles", '{"talker": "a", "talker": "b"}', "the key 'talker' occurs twice"),
        ("roles", "talker=rules talker=ollama:a", "the role 'talker' has two models"),
        ("roles", "taler=rules", "did you mean 'talker'?"),
        ("roles", "talker=", "MINDSTREAM_ROLES: ROLE=MODEL is expected"),
        ("timezone", "Europe/Berln", "did you mean Europe/Berlin?"),
        ("timezone", "europe/berlin", "did you mean Europe/Berlin?"),
        ("timezone", "UTC+2", "use a name such as Europe/Berlin"),
        ("data", "$HOME/memory", "write the full path"),
        ("data", "mysql://ann:s3cret@host/db", "found a URL that begins with mysql://"),
        ("prompts", "${HOME}", "write the full path"),
    ],
)
def test_an_invalid_value_is_refused_with_its_source_and_the_expected_form(
    name: str, value: str, told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(f"MINDSTREAM_{name.upper()}", value)
    with pytest.raises(SettingsError) as caught:
        choose()
    assert str(caught.value).startswith(f"MINDSTREAM_{name.upper()}") and told in str(caught.value)
    assert "s3cret" not in str(caught.value) and len(str(caught.value)) < 400


@pytest.mark.parametrize("field", ["data", "user", "pack", "model", "embedder", "prompts"])
def test_an_empty_flag_is_refused_unless_it_disables_a_setting(field: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MINDSTREAM_FALLBACK", "rules")
    assert choose({"fallback": "", "timezone": " "}).settings.fallback == ""
    for blank in ("", "  ", "\r\n"):
        with pytest.raises(SettingsError, match=rf"^--{field}: a value is expected, found an empty text"):
            choose({field: blank})


def test_a_file_may_have_a_bom_windows_line_ends_and_blank_values(file: Path) -> None:
    file.write_bytes('\ufeffmodel = ""\r\nuser = " Zoë "\r\ndata = "my data"\r\n'.encode())
    settings = choose().settings
    assert (settings.model, settings.user, settings.data) == (None, "Zoë", Location(Path("my data")))
    file.write_text('user = ""\n')
    with pytest.raises(SettingsError, match=r"mindstream\.toml: user: a value is expected"):
        choose()
    file.write_text('user = "a"\nuser = "b"\n')
    with pytest.raises(SettingsError, match="a key occurs twice"):
        choose()
    file.write_text('deadline_s = "soon"\nbudget_usd = -1\n')
    with pytest.raises(SettingsError, match=r"deadline_s: a number .*; mindstream\.toml: budget_usd: a number of at"):
        choose()


def test_the_context_size_is_a_number_or_a_table_by_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
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


TEMPTING = 'model = "http://127.0.0.1:9/v1#all-ears"\nprompts = "words"\ndata = "here"\npack = "./mine"\n'


def test_a_settings_file_in_the_working_directory_is_read_only_if_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    Path("mindstream.toml").write_text(TEMPTING)
    (Path.home() / "mindstream").mkdir()
    (Path.home() / "mindstream" / "settings.toml").write_text('gate = "belief"\n')
    chosen = choose()
    assert chosen.settings.model is None and chosen.settings.prompts is None and chosen.settings.pack == "sleep"
    assert chosen.settings.gate == "belief" and chosen.unread == Path("mindstream.toml")
    monkeypatch.setenv("MINDSTREAM_SETTINGS", "mindstream.toml")
    chosen = choose()
    assert str(chosen.settings.model).endswith("#all-ears") and chosen.unread is None


def test_a_named_pipe_is_refused_without_blocking(file: Path) -> None:
    os.mkfifo(file)
    with pytest.raises(SettingsError, match="is not a regular file"):
        choose()


def test_without_a_home_directory_the_data_flag_is_required(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_DATA_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.delenv(name)

    def nobody(number: int) -> None:
        raise KeyError(number)

    monkeypatch.setattr("pwd.getpwuid", nobody)
    assert choose({"data": "here"}).settings.data == Location(Path("here"))
    with pytest.raises(SettingsError, match="name a data folder with --data DIR"):
        choose()
