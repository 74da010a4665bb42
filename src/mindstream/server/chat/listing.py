"""GET /v1/models: who can be talked to. The packs, the companion, and the life of whoever asks, where there is one."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, Mapping
from datetime import tzinfo
from hashlib import blake2b
from typing import Literal
from urllib.parse import unquote

from fastapi import FastAPI, Request
from pydantic import BaseModel, JsonValue

from mindstream.clock import read_zone
from mindstream.errors import InputError
from mindstream.identifiers import is_name, normal_name
from mindstream.life import commands, opened
from mindstream.life.events import Questioned, TurnEnded
from mindstream.life.state import LifeState, read_state
from mindstream.memory.memory import Memory
from mindstream.models.legible import without_controls
from mindstream.server.chat.errors import ANSWERS
from mindstream.server.rest import principal_of
from mindstream.service.operations.principal import NotFound, Principal
from mindstream.service.operations.runtime import Runtime

COMPANION, LIFE = "companion", "life"
"""The models that are no packs: who answers from memory alone, and a user's life."""
USER, CHAT, TASK = "x-openwebui-user-id", "x-openwebui-chat-id", "x-openwebui-task"
SIGNED = "x-openwebui-user-jwt"
ZONE = "x-timezone"
MAY_BE_WORDS = (None, "none", "auto")
"""What a client says of its tools that is served by an answer in words: pages send tools with all they ask."""
UNKEPT = ("temporary:", "local:", "channel:")
"""So the ids of Open WebUI's chats begin that are not to be kept, and of channels, where many speak."""
LONGEST = 60


def whose(
    runtime: Runtime, principal: Principal, request: Request, named: str | Mapping[str, JsonValue] | None = None
) -> Principal:
    """Return who asks, about the user who speaks.

    The header of the page's own user comes before the field `user`; where nobody is named, a token for one user speaks
    for that one, and any other for the operator's own user.

    Raises:
        Forbidden: the token is for another user.
        InputError: nobody can be called so; or a page names a chat and not whose it is.
    """
    held = named.get("id") if isinstance(named, Mapping) else named
    name = _header(request, USER) or (held if isinstance(held, str) else "")
    if not name and (request.headers.get(CHAT) or request.headers.get(SIGNED)) and not principal.only:
        raise InputError(
            f"this page names its chat, not whose it is: let it send {USER} (not signed), or use a token for one user"
        )
    return principal.of(name or principal.only or runtime.settings.user)


def talk_of(request: Request, metadata: Mapping[str, JsonValue] | None, begins: str) -> tuple[str, bool]:
    """Return which talk it is, and whether the page says so; else it is known by the user's first words in it."""
    held = (metadata or {}).get("chat_id")
    given = normal_name(_header(request, CHAT) or (held if isinstance(held, str) else ""))
    if given and is_name(given) and len(given) <= LONGEST:
        return f"chat:{given}", True
    told = given or " ".join(without_controls(begins).split())
    digest = blake2b(told.encode("utf-8", "replace"), digest_size=10).hexdigest()
    return f"{'chat' if given else 'talk'}.{digest}", bool(given)


def _header(request: Request, name: str) -> str:
    """Return a header that holds an identifier; one beyond Latin-1 arrives as UTF-8 or percent-encoded."""
    value = request.headers.get(name, "")
    with contextlib.suppress(UnicodeError):  # else it is Latin-1
        value = value.encode("latin-1").decode("utf-8")
    return unquote(value)


def is_unkept(request: Request) -> bool:
    """Tell whether a page wants nothing of its chat to be kept."""
    return request.headers.get(CHAT, "").startswith(UNKEPT)


def zone_of(request: Request) -> tzinfo | None:
    """Return where the user lives, if the page says so: `X-Timezone: Europe/Berlin`.

    Raises:
        InputError: there is no such zone.
    """
    name = request.headers.get(ZONE, "")
    return read_zone(name) if name else None


BEGAN = 1_767_225_600
"""When all models were made, as OpenAI's API wants to be told: at the beginning of 2026."""


class Model(BaseModel):
    """Somebody who can be talked to."""

    id: str
    object: Literal["model"] = "model"
    created: int = BEGAN
    owned_by: str = "mindstream"


class ModelList(BaseModel):
    """Who can be talked to."""

    object: Literal["list"] = "list"
    data: list[Model]


def add_models(api: FastAPI, runtime: Runtime) -> None:
    """Add the routes."""

    @api.get("/v1/models", tags=["chat"], operation_id="chat.models", responses=ANSWERS)
    async def models(request: Request) -> ModelList:
        """List who can be talked to: packs, the companion, a life."""
        principal = principal_of(request.scope)
        principal.require("minds", "read")
        return ModelList(data=[Model(id=name) for name in await names_for(runtime, whose(runtime, principal, request))])

    @api.get("/v1/models/{model:path}", tags=["chat"], operation_id="chat.model", responses=ANSWERS)
    async def model(request: Request, model: str) -> Model:
        """Tell of one of them."""
        principal = principal_of(request.scope)
        principal.require("minds", "read")
        if model not in await names_for(runtime, whose(runtime, principal, request)):
            raise NotFound(f"nobody is called {model[:100]!r} here")
        return Model(id=model)


async def names_for(runtime: Runtime, principal: Principal) -> list[str]:
    """Return whom somebody can talk to."""
    from mindstream.life.state import read_state

    state = await read_state(await runtime.memory(principal))
    return [*runtime.responder_names(), *([LIFE] if state.goal else [])]


PATIENCE_S, LOOK_S = 120.0, 0.5
"""So long it is waited for what a life says, and how often it is looked."""
SESSION = "life"


async def speak_with_life(runtime: Runtime, principal: Principal, text: str) -> AsyncGenerator[str]:
    """Say something to a user's life, or answer what it asks; give what it says to that, or how it stands.

    Raises:
        NotFound: it has no goal yet.
    """
    principal.require("life", "write")
    memory = await runtime.memory(principal)
    state = await read_state(memory)
    if not state.goal:
        raise NotFound("nobody has given this user's life a goal yet: POST /api/v1/users/{user}/life/goal does")
    last = await memory.store.last(memory.key, TurnEnded.kind)
    if _open(state):
        await commands.answer(memory, text, "", session=SESSION)
    else:
        await commands.say(memory, text)
    yield await _what_it_says(runtime, memory, last.seq if last else 0)


async def _what_it_says(runtime: Runtime, memory: Memory, after: int) -> str:
    until = runtime.clock.elapsed() + PATIENCE_S
    while await opened.is_lived(memory) and runtime.clock.elapsed() < until:
        for row in await memory.store.events(memory.key, after, [TurnEnded.kind, Questioned.kind]):
            if isinstance(row.event, TurnEnded) and row.event.words.strip():
                return row.event.words
        state = await read_state(memory)
        if asked := _open(state):
            return asked
        await runtime.clock.sleep(LOOK_S)
    return _standing(await read_state(memory), lived=await opened.is_lived(memory))


def _standing(state: LifeState, *, lived: bool) -> str:
    """Say how it stands, without a promise."""
    tasks = [f"- {task.text} ({task.standing})" for task in state.ledger.ordered()]
    how = "It is at work." if lived else "Noted. Nobody lives it now: it reads this when it is lived again."
    asked = _open(state)
    return "\n".join(filter(None, [how, f"Goal: {state.goal}", *tasks, f"It asks: {asked}" if asked else ""]))


def _open(state: LifeState) -> str:
    """Return what it asks and waits for; "" where it asks nothing."""
    return next((each.tip for id_, each in state.questions.items() if id_ not in state.answers), "")
