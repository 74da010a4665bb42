"""Features that an endpoint supports for a model, learnt from its errors and stored while the process runs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from mindstream.models.providers.address import Address
from mindstream.models.providers.failures import TOO_LONG
from mindstream.models.providers.tool_calls import UNKNOWN_TOOLS

LIMITS = ("max_tokens", "max_completion_tokens")
"""The request fields that limit a reply: nearly all servers know the first, OpenAI's newest models only the second."""
ROLES = "roles"
"""Pseudo-field in `lacks`: the endpoint refuses the system role, or several messages of one role in a row."""
MAX_ENDPOINTS = 1_000
"""Maximum number of endpoints whose findings are stored."""
_THINKERS = re.compile(r"(?<![a-z0-9])(r1|qwq|think|thinking|reasoning|reasoner)(?![a-z0-9])", re.IGNORECASE)
"""Names of models whose chat templates insert the opening mark of the thoughts, so that the reply lacks it."""


@dataclass
class Capabilities:
    """The findings about one model at one endpoint.

    Attributes:
        lacks: fields of a request that the endpoint refuses, or ROLES.
        opens_thoughts: True: thoughts begin with a mark or have a field of their own. False: only a closing mark is
            sent. None: not known before the first reply.
        expects_thoughts: the model's name says that it thinks first.
    """

    lacks: set[str] = field(default_factory=set)
    opens_thoughts: bool | None = None
    expects_thoughts: bool = False


_known: dict[tuple[str, str], Capabilities] = {}


def capabilities_of(at: Address) -> Capabilities:
    """Return the findings about an address's endpoint and model; callers add to them."""
    if len(_known) >= MAX_ENDPOINTS:
        _known.clear()
    key = (at.url or at.vendor, at.model)
    if (found := _known.get(key)) is None:
        found = _known[key] = Capabilities(expects_thoughts=bool(_THINKERS.search(at.model)))
        if at.vendor == "openai":
            found.lacks.add(LIMITS[0])
        if at.vendor in ("openai", "gguf", "anthropic", "google", "ollama"):
            found.opens_thoughts = True  # text need not be held back: these servers separate thoughts from answers
    return found


def forget_all() -> None:
    """Discard all findings: for tests, in which servers use the same address one after another."""
    _known.clear()


# The rest of this module finds the refused fields in the text of an endpoint's error.

STATUSES = frozenset({0, 400, 404, 405, 415, 422, 424, 500, 501})
"""HTTP statuses with which servers refuse a request's field that they do not know; 0: an error in a stream.

vLLM sends 400, SGLang 500, FastAPI 422, LoRAX 424.
"""
_NOT = (
    r"not (currently )?(support|permit|allow|available|accept|recogni|implement|enabled)|unsupported|unknown"
    r"|unexpected|unrecogni|extra|forbidden|disallowed|invalid (parameter|argument|field)|no such|removed?\b|drop"
    r"|must be (false|omitted|unset)|cannot be (used|set)|ignored|only .{0,20}non"
    r"|does(n't| not)( \w+){0,2} (support|accept|know|allow|have)"
)
_STREAM = r"\bstream(ing)?\b(?!_)"
_REFUSES = re.compile(_NOT, re.IGNORECASE)
_PATTERNS = {
    "stream_options": r"stream_options|streamOptions|include_usage",
    "response_format": r"response[ _]?format|json[ _]?(schema|object|mode)|structured[ _]?output|grammar"
    r"|guided[ _](json|decoding)",
    "logprobs": r"log[ _]?prob",
    "tool_choice": r"tool_choice",
    "temperature": r"temperature",
    "top_p": r"top[ _]?p\b",
    "seed": r"\bseed\b",
    "stop": r"['\"`]stop['\"`]|\bstop (sequence|word|token|parameter)",
    "stream": rf"{_STREAM}.{{0,60}}({_NOT})|({_NOT}).{{0,60}}{_STREAM}",
    **{name: rf"\b{name}\b" for name in LIMITS},
}
_NAMED = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _PATTERNS.items()} | {"tools": UNKNOWN_TOOLS}
"""Patterns of field names in a refusal. For LIMITS, whose names occur in other errors too, see `refused_fields`."""
_SHORT = re.compile(r"output limit|max_(completion_)?tokens|(at least|minimum).{0,40}tokens", re.IGNORECASE)
"""Errors of reasoning models that refuse a limit of one token, with which `decide` requests probabilities."""
_ALIASES = {
    "top_logprobs": "logprobs",
    "functions": "tools",
    "include_usage": "stream_options",
    "grammar": "response_format",
    "json_schema": "response_format",
}
_ROLES = re.compile(
    r"\bsystem\b.{0,60}\b(role|message|prompt|instruction)|\b(role|message).{0,60}\bsystem\b|developer instruction"
    r"|\broles?\b.{0,40}alternat|alternat.{0,40}\brole|only .{0,40}\broles?\b|input should be '?user"
    r"|(first|last) message .{0,40}user|(start|begin)s? with .{0,20}user|consecutive .{0,40}(messages|roles?)"
    r"|(unknown|unexpected|invalid|unsupported) (message )?role|messages\W+\d+\W+role",
    re.IGNORECASE,
)
"""Refusals of the system role, or of roles that do not alternate: Gemma, Mistral, Llama 2, o1-mini, Gemma at Google."""
_TOOLS = re.compile(r"\btools\b|\btool (use|calling|calls)|function[ _-]?call", re.IGNORECASE)
_TEXTS = ["message", "msg", "detail", "error", "title", "reason", "description", "raw", "metadata", "errors"]
_PLACES = ["param", "loc", "field", "parameter", "property", "path", "instance_path"]


