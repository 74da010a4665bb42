"""The studio: pages over the server's API, to watch minds think and to live with them (docs/studio-inside.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mindstream.plugins import Plugin

if TYPE_CHECKING:
    from mindstream.server.doors import Doors


def _add_pages(doors: Doors) -> None:
    from mindstream_studio.recorded import add_recorded
    from mindstream_studio.serve import add_studio

    add_studio(doors.api)
    add_recorded(doors)


PLUGIN = Plugin(
    "studio",
    commands={
        "studio": (
            "Open the studio: pages to watch minds think, and to live with them.",
            "mindstream_studio.commands.studio",
        ),
        "demo": ("Play a recording of the coach, a plan, a life, a town or a pool.", "mindstream_studio.commands.demo"),
    },
    pages=_add_pages,
)
