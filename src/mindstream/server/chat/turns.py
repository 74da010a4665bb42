"""An utterance that a chat page sends: the user, the conversation, the new words and what was shown before them."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Annotated, Literal
from urllib.parse import unquote

from fastapi import Request
from pydantic import BaseModel, ConfigDict, Field, JsonValue

from mindstream import redaction
from mindstream.clock import read_zone
from mindstream.errors import InputError
from mindstream.identifiers import is_name, normal_name
from mindstream.memory.conversation import Line
from mindstream.minds.chat_bot import Page
from mindstream.models.clean_text import without_controls
from mindstream.models.model import Sampling
from mindstream.server.rest import principal_of
from mindstream.service.chat.companion import is_page_task, split_context
from mindstream.service.operations.principal import NotFound, Principal
from mindstream.service.operations.runtime import Runtime

COMPANION, LIFE = "companion", "life"
"""The models that are no packs: the companion answers from memory alone; a user's life."""
USER, CHAT, TASK = "x-openwebui-user-id", "x-openwebui-chat-id", "x-openwebui-task"
SIGNED = "x-openwebui-user-jwt"
ZONE = "x-timezone"
UNKEPT = ("temporary:", "local:", "channel:")
"""Prefixes of the ids of Open WebUI's chats that are not to be kept, and of channels, where many people talk."""
MAX_CHAT_ID = 60
AUTHOR = "mind"
"""The author of what others than the user said."""


class ContentPart(BaseModel):
    """A part of a message; only texts are read."""

    model_config = ConfigDict(extra="ignore")

    type: str = Field(max_length=50)
    text: str | None = None


class ChatMessage(BaseModel):
    """A message of a conversation. Tool calls are not read."""

    model_config = ConfigDict(extra="ignore")

    role: Literal["system", "developer", "user", "assistant", "tool", "function"] = "tool"
    content: str | list[ContentPart] | None = None

    @property
    def text(self) -> str:
        """Its text, redacted where `--redact` says so; attachments are counted."""
        if not isinstance(self.content, list):
            return redaction.clean(self.content or "").text
        said = "\n".join(part.text for part in self.content if part.text)
        unseen = sum(part.type in ("image_url", "input_image", "input_audio", "file") for part in self.content)
        said = redaction.clean(said).text
        return f"{said}\n({unseen} attached, which cannot be read here)".strip() if unseen else said


class ChatRequest(BaseModel):
    """What completions and responses have in common. Fields that are not listed are ignored."""

    model_config = ConfigDict(extra="ignore")

    model: str = Field(min_length=1, max_length=100)
    stream: bool | None = None
    metadata: dict[str, JsonValue] | None = None
    temperature: Annotated[float | None, Field(ge=0, le=2)] = None
    top_p: Annotated[float | None, Field(ge=0, le=1)] = None
    tools: list[dict[str, JsonValue]] | None = None
    tool_choice: str | dict[str, JsonValue] | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """An utterance to a model.

    Attributes:
        session: the conversation.
        text: the user's new words.
        is_task: the page asks for its own use (a title, tags).
        is_kept: it is remembered; otherwise it is answered without memory.
        continues: the conversation continues where it ended; the page shows nothing of it.
        is_named: the page names the conversation; otherwise that is recognised by its first words.
    """

    principal: Principal
    model: str
    session: str
    text: str
    page: Page
    is_task: bool
    is_kept: bool
    continues: bool
    is_named: bool


def read_turn(
    runtime: Runtime,
    request: Request,
    asked: ChatRequest,
    messages: Sequence[ChatMessage],
    named: str | Mapping[str, JsonValue] | None,
    max_tokens: int | None,
    sampling: Sampling,
    session: str = "",
) -> Turn:
    """Read what a page sends.

    Args:
        named: the user, as the request's body names them.
        max_tokens: the maximum length of the answer.
        session: the conversation that the new words continue, if the page says so; it sends nothing else of it then.

    Raises:
        NotFound: there is no such model.
        InputError: it contains no new words, or a name or an option cannot be used.
        Forbidden: the token is for another user.
    """
    model = asked.model
    if model != LIFE and model not in runtime.responder_names():
        raise NotFound(f"there is no model {model!r} here; there are {', '.join(runtime.responder_names())}")
    if asked.tools and asked.tool_choice not in (None, "none", "auto") and model == COMPANION:
        raise InputError("tool_choice: the companion answers in words, and calls no tools of its client")
    said = [each for each in messages if each.role in ("user", "assistant") and each.text.strip()]
    if not said or said[-1].role != "user":
        raise InputError("the last message must be the user's, with words in it")
    instructions = "\n\n".join(each.text for each in messages if each.role in ("system", "developer") and each.text)
    lines = [Line(by_user=each.role == "user", text=each.text, by=AUTHOR) for each in said[:-1]]
    text, beside = split_context(said[-1].text)
    is_task = bool(request.headers.get(TASK) or (asked.metadata or {}).get("task"))
    is_task = is_task or is_page_task(instructions, lines, text if not beside else "")
    zone = request.headers.get(ZONE, "")
    page = Page(instructions, beside, lines, read_zone(zone) if zone else None, max_tokens or 0, sampling)
    talk, is_named = _talk_of(request, asked.metadata, next((line.text for line in lines if line.by_user), text))
    return Turn(
        user_of(runtime, principal_of(request.scope), request, named),
        model,
        session or f"{model[:30]}:{talk}",
        said[-1].text if is_task else text,
        page,
        is_task,
        is_kept=not request.headers.get(CHAT, "").startswith(UNKEPT),
        continues=bool(session),
        is_named=is_named,
    )


def user_of(
    runtime: Runtime, principal: Principal, request: Request, named: str | Mapping[str, JsonValue] | None = None
) -> Principal:
    """Return the caller, asking about the user who is at the page.

    The header that names the page's own user comes before the field `user`. Where neither names one, a token for one
    user is for that user, and any other token for the operator's own user.

    Raises:
        Forbidden: the token is for another user.
        InputError: the name cannot be used; or a page names a chat and not its user.
    """
    held = named.get("id") if isinstance(named, Mapping) else named
    name = _header(request, USER) or (held if isinstance(held, str) else "")
    if not name and (request.headers.get(CHAT) or request.headers.get(SIGNED)) and not principal.only:
        raise InputError(
            f"this page names its chat, not its user: let it send {USER} (not signed), or use a token for one user"
        )
    return principal.of(name or principal.only or runtime.settings.user)


def _talk_of(request: Request, metadata: Mapping[str, JsonValue] | None, begins: str) -> tuple[str, bool]:
    """Return a conversation's name, and whether the page gave it; else it is derived from the user's first words."""
    held = (metadata or {}).get("chat_id")
    given = normal_name(_header(request, CHAT) or (held if isinstance(held, str) else ""))
    if given and is_name(given) and len(given) <= MAX_CHAT_ID:
        return f"chat:{given}", True
    text = given or " ".join(without_controls(begins).split())
    digest = blake2b(text.encode("utf-8", "replace"), digest_size=10).hexdigest()
    return f"{'chat' if given else 'talk'}.{digest}", bool(given)


def _header(request: Request, name: str) -> str:
    """Return a header that contains an identifier; one beyond Latin-1 arrives as UTF-8 or percent-encoded."""
    value = request.headers.get(name, "")
    with contextlib.suppress(UnicodeError):  # else it is Latin-1
        value = value.encode("latin-1").decode("utf-8")
    return unquote(value)
