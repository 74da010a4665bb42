"""The studio: web pages over the server's API that show and control minds, plans, lives, pools and towns
(docs/studio-inside.md)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mindstream.plugins import Plugin

if TYPE_CHECKING:
    from mindstream.server.api_app import ApiApp


def _add_pages(api_app: ApiApp) -> None:
    from mindstream_studio.serve import add_studio

    add_studio(api_app)


PLUGIN = Plugin(
    "studio",
    commands={
        "studio": (
            "Open the studio: pages to watch and use agents.",
            "mindstream_studio.commands.studio",
        ),
        "demo": ("Play a recording of the coach, a plan, a life, a town or a pool.", "mindstream_studio.commands.demo"),
    },
    pages=_add_pages,
)
