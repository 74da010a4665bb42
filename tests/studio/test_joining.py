"""Modules become one script that does the same; a form that is not known is refused, not guessed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from studio import NPM

from mindstream.studio.joining import join_modules, join_pages
from mindstream.studio.saved_page import STATIC


def write(folder: Path, **modules: str) -> Path:
    for name, text in modules.items():
        (folder / f"{name}.js").write_text(text, "utf-8")
    return folder / "entry.js"


@pytest.mark.skipif(NPM is None, reason="node is not installed: the joined script is not run")
def test_what_is_joined_does_the_same(tmp_path: Path) -> None:
    entry = write(
        tmp_path,
        entry='import { add, Counter as Count } from "./sums.js";\nimport { ONE } from "./one.js";\n'
        "// said aloud\nconst count = new Count();\ncount.up();\nconsole.log(add(ONE, count.now), ONE);\n",
        sums='import { ONE } from "./one.js";\n/** Adds.\n * @param {number} a */\n'
        "export const add = (a, b) => a + b;\nexport class Counter { now = 0; up() { this.now += ONE; } }\n",
        one='export const ONE = 1; // not "import"\n',
    )
    script = join_modules(entry)
    assert "said aloud" not in script and "@param" not in script and script.count("const ONE") == 1
    done = subprocess.run(["node", "-e", script], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["2", "1"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('import one from "./one.js";\n', "is a form that is not joined"),
        ('export * from "./one.js";\n', "is a form that is not joined"),
        ('const later = import("./one.js");\n', "is a form that is not joined"),
        ('import { two } from "./entry.js";\nexport const one = 1;\n', "imports itself"),
    ],
)
def test_what_cannot_be_joined_is_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        join_modules(write(tmp_path, entry=text, one="export const one = 1;\n"))


def test_the_town_needs_nothing_of_the_shell() -> None:
    assert "vendor" not in join_modules(STATIC / "town" / "saved.js")


def test_a_browser_asks_for_the_shell_and_a_page_and_no_module_is_there_twice() -> None:
    made, joined = join_pages(STATIC)
    assert {path.name for path in made} == {"app.js", *(path.name for path in (STATIC / "pages").glob("*.js"))}
    shell = made[STATIC / "app.js"]
    assert "shell[" not in shell and "'state.js': module" in shell and "/vendor/" not in shell.replace("import(", "")
    for path, text in made.items():
        if path.name != "app.js":
            assert "shell['state.js']" in text and "'state.js': module" not in text, path
    own = {path for path in STATIC.rglob("*.js") if path.parent.name != "vendor"}
    assert {path.name for path in own - joined} == {"html.js", "saved.js", "types.js"}
