"""What the studio shows before anything is begun: the public API over recordings that ship, below /recorded.

They are only to be read. They are unpacked into a folder of their own when somebody first asks for one, and that folder
goes with the server.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import hashlib
import json
import lzma
import tempfile
import zlib
from collections.abc import AsyncIterator, Collection, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from html import escape
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

from fastapi import FastAPI, Request
from mindstream_town.formats.files import write_text
from mindstream_town.replay.ground import ground_of
from mindstream_town.replay.recording import record
from mindstream_town.setting import Setting
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response

from mindstream.clock import ManualClock, format_iso
from mindstream.errors import InputError
from mindstream.log.database import FILE
from mindstream.log.files import private_database, private_folder
from mindstream.memory.memory import Memory
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.memory.store.store import Store
from mindstream.models.recording import PLAYED
from mindstream.server.asgi import App, Receive, Scope, Send
from mindstream.server.doors import Doors, add_problems
from mindstream.server.events import add_events
from mindstream.server.idempotency import Writes
from mindstream.server.ledger import Ledger
from mindstream.server.problems import TYPE, body_of, problem
from mindstream.server.rest import add_rest
from mindstream.service.memory import open_user_memory
from mindstream.service.operations.house import House
from mindstream.service.operations.offered import Offered
from mindstream.service.operations.shapes import Reply
from mindstream.service.operations.table import find_operation
from mindstream.service.operations.who import LOCAL, Forbidden, Who
from mindstream.settings import Settings
from mindstream_studio.joining import join_modules

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
    from mindstream_town.saves.importing import unpack_world

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


STATIC = Path(__file__).parent / "static"
LINE = 20_000
"""So many characters of the data stand on a line: editors choke on longer ones."""
HEAD = "<!doctype html>\n<!-- a saved page of mindstream -->\n"
MAIN = "<main></main>"
PAGE = """<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{place}
<noscript><p>This page shows what it holds with a script of its own; without it there is nothing to see.</p></noscript>
<script type="application/octet-stream" id="recording">
{data}
</script>
<script>{script}</script>
</body>
</html>
{licences}"""


def build_saved_page(
    title: str,
    entry: str,
    styles: Sequence[str],
    data: object,
    place: str = MAIN,
    without: Collection[str] = (),
) -> str:
    """Return a page that runs a module with its data; files are named from the studio's `static/`.

    What people or models wrote stands in the packed data alone, so that it cannot be markup.

    Args:
        place: the element in which the module shows itself.
        without: modules that are left out, as `join_modules` takes them.
    """
    style = "\n".join((STATIC / name).read_text("utf-8") for name in styles)
    script, modules = join_modules(STATIC / entry, {STATIC / name for name in without})
    said = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    packed = base64.b64encode(zlib.compress(said.encode("utf-8", "replace"), 9)).decode()
    policy = (
        f"default-src 'none'; script-src {_source(script)}; style-src {_source(style)}; base-uri 'none';"
        " form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )
    lines = "\n".join(packed[at : at + LINE] for at in range(0, len(packed), LINE))
    return HEAD + PAGE.format(
        policy=policy,
        title=escape(title),
        style=style,
        data=lines,
        script=script,
        place=place,
        licences=_licences_of(modules),
    )


def write_saved_page(out: Path, page: str) -> None:
    """Write a page to a file; one that was saved there before is replaced.

    Raises:
        InputError: another file is there, or it cannot be written.
    """
    if is_saved_page(out):
        out.unlink()
    write_text(out, page)


def is_saved_page(file: Path) -> bool:
    """Tell whether a file was written as a saved page, and may be written anew."""
    if file.is_symlink() or not file.is_file():
        return False
    head = HEAD.encode()
    with file.open("rb") as there:
        return there.read(len(head)) == head


def _licences_of(modules: Collection[Path]) -> str:
    """Return the licences of the libraries among some modules, as a comment."""
    vendor = STATIC / "vendor"
    versions = json.loads((vendor / "versions.json").read_text("utf-8"))
    packages = sorted({versions[each.name]["package"] for each in modules if each.parent == vendor})
    texts = [(vendor / f"LICENSE-{each.strip('@').replace('/', '-')}").read_text("utf-8") for each in packages]
    told = "\n".join(f"{package}\n\n{text}" for package, text in zip(packages, texts, strict=True))
    return f"<!-- In this page are libraries, under these licences.\n\n{told}-->\n" if packages else ""


def _source(text: str) -> str:
    """Name a script or style as a Content-Security-Policy does."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


