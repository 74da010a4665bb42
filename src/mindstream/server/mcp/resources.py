"""The resources of the MCP server (memories, plans, dreams and moments of towns, by URI), and its prompts."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import mcp_types as wire
from mcp.shared.exceptions import MCPError
from pydantic import BaseModel

from mindstream.clock import format_iso
from mindstream.service.operations.memory import ListRequest, MemoryId
from mindstream.service.operations.operation import (
    EmptyRequest,
    NotFound,
    Principal,
    find_operation,
    read_cursor,
    write_cursor,
)
from mindstream.service.operations.plans import RunName
from mindstream.service.operations.runtime import Runtime

PAGE, MAX_NAME, MAX_STEP_DIGITS = 50, 80, 12
JSON = "application/json"
KINDS = ("plan", "dream", "memory")
"""The kinds of resources, in the order in which they are listed."""
TEMPLATES = {
    "memory://{id}": ("memory", "A memory, by the id that `recall` returned: its text and its status.", ""),
    "dream://{id}": ("dream", "A dream about archived memories.", ""),
    "plan://{run}": ("plan", "A run of a plan: its steps, their results, its answer.", ""),
    "town://{town}/{step}": ("town", "A moment of a town: the place and the action of each resident.", "town"),
}
"""For each URI template: the name, the description, and the set of tools that must be offered for the template to be
listed ("": it is always listed)."""


def templates(sets: Collection[str]) -> list[wire.ResourceTemplate]:
    """Return the URI templates to list for a caller that requested these sets of tools."""
    return [
        wire.ResourceTemplate(uri_template=form, name=name, description=words, mime_type=JSON)
        for form, (name, words, wanted) in TEMPLATES.items()
        if not wanted or wanted in sets
    ]


async def find_resource(runtime: Runtime, principal: Principal, uri: str) -> BaseModel:
    """Return the resource at a URI.

    Raises:
        NotFound: the resource does not exist, this caller may not see it, or the package for towns is not installed.
    """
    kind, _, rest = uri.partition("://")
    name, slash, step = rest.partition("/")
    if kind == "town" and step.isascii() and step.isdigit() and len(step) <= MAX_STEP_DIGITS:
        try:
            frames = find_operation("towns.frames")
        except KeyError:
            raise NotFound("towns need another package: pip install mindstream-town") from None
        moment: BaseModel = await frames.call(
            runtime, principal, frames.request(town=name, first=int(step), last=int(step))
        )
        return moment
    if name and not slash and kind in ("memory", "dream", "plan"):
        asked = ("plans.get", RunName(run=name)) if kind == "plan" else ("memory.get", MemoryId(id=name))
        found: Any = await _call(runtime, principal, *asked)
        if kind == "dream" and found.kind != "dream":
            raise NotFound(f"this user has no dream {name!r}")
        return found  # type: ignore[no-any-return]
    raise NotFound("no resource has a URI of this form: resources/templates/list shows the possible forms")


async def list_page(runtime: Runtime, principal: Principal, cursor: str) -> tuple[list[wire.Resource], str]:
    """Return a page of resources, and the cursor of the next page; "" at the end.

    Raises:
        InputError: the cursor is not valid.
    """
    kind, _, at = read_cursor(cursor).partition(":")
    place = KINDS.index(kind) if kind in KINDS else 0
    for part in KINDS[place:]:
        found, after = await _list_kind(runtime, principal, part, at)
        if after:
            return found, write_cursor(f"{part}:{after}")
        if found:
            later = KINDS[KINDS.index(part) + 1 :]
            return found, write_cursor(f"{later[0]}:") if later else ""
        at = ""
    return [], ""


async def _list_kind(runtime: Runtime, principal: Principal, kind: str, at: str) -> tuple[list[wire.Resource], str]:
    """Return a page of the resources of a kind, newest first, and the cursor of the next page."""
    if not principal.may("plans" if kind == "plan" else "memory", "read"):
        return [], ""
    if kind == "plan":
        runs = (await _call(runtime, principal, "plans.list", EmptyRequest())).runs
        shown = [_resource(f"plan://{run.run}", run.task, f"plan, {run.state}", run.at) for run in reversed(runs)]
        return shown, ""
    kinds = ["dream"] * (kind == "dream")
    page = await _call(runtime, principal, "memory.list", ListRequest(limit=PAGE, cursor=at, kinds=kinds))
    found = [each for each in page.memories if (each.kind == "dream") == (kind == "dream")]
    return [
        _resource(f"{kind}://{each.id}", each.text, "dream" if kinds else f"{each.kind}, {each.status}", each.created)
        for each in found
    ], page.next


def _resource(uri: str, text: str, about: str, at: float) -> wire.Resource:
    shown = " ".join(text.split())
    name = shown if len(shown) <= MAX_NAME else shown[: MAX_NAME - 1] + "…"
    when = wire.Annotations(last_modified=format_iso(at))
    return wire.Resource(uri=uri, name=name or uri, description=about, mime_type=JSON, annotations=when)


async def _call(runtime: Runtime, principal: Principal, name: str, request: BaseModel) -> Any:
    return await find_operation(name).call(runtime, principal, request)


PROMPTS = (
    wire.Prompt(
        name="remember_this",
        title="Remember this",
        description="Retain something for later conversations.",
        arguments=[wire.PromptArgument(name="content", description="The text to retain.", required=True)],
    ),
    wire.Prompt(
        name="what_do_you_know",
        title="What do you know about…?",
        description="Report the memories about a subject.",
        arguments=[wire.PromptArgument(name="topic", description="The subject.", required=True)],
    ),
)
"""The prompts that a user can choose in their MCP client."""
PROMPT_TEXTS = {
    "remember_this": "Retain each fact of the following text as a sentence of its own, in the language of the text,"
    " then summarise what you retained.\n\n{}",
    "what_do_you_know": "Recall memories about the following subject, and report them with dates and sources. If there"
    " are none, say so.\n\n{}",
}


def fill_prompt(params: wire.GetPromptRequestParams) -> wire.GetPromptResult:
    """Return the text of a prompt with its argument filled in.

    Raises:
        MCPError: the prompt does not exist, or its argument is missing.
    """
    found = next((each for each in PROMPTS if each.name == params.name), None)
    if found is None:
        raise MCPError(wire.INVALID_PARAMS, "there is no prompt of that name: prompts/list names the prompts")
    argument = (found.arguments or [])[0]
    if not (value := (params.arguments or {}).get(argument.name, "").strip()):
        raise MCPError(wire.INVALID_PARAMS, f"the prompt {found.name} needs the argument {argument.name!r}")
    content = wire.TextContent(type="text", text=PROMPT_TEXTS[found.name].format(value))
    message = wire.PromptMessage(role="user", content=content)
    return wire.GetPromptResult(description=found.description, messages=[message])
