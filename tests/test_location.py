"""Data locations: the part of a URL that may be shown, and invalid URLs."""

from __future__ import annotations

from pathlib import Path

import pytest

from mindstream.errors import InputError, SettingsError
from mindstream.location import Location
from mindstream.settings import Settings, choose


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://ann:hunter2@db:5433/mind?sslmode=require", "postgresql://ann@db:5433/mind?sslmode=require"),
        ("postgres://ann:hun%40ter2@db/mind?password=hunter2", "postgresql://ann@db/mind"),
        ("postgresql://ann@one:1,two:2/mind?passfile=/hunter2", "postgresql://ann@one:1,two:2/mind"),
        ("postgresql://ann:hunter2@[::1]:9/mind", "postgresql://ann@[::1]:9/mind"),
        (
            "postgresql:///mind?host=/run/pg&options=-csearch_path%3Da",
            "postgresql:///mind?host=/run/pg&options=-csearch_path%3Da",
        ),
    ],
)
def test_a_url_is_shown_without_secrets(url: str, shown: str) -> None:
    where = Location.of(url)
    assert where.folder is None and str(where) == shown and where.url == url
    assert "hunter2" not in repr(where) + str(where) + str(where.beside) + Settings(data=where).model_dump_json()
    assert str(Location.of(shown)) == shown


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://ann:hunter2/@db/mind", "postgresql://ann:hunter2@x@db/mind", "postgresql://ann:12#hunter2@db/mind",
        "postgresql://ann:12?hunter2@db/mind", "postgresql://ann:hunter2@db:port/mind", "postgresql:/ann:hunter2@db/m",
        "postgresql://ann:hunter2@[::1/mind", "postgresql://ann:hunter2@db/mind?hunter2",
    ],
)  # fmt: skip
def test_an_invalid_url_is_refused_without_repeating_it(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError) as caught:
        Location.of(url)
    assert "hunter2" not in str(caught.value) and "%40" in str(caught.value)
    monkeypatch.setenv("MINDSTREAM_DATA", url)
    with pytest.raises(SettingsError, match="MINDSTREAM_DATA: not a URL") as refused:
        choose()
    assert "hunter2" not in str(refused.value)


def test_a_database_can_be_set_by_environment_and_settings_file(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = "postgresql://ann:hunter2@db/mind"
    file = tmp_path / "my.toml"
    file.write_text(f'data = "{url}"\n')
    monkeypatch.setenv("MINDSTREAM_SETTINGS", str(file))
    assert choose().settings.data.url == url
    monkeypatch.setenv("MINDSTREAM_DATA", f"{url}2")
    assert choose().settings.data.url == f"{url}2"
    assert choose({"data": "here"}).settings.data == Location(Path("here"))


def test_local_files_are_in_the_folder_or_the_users_state_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert Location.of("here").beside == Path("here")
    one, other = Location.of("postgresql://ann:a@db/mind"), Location.of("postgresql://ann:b@db/mind")
    assert one.beside == other.beside and one.beside.is_relative_to(tmp_path / "mindstream"), (
        "independent of the password"
    )
    assert one.beside != Location.of("postgresql://ann@db/else").beside


def test_a_town_has_its_own_location() -> None:
    assert Location.of("ville").rooms("town")[0] == Location(Path("ville"))
    town, other = Location.of("postgresql://ann@db/mind").rooms("town")
    assert town.tenant == "_town" and town.rooms("town")[0] == town and not other.tenant
    assert Location.of("here").part("town") == Location(Path("here/town"))
