"""Read a request of a chat page: the user, the conversation, the new message and the messages shown before it."""

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
from mindstream.json_values import JsonObject
from mindstream.memory.conversation import Line
from mindstream.minds.chat_bot import Page
from mindstream.models.model import Sampling
from mindstream.models.untrusted import without_controls
from mindstream.server.admission import principal_of
from mindstream.service.chat.companion import is_page_task, split_context
from mindstream.service.operations.operation import NotFound, Principal
from mindstream.service.operations.runtime import Runtime

COMPANION, LIFE = "companion", "life"
"""Names of models that are not packs: the companion, which answers from memory alone, and the user's life."""
USER, CHAT, TASK = "x-openwebui-user-id", "x-openwebui-chat-id", "x-openwebui-task"
"""Headers of Open WebUI: the user, the chat, and the kind of a request for its own use (such as a title)."""
SIGNED = "x-openwebui-user-jwt"
"""Header of Open WebUI with the user in a signed token, which is not read here."""
ZONE = "x-timezone"
"""Header with the user's time zone."""
UNKEPT = ("temporary:", "local:", "channel:")
"""Prefixes of the ids of Open WebUI chats that are not stored: temporary chats, and channels with several people."""
MAX_CHAT_ID = 60
"""Maximum length, in characters, of a chat id that is used as it is. A longer id is replaced by its digest."""
AUTHOR = "mind"
"""The author that is given for messages that the user did not write."""


class ContentPart(BaseModel, extra="ignore"):
    """A part of a message. Only texts are read; attachments are counted."""

    type: str = Field(max_length=50)
    text: str | None = None


class ChatMessage(BaseModel, extra="ignore"):
    """A message of a conversation. Tool calls in it are ignored."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"] = "tool"
    content: str | list[ContentPart] | None = None

    @property
    def text(self) -> str:
        """The text of the message, redacted if `--redact` is given. A note at the end says how many attachments there
        are."""
        if not isinstance(self.content, list):
            return redaction.clean(self.content or "").text
        said = "\n".join(part.text for part in self.content if part.text)
        unseen = sum(part.type in ("image_url", "input_image", "input_audio", "file") for part in self.content)
        said = redaction.clean(said).text
        return f"{said}\n({unseen} attached, which cannot be read here)".strip() if unseen else said


class ChatRequest(BaseModel):
    """The common fields of requests to /v1/chat/completions and /v1/responses. Unknown fields are ignored."""

    model_config = ConfigDict(extra="ignore")

    model: str = Field(min_length=1, max_length=100)
    stream: bool | None = None
    metadata: JsonObject | None = None
    temperature: Annotated[float | None, Field(ge=0, le=2)] = None
    top_p: Annotated[float | None, Field(ge=0, le=1)] = None
    tools: list[JsonObject] | None = None
    tool_choice: str | JsonObject | None = None


@dataclass(frozen=True, slots=True)
class Turn:
    """A message to a model, as read from a request.

    Attributes:
        principal: the caller, with the user that the message is from.
        session: the name of the conversation.
        text: the user's new message.
        page: the earlier messages and the options of the request.
        is_task: the client requests a text for its own use, such as a title or tags.
        is_kept: the conversation is stored; otherwise the message is answered without memory.
        continues: the conversation continues where it ended, and the request does not contain its earlier messages.
        is_named: the client names the conversation; otherwise it is recognized by its first message.
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
    """Read the message that a request contains.

    Args:
        named: the user, as named in the request's body.
        max_tokens: the maximum length of the answer.
        session: the conversation that the request continues by `previous_response_id`; then it contains no earlier
            messages. "": it continues none.

    Raises:
        NotFound: the model does not exist.
        InputError: the request contains no new message, or a name or an option is not valid.
        Forbidden: the token is for another user.
    """
    model = asked.model
    if model != LIFE and model not in runtime.responder_names():
        raise NotFound(f"there is no model {model!r}; the models are {', '.join(runtime.listed_names())}")
    if asked.tools and asked.tool_choice not in (None, "none", "auto") and model == COMPANION:
        raise InputError(
            "tool_choice: the companion answers in words, without tools of the client: use `auto` or `none`"
        )
    texts = [(each.role, each.text) for each in messages]
    said = [(role, text) for role, text in texts if role in ("user", "assistant") and text.strip()]
    if not said or said[-1][0] != "user":
        raise InputError("the last message must have the role `user` and contain text")
    instructions = "\n\n".join(text for role, text in texts if role in ("system", "developer") and text)
    *earlier, (_, newest) = said
    lines = [Line(by_user=role == "user", text=text, by=AUTHOR) for role, text in earlier]
    text, beside = split_context(newest)
    is_task = bool(request.headers.get(TASK) or (asked.metadata or {}).get("task"))
    is_task = is_task or is_page_task(instructions, lines, text if not beside else "")
    zone = request.headers.get(ZONE, "")
    page = Page(instructions, beside, lines, read_zone(zone) if zone else None, max_tokens or 0, sampling)
    talk, is_named = _talk_of(request, asked.metadata, next((line.text for line in lines if line.by_user), text))
    return Turn(
        user_of(runtime, principal_of(request.scope), request, named),
        model,
        session or f"{model[:30]}:{talk}",
        newest if is_task else text,
        page,
        is_task,
        is_kept=not request.headers.get(CHAT, "").startswith(UNKEPT),
        continues=bool(session),
        is_named=is_named,
    )


def user_of(
    runtime: Runtime, principal: Principal, request: Request, named: str | Mapping[str, JsonValue] | None = None
) -> Principal:
    """Return the caller with the user that the chat page names.

    The first of these that exists is the user: the name in the header USER, the name in the field `user`, the only user
    of the token, the user in the operator's settings.

    Raises:
        Forbidden: the token is for another user.
        InputError: the name is not valid, or the chat page names a chat but not its user.
    """
    held = named.get("id") if isinstance(named, Mapping) else named
    name = _header(request, USER) or (held if isinstance(held, str) else "")
    if not name and (request.headers.get(CHAT) or request.headers.get(SIGNED)) and not principal.only:
        raise InputError(
            f"the request of a chat page names no user: let the page send the header {USER} (the signed header {SIGNED}"
            " is not read), or use a token for one user"
        )
    return principal.of(name or principal.only or runtime.settings.user)


def _talk_of(request: Request, metadata: Mapping[str, JsonValue] | None, begins: str) -> tuple[str, bool]:
    """Return the name of the conversation, and whether the chat page gave it.

    Args:
        begins: the user's first message. If the page gives no name, the name is a digest of this message.
    """
    held = (metadata or {}).get("chat_id")
    given = normal_name(_header(request, CHAT) or (held if isinstance(held, str) else ""))
    if given and is_name(given) and len(given) <= MAX_CHAT_ID:
        return f"chat:{given}", True
    text = given or " ".join(without_controls(begins).split())
    digest = blake2b(text.encode("utf-8", "replace"), digest_size=10).hexdigest()
    return f"{'chat' if given else 'talk'}.{digest}", bool(given)


def _header(request: Request, name: str) -> str:
    """Return the identifier in a header; "" if the header is missing.

    Characters beyond Latin-1 may be sent as UTF-8 or percent-encoded.
    """
    value = request.headers.get(name, "")
    with contextlib.suppress(UnicodeError):  # if it is not UTF-8, it is Latin-1
        value = value.encode("latin-1").decode("utf-8")
    return unquote(value)
