"""A page in a real browser: headless Chromium, controlled through its own protocol."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import aiohttp

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE_S = 100.0
COMPLAINTS = ("Page.javascriptDialogOpening", "Runtime.exceptionThrown", "Runtime.consoleAPICalled", "Log.entryAdded")


class BrowserPage:
    """A page that is open.

    Attributes:
        complaints: dialogs, errors and messages of the console, and violations of its policy.
    """

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket, self._numbers = socket, itertools.count(1)
        self.complaints: list[dict[str, Any]] = []

    async def ask(self, method: str, **params: object) -> dict[str, Any]:
        """Send a command; return its result when it arrives, and keep earlier events."""
        number = next(self._numbers)
        await self._socket.send_json({"id": number, "method": method, "params": params})
        while True:
            message = await asyncio.wait_for(self._socket.receive_json(), PATIENCE_S)
            if message.get("method") in COMPLAINTS:
                self.complaints.append(message)
            if message.get("id") == number:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result

    async def evaluate(self, script: str) -> Any:
        """Return the value of a JavaScript expression."""
        answer = await self.ask("Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, answer
        return answer["result"].get("value")

    async def until(self, script: str) -> None:
        """Wait until an expression is true."""
        async with asyncio.timeout(PATIENCE_S):
            while not await self.evaluate(script):  # noqa: ASYNC110 (another process changes it)
                await asyncio.sleep(0.05)

    async def open(self, address: str) -> None:
        """Go to a page that marks itself as ready."""
        for room in ("Page", "Runtime", "Log"):
            await self.ask(f"{room}.enable")
        await self.ask("Page.navigate", url=address)
        await self.until("'ready' in (document.documentElement?.dataset ?? {})")

    async def press(self, key: str) -> None:
        """Press a key."""
        for kind in ("keyDown", "keyUp"):
            await self.ask("Input.dispatchKeyEvent", type=kind, key=key)

    async def click(self, selector: str) -> None:
        """Click on the middle of an element, like a user."""
        script = f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])({selector}.getBoundingClientRect())"
        x, y = await self.evaluate(script)
        for kind in ("mousePressed", "mouseReleased"):
            await self.ask("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)


@contextlib.asynccontextmanager
async def browser_page(folder: Path) -> AsyncIterator[BrowserPage]:
    """Start a browser that stores its data in a folder."""
    assert PROGRAM is not None
    process = await asyncio.create_subprocess_exec(
        PROGRAM, "--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--remote-debugging-port=0",
        "--window-size=1280,800", f"--user-data-dir={folder}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        port = folder / "DevToolsActivePort"
        async with asyncio.timeout(PATIENCE_S):
            while not port.exists() or "\n" not in port.read_text():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        where = f"http://127.0.0.1:{port.read_text().split()[0]}/json/list"
        async with aiohttp.ClientSession() as session:
            async with session.get(where) as answer:
                pages = [each for each in await answer.json(content_type=None) if each["type"] == "page"]
            async with session.ws_connect(pages[0]["webSocketDebuggerUrl"], max_msg_size=0) as socket:
                yield BrowserPage(socket)
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.terminate()
        await process.wait()
