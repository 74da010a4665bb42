"""A conversation without a terminal: one utterance a line."""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
import threading
from collections import deque
from concurrent.futures import Future
from dataclasses import dataclass

from mindstream.cli.conversation import Conversation
from mindstream.errors import MindstreamError, StorageError

CHUNK = 1 << 16
LONGEST = 8_000_000
"""Bytes of a line that are kept; the mind refuses long before, and says so."""
AT_ONCE = 500
"""Utterances that may wait for their answer at once."""


@dataclass(frozen=True, slots=True)
class InputLine:
    """A line with words in it."""

    number: int
    text: str


class Lines:
    """Lines from a descriptor, as they come; blank ones are passed over, and bytes that are not UTF-8 survive as �.

    A thread of its own waits for them: one that does not hold up the end of the process, and reads no further ahead
    than it must.
    """

    def __init__(self, descriptor: int = 0) -> None:
        self._descriptor = descriptor
        self._ready: deque[InputLine] = deque()
        self._rest = bytearray()
        self._number = 0
        self._ended = False

    async def next(self) -> InputLine | None:
        """Return the next line, or None at the end."""
        while not self._ready and not self._ended:
            self._take(await asyncio.wrap_future(self._chunk()))
        return self._ready.popleft() if self._ready else None

    def _chunk(self) -> Future[bytes]:
        future: Future[bytes] = Future()
        future.set_running_or_notify_cancel()  # nobody can cancel it: the thread always has somebody to tell

        def read() -> None:
            try:
                select.select([self._descriptor], [], [])
                chunk = os.read(self._descriptor, CHUNK)
            except OSError:
                chunk = b""  # a terminal that went away is an end, too
            with contextlib.suppress(RuntimeError):  # the loop may be gone by now
                future.set_result(chunk)

        threading.Thread(target=read, daemon=True).start()
        return future

    def _take(self, chunk: bytes) -> None:
        *whole, rest = chunk.split(b"\n")
        for part in whole:
            self._keep(part)
            self._line()
        self._keep(rest)
        if not chunk:
            self._ended = True
            self._line()

    def _keep(self, part: bytes) -> None:
        self._rest += part[: max(0, LONGEST - len(self._rest))]

    def _line(self) -> None:
        self._number += 1
        text = self._rest.decode("utf-8-sig" if self._number == 1 else "utf-8", "replace")
        self._rest.clear()
        if text.strip():
            self._ready.append(InputLine(self._number, text))


async def answer(conversation: Conversation, first: InputLine, lines: Lines, *, wait: bool) -> bool:
    """Answer all lines and finish all work; return whether every one could be taken.

    Args:
        wait: read the next line after the answer and all thinking; otherwise hear each at once.

    Raises:
        StorageError: nothing can be kept any more.
    """
    taken: list[bool] = []
    line: InputLine | None = first
    if wait:
        while line is not None:
            taken.append(await _said(conversation, line, None))
            await conversation.settled()
            line = await lines.next()
    else:
        room = asyncio.Semaphore(AT_ONCE)

        async def pour(line: InputLine, heard: asyncio.Event) -> None:
            async with room:
                taken.append(await _said(conversation, line, heard))

        async with asyncio.TaskGroup() as group:
            while line is not None:
                heard = asyncio.Event()
                group.create_task(pour(line, heard))
                await heard.wait()  # they are heard in their order
                line = await lines.next()
    await conversation.settled()
    return all(taken)


async def _said(conversation: Conversation, line: InputLine, heard: asyncio.Event | None) -> bool:
    try:
        await conversation.say(line.text, heard)
    except StorageError as error:
        conversation.complain(error, "storage")
        raise
    except MindstreamError as error:
        conversation.complain(error, "input", f"line {line.number}: ")
        return False
    return True
