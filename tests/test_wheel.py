"""A wheel installed outside the checkout is the whole library and nothing else."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path
from zipfile import ZipFile

import pytest
from test_docs import blocks

import mindstream

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]
DATA = {".md", ".npz", ".yaml", ".txt"}


def run(*command: str | Path, cwd: Path) -> str:
    """Run a command without access to the checkout; return its output."""
    done = subprocess.run(list(map(str, command)), cwd=cwd, env={}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    run(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder, cwd=ROOT)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A new environment with the wheel; dependencies come from the test environment, but not the checkout."""
    home = tmp_path_factory.mktemp("fresh")
    run(sys.executable, "-m", "venv", "--without-pip", home, cwd=home)
    python = home / "bin" / "python"
    site = Path(run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=home).strip())
    (site / "dependencies.pth").write_text(
        "\n".join(dict.fromkeys(sysconfig.get_path(name) for name in ("purelib", "platlib"))) + "\n"
    )
    pip = (sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-deps", "--no-index")
    run(*pip, "--ignore-installed", "--disable-pip-version-check", wheel, cwd=home)
    return home


def test_the_wheel_contains_only_the_package_and_its_data(wheel: Path) -> None:
    source = ROOT / "src"
    here = {path for path in (source / "mindstream").rglob("*") if path.is_file() and path.suffix != ".pyc"}
    wanted = {path.relative_to(source).as_posix() for path in here}
    with ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
        notes = [name for name in archive.namelist() if ".dist-info/" in name]
    assert packed == wanted
    assert {Path(name).suffix for name in packed} >= DATA
    assert {"mindstream/py.typed", "mindstream/coach/packs/danger.npz"} <= packed
    assert {name.partition("/")[0] for name in notes} == {f"mindstream-{mindstream.__version__}.dist-info"}
    assert any(name.endswith("LICENSE") for name in notes)


@pytest.mark.parametrize(
    ("code", "output"), [pytest.param(code, output, id=name) for name, code, output in blocks() if "README" in name]
)
def test_the_readme_runs_with_only_the_wheel_installed(code: str, output: str, installed: Path, tmp_path: Path) -> None:
    python = installed / "bin" / "python"
    home = run(python, "-I", "-c", "import mindstream; print(mindstream.__file__)", cwd=tmp_path)
    assert home.startswith(str(installed))
    assert run(python, "-I", "-c", code, cwd=tmp_path) == output


def test_the_command_is_installed(installed: Path, tmp_path: Path) -> None:
    assert mindstream.__version__ in run(installed / "bin" / "mindstream", "--version", cwd=tmp_path)
