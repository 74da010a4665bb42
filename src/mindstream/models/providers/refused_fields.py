"""Which fields of a request an endpoint refuses: read from the parameter that its error names, or from its words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from mindstream.models.providers.capabilities import LIMITS, ROLES
from mindstream.models.providers.failures import TOO_LONG
from mindstream.models.providers.typed_calls import UNKNOWN_TOOLS

STATUSES = frozenset({0, 400, 404, 405, 415, 422, 424, 500, 501})
"""Statuses of such refusals; 0: an error within a stream. vLLM sends 400, SGLang 500, FastAPI 422, LoRAX 424."""
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
_WORDS = {name: re.compile(pattern, re.IGNORECASE) for name, pattern in _PATTERNS.items()} | {"tools": UNKNOWN_TOOLS}
"""How a refusal names a field in its words; any wording counts, except where other errors name the field, too."""
_SHORT = re.compile(r"output limit|max_(completion_)?tokens|(at least|minimum).{0,40}tokens", re.IGNORECASE)
"""A model that thinks cannot answer in the one token that probabilities are asked of."""
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
    r"|(unknown|unexpected|invalid|unsupported) (message )?role",
    re.IGNORECASE,
)
"""Refusals of the system role, or of roles that do not alternate: Gemma, Mistral, Llama 2, o1-mini, Gemma at Google."""
_TOOLS = re.compile(r"\btools\b|\btool (use|calling|calls)|function[ _-]?call", re.IGNORECASE)
_TEXTS = ("message", "msg", "detail", "error", "title", "reason", "description", "raw", "metadata", "errors")
_PLACES = ("param", "loc", "field", "parameter", "property", "path", "instance_path")


def refused_fields(status: int, body: object, message: str, sent: dict[str, Any]) -> set[str]:
    """Return the fields that were sent and are refused, none of which a reply needs; ROLES for the messages' roles.

    Args:
        status: of HTTP; 0 for an error within a stream.
        body: the error as it came; values that it quotes from the request are passed over.
        message: what the client library says.
    """
    if status not in STATUSES:
        return set()
    found: set[str] = set()
    places = list(_places(body))
    words = " · ".join(_texts(body)) or message
    is_too_long = bool(TOO_LONG.search(words))
    for place in places:
        first, *inner = place
        name = _ALIASES.get(first, first)
        if first == "messages":
            found |= {ROLES} if "role" in inner or _ROLES.search(words) else set()
        elif name in _WORDS and not (name == "tools" and inner) and not (name in LIMITS and is_too_long):
            found.add(name)
    if not found:
        found = {name for name, pattern in _WORDS.items() if pattern.search(words)}
        found -= set(LIMITS) if is_too_long or not _REFUSES.search(words) else set()
        if "logprobs" in sent and _SHORT.search(words) and not found & set(LIMITS):
            found.add("logprobs")
        if _ROLES.search(words):
            found = {ROLES}
    return _sent(found, sent, words)


def _sent(found: set[str], sent: dict[str, Any], words: str) -> set[str]:
    """Return the refused fields that a request has."""
    there = {_ALIASES.get(name, name) for name in sent} - {"messages", "model"}
    kept = found & there
    if {"tools", "tool_choice"} <= kept:  # a server that knows no choice may know tools
        kept.discard("tools" if not _TOOLS.search(words) else "tool_choice")
    if "stream_options" in kept or not sent.get("stream"):
        kept.discard("stream")
    if ROLES in found:
        roles = [message.get("role") for message in sent["messages"]]
        in_turn = all(one != other or one == "tool" for one, other in pairwise(roles))
        if "system" in roles or not in_turn:
            kept.add(ROLES)
        elif "tool" in roles:
            kept.add("tools")
    return kept


def _places(body: object) -> Iterator[list[str]]:
    """Give the paths of the parameters that an error names."""
    if isinstance(body, list):
        for each in body:
            yield from _places(each)
    if not isinstance(body, dict):
        return
    for name, value in body.items():
        if name in _PLACES and isinstance(value, str | list):
            parts = [str(each) for each in value] if isinstance(value, list) else [value]
            path = [word for part in parts for word in re.findall(r"\w+", part) if word not in ("body", "request")]
            if path:
                yield path
        elif name not in ("input", "ctx"):
            yield from _places(value)


def _texts(body: object) -> Iterator[str]:
    """Give the words of an error, without what it quotes from the request."""
    if isinstance(body, str):
        yield body
    if isinstance(body, list):
        for each in body:
            yield from _texts(each)
    if isinstance(body, dict):
        for name in _TEXTS:
            yield from _texts(body.get(name))
