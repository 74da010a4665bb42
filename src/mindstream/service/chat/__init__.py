"""Conversations of chat pages such as Open WebUI: the companion, branches, and tasks of the pages themselves."""

from collections.abc import Iterable

from mindstream.plugins import Plugin, Role


def _events() -> Iterable[type]:
    from mindstream.service.chat.companion import EVENTS

    return EVENTS


PLUGIN = Plugin(
    "chat_pages",
    roles=(Role("side_tasks", "answers requests that chat pages make for their own use: titles, tags", ("facts",)),),
    events=_events,
)
