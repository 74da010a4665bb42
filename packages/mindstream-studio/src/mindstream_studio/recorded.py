"""Serve the shipped recordings through the public API below /recorded, and save pages as one HTML file.

The recordings are read-only. The first request unpacks them into a temporary folder, which is deleted when the server
stops.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
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
from mindstream_town.replay import ground_of, record
from mindstream_town.setting import Setting
from starlette.middleware.gzip import GZipMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

from mindstream.clock import ManualClock, format_iso
from mindstream.errors import InputError
from mindstream.html_tables import content_source
from mindstream.memory.memory import Memory
from mindstream.memory.store.sqlite import SqliteStore
from mindstream.memory.store.store import Store
from mindstream.models.recording import PLAYBACK
from mindstream.server.api_app import ApiApp, add_problems, add_rest
from mindstream.server.events import add_events
from mindstream.server.idempotency import Writes
from mindstream.server.problems import TYPE, problem
from mindstream.server.server_state import ServerState
from mindstream.service.calling import open_user_memory
from mindstream.service.operations.offered import Offered
from mindstream.service.operations.operation import LOCAL, Forbidden, Principal, Reply, find_operation
from mindstream.service.operations.runtime import Runtime
from mindstream.settings import Settings
from mindstream_studio.joining import join_modules

if TYPE_CHECKING:
    from mindstream.clock import Moment

PATH = "/recorded"
PACKED = Path(__file__).parent / "recorded.db.xz"
HAMLET = "hamlet"
LONG = 10_000
"""Minimum bytes of a response that is compressed; a town's recording shrinks to a fifth."""
READER = Principal(LOCAL, frozenset({"read"}), key="recorded")
"""The principal of all requests: it may read all recordings and change nothing."""
BEGIN = {
    "minds": "mindstream chat",
    "memory": "mindstream chat",
    "plans": "mindstream solve",
    "life": "mindstream live",
    "pools": "mindstream pool create",
    "towns": "mindstream town open recorded",
}
"""The command with which users begin data of their own, by area of the API."""


class RecordingShape(Reply):
    """A recording, shown by a page of the studio.

    Attributes:
        page: name of the page. user, town, pool: the owner of the recorded data, and the town or pool shown.
        who: what answered: a language model, or stand-ins.
        timed: whether the shown times are the times of the recorded events. False: times of the playback, without
            meaning.
    """

    page: str
    title: str
    who: str
    user: str = ""
    town: str = ""
    pool: str = ""
    timed: bool = False


MIND = "A language model behind an endpoint"
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
"""All shipped recordings."""


class Recorded:
    """The API over the recordings: an ASGI application that its first request opens and `running` closes."""

    def __init__(self, packed: Path = PACKED) -> None:
        self._packed, self._opening = packed, asyncio.Lock()
        self._inner: ASGIApp | None = None
        self._opened = contextlib.AsyncExitStack()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async with self._opening:
            if self._inner is None:
                self._inner = await self._open()
        state = {**scope.get("state", {}), "principal": READER}
        await self._inner({**scope, "state": state}, receive, send)

    @contextlib.asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        """Close the application and delete its folder when the block ends."""
        async with self._opened:
            yield

    async def _open(self) -> ASGIApp:
        folder = Path(self._opened.enter_context(tempfile.TemporaryDirectory(prefix="mindstream-recorded-")))
        runtime = await open_recorded(folder, self._packed)
        state = ServerState(runtime.server_store, runtime.clock)
        await self._opened.enter_async_context(runtime)
        return build_api(runtime, Writes(runtime, state))


def add_recorded(api_app: ApiApp) -> None:
    """Mount the recordings below /recorded."""
    recorded = Recorded()
    api_app.api.mount(PATH, recorded)
    api_app.keep_open(recorded.running())


async def open_recorded(folder: Path, packed: Path = PACKED) -> Runtime:
    """Unpack the recordings into a folder and return a runtime over them, which the caller opens."""
    await asyncio.to_thread(unpack, packed, folder)
    offered = Offered(towns={(LOCAL, HAMLET): folder / HAMLET})
    clock = ManualClock(await last_moment(folder / "data"))
    return Runtime(Settings(data=folder / "data", model="rules", roles={}), clock=clock, offered=offered)


def unpack(packed: Path, folder: Path) -> None:
    """Unpack the recordings and the recorded town HAMLET into a folder."""
    from mindstream_town.saves import importing

    importing.unpack(packed, folder / "data")
    importing.unpack_world("recorded", folder / HAMLET)


async def last_moment(folder: Path) -> Moment:
    """Return the time of the last event, at which the clock of the recordings is stopped."""
    async with SqliteStore(folder) as store:
        rows = await store.events(None, limit=1_000_000)
    return max(row.at for row in rows)


