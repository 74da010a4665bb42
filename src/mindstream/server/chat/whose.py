"""Who speaks through a chat page, in which talk, and where they live: by the token, then by what the page sends."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from datetime import tzinfo
from hashlib import blake2b
from urllib.parse import unquote

from fastapi import Request
from pydantic import JsonValue

from mindstream.clock import read_zone
from mindstream.errors import InputError
from mindstream.identifiers import is_name, normal_name
from mindstream.models.legible import without_controls
from mindstream.service.operations.house import House
from mindstream.service.operations.who import Who

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


def whose(house: House, who: Who, request: Request, named: str | Mapping[str, JsonValue] | None = None) -> Who:
    """Return who asks, about the user who speaks.

    The header of the page's own user comes before the field `user`; where nobody is named, a token for one user speaks
    for that one, and any other for the operator's own user.

    Raises:
        Forbidden: the token is for another user.
        InputError: nobody can be called so; or a page names a chat and not whose it is.
    """
    held = named.get("id") if isinstance(named, Mapping) else named
    name = _header(request, USER) or (held if isinstance(held, str) else "")
    if not name and (request.headers.get(CHAT) or request.headers.get(SIGNED)) and not who.only:
        raise InputError(
            f"this page names its chat, not whose it is: let it send {USER} (not signed), or use a token for one user"
        )
    return who.of(name or who.only or house.settings.user)


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
