"""What the studio shows before anything is begun: the public API over recordings that ship, below /recorded.

They are only to be read. They are unpacked into a folder of their own when somebody first asks for one, and that folder
goes with the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import lzma
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import FastAPI, Request
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response

from mindstream.clock import ManualClock
from mindstream.log.database import FILE
from mindstream.log.files import private_database, private_folder
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.server.asgi import App, Receive, Scope, Send
from mindstream.server.doors import Doors, add_problems
from mindstream.server.events import add_events
from mindstream.server.idempotency import Writes
from mindstream.server.ledger import Ledger
from mindstream.server.problems import TYPE, body_of, problem
from mindstream.server.rest import add_rest
from mindstream.service.operations.house import House
from mindstream.service.operations.offered import Offered
from mindstream.service.operations.refusals import Forbidden
from mindstream.service.operations.shapes import Reply
from mindstream.service.operations.who import LOCAL, Who
from mindstream.settings import Settings

if TYPE_CHECKING:
    from mindstream.clock import Moment

PATH = "/recorded"
PACKED = Path(__file__).parent / "recorded.db.xz"
HAMLET = "hamlet"
LONG = 10_000
"""Answers of so many bytes are packed: a town's recording is a fifth of its size then."""
READER = Who(LOCAL, frozenset({"read"}), key="recorded")
"""Whoever asks may read all of it, and change nothing."""
BEGIN = {
    "minds": "mindstream chat",
    "memory": "mindstream chat",
    "plans": "mindstream solve",
    "life": "mindstream live",
    "pools": "mindstream pool create",
    "towns": "mindstream town open recorded",
}
"""With what one's own is begun, by room."""


class RecordingShape(Reply):
    """A recording: on which `page` it is looked at, whose it is (`user`, or a `town`, a `pool`), and who answered.

    `timed`: its seconds are those in which it happened; else it was played back, and they mean nothing.
    """

    page: str
    title: str
    who: str
    user: str = ""
    town: str = ""
    pool: str = ""
    timed: bool = False


MIND = "A language mind behind an endpoint"
RECORDINGS = (
    RecordingShape(page="talk", user="ann", title="A talk with the coach of sleep", who=MIND),
    RecordingShape(page="memory", user="ann", title="What that talk left in memory, and two sleeps", who=MIND),
    RecordingShape(page="town", town=HAMLET, title="A hamlet of six in the Danube delta, on two days", who=MIND),
    RecordingShape(page="plan", user="dora", title="A question answered in three ways, and one in part", who=MIND),
    RecordingShape(page="life", user="museum", title="Two days of a museum's helper", who=MIND),
    RecordingShape(page="pools", user="olga", pool="tongues", title="Three tutors share what they found", who=MIND),
    RecordingShape(page="pools", user="olga", pool="answers", title="What a pool learns of 138 pairs", who="Stand-ins"),
    RecordingShape(page="traces", user="museum", title="Every call of that life, word by word", who=MIND),
)
"""What is there to be looked at."""


class Recorded:
    """The API over the recordings: an ASGI application that opens at the first request, and is closed by `running`."""

    listed = tuple(each.model_dump() for each in RECORDINGS)
    """What there is: known before any of it is opened."""

    def __init__(self, packed: Path = PACKED) -> None:
        self._packed, self._opening = packed, asyncio.Lock()
        self._inner: App | None = None
        self._opened = contextlib.AsyncExitStack()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._opening:
            if self._inner is None:
                self._inner = await self._open()
        state = {**scope.get("state", {}), "who": READER}
        await self._inner({**scope, "state": state}, receive, send)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Close it, and take its folder away, when the block ends."""
        async with self._opened:
            yield

    async def _open(self) -> App:
        folder = Path(self._opened.enter_context(tempfile.TemporaryDirectory(prefix="mindstream-recorded-")))
        house = await open_recorded(folder, self._packed)
        ledger = Ledger(house.own_store, house.clock)
        await self._opened.enter_async_context(house)
        return build_api(house, Writes(house, ledger))


def add_recorded(doors: Doors) -> None:
    """Let a server answer for the recordings, too, below /recorded."""
    recorded = Recorded()
    doors.api.mount(PATH, recorded)
    doors.keep_open(recorded.running())


async def open_recorded(folder: Path, packed: Path = PACKED) -> House:
    """Return a house, that is still to be opened, over the recordings; they are unpacked into a folder."""
    await asyncio.to_thread(unpack, packed, folder)
    offered = Offered(towns={(LOCAL, HAMLET): folder / HAMLET})
    clock = ManualClock(await last_moment(folder / "data"))
    return House(Settings(data=folder / "data", model="rules", roles={}), clock=clock, offered=offered)


def unpack(packed: Path, folder: Path) -> None:
    """Put the recordings, and the hamlet, into a folder."""
    from mindstream.town.saves.recorded import unpack_world

    path = private_folder(folder / "data") / FILE
    private_database(path)
    path.write_bytes(lzma.decompress(packed.read_bytes()))
    unpack_world("recorded", folder / HAMLET)


async def last_moment(folder: Path) -> Moment:
    """Return when the last of it happened: there its clock stands still."""
    async with SqliteStore(folder) as store:
        rows = await store.events(None, limit=1_000_000)
    return max(row.at for row in rows)


def build_api(house: House, writes: Writes) -> FastAPI:
    """Return the public API over a house whose readers are told how they begin something of their own."""
    api = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    add_rest(api, house, writes)
    add_events(api, house)
    add_problems(api)
    api.add_exception_handler(Forbidden, _tell)
    api.add_middleware(GZipMiddleware, minimum_size=LONG, compresslevel=4)
    return api


async def _tell(request: Request, _: Exception) -> Response:
    room = str(getattr(request.scope.get("route"), "name", "")).partition(".")[0]
    own = f"; begin your own with `{BEGIN[room]}`" if room in BEGIN else ""
    found = problem("forbidden", f"this is a recording, and only to be read{own}")
    return Response(body_of(found), found.status, None, TYPE)
