"""EventSource in a real browser: a page receives each event once, across restarts of the server."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
from chromium import PROGRAM, BrowserPage, browser_page
from served import ServerProcess

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="no Chromium is installed")
PAGE = b"""<!doctype html><html><meta charset="utf-8"><link rel="icon" href="data:,"><script>
const seen = [], opened = [];
function listen(address) {
  const events = new EventSource(address);
  events.onopen = () => opened.push(1);
  events.addEventListener("heard", (event) => seen.push([event.lastEventId, JSON.parse(event.data).text]));
}
document.documentElement.dataset.ready = "";
</script></html>"""


class PageServer(ThreadingHTTPServer):
    """Serves the page from a separate origin."""

    def __init__(self) -> None:
        class Answers(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200)
                self.send_header("content-type", "text/html")
                self.end_headers()
                self.wfile.write(PAGE)

            def log_message(self, *_: object) -> None:
                pass

        super().__init__(("127.0.0.1", 0), Answers)
        self.daemon_threads, self.block_on_close = True, False
        self.origin = f"http://127.0.0.1:{self.server_port}"


@pytest.fixture
def origin() -> Iterator[str]:
    server = PageServer()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.origin
    server.shutdown()
    server.server_close()


def send(server: ServerProcess, *texts: str) -> None:
    for text in texts:
        httpx.post(f"{server.url}/api/v1/users/ann/send", json={"text": text}, timeout=100).raise_for_status()


async def heard(page: BrowserPage, texts: list[str]) -> None:
    """Wait for as many events and check their order and increasing ids."""
    await page.until(f"seen.length >= {len(texts)}")
    seen = await page.evaluate("seen")
    assert [text for _, text in seen] == texts
    ids = [int(id_) for id_, _ in seen]
    assert ids == sorted(set(ids))


@pytest.mark.slow
async def test_a_browser_page_receives_each_event_once_across_restarts(
    tmp_path: Path, folder: Path, origin: str
) -> None:
    async with browser_page(tmp_path / "browser") as page:
        await page.open(origin)
        with ServerProcess(folder, "--allow-origin", origin) as server:
            port = int(server.url.rpartition(":")[2])
            send(server, "one")
            await page.evaluate(f"listen('{server.url}/api/v1/events?user=ann&kind=heard&after=0')")
            await heard(page, ["one"])
            send(server, "two", "three")
            await heard(page, ["one", "two", "three"])
            server.end(signal.SIGTERM)
        with ServerProcess(folder, "--allow-origin", origin, port=port) as server:
            send(server, "four")
            await heard(page, ["one", "two", "three", "four"])
            server.end(signal.SIGKILL)
        with ServerProcess(folder, "--allow-origin", origin, port=port) as server:
            send(server, "five", "six")
            await heard(page, ["one", "two", "three", "four", "five", "six"])
            assert await page.evaluate("opened.length") >= 3
