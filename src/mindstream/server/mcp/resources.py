"""Resources of the MCP server: memories, plans, dreams, moments of towns, read by their URIs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection
from typing import Any

import mcp_types as wire
from pydantic import BaseModel

from mindstream.clock import format_iso
from mindstream.service.operations.memories.memory import ListRequest, MemoryId
from mindstream.service.operations.memories.receipts import MemoryShape
from mindstream.service.operations.plans import RunName
from mindstream.service.operations.principal import NotFound, Principal
from mindstream.service.operations.runtime import Runtime
from mindstream.service.operations.shapes import EmptyRequest
from mindstream.service.operations.table import find_operation, read_cursor, write_cursor
from mindstream.service.operations.towns import FramesRequest

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


async def find_resource(runtime: Runtime, principal: Principal, uri: str) -> BaseModel:
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
        found = await _ask(runtime, principal, "plans.get", RunName(run=name))
    elif kind == "town":
        found = await _ask(
            runtime, principal, "towns.frames", FramesRequest(town=name, first=int(step), last=int(step))
        )
    else:
        found = await _ask(runtime, principal, "memory.get", MemoryId(id=name))
        if kind == "dream" and isinstance(found, MemoryShape) and found.kind != "dream":
            raise NotFound(f"there is no dream {name!r} here")
    return found


async def list_page(runtime: Runtime, principal: Principal, cursor: str) -> tuple[list[wire.Resource], str]:
    """Return a page of what can be read, and where the next one begins; "" at the end.

    Raises:
        InputError: no page of ours gave the cursor.
    """
    kind, _, at = read_cursor(cursor).partition(":")
    kinds = list(PARTS)
    place = kinds.index(kind) if kind in kinds else 0
    for part in kinds[place:]:
        found, after = await PARTS[part](runtime, principal, at)
        if after:
            return found, write_cursor(f"{part}:{after}")
        if found:
            later = kinds[kinds.index(part) + 1 :]
            return found, write_cursor(f"{later[0]}:") if later else ""
        at = ""
    return [], ""


async def _plans(runtime: Runtime, principal: Principal, _: str) -> tuple[list[wire.Resource], str]:
    if not principal.may("plans", "read"):
        return [], ""
    runs = (await _ask(runtime, principal, "plans.list", EmptyRequest())).runs
    return [_resource(f"plan://{each.run}", each.task, f"plan, {each.state}", each.at) for each in reversed(runs)], ""


async def _dreams(runtime: Runtime, principal: Principal, at: str) -> tuple[list[wire.Resource], str]:
    found, after = await _memories_of(runtime, principal, at, ["dream"])
    return [_resource(f"dream://{each.id}", each.text, "dream", each.created) for each in found], after


async def _memories(runtime: Runtime, principal: Principal, at: str) -> tuple[list[wire.Resource], str]:
    found, after = await _memories_of(runtime, principal, at, [])
    return [
        _resource(f"memory://{each.id}", each.text, f"{each.kind}, {each.status}", each.created)
        for each in found
        if each.kind != "dream"
    ], after


PARTS: dict[str, Callable[[Runtime, Principal, str], Awaitable[tuple[list[wire.Resource], str]]]] = {
    "plan": _plans,
    "dream": _dreams,
    "memory": _memories,
}
"""What is listed, in this order."""


async def _memories_of(
    runtime: Runtime, principal: Principal, cursor: str, kinds: list[str]
) -> tuple[list[MemoryShape], str]:
    if not principal.may("memory", "read"):
        return [], ""
    page = await _ask(runtime, principal, "memory.list", ListRequest(limit=PAGE, cursor=cursor, kinds=kinds))
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


async def _ask(runtime: Runtime, principal: Principal, name: str, request: BaseModel) -> Any:
    return await find_operation(name).call(runtime, principal, request)
