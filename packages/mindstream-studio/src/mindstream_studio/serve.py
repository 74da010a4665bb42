"""Serve the studio's pages below /studio/: files of the package, without any user data.

They need no token, because the page that asks for the token is among them.
"""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response

from mindstream.server.admission import principal_of
from mindstream.service.operations.operation import LOCAL_PRINCIPAL
from mindstream_studio.joining import join_pages
from mindstream_studio.recorded import RECORDINGS, add_recorded

if TYPE_CHECKING:
    from mindstream.server.api_app import ApiApp

STATIC = Path(__file__).parent / "static"
PREFIX = "/studio/"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "font-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
ALWAYS = {"content-security-policy": POLICY, "cache-control": "no-cache", "vary": "accept-encoding"}
KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".json": "application/json",
    ".png": "image/png",
}
"""Served media types by suffix; other files (types, licences) are not served."""


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file of the studio: its content, and the same compressed with gzip."""

    body: bytes
    packed: bytes
    kind: str
    etag: str


def read_pages(folder: Path = STATIC) -> dict[str, PageFile]:
    """Read all served files by their path below /studio/; JavaScript modules are bundled."""
    folder = folder.resolve()
    made = join_pages(folder / "app.js")
    return {
        path.relative_to(folder).as_posix(): read_page(path, made.get(path))
        for path in sorted(folder.rglob("*"))
        if path.suffix in KINDS and path.name != "jsconfig.json" and (path in made or path.suffix != ".js")
    }


def read_page(path: Path, text: str | None = None) -> PageFile:
    """Read one file; `text` is used instead of the file's content if it is given."""
    body = path.read_bytes() if text is None else text.encode()
    etag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
    return PageFile(body, gzip.compress(body, mtime=0), KINDS[path.suffix], etag)


def add_studio(api_app: ApiApp) -> None:
    """Mount the pages and the shipped recordings on a server. Browsers check for a newer version of a page at each
    request."""
    pages, api = read_pages(STATIC), api_app.api
    data = str(api_app.runtime.settings.data.resolved())

    async def page(request: Request) -> Response:
        found = pages.get(request.path_params["path"] or "index.html")
        if found is None:
            return Response("this page does not exist", 404, media_type="text/plain")
        headers = ALWAYS | {"etag": found.etag}
        if request.headers.get("if-none-match") == found.etag:
            return Response(None, 304, headers)
        headers["content-type"] = found.kind
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(found.packed, 200, headers | {"content-encoding": "gzip"})
        return Response(found.body, 200, headers)

    async def about(request: Request) -> Response:
        """Describe the recordings; to programs on this machine that need no token, also tell the location of the
        data."""
        described: dict[str, Any] = {"recordings": [each.model_dump() for each in RECORDINGS]}
        if principal_of(request.scope) == LOCAL_PRINCIPAL:
            described["data"] = data
        return JSONResponse(described, headers={"cache-control": "no-store"})

    async def front(_: Request) -> Response:
        return RedirectResponse(PREFIX)

    api.add_route(PREFIX.rstrip("/"), front, include_in_schema=False)
    api.add_route(PREFIX + "about.json", about, include_in_schema=False)
    api.add_route(PREFIX + "{path:path}", page, include_in_schema=False)
    add_recorded(api_app)
