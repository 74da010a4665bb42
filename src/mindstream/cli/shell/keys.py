"""Keys of the terminal: which leave a line in which is typed, which show nothing, which count no more."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterator

from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent


def leaving_keys() -> KeyBindings:
    """Return the keys of a line in which is typed."""
    keys = KeyBindings()

    @keys.add("c-c")
    def _(event: KeyPressEvent) -> None:
        """Ctrl-C: clear what is typed; with nothing typed, leave."""
        if event.current_buffer.text:
            event.current_buffer.reset()
        else:
            event.app.exit(exception=KeyboardInterrupt)

    return keys


@contextlib.contextmanager
def silent_keys() -> Iterator[None]:
    """Between two prompts, show nothing of what is typed and keep it, Ctrl-D too, for the next prompt."""
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
        with contextlib.suppress(termios.error):  # the terminal may have gone away
            termios.tcsetattr(sys.stdin, termios.TCSANOW, before)


def forget_typed() -> None:
    """Let go of what was typed before a question was there: it is no answer to it."""
    with contextlib.suppress(ImportError, OSError, ValueError):
        import termios

        with contextlib.suppress(termios.error):
            termios.tcflush(sys.stdin, termios.TCIFLUSH)