Data = dict[str, Any]
"""What an operation answered, as it goes over the wire."""
STUDIO_STYLES = ("tokens.css", "base.css", "parts.css")
CALLS = "traces"
"""The page that shows calls of models."""
UNQUOTED = "!'()*"
"""What browsers leave as it is in a path, beside letters and digits."""
NO_BILL: Data = {"total": {"calls": 0}, "by": {}, "days": {}, "limits": None}
"""A bill is of all that a mind did: none is shown."""


@dataclass(slots=True)
class Saved:
    """What goes into a file.

    Attributes:
        page, link: the page that is opened first, and what its link says beside whose it is.
        models: who answered, as the log names them.
        answers: what the API answers, by path.
        rows: of the log, from which the page is answered what it asks of that.
        calls: of models, the newest first; without them the page that shows calls is not in the file.
        recalls: what was recalled, by question and time.
    """

    page: str
    title: str
    models: Sequence[str]
    link: Mapping[str, str]
    answers: Data
    rows: list[Data] = field(default_factory=list)
    calls: list[Data] = field(default_factory=list)
    recalls: list[Data] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Reading:
    """The public API, asked in the process, about one user."""

    house: House
    who: Who

    async def ask(self, operation: str, **asked: Any) -> Data:
        """Return what an operation answers.

        Raises:
            MindstreamError: see the operation.
        """
        found = find_operation(operation)
        answered: Data = (await found.ask(self.house, self.who, found.request(**asked))).model_dump(mode="json")
        return answered

    async def all_of(self, operation: str, name: str, **asked: Any) -> list[Data]:
        """Return what stands below a name on all pages of an answer."""
        found: list[Data] = []
        page: Data = {"next": ""}
        while not found or page["next"]:
            page = await self.ask(operation, cursor=page["next"], limit=200, **asked)
            found += page[name]
            if not page[name]:
                break
        return found

    async def memory(self) -> Memory:
        """Return the user's memory."""
        return await self.house.memory(self.who)

    def path(self, rest: str) -> str:
        """Name what is below a user's path, as pages ask for it."""
        return f"/users/{quote(self.who.user, safe=UNQUOTED)}/{rest}"

    async def add_calls(self, saved: Saved, seqs: Sequence[int]) -> None:
        """Add calls of models, word by word where that is kept, and what came of each utterance that they were for."""
        for seq in sorted(seqs, reverse=True):
            words = await self.ask("log.call", seq=seq)
            saved.calls.append(words["call"])
            saved.answers[self.path(f"calls/{seq}")] = words
        kept = {row["seq"] for row in saved.rows}
        for row in saved.rows:
            if row["event"] == "heard":
                trace = await self.ask("log.trace", seq=row["seq"])
                here = [each for each in trace["rows"] if each["seq"] in kept]
                saved.answers[self.path(f"traces/{row['seq']}")] = {"rows": here, "next": ""}
        saved.answers |= {"/cost": NO_BILL, "/towns": {"towns": []}}