def refused_fields(status: int, body: object, message: str, sent: dict[str, Any]) -> set[str]:
    """Return the optional fields of a sent request that the endpoint refuses; ROLES if it refuses the messages' roles.

    Args:
        status: the HTTP status; 0 for an error within a stream.
        body: the body of the error; values that it quotes from the request are ignored.
        message: the client library's message.
    """
    if status not in STATUSES:
        return set()
    text = " · ".join(_texts(body)) or message
    if _ROLES.search(text):
        return _sent({ROLES}, sent, text)
    found = {name for name, pattern in _NAMED.items() if pattern.search(text)}
    found -= set(LIMITS) if TOO_LONG.search(text) or not _REFUSES.search(text) else set()
    if "logprobs" in sent and _SHORT.search(text) and not found & set(LIMITS):
        found.add("logprobs")
    return _sent(found, sent, text)


def _sent(found: set[str], sent: dict[str, Any], text: str) -> set[str]:
    """Return the refused fields that the request has.

    ROLES (the messages' roles are refused) is kept if the request has a system message, or two successive messages of
    the same role. Otherwise, if the request has tool messages, the endpoint must have refused those: then `tools`
    replaces ROLES.
    """
    kept = found & ({_ALIASES.get(name, name) for name in sent} - {"messages", "model"})
    if {"tools", "tool_choice"} <= kept:  # a server that does not know `tool_choice` may know tools
        kept.discard("tools" if not _TOOLS.search(text) else "tool_choice")
    if "stream_options" in kept or not sent.get("stream"):
        kept.discard("stream")
    if ROLES in found:
        roles = [message.get("role") for message in sent["messages"]]
        if "system" in roles or any(one == other != "tool" for one, other in pairwise(roles)):
            kept.add(ROLES)
        elif "tool" in roles:
            kept.add("tools")
    return kept


def _texts(body: object) -> Iterator[str]:
    """Yield the texts of an error and the paths of the parameters that the error names, not values from the request."""
    if isinstance(body, str):
        yield body
    for each in body if isinstance(body, list) else ():
        yield from _texts(each)
    for name, value in body.items() if isinstance(body, dict) else ():
        if name in _PLACES and isinstance(value, str | list):
            yield repr(".".join(map(str, value)) if isinstance(value, list) else value)
        elif name in _TEXTS:
            yield from _texts(value)
