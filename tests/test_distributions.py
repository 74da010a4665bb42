"""The other distributions join by entry points; without them, errors say which one to install."""

from __future__ import annotations

import importlib
import importlib.metadata
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from mindstream import plugins
from mindstream.cli.app import COMMANDS, ELSEWHERE
from mindstream.moved import MOVED
from mindstream.service.operations.table import operations

ALONE = (
    "import importlib.metadata, sys; importlib.metadata.entry_points = lambda **_: ();"
    "sys.modules.update(dict.fromkeys(('mindstream_town', 'mindstream_evals', 'mindstream_studio')));"
)
"""Code that makes a process see the core distribution only."""


def alone(code: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-c", ALONE + code], capture_output=True, text=True, check=False)


@pytest.mark.parametrize(("words", "distribution"), ELSEWHERE.items())
def test_a_missing_command_names_its_distribution(words: str, distribution: str) -> None:
    if words.split()[0] in {"town"} and " " in words:
        distribution = "mindstream-town"  # the group is missing as well
    done = alone(f"import sys; sys.argv[1:] = {words.split()}; from mindstream.cli import main; main()")
    assert done.returncode == 2
    assert f"pip install {distribution}" in " ".join(done.stderr.split())


def test_the_core_alone_has_its_commands_and_names_the_town_distribution() -> None:
    done = alone("import sys; sys.argv[1:] = ['--help']; from mindstream.cli import main; main()")
    assert done.returncode == 0
    assert all(f"  {name} " in done.stdout for name in COMMANDS) and "  town " not in done.stdout
    done = alone("from mindstream import Town")
    assert "ImportError" in done.stderr and "pip install mindstream-town" in done.stderr


def test_every_distribution_is_registered_with_its_commands_and_operations() -> None:
    found = {plugin.name: plugin for plugin in plugins.registered()}
    assert {"town", "evals", "studio"} <= found.keys()
    assert {each.name for each in operations()} >= {"towns.run", "towns.evaluate", "memory.recall"}
    for plugin in found.values():
        for _, *modules in plugin.commands.values():
            assert all(hasattr(importlib.import_module(module), "app") for module in modules)


def test_a_plugin_that_cannot_be_imported_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = importlib.metadata.EntryPoint("garden", "no_such_garden:PLUGIN", plugins.GROUP)
    monkeypatch.setattr(importlib.metadata, "entry_points", lambda **_: [broken])
    monkeypatch.setattr(plugins, "_plugins", {})
    with pytest.warns(RuntimeWarning, match="'garden' is left out: No module named 'no_such_garden'"):
        assert "coach" in {plugin.name for plugin in plugins.registered()}


@pytest.mark.parametrize(("old", "new"), MOVED.items())
def test_an_old_module_name_imports_the_new_module_with_a_warning(
    old: str, new: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in sys.modules if name in MOVED]:
        monkeypatch.delitem(sys.modules, name)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert importlib.import_module(old) is importlib.import_module(new)
    assert (DeprecationWarning, f"{old} has moved: import {new}") in [
        (each.category, str(each.message)) for each in caught
    ]
    assert importlib.import_module(new).__name__ == new


def test_names_can_be_imported_from_an_old_module() -> None:
    with pytest.warns(DeprecationWarning, match=r"mindstream\.town\.town has moved"):
        from mindstream.town.town import Town  # type: ignore[import-not-found]
    assert Town is importlib.import_module("mindstream_town.town").Town


def test_the_core_wheel_names_no_other_distribution_in_its_dependencies() -> None:
    wanted = importlib.metadata.requires("mindstream") or []
    assert not [
        each for each in wanted if each.startswith(("mindstream-town", "mindstream-evals", "mindstream-studio"))
    ]
    assert (Path(plugins.__file__).parent / "py.typed").is_file()
