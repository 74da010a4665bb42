"""Modules are joined into one script that behaves the same; unsupported syntax is refused, not guessed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from mindstream_studio.joining import join_modules, join_pages
from mindstream_studio.recorded import STATIC
from studio import NPM


def write(folder: Path, **modules: str) -> Path:
    for name, text in modules.items():
        (folder / f"{name}.js").write_text(text, "utf-8")
    return folder / "entry.js"


@pytest.mark.skipif(NPM is None, reason="node is not installed: the joined script is not run")
def test_joined_modules_behave_like_separate_ones(tmp_path: Path) -> None:
    entry = write(
        tmp_path,
        entry='import { add, Counter as Count } from "./sums.js";\nimport { ONE } from "./one.js";\n'
        "// said aloud\nconst count = new Count();\ncount.up();\nconsole.log(add(ONE, count.now), ONE);\n",
        sums='import { ONE } from "./one.js";\n/** Adds.\n * @param {number} a */\n'
        "export const add = (a, b) => a + b;\nexport class Counter { now = 0; up() { this.now += ONE; } }\n",
        one='export const ONE = 1; // not "import"\n',
    )
    script, modules = join_modules(entry)
    assert [each.name for each in modules] == ["one.js", "sums.js", "entry.js"]
    assert "said aloud" not in script and "@param" not in script and script.count("const ONE") == 1
    assert run(script) == ["2 1"]


@pytest.mark.skipif(NPM is None, reason="node is not installed: the joined script is not run")
def test_library_export_forms_and_dynamic_imports_are_joined(tmp_path: Path) -> None:
    entry = write(
        tmp_path,
        entry='import { half } from "./lib.js";\nimport twice from "./lib.js";\n'
        'export { NAME as name } from "./old.js";\n'
        'const say = (/** @type {import("./lib.js").Any} */ one) => console.log(twice(one.ONE), half(4), one.name);\n'
        'import("./later.js").then(say);\nimport("./gone.js").catch((error) => console.log(error.message));\n',
        lib='import{ONE as o}from"./one.js";const h=n=>n/2;var u=1;'
        "export{h as half,u as rest};export default function(n){return 2*n*o}",
        one="export const ONE = 1;\n",
        later='import { ONE } from "./one.js";\nexport { ONE };\nexport { NAME as name } from "./old.js";\n',
        old='export const NAME = "old";\n', gone="throw new Error();\n",
    )  # fmt: skip
    script, modules = join_modules(entry, {tmp_path / "gone.js"})
    assert {each.name for each in modules} == {"lib.js", "one.js", "later.js", "old.js", "entry.js"}
    assert run(script) == ["The file does not contain this part.", "2 2 old"]


def run(script: str) -> list[str]:
    """Run a script, and return its output lines."""
    done = subprocess.run(["node", "-e", script], capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('import one from "./one.js";\n', "imports default from one.js, which does not export it"),
        ('import { two } from "./one.js";\n', "imports two from one.js, which does not export it"),
        ('import * as one from "./one.js";\n', "of import or export is not supported"),
        ('export * from "./one.js";\n', "of import or export is not supported"),
        ("const later = import(`./one.js`);\n", "of import or export is not supported"),
        ('import { two } from "./entry.js";\nexport const one = 1;\n', "imports itself"),
    ],
)
def test_unsupported_module_syntax_is_refused(tmp_path: Path, text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        join_modules(write(tmp_path, entry=text, one="export const one = 1;\n"))


def test_the_saved_town_page_needs_no_vendored_modules() -> None:
    assert not [each for each in join_modules(STATIC / "town" / "saved.js")[1] if each.parent.name == "vendor"]


def test_pages_share_the_modules_of_the_shell() -> None:
    made = join_pages(STATIC / "app.js")
    pages = {path.name for path in (STATIC / "pages").glob("*.js")}
    assert {path.name for path in made} == {"app.js", "uplot.js", "dagre.js", *pages}
    shell = made.pop(STATIC / "app.js")
    assert "shell[" not in shell and "'state.js': module" in shell and "'vendor/preact.js': module" in shell
    for path, text in made.items():
        assert "'state.js': module" not in text and "'vendor/preact.js': module" not in text, path
        assert path.name not in pages or ("shell['state.js']" in text and "export const Page = " in text), path


@pytest.mark.skipif(NPM is None, reason="node is not installed: the joined modules are not run")
def test_served_bundles_behave_like_separate_modules(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"type": "module"}', "utf-8")
    entry = write(
        tmp_path,
        entry='import { up } from "./count.js";\nup();\n'
        'import("./later.js").then(({ default: say, NAME }) => say(up(), NAME));\n',
        count="let now = 0;\nexport const up = () => (now += 1);\n",
        later='import { up as more } from "./count.js";\nexport { name as NAME } from "./name.js";\n'
        "export default (...words) => console.log(...words, more());\n",
        name='export const name = "later";\n',
    )
    made = join_pages(entry)
    assert [path.name for path in made] == ["entry.js", "later.js"]
    for path in tmp_path.glob("*.js"):
        path.unlink()
    for path, text in made.items():
        path.write_text(text, "utf-8")
    done = subprocess.run(["node", entry], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["2 later 3"]
