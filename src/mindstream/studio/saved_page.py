"""Pages that are saved to a file: style, script and data in one HTML file, with a policy that lets in nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import zlib
from collections.abc import Collection, Sequence
from html import escape
from pathlib import Path

from mindstream.studio.joining import join_modules
from mindstream.town.formats.files import write_text

STATIC = Path(__file__).parent / "static"
LINE = 20_000
"""So many characters of the data stand on a line: editors choke on longer ones."""
HEAD = "<!doctype html>\n<!-- a saved page of mindstream -->\n"
MAIN = "<main></main>"
PAGE = """<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{place}
<noscript><p>This page shows what it holds with a script of its own; without it there is nothing to see.</p></noscript>
<script type="application/octet-stream" id="recording">
{data}
</script>
<script>{script}</script>
</body>
</html>
{licences}"""


def build_saved_page(
    title: str,
    entry: str,
    styles: Sequence[str],
    data: object,
    place: str = MAIN,
    without: Collection[str] = (),
) -> str:
    """Return a page that runs a module with its data; files are named from the studio's `static/`.

    What people or models wrote stands in the packed data alone, so that it cannot be markup.

    Args:
        place: the element in which the module shows itself.
        without: modules that are left out, as `join_modules` takes them.
    """
    style = "\n".join((STATIC / name).read_text("utf-8") for name in styles)
    script, modules = join_modules(STATIC / entry, {STATIC / name for name in without})
    said = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    packed = base64.b64encode(zlib.compress(said.encode("utf-8", "replace"), 9)).decode()
    policy = (
        f"default-src 'none'; script-src {_source(script)}; style-src {_source(style)}; base-uri 'none';"
        " form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    lines = "\n".join(packed[at : at + LINE] for at in range(0, len(packed), LINE))
    return HEAD + PAGE.format(
        policy=policy,
        title=escape(title),
        style=style,
        data=lines,
        script=script,
        place=place,
        licences=_licences_of(modules),
    )


def write_saved_page(out: Path, page: str) -> None:
    """Write a page to a file; one that was saved there before is replaced.

    Raises:
        InputError: another file is there, or it cannot be written.
    """
    if is_saved_page(out):
        out.unlink()
    write_text(out, page)


def is_saved_page(file: Path) -> bool:
    """Tell whether a file was written as a saved page, and may be written anew."""
    if file.is_symlink() or not file.is_file():
        return False
    head = HEAD.encode()
    with file.open("rb") as there:
        return there.read(len(head)) == head


def _licences_of(modules: Collection[Path]) -> str:
    """Return the licences of the libraries among some modules, as a comment."""
    vendor = STATIC / "vendor"
    versions = json.loads((vendor / "versions.json").read_text("utf-8"))
    packages = sorted({versions[each.name]["package"] for each in modules if each.parent == vendor})
    texts = [(vendor / f"LICENSE-{each.strip('@').replace('/', '-')}").read_text("utf-8") for each in packages]
    told = "\n".join(f"{package}\n\n{text}" for package, text in zip(packages, texts, strict=True))
    return f"<!-- In this page are libraries, under these licences.\n\n{told}-->\n" if packages else ""


def _source(text: str) -> str:
    """Name a script or style as a Content-Security-Policy does."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"
