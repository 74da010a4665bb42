"""Operations for whoever looks at a run: what happened in it row by row, and which calls of models it took."""

from __future__ import annotations

from pydantic import JsonValue

from mindstream.service.operations.house import House
from mindstream.service.operations.logs import CallShape, CallsRequest, list_calls
from mindstream.service.operations.plans import RunName
from mindstream.service.operations.refusals import NotFound
from mindstream.service.operations.shapes import MOST_PAGE, Reply
from mindstream.service.operations.table import operation
from mindstream.service.operations.who import Who


class RunRows(Reply):
    """A run's rows of the log, oldest first (see planning/events), and the calls of models that it took."""

    run: str
    rows: list[dict[str, JsonValue]]
    calls: list[CallShape]


@operation("plans.rows", "read", "GET /users/{user}/plans/{run}/rows", cli="log")
async def rows(house: House, who: Who, ask: RunName) -> RunRows:
    """Return what happened in a run: its plans, when each step began and what it found, what it had taken by then."""
    from mindstream.planning.events import Solving
    from mindstream.planning.journal import read_rows

    memory = await house.memory(who)
    found = await read_rows(memory, ask.run)
    if not found:
        raise NotFound(f"there is no run {ask.run!r} here")
    calls: list[CallShape] = []
    for row in found:
        if isinstance(row.event, Solving):
            about = CallsRequest(about=row.seq, limit=MOST_PAGE)
            calls += reversed((await list_calls(memory.store, memory.key, about)).calls)
    return RunRows(run=ask.run, rows=[row.row() for row in found], calls=calls)
