"""What a server that ended left open is taken up by the next one: thoughts about what was heard."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from mindstream.errors import MindstreamError
from mindstream.log.events import Heard, Opened
from mindstream.log.names import StreamKey, name_of
from mindstream.service.operations.who import LOCAL, Who

if TYPE_CHECKING:
    from mindstream.service.operations.house import House

MOST = 500
"""So many minds are opened for it; others go on when they are spoken to."""


async def take_up(house: House, tenants: list[str]) -> None:
    """Open the minds that have something to think about still; they close when they have nothing left."""
    for tenant in dict.fromkeys([LOCAL, *tenants]):
        who = Who(tenant, frozenset())
        for stream in (await house.ground(who).store.streams_with_work())[:MOST]:
            with contextlib.suppress(
                MindstreamError
            ):  # it is taken up when it is spoken to, or says then what is wrong
                await _take_up_one(house, who, stream)


async def _take_up_one(house: House, who: Who, stream: StreamKey) -> None:
    store, name = house.ground(who).store, name_of(stream)
    if name.kind != "user":
        return
    causes = {work.cause for work in await store.open_work(stream)}
    heard = [row for row in await store.events(stream, min(causes, default=1) - 1, [Heard.kind]) if row.seq in causes]
    if not heard:
        return  # a life's, or a run's: whoever lives or resumes it
    last = await store.last(stream, Opened.kind)
    speaker = last.event.pack if last is not None and isinstance(last.event, Opened) else ""
    session = heard[-1].event.session if isinstance(heard[-1].event, Heard) else None
    async with house.mind(who.of(name.id), session, speaker if speaker in house.speaker_names() else ""):
        pass
