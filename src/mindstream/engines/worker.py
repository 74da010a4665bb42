"""What a worker does: one task after the other, in an event loop that stays; a task that is to stop is cancelled."""

from __future__ import annotations

import asyncio
import os
import pickle
import signal
import threading
import traceback
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import cache
from multiprocessing.connection import Connection
from typing import Any

SAVING_S = 30.0
"""So long a task that is stopped may take to save what it has done."""
STOP, END = "stop", "end"
"""What a worker is told beside tasks: stop what is under way; and let that be the last."""

Task = tuple[Callable[..., Awaitable[Any]], tuple[Any, ...]]
Answer = tuple[Any, BaseException | None]
Orders = asyncio.Queue[Task | str]


@cache
def _loop() -> asyncio.Runner:
    return asyncio.Runner()  # connections live from one task to the next


def carry_out(do: Callable[..., Awaitable[Any]], given: tuple[Any, ...], folder: str) -> Any:
    """Do a task in this process, in the folder of whoever gives it: paths may be told from there."""
    with suppress(OSError):  # on another machine it need not be there
        os.chdir(folder)
    return _loop().run(_doing(do, given))


async def _doing(do: Callable[..., Awaitable[Any]], given: tuple[Any, ...]) -> Any:
    return await do(*given)


def serve(line: Connection) -> None:
    """Do the tasks that come over a line, until it is let go of: then stop, save, end. Ctrl-C is for the other end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # blocked since it was begun
    _loop().run(_serve(line))
    os._exit(0)  # a thread that a task left does not hold it


async def _serve(line: Connection) -> None:
    orders: Orders = asyncio.Queue()
    threading.Thread(target=_listen, args=(line, orders, asyncio.get_running_loop()), daemon=True).start()
    while (order := await orders.get()) != END:
        if isinstance(order, str):
            continue  # it came as the task ended
        doing, heard = asyncio.ensure_future(_answer(*order)), asyncio.ensure_future(orders.get())
        await asyncio.wait({doing, heard}, return_when=asyncio.FIRST_COMPLETED)
        if not heard.done():
            heard.cancel()
        elif not doing.done():
            doing.cancel()
        with suppress(OSError):
            line.send_bytes(await doing)
        if heard.done() and not heard.cancelled() and heard.result() == END:
            return


def _listen(line: Connection, orders: Orders, loop: asyncio.AbstractEventLoop) -> None:
    """Pass on what comes; at the end, and where nobody is there any more, end, whatever the task does."""
    with suppress(EOFError, OSError):
        while (order := line.recv()) != END:
            loop.call_soon_threadsafe(orders.put_nowait, order)
    loop.call_soon_threadsafe(orders.put_nowait, END)
    threading.Event().wait(SAVING_S)
    os._exit(0)


async def _answer(do: Callable[..., Awaitable[Any]], given: tuple[Any, ...]) -> bytes:
    """Do a task; return what comes of it, as it travels."""
    try:
        return pickle.dumps((await do(*given), None))
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 (it is raised where the task was given)
        error.add_note(f"in a worker: {traceback.format_exc()}")
        return _travelling(error)


def _travelling(error: BaseException) -> bytes:
    with suppress(Exception):
        pickle.loads(found := pickle.dumps((None, error)))
        return found
    return pickle.dumps((None, RuntimeError(f"{type(error).__name__}: {error}")))
