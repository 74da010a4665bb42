"""Pages of the studio in one HTML file: its own modules, unchanged, over answers of the API that are packed into it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import quote, urlencode

from mindstream.clock import format_iso
from mindstream.memory.memory import Memory
from mindstream.models.recording import PLAYED
from mindstream.service.memory import open_user_memory
from mindstream.service.operations.house import House
from mindstream.service.operations.table import find_operation
from mindstream.service.operations.who import Who
from mindstream.settings import Settings
from mindstream.studio.recorded import READER, RecordingShape, open_recorded
from mindstream.studio.saved_page import STATIC, build_saved_page

Data = dict[str, Any]
"""What an operation answered, as it goes over the wire."""
STYLES = ("tokens.css", "base.css", "parts.css")
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
    styles = [*STYLES, *(f"pages/{name}/{name}.css" for name in names)]
    without = [f"pages/{each.name}" for each in (STATIC / "pages").glob("*.js") if each.stem not in names]
    place = f'<div id="app" data-pages="{" ".join(names)}"></div>'
    return build_saved_page(saved.title, "saved/packed.js", styles, data, place, without)


def _shown(model: str) -> str:
    """Say who answered, by the name that the log has, without the address."""
    return {"rules": "stand-ins"}.get(model, model.removeprefix(PLAYED).partition("@")[0])