@asynccontextmanager
async def open_reading(settings: Settings, *, recorded: bool = False) -> AsyncIterator[Reading]:
    """Open what a data folder, or the recordings that ship, hold of a user, only to read it.

    Raises:
        InputError: there is nothing of that user.
    """
    async with AsyncExitStack() as stack:
        if recorded:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="mindstream-recorded-")))
            house = await stack.enter_async_context(await open_recorded(folder))
            settings = settings.model_copy(update={"data": house.settings.data})
        async with open_user_memory(settings, known=True):
            pass
        if not recorded:
            house = await stack.enter_async_context(House.beside(settings))
        yield Reading(house, READER.of(settings.user))


def build_studio_page(reading: Reading, saved: Saved) -> str:
    """Return the page of a file."""
    user, names = reading.who.user, [saved.page, *([CALLS] if saved.calls else [])]
    day = format_iso(reading.house.clock.now())[:10]
    who = ", ".join(dict.fromkeys(_shown(model) for model in saved.models))
    about = RecordingShape(
        page=saved.page,
        title=f"{saved.title}, saved on {day}",
        who=who,
        user=user,
        timed=not any(model.startswith(PLAYED) for model in saved.models),
    )
    shapes = [about.model_copy(update={"page": name}).model_dump() for name in names]
    answers = saved.answers | {"about.json": {"recordings": shapes}}
    data = {
        "link": f"#/{saved.page}?{urlencode({'user': user, **saved.link})}",
        "answers": answers,
        "rows": saved.rows,
        "calls": saved.calls,
        "recalls": saved.recalls,
    }
    styles = [*STUDIO_STYLES, *(f"pages/{name}/{name}.css" for name in names)]
    without = [f"pages/{each.name}" for each in (STATIC / "pages").glob("*.js") if each.stem not in names]
    place = f'<div id="app" data-pages="{" ".join(names)}"></div>'
    return build_saved_page(saved.title, "saved/packed.js", styles, data, place, without)


def _shown(model: str) -> str:
    """Say who answered, by the name that the log has, without the address."""
    return {"rules": "stand-ins"}.get(model, model.removeprefix(PLAYED).partition("@")[0])


async def save_plan(reading: Reading, run: str, *, with_calls: bool = False) -> Saved:
    """Return a run, with all others of its task, as they go into a file; the newest in each way are shown first.

    Args:
        run: which one, by its name.
        with_calls: with the calls of models, word by word where that is kept.

    Raises:
        InputError: there is no such run.
    """
    runs = (await reading.ask("plans.list"))["runs"]
    found = next((each for each in runs if each["run"] == run), None)
    if found is None:
        raise InputError(f"no run is called {run!r} here: `mindstream solve --list` lists them")
    same = [each for each in runs if each is found or (each["task"] and each["task"] == found["task"])]
    answers: Data = {reading.path("plans"): {"runs": same}}
    calls: list[Data] = []
    for each in same:
        rows = await reading.ask("plans.rows", run=each["run"])
        answers[reading.path(f"plans/{each['run']}/rows")] = rows
        calls += rows["calls"]
    saved = Saved(
        page="plan",
        title="A task, and how it was solved",
        answers=answers,
        link={"runs": ",".join(_ways(same, found))},
        models=[call["model"] for call in calls],
    )
    if with_calls:
        await reading.add_calls(saved, [call["seq"] for call in calls])
    return saved


def _ways(runs: Sequence[Data], first: Data) -> list[str]:
    """Name a run, and the newest in each other way."""
    newest = {each["how"]: each["run"] for each in runs} | {first["how"]: first["run"]}
    return list(newest.values())


KINDS = (
    "opened",
    "heard",
    "waiting",
    "said",
    "follow_up",
    "left_unsaid",
    "thought",
    "set_aside",
    "believed",
    "belief_changed",
    "plan_made",
    "tool_called",
    "observed",
    "model_called",
    "decided",
    "judged",
    "alarmed",
    "error",
)
"""Kinds of rows that a talk is made of, as the page has them (pages/talk/shapes.js)."""
HELD = ("belief_changed", "plan_made")
RECALLED = {"k": 5, "kinds": ["note", "thought", "observation", "document", "chat"], "touch": False}
"""How the page asks what words bring to mind (pages/talk/why_answered.js)."""