def build_api(runtime: Runtime, writes: Writes) -> FastAPI:
    """Return the public API over a runtime with recordings.

    A request that would write is refused. The error names the command with which users begin data of their own.
    """
    api = FastAPI(docs_url=None, redoc_url=None, openapi_url=None)
    add_rest(api, runtime, writes)
    add_events(api, runtime)
    add_problems(api)
    api.add_exception_handler(Forbidden, _tell)
    api.add_middleware(GZipMiddleware, minimum_size=LONG, compresslevel=4)
    return api


async def _tell(request: Request, _: Exception) -> Response:
    room = str(getattr(request.scope.get("route"), "name", "")).partition(".")[0]
    own = f"; begin your own with `{BEGIN[room]}`" if room in BEGIN else ""
    found = problem("forbidden", f"recordings are read-only{own}")
    return Response(found.model_dump_json(), found.status, None, TYPE)


STATIC = Path(__file__).parent / "static"
LINE = 20_000
"""Number of characters of packed data per line of a saved page, because editors are slow with longer lines."""
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
<noscript><p>This page needs JavaScript to show its content.</p></noscript>
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
    """Return a page that runs a module with its data; `entry` and `styles` are paths below the studio's `static/`.

    Except for the escaped title, text of users and models is only in the packed data: it cannot become markup.

    Args:
        place: the HTML element in which the module renders.
        without: modules to leave out, as for `join_modules`.
    """
    style = "\n".join((STATIC / name).read_text("utf-8") for name in styles)
    script, modules = join_modules(STATIC / entry, {STATIC / name for name in without})
    said = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    packed = base64.b64encode(zlib.compress(said.encode("utf-8", "replace"), 9)).decode()
    policy = (
        f"default-src 'none'; script-src {content_source(script)}; style-src {content_source(style)}; base-uri 'none';"
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
    """Write a page to a file; an earlier saved page is replaced.

    Raises:
        InputError: the file exists and is not a saved page, or cannot be written.
    """
    if is_saved_page(out):
        out.unlink()
    write_text(out, page)


def is_saved_page(file: Path) -> bool:
    """Return whether a file is a saved page, which may be replaced."""
    if file.is_symlink() or not file.is_file():
        return False
    head = HEAD.encode()
    with file.open("rb") as there:
        return there.read(len(head)) == head


def _licences_of(modules: Collection[Path]) -> str:
    """Return an HTML comment with the licences of the libraries among these modules; "" if there are none."""
    vendor = STATIC / "vendor"
    versions = json.loads((vendor / "versions.json").read_text("utf-8"))
    packages = sorted({versions[each.name]["package"] for each in modules if each.parent == vendor})
    texts = [(vendor / f"LICENSE-{each.strip('@').replace('/', '-')}").read_text("utf-8") for each in packages]
    told = "\n".join(f"{package}\n\n{text}" for package, text in zip(packages, texts, strict=True))
    return f"<!-- This page contains libraries with these licences.\n\n{told}-->\n" if packages else ""


Data = dict[str, Any]
"""The response of an operation, converted to a JSON object."""
STUDIO_STYLES = ("tokens.css", "base.css", "parts.css")
CALLS = "traces"
"""Name of the studio's page that shows model calls."""
UNQUOTED = "!'()*"
"""Characters that `quote` would percent-encode, but JavaScript's `encodeURIComponent` leaves as they are."""
NO_BILL: Data = {"total": {"calls": 0}, "by": {}, "days": {}, "limits": None}
"""The cost shown on saved pages: none, because the cost total covers more than the saved part."""


@dataclass(slots=True)
class Saved:
    """The content of a saved page.

    Attributes:
        page: the page that opens first.
        link: parameters of the link to `page`, in addition to the user.
        models: names of the models that answered, as in the log.
        answers: responses of the API by path.
        rows: rows of the log, which answer the page's requests for the log.
        calls: model calls, newest first; if empty, the page Traces is left out.
        recalls: results of recall by query and time.
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
    """Calls operations of the public API in this process for one user."""

    runtime: Runtime
    principal: Principal

    async def ask(self, operation: str, **asked: Any) -> Data:
        """Call an operation and return its response.

        Raises:
            MindstreamError: as raised by the operation.
        """
        found = find_operation(operation)
        answered: Data = (await found.call(self.runtime, self.principal, found.request(**asked))).model_dump(
            mode="json"
        )
        return answered

    async def all_of(self, operation: str, name: str, **asked: Any) -> list[Data]:
        """Return the items of one field from all pages of a response."""
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
        return await self.runtime.memory(self.principal)

    def path(self, rest: str) -> str:
        """Return the path of a resource below the user's path, as the pages request it."""
        return f"/users/{quote(self.principal.user, safe=UNQUOTED)}/{rest}"

    async def add_calls(self, saved: Saved, seqs: Sequence[int]) -> None:
        """Add model calls, with their texts if the log stores them, and the trace of each utterance."""
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
    """Open a user's data, or the shipped recordings, for reading.

    Raises:
        InputError: the user has no data.
    """
    async with AsyncExitStack() as stack:
        if recorded:
            folder = Path(stack.enter_context(TemporaryDirectory(prefix="mindstream-recorded-")))
            runtime = await stack.enter_async_context(await open_recorded(folder))
            settings = settings.model_copy(update={"data": runtime.settings.data})
        async with open_user_memory(settings, known=True):
            pass
        if not recorded:
            runtime = await stack.enter_async_context(Runtime.open_reader(settings))
        yield Reading(runtime, READER.of(settings.user))


def build_studio_page(reading: Reading, saved: Saved) -> str:
    """Return the HTML of a saved page."""
    user, names = reading.principal.user, [saved.page, *([CALLS] if saved.calls else [])]
    day = format_iso(reading.runtime.clock.now())[:10]
    who = ", ".join(dict.fromkeys(_shown(model) for model in saved.models))
    about = RecordingShape(
        page=saved.page,
        title=f"{saved.title}, saved on {day}",
        who=who,
        user=user,
        timed=not any(model.startswith(PLAYBACK) for model in saved.models),
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
    """Return a model's name for users, without its address."""
    return model.removeprefix(PLAYBACK).partition("@")[0]


async def save_plan(reading: Reading, run: str, *, with_calls: bool = False) -> Saved:
    """Return a run with all other runs of its task. The page first shows the given run, and the newest run of each
    other strategy.

    Args:
        run: the id of the run.
        with_calls: add the model calls, with their texts if the log stores them.

    Raises:
        InputError: the user has no such run.
    """
    runs = (await reading.ask("plans.list"))["runs"]
    found = next((each for each in runs if each["run"] == run), None)
    if found is None:
        raise InputError(f"there is no run {run!r}: `mindstream solve --list` lists the runs")
    same = [each for each in runs if each is found or (each["task"] and each["task"] == found["task"])]
    answers: Data = {reading.path("plans"): {"runs": same}}
    calls: list[Data] = []
    for each in same:
        rows = await reading.ask("plans.rows", run=each["run"])
        answers[reading.path(f"plans/{each['run']}/rows")] = rows
        calls += rows["calls"]
    saved = Saved(
        page="plan",
        title="A task and its solutions",
        answers=answers,
        link={"runs": ",".join(_ways(same, found))},
        models=[call["model"] for call in calls],
    )
    if with_calls:
        await reading.add_calls(saved, [call["seq"] for call in calls])
    return saved


def _ways(runs: Sequence[Data], first: Data) -> list[str]:
    """Return the ids of the given run, and of the newest run of each other strategy."""
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
"""Kinds of the rows of a conversation, the same as in pages/talk/shapes.js."""
HELD = ("belief_changed", "plan_made")
RECALLED = {"k": 5, "kinds": ["note", "thought", "observation", "document", "chat"], "touch": False}
"""Parameters of recall, the same as in pages/talk/why_answered.js."""


async def save_talk(reading: Reading, session: str, *, with_calls: bool = False) -> Saved:
    """Return a conversation as a saved page.

    The page includes all beliefs and plans that the user's mind formed up to the end of the conversation, with the
    thoughts that produced them. Utterances of other conversations, and texts recalled from them, are included only
    with `with_calls`.

    Args:
        session: the name of the conversation.
        with_calls: add the model calls, with their texts if the log stores them.

    Raises:
        InputError: the user has no such conversation.
    """
    talks = await reading.all_of("minds.sessions", "sessions")
    talk = next((each for each in talks if each["session"] == session), None)
    if talk is None:
        raise InputError(
            f"{reading.principal.user} has no conversation {session!r}: `mindstream memory sessions` lists them"
        )
    rows = rows_of_talk(await reading.all_of("log.rows", "rows", kinds=",".join(KINDS)), session)
    heard = [row for row in rows if row["event"] == "heard"]
    saved = Saved(
        page="talk",
        title=f"A talk of {reading.principal.user}",
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
    """Repeat the recall for an utterance, as of the time of the utterance.

    Args:
        session: find only records of this session; "": of all sessions.
    """
    asked = {"query": heard["text"], "as_of": heard["at"]}
    return {**asked, "answer": await reading.ask("memory.recall", **asked, **RECALLED, session=session)}


def rows_of_talk(rows: Sequence[Data], session: str) -> list[Data]:
    """Return the rows of a conversation, with the beliefs and plans formed up to its end.

    The rows include all beliefs and plans up to the end of the conversation, and the thoughts that produced them.

    Args:
        rows: rows of the kinds of a conversation, oldest first.
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
    """Yield the rows that belong to this conversation, by the same rules as pages/talk/rows.js."""
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
    """Write an HTML file that replays a town's log, and return its path. An earlier saved page is replaced.

    The same log always gives the same bytes.

    Args:
        since, until: first and last step to replay; None: all. Earlier memories of the residents are always included.

    Raises:
        InputError: the town has no such steps; the file exists and is not a saved page; or the file cannot be written.
        StorageError: the log cannot be read.
    """
    data = await record(store, setting, since, until) | ground_of(setting)
    page = build_saved_page(f"{setting.name}, replayed", "town/saved.js", TOWN_STYLES, data)
    write_saved_page(out, page)
    return out
