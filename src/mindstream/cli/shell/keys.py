"""Handles keys typed in a terminal: keys that leave a prompt, and input between two prompts."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Awaitable, Iterator

from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent


def leaving_keys() -> KeyBindings:
    """Return the key bindings of a prompt: Ctrl-C clears the line, or leaves the prompt if the line is empty."""
    keys = KeyBindings()

    @keys.add("c-c")
    def _(event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt)

    return keys


@contextlib.contextmanager
def silent_keys() -> Iterator[None]:
    """Switch off the echo of input between two prompts; the next prompt gets that input, including Ctrl-D."""
    try:
        import termios

        before = termios.tcgetattr(sys.stdin)
    except (ImportError, OSError, ValueError):
        yield
        return
    silent = [*before]
    silent[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(sys.stdin, termios.TCSANOW, silent)
    try:
        yield
    finally:
        with contextlib.suppress(termios.error):  # the terminal may be closed
            termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


def is_watched() -> bool:
    """Return whether a user sees the output and can type."""
    return sys.stdin.isatty() and sys.stdout.isatty()


async def until_key(doing: Awaitable[object]) -> bool:
    """Wait for an awaitable. Cancel the awaitable when a key is pressed (not on Windows). Return whether a key was
    pressed.

    The typed keys are discarded. Call this inside of `silent_keys`.
    """
    loop, descriptor, pressed = asyncio.get_running_loop(), sys.stdin.fileno(), False

    def on_key() -> None:
        nonlocal pressed
        pressed = True
        loop.remove_reader(descriptor)
        discard_typed()
        limit.reschedule(loop.time())

    try:
        async with asyncio.timeout(None) as limit:
            with contextlib.suppress(NotImplementedError):
                loop.add_reader(descriptor, on_key)
            await doing
    except TimeoutError:
        if not pressed:
            raise
    finally:
        with contextlib.suppress(NotImplementedError):
            loop.remove_reader(descriptor)
    return pressed


def discard_typed() -> None:
    """Discard input that was typed before a question was shown, because it is not an answer."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import termios

        with contextlib.suppress(termios.error):
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
