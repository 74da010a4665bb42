"""The command line: an interface to `mindstream.service`."""

from __future__ import annotations

import mindstream.clock  # noqa: F401 (which notes when this process began)


def main() -> None:
    """Run the command that `sys.argv` holds, and exit."""
    try:
        from mindstream.cli.edge import run
    except KeyboardInterrupt:
        raise SystemExit(130) from None

    raise SystemExit(run())
