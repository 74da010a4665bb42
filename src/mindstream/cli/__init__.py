"""The command line: a skin over `mindstream.service`."""

from __future__ import annotations

from mindstream.clock import SystemClock

STARTED = SystemClock().now()
"""When this process began, as far as the events of a conversation are concerned."""


def main() -> None:
    """Run the command that `sys.argv` holds, and exit."""
    try:
        from mindstream.cli.edge import run
    except KeyboardInterrupt:
        raise SystemExit(130) from None

    raise SystemExit(run())
