"""The static files of the studio: typed, small, of known origin, with a strict policy."""

from __future__ import annotations

import hashlib
import json
import re
import subprocess

from mindstream_studio.serve import POLICY, STATIC, read_pages
from served import Served
from studio import TOOLS

MOST_BYTES = 350_000


def test_the_modules_pass_the_type_checker(node_tools: None) -> None:
    tsc = TOOLS / "node_modules" / ".bin" / "tsc"
    done = subprocess.run([tsc, "-p", STATIC / "jsconfig.json"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def test_the_size_of_the_pages_is_limited() -> None:
    assert sum(len(page.packed) for page in read_pages().values()) < MOST_BYTES


def test_vendored_files_match_their_hashes() -> None:
    folder = STATIC / "vendor"
    versions = json.loads((folder / "versions.json").read_text("utf-8"))
    assert set(versions) == {path.name for path in folder.glob("*") if path.suffix in (".js", ".css")}
    for name, about in versions.items():
        assert hashlib.sha256((folder / name).read_bytes()).hexdigest() == about["sha256"], name
        assert (folder / f"LICENSE-{about['package'].strip('@').replace('/', '-')}").exists()
    wanted = json.loads((TOOLS / "package.json").read_text("utf-8"))["dependencies"]
    assert {each["package"]: each["version"] for each in versions.values()} == wanted


def test_scripts_write_no_markup_and_styles_use_design_tokens() -> None:
    own = [path for path in STATIC.rglob("*.js") if path.parent.name != "vendor"]
    markup = re.compile(r"innerHTML|outerHTML|insertAdjacentHTML|dangerouslySet|document\.write|\beval\(")
    assert [path.name for path in own if markup.search(path.read_text("utf-8"))] == []
    colour = re.compile(r"#[0-9a-f]{3,8}\b|\brgb\(|\bhsl\(|\boklch\(", re.IGNORECASE)
    sheets = [path for path in STATIC.rglob("*.css") if path.name != "tokens.css" and path.parent.name != "vendor"]
    assert [path.name for path in sheets if colour.search(path.read_text("utf-8"))] == []


def test_pages_have_a_strict_policy_and_are_cached(served: Served) -> None:
    with served.client() as client:
        first = client.get("/studio/")
        assert first.status_code == 200
        assert first.headers["content-security-policy"] == POLICY
        assert "unsafe" not in POLICY
        again = client.get("/studio/", headers={"if-none-match": first.headers["etag"]})
        assert (again.status_code, again.content) == (304, b"")
        assert client.get("/studio", follow_redirects=False).headers["location"] == "/studio/"
        assert client.get("/studio/vendor/preact.d.ts").status_code == 404
        assert client.get("/studio/../serve.py").status_code == 404
        assert client.get("/studio/%2e%2e/serve.py").status_code == 404
