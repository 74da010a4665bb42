"""The documentation as a site: complete, without a broken link, and readable without a network."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import mindstream

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]
OTHER = r"""=["']?(?:https?:)?//"""
LOADED = re.compile(rf"<(?:script|img|iframe|source)\b[^>]*\bsrc{OTHER}|<link\b[^>]*\bhref{OTHER}")
IMPORTED = re.compile(r"@import|url\(\s*[\"']?(?:https?:)?//")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("material", reason="pip install '.[docs]'")
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    quiet = os.environ | {"NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=ROOT, env=quiet, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_every_page_is_in_the_navigation_and_built(site: Path) -> None:
    navigation = (ROOT / "mkdocs.yml").read_text("utf-8").partition("\nnav:")[2]
    for page in (ROOT / "docs").rglob("*.md"):
        name = page.relative_to(ROOT / "docs").as_posix()
        assert re.search(rf"[\s\[]{re.escape(name)}\b", navigation), f"{name} is not in the navigation"
        assert (site / ("" if name == "index.md" else name.removesuffix(".md")) / "index.html").is_file()


def test_pages_load_nothing_from_other_servers(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 50
    assert [page.name for page in pages if LOADED.search(page.read_text("utf-8"))] == []
    assert [sheet.name for sheet in site.rglob("*.css") if IMPORTED.search(sheet.read_text("utf-8"))] == []


def test_the_reference_has_every_public_name_and_operation(site: Path) -> None:
    python = (site / "reference" / "python" / "index.html").read_text("utf-8")
    assert [name for name in mindstream.__all__ if not re.search(rf"<h2[^>]*>.*?\b{name}\b", python, re.DOTALL)] == []
    rest = (site / "reference" / "rest" / "index.html").read_text("utf-8")
    assert "POST /api/v1/users/{user}/memories/recall" in rest and "Find" in rest
