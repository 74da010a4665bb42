"""A person's place in a pool, as their settings and a flag name it: what `--pool` hands to a talk, a run, a life."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable

from mindstream.errors import InputError
from mindstream.models.model import Model
from mindstream.service.pools import open_pool
from mindstream.settings import Settings
from mindstream.sharing.exemplar import Exemplar
from mindstream.sharing.member import Member
from mindstream.sharing.shots import render_shot


@contextlib.asynccontextmanager
async def open_member(
    settings: Settings, name: str, *, scorer: Model | None = None, model: str = "",
    render: Callable[[Exemplar], str] = render_shot,
) -> AsyncIterator[Member | None]:  # fmt: skip
    """Open the user's place in a pool; None where no pool is named.

    Args:
        scorer: who grades what is offered; None: it only reads. model: who answers.

    Raises:
        InputError: there is no such pool, the user is none of its members, or nothing could be offered to it.
    """
    if not name:
        yield None
        return
    async with open_pool(settings, name) as pool:
        state = await pool.member_state(settings.user)
        if scorer and not state.rubrics:
            raise InputError(f"the pool {name!r} has no frozen rubric, so nothing can be offered to it")
        yield Member(pool, settings.user, model, scorer, render=render)
