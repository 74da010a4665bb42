"""Resources of the MCP server: memories, plans, dreams, moments of towns, read by their URIs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any

import mcp_types as wire
from pydantic import BaseModel

from mindstream.clock import format_iso
from mindstream.service.operations.house import House
from mindstream.service.operations.memories.memory import ListRequest, MemoryId
from mindstream.service.operations.memories.receipts import MemoryShape
from mindstream.service.operations.plans import RunName
from mindstream.service.operations.shapes import NoQuestion
from mindstream.service.operations.table import find_operation, read_cursor, write_cursor
from mindstream.service.operations.who import NotFound, Who

PAGE, NAME, LONGEST_STEP = 50, 80, 12
JSON = "application/json"
TEMPLATES = {
    "memory://{id}": ("memory", "A memory, by the id that recall gave: its words, what has become of it.", ""),
    "dream://{id}": ("dream", "What was dreamt of what was forgotten.", ""),
    "plan://{run}": ("plan", "A run of a plan: its steps, what they found, its answer.", ""),
    "town://{town}/{step}": ("town", "A moment of a town: who is where and does what.", "town"),
}
"""By their form: the name, what it is, and the set of tools with which it is shown."""


def templates(sets: Collection[str]) -> list[wire.ResourceTemplate]:
    """Return the forms of what can be read."""
    return [
        wire.ResourceTemplate(uri_template=form, name=name, description=words, mime_type=JSON)
        for form, (name, words, wanted) in TEMPLATES.items()
        if not wanted or wanted in sets
    ]


async def find_resource(house: House, who: Who, uri: str) -> BaseModel:
    """Return what an URI stands for.

    Raises:
        NotFound: there is no such thing for whoever asks.
    """
    kind, _, rest = uri.partition("://")
    name, slash, step = rest.partition("/")
    is_moment = kind == "town" and step.isascii() and step.isdigit() and len(step) <= LONGEST_STEP
    if kind not in ("memory", "dream", "plan", "town") or not (is_moment or (kind != "town" and name and not slash)):
        raise NotFound("nothing here has such an URI: resources/templates/list says which forms there are")
    found: BaseModel
    if kind == "plan":
        found = await _ask(house, who, "plans.get", RunName(run=name))
    elif kind == "town":
        try:
            frames = find_operation("towns.frames")
        except KeyError:
            raise NotFound("towns are in another distribution: pip install mindstream-town") from None
        found = await frames.ask(house, who, frames.request(town=name, first=int(step), last=int(step)))
    else:
        found = await _ask(house, who, "memory.get", MemoryId(id=name))
        if kind == "dream" and isinstance(found, MemoryShape) and found.kind != "dream":
            raise NotFound(f"there is no dream {name!r} here")
    return found


async def list_page(house: House, who: Who, cursor: str) -> tuple[list[wire.Resource], str]:
    """Return a page of what can be read, and where the next one begins; "" at the end.

    Raises:
        InputError: no page of ours gave the cursor.
    """
    kind, _, at = read_cursor(cursor).partition(":")
    kinds = list(PARTS)
    place = kinds.index(kind) if kind in kinds else 0
    for part in kinds[place:]:
        found, after = await PARTS[part](house, who, at)
        if after:
            return found, write_cursor(f"{part}:{after}")
        if found:
            later = kinds[kinds.index(part) + 1 :]
            return found, write_cursor(f"{later[0]}:") if later else ""
        at = ""
    return [], ""


async def _plans(house: House, who: Who, _: str) -> tuple[list[wire.Resource], str]:
    if not who.may("plans", "read"):
        return [], ""
    runs = (await _ask(house, who, "plans.list", NoQuestion())).runs
    return [_resource(f"plan://{each.run}", each.task, f"plan, {each.state}", each.at) for each in reversed(runs)], ""


async def _dreams(house: House, who: Who, at: str) -> tuple[list[wire.Resource], str]:
    found, after = await _memories_of(house, who, at, ["dream"])
    return [_resource(f"dream://{each.id}", each.text, "dream", each.created) for each in found], after


async def _memories(house: House, who: Who, at: str) -> tuple[list[wire.Resource], str]:
    found, after = await _memories_of(house, who, at, [])
    return [
        _resource(f"memory://{each.id}", each.text, f"{each.kind}, {each.status}", each.created)
        for each in found
        if each.kind != "dream"
    ], after


PARTS: dict[str, Callable[[House, Who, str], Awaitable[tuple[list[wire.Resource], str]]]] = {
    "plan": _plans,
    "dream": _dreams,
    "memory": _memories,
}
"""What is listed, in this order."""


async def _memories_of(house: House, who: Who, cursor: str, kinds: list[str]) -> tuple[list[MemoryShape], str]:
    if not who.may("memory", "read"):
        return [], ""
    page = await _ask(house, who, "memory.list", ListRequest(limit=PAGE, cursor=cursor, kinds=kinds))
    return page.memories, page.next


def _resource(uri: str, text: str, about: str, at: float) -> wire.Resource:
    shown = " ".join(text.split())
    name = shown if len(shown) <= NAME else shown[: NAME - 1] + "…"
    return wire.Resource(
        uri=uri,
        name=name or uri,
        description=about,
        mime_type=JSON,
        annotations=wire.Annotations(last_modified=format_iso(at)),
    )


async def _ask(house: House, who: Who, name: str, request: BaseModel) -> Any:
    return await find_operation(name).ask(house, who, request)