async def save_talk(reading: Reading, session: str, *, with_calls: bool = False) -> Saved:
    """Return a talk as it goes into a file.

    What is believed and planned goes with it from the beginning, with the thoughts that it came of; of other talks no
    word that was said, and nothing that was recalled from them, unless the calls go with it, which hold all that.

    Args:
        session: which one.
        with_calls: with the calls of models, word by word where that is kept.

    Raises:
        InputError: there is no such talk.
    """
    talks = await reading.all_of("minds.sessions", "sessions")
    talk = next((each for each in talks if each["session"] == session), None)
    if talk is None:
        raise InputError(
            f"no talk of {reading.who.user} is called {session!r}: `mindstream memory sessions` lists them"
        )
    rows = rows_of_talk(await reading.all_of("log.rows", "rows", kinds=",".join(KINDS)), session)
    heard = [row for row in rows if row["event"] == "heard"]
    saved = Saved(
        page="talk",
        title=f"A talk of {reading.who.user}",
        link={"talk": session},
        models=[row["model"] for row in rows if row["event"] == "said"],
        answers={reading.path("sessions"): {"sessions": [talk], "next": ""}},
        rows=rows,
    )
    saved.recalls = [await _recall(reading, row, "" if with_calls else session) for row in heard]
    if with_calls:
        await reading.add_calls(saved, [row["seq"] for row in rows if row["event"] == "model_called"])
    return saved


async def _recall(reading: Reading, heard: Data, session: str) -> Data:
    """Recall what words brought to mind, as of then; `session`: from one talk alone."""
    asked = {"query": heard["text"], "as_of": heard["at"]}
    return {**asked, "answer": await reading.ask("memory.recall", **asked, **RECALLED, session=session)}


def rows_of_talk(rows: Sequence[Data], session: str) -> list[Data]:
    """Return the rows of a talk, and those that made what was believed and planned by its end.

    Args:
        rows: of the kinds of a talk, oldest first.
    """
    ours = list(_own(rows, session))
    end = max((row["seq"] for row in ours), default=0)
    before = [row for row in rows if row["seq"] <= end]
    held = [row for row in before if row["event"] in HELD]
    moments = {(row.get("slot", row["by"]), row["at"]) for row in held}
    behind = [row for row in before if row["event"] == "thought" and (row["slot"], row["at"]) in moments]
    together = {row["seq"]: row for row in (*ours, *held, *behind)}
    return [together[seq] for seq in sorted(together)]


def _own(rows: Sequence[Data], session: str) -> Iterator[Data]:
    """Yield the rows of a talk alone, as the page tells them apart (pages/talk/rows.js)."""
    talks: dict[int, str] = {}
    current = ""
    for row in rows:
        if row["event"] == "heard":
            talks[row["seq"]] = row["session"]
        about = [row["answers"]] if row.get("answers") else row.get("about") or []
        about = about if isinstance(about, list) else [about]
        if "session" in row:
            current = row["session"]
        elif about:
            current = talks.get(about[-1], "")
        if current == session:
            yield row


TOWN_STYLES = ("tokens.css", "base.css", "town/town.css", "town/saved.css")


async def write_replay(
    store: Store, setting: Setting, out: Path, *, since: int | None = None, until: int | None = None
) -> Path:
    """Write what a town's log holds as an HTML file that plays it, and return the file; an older replay is replaced.

    The same log gives the same bytes.

    Args:
        since, until: the steps between which it plays; None: all. What residents remember from before is in it too.

    Raises:
        InputError: the steps are none of its own, or the file cannot be written or is another one.
        StorageError: the log cannot be read.
    """
    data = await record(store, setting, since, until) | ground_of(setting)
    page = build_saved_page(f"{setting.name}, replayed", "town/saved.js", TOWN_STYLES, data)
    write_saved_page(out, page)
    return out
