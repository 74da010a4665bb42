"""Open a mind according to the settings."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

from mindstream.clock import MachineZone
from mindstream.coach.coach import Coach, named_reasoners
from mindstream.coach.packs.load import load
from mindstream.memory.recall.exemplars import Exemplars
from mindstream.minds.mind import Mind
from mindstream.minds.responder import Timeouts
from mindstream.service.folders import refuse_town_in
from mindstream.service.memory import policy_given
from mindstream.service.opening import answering
from mindstream.settings import Settings
from mindstream.tools.tool import Tool


@contextlib.asynccontextmanager
async def open_mind(
    settings: Settings,
    *,
    session: str | None = None,
    record: Path | None = None,
    exemplars: Exemplars | None = None,
    follow_ups: bool = True,
    tools: Sequence[Tool] = (),
    reasoners: Sequence[str] = (),
) -> AsyncIterator[Mind]:
    """Open the mind that the settings describe; its reasoners run during the `with` block.

    Args:
        session: the conversation to continue; None: a new one.
        record: a file to which every model call is written, for `playback:FILE`; None: no file is written.
        exemplars: finds the exemplars that the talker is shown.
        follow_ups: allow unsolicited follow-ups (see coach.coach).
        tools: tools that its reasoners may call in addition to their own.
        reasoners: names of reasoners in addition to those of the pack (see `named_reasoners`).

    Raises:
        UserError: a name, a pack or a folder is not valid.
        StorageError: the data cannot be read or written.
    """
    await refuse_town_in(settings.data)
    more = [name for name in reasoners if name not in load(settings.pack).reasoners]
    async with (
        answering(settings, record=record) as models,
        Mind.open(
            settings.data,
            user=settings.user,
            session=session,
            model=models,
            responder=Coach.using(
                settings.pack, settings.gate, exemplars, follow_ups, settings.timezone or MachineZone()
            ),
            embed=settings.named_embedder,
            tools=tools,
            reasoners=named_reasoners(more, models),
            timeouts=Timeouts(deadline_s=settings.deadline_s),
            policy=policy_given(settings),
        ) as mind,
    ):
        yield mind
