"""The other distributions join by entry points; without them, errors say which one to install."""

from __future__ import annotations

import importlib
import importlib.metadata
import re
import subprocess
import sys
import tomllib
import warnings
from fnmatch import fnmatch
from pathlib import Path

import pytest
from packaging.specifiers import SpecifierSet

from mindstream import plugins
from mindstream.cli.app import COMMANDS, ELSEWHERE
from mindstream.errors import ToolError
from mindstream.moved import MOVED
from mindstream.planning.planner import Planner
from mindstream.service.operations.operation import operations
from mindstream.tools.call import refuse
from mindstream.tools.documents import Folder

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
    with pytest.warns(DeprecationWarning, match=r"mindstream\.town(\.town)? has moved"):
        from mindstream.town.town import Town  # type: ignore[import-not-found]
    assert Town is importlib.import_module("mindstream_town.town").Town


def test_earlier_names_of_classes_and_arguments_work_with_a_warning() -> None:
    for module, old, new in (
        ("evaluation_cache", "Ledger", "EvaluationCache"),
        ("tools.call", "ForeignText", "UntrustedText"),
        ("tools.tool_search", "ToolShelf", "ToolIndex"),
    ):
        found = importlib.import_module(f"mindstream.{module}")
        with pytest.warns(DeprecationWarning, match=f"{old} is called {new} now"):
            assert getattr(found, old) is getattr(found, new)
        assert not hasattr(found, "NeverThere")
    with pytest.warns(DeprecationWarning, match=r"Planner\(leave=\) is called approve= now"):
        planner = Planner(model={}, leave=refuse)  # type: ignore[call-arg]
    assert planner.approve is refuse is planner.leave  # type: ignore[attr-defined]


def test_the_core_wheel_names_no_other_distribution_in_its_dependencies() -> None:
    wanted = importlib.metadata.requires("mindstream") or []
    assert not [
        each for each in wanted if each.startswith(("mindstream-town", "mindstream-evals", "mindstream-studio"))
    ]
    assert (Path(plugins.__file__).parent / "py.typed").is_file()


ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
OPTIONAL = ("leather", "opentelemetry", "pypdf", "selectolax", "tomlkit")
"""Modules of extras and of other distributions that are installed with the tests."""
IN_ALL = ("anthropic", "google", "local", "mcp", "planning", "server", "postgres", "web", "documents", "charts", "otlp")


def test_at_most_twenty_dependencies_are_always_installed_and_each_is_imported() -> None:
    names = [re.split(r"[><=]", each)[0] for each in PROJECT["dependencies"]]
    modules = {  # of each distribution
        name: {module for module, owners in importlib.metadata.packages_distributions().items() if name in owners}
        for name in (importlib.metadata.distribution(each).name for each in names)
    }
    source = "\n".join(path.read_text("utf-8") for path in Path(plugins.__file__).parent.rglob("*.py"))
    imported = {each.partition(".")[0] for each in re.findall(r"^\s*(?:from|import) ([\w.]+)", source, re.MULTILINE)}
    imported |= set(re.findall(r"find_spec\(\"(\w+)\"\)", source))
    assert len(names) <= 20
    assert [name for name in modules if not modules[name] & imported] == []


@pytest.mark.parametrize("requirement", PROJECT["dependencies"])
def test_every_dependency_has_an_upper_bound_and_a_tested_version(requirement: str) -> None:
    name = re.split(r"[><=]", requirement)[0]
    listed = name.replace("-", "[-_]")
    assert "<" in requirement or name == "regex", "regex counts its versions by years"
    tested = re.search(
        rf"^{listed}==(.+)$", (ROOT / "constraints.txt").read_text("utf-8"), re.MULTILINE | re.IGNORECASE
    )
    assert tested is not None and tested[1] in SpecifierSet(requirement[len(name) :])


@pytest.mark.parametrize("name", [".env", ".git/config", "data/mindstream.db", "tests/keys.py", "server.log"])
def test_the_image_is_built_from_named_files_only(name: str) -> None:
    """Read `.dockerignore` in the order of its lines: the last one that fits decides."""
    ignored = False
    for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines():
        pattern = line.removeprefix("!").removeprefix("**/")
        if line and not line.startswith("#") and (pattern == "*" or fnmatch(name.split("/")[0], pattern)):
            ignored = not line.startswith("!")
    assert ignored, name


def test_all_has_every_extra_except_the_large_ones_and_frameworks() -> None:
    (everything,) = PROJECT["optional-dependencies"]["all"]
    assert {*everything.partition("[")[2].rstrip("]").split(",")} >= {*IN_ALL}


def test_public_names_need_no_extra_and_what_does_names_it() -> None:
    done = alone(
        f"sys.modules.update(dict.fromkeys({OPTIONAL}));"
        "import mindstream, mindstream.cli.app, mindstream.tracing, mindstream.cli.shell.output as output\n"
        "for name in set(mindstream.__all__) - {'Town', 'Resident', 'Place'}: getattr(mindstream, name)\n"
        "for attempt in (lambda: mindstream.tracing.trace(True), lambda: output.picture({})):\n"
        "    try: attempt()\n"
        "    except mindstream.SettingsError as error: print(str(error).partition('pip')[2])\n"
    )
    assert done.stdout.split("\n")[:2] == [" install 'mindstream[otlp]'", " install 'mindstream[charts]'"], done.stderr


@pytest.mark.parametrize(("file", "extra"), [("page.html", "web"), ("paper.pdf", "documents")])
async def test_a_file_that_needs_an_extra_names_it(
    file: str, extra: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / file).write_text("<p>words</p>")
    for name in ("selectolax", "pypdf"):
        (tmp_path / f"{name}.py").write_text(f"raise ModuleNotFoundError('no', name={name!r})")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ToolError, match=rf"pip install 'mindstream\[{extra}\]'"):
        await Folder(tmp_path).read(file)
