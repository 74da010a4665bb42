"""Read the errors of endpoints.

Each error becomes a `ModelError` that describes it, or tells which features an endpoint lacks for a model; these
findings are stored while the process runs.
"""

from __future__ import annotations

import email.utils
import math
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, Literal, TypeAlias

from mindstream.clock import SystemClock
from mindstream.errors import (
    ModelDenied,
    ModelError,
    ModelRefused,
    ModelSilent,
    ModelUnavailable,
    PromptBlocked,
    PromptTooLong,
    RateLimited,
)
from mindstream.models.providers.address import Address
from mindstream.models.providers.tool_calls import UNKNOWN_TOOLS

TOO_LONG = re.compile(
    r"context[ _-]?(length|size|window|limit)|maximum (model|prompt|input) length|maximum length of"
    r"|prompt (is )?too long|input (is )?too long|too many (input )?tokens|input tokens exceed|input token count"
    r"|reduce the length|`?inputs`? (tokens|must have)|tokens \+ `?max_new_tokens",
    re.IGNORECASE,
)
"""Errors of OpenAI, vLLM, llama.cpp, Anthropic, Google, Ollama, TGI, Mistral and LM Studio about a prompt's length."""
WINDOW = r"""
> ?(\d+)
<= ?(\d+)
(\d+) maximum context
less than (\d+) tokens
limit of (\d+)
only (\d+)
tokens allowed \((\d+)\)
context[ _](?:length|size|window)\D{0,20}(\d+)
model length of (\d+)"""
"""Patterns of the context window's size in errors about the length, one per line; the first that matches counts."""
COUNTED = r"""
resulted in (\d+)
(\d+) in the messages
has (\d+) input
passed (\d+) input
request \((\d+) tokens
too long: (\d+)
limit: (\d+) \+
token count \((\d+)
length (\d+)\) is longer
given: (\d+)
contains (\d+) tokens
requested tokens \((\d+)"""
"""Patterns of the number of tokens that the endpoint counted in the prompt."""
LONGEST_REPLY = r"""
at most (\d+) (?:completion|output) tokens
> (\d+), which is the maximum allowed"""

BLOCKED = re.compile(
    r"content[ _-]?(management[ _-]?)?(filter|polic)|responsible[ _]?ai|moderation|flagged|usage polic"
    r"|safety (system|polic)|prohibited[ _]content|prohibited_use|inappropriate content|data[ _]inspection|high risk"
    r"|(unsafe|sensitive) content|contentfilter|prompt (was|is) blocked|block_?reason|不安全|敏感|违规",
    re.IGNORECASE,
)
"""Matches the errors of the content filters of OpenAI, Azure, OpenRouter, Gemini, Mistral, DeepSeek, DashScope,
Moonshot and Zhipu."""
BLOCKED_CODES = {"invalid_prompt", "content_filter", "content_policy_violation", "1301", "data_inspection_failed"}
SPENT = {
    "insufficient_quota",
    "billing_hard_limit_reached",
    "credit_balance_exhausted",
    "exceeded_current_quota_error",
    "organization_spend_limit_exceeded",
    "project_spend_limit_exceeded",
    "organization_usage_limit_exceeded",
}
"""Error codes for missing credit, which have the HTTP status of a rate limit."""
STATUS = {
    code: status
    for status, codes in {
        429: "rate_limit_exceeded rate_limit_error too_many_requests",
        400: "context_length_exceeded",
        503: "service_unavailable service_unavailable_error server_is_overloaded overloaded",
        500: "server_error",
        401: "invalid_api_key",
        404: "model_not_found",
    }.items()
    for code in codes.split()
}
"""HTTP statuses for error codes within a stream, which come without a status."""

Kind: TypeAlias = Literal[
    "answered",
    "blocked",
    "broken",
    "denied",
    "failed",
    "missing",
    "not_taken",
    "odd",
    "rejected",
    "spent",
    "too_long",
    "unreachable",
]


@dataclass(frozen=True, slots=True)
class Fault:
    """An error of any client library, in a common form.

    Attributes:
        words: the endpoint's message; if it sent none, the library's.
        kind: answered: an error response, classified later by its status. blocked: a content filter refused the prompt.
            spent: no credit is left. too_long: the prompt is too long. rejected: the request will never be accepted.
            unreachable: no server listens at the address. broken: the connection failed. not_taken: this process
            refuses the response (see wire). odd: the response does not follow the protocol. denied, missing, failed:
            results of classifying the status.
        status: the HTTP status; 0 if there is none.
        retry_after_s: the pause that the endpoint asks for, in seconds.
    """

    words: str
    kind: Kind = "answered"
    status: int = 0
    retry_after_s: float | None = None


@contextmanager
def failures(at: Address, readers: Mapping[type[Exception], Callable[[Exception], Fault]]) -> Iterator[None]:
    """Turn each failure of an endpoint into a `ModelError`.

    Args:
        readers: functions that read the errors of a client library.
    """
    try:
        yield
    except TimeoutError:
        raise ModelSilent(f"{at.name} sent nothing within the timeout. Is it busy, or still loading?") from None
    except Exception as error:
        if read := next((read for found, read in readers.items() if isinstance(error, found)), None):
            raise _failure(at, read(error)) from None
        if isinstance(error, (AttributeError, TypeError, ValueError, LookupError, RecursionError)):
            raise _failure(at, Fault(f"{type(error).__name__}: {error}", "odd")) from None
        raise


ERRORS: dict[Kind, tuple[type[ModelError], str]] = {
    "not_taken": (ModelUnavailable, "the response of {name} is not accepted ({what})"),
    "unreachable": (ModelUnavailable, "{name} cannot be reached ({what}). Is it running at {where}?"),
    "odd": (ModelUnavailable, "the response of {name} does not follow the protocol ({what}){hint}"),
    "broken": (ModelUnavailable, "the connection to {name} broke off ({what}). It may work later"),
    "failed": (ModelUnavailable, "{name} failed ({what}). It may work later"),
    "spent": (ModelDenied, "the account for {name} has no credit left ({what}). Asking again will not help"),
    "denied": (ModelDenied, "{name} refuses the key ({what}). Check {key}"),
    "missing": (ModelDenied, "{name} does not exist at the endpoint ({what}). Check the model's name{hint}"),
    "blocked": (PromptBlocked, "{name} refuses the prompt: its content filter found it unfit ({what})"),
    "rejected": (ModelRefused, "{name} refuses the request ({what})"),
}


def _failure(at: Address, fault: Fault) -> ModelError:
    status, kind = fault.status, fault.kind
    what = f"HTTP {status}: {at.quote(fault.words)}" if status else at.quote(fault.words)
    if kind in ("answered", "rejected", "too_long"):
        if status in (0, 400, 403, 422, 451) and BLOCKED.search(fault.words):
            kind = "blocked"
        elif status in (0, 400, 413, 422, 500) and (too_long := _too_long(at, fault, what)):
            return too_long
        elif status == 429:
            return RateLimited(f"{at.name} asks to wait ({what})", fault.retry_after_s)
        elif status in (401, 403, 404):
            kind = "missing" if status == 404 else "denied"
        else:
            lasting = kind == "rejected" or (400 <= status < 500 and status not in (408, 409, 425))
            kind = "rejected" if lasting else "failed"
    error, text = ERRORS[kind]
    where = at.url or "its address"
    return error(text.format(name=at.name, what=what, where=where, hint=at.hint(), key=at.key_source()))


def _too_long(at: Address, fault: Fault, what: str) -> PromptTooLong | None:
    longest = _number(fault.words, LONGEST_REPLY)
    if not (fault.kind == "too_long" or fault.status == 413 or longest or TOO_LONG.search(fault.words)):
        return None
    message = f"the prompt is too long for {at.name} ({what})"
    if longest:
        return PromptTooLong(message, longest_reply=longest)
    return PromptTooLong(message, _number(fault.words, WINDOW), _number(fault.words, COUNTED))


def _number(words: str, patterns: str) -> int | None:
    """Return the first number that matches one of the patterns (one per line) and can be a token count; None: none."""
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", words[:4_000])
    for pattern in patterns.split("\n")[1:]:
        if (found := re.search(pattern, plain, re.IGNORECASE)) and 64 <= int(found[1][:9]) <= 20_000_000:
            return int(found[1])
    return None


def error_fault(body: object, message: str, status: int, headers: Mapping[str, str]) -> Fault:
    """Parse an error that an endpoint with OpenAI's protocol reports; `status` is 0 for an error within a stream."""
    found = body.get("error", body) if isinstance(body, dict) else body
    found = found if isinstance(found, dict) else {}
    inner = found.get("innererror")  # Azure's
    inner = inner.get("code") if isinstance(inner, dict) else None
    codes = {str(each) for each in (found.get("code"), found.get("type"), inner)}
    wait_s = _wait_s(found, words_of(body) or message, headers)
    status = status or next(filter(None, map(_status, codes)), 0)
    kind: Kind = "spent" if codes & SPENT or status == 402 else "answered"
    kind = "blocked" if codes & BLOCKED_CODES else kind
    kind = "too_long" if "context_length_exceeded" in codes else kind
    return Fault(words_of(body) or message, kind, status, wait_s)


AGAIN = re.compile(
    r"(?:try|retry)(?: again)? (?:in|after) (?:(\d+) ?m(?:in\w*)?(?!s) ?)?(?:([\d.]+) ?(ms|s))?", re.IGNORECASE
)
"""The pause that OpenAI, Azure and Groq name in the message of a rate limit: `1m26.5s`, `312ms`, `20 seconds`."""


def _wait_s(error: Mapping[str, object], words: str, headers: Mapping[str, str]) -> float | None:
    """Return the pause that a rate-limit error asks for, in seconds; None if the error names no pause.

    The pause is read from the headers, else from the details (Gemini) or `retry_after`, else from the message.
    """
    if (wait_s := retry_after_s(headers)) is not None:
        return wait_s
    details = error.get("details")
    named = (each.get("retryDelay") for each in details if isinstance(each, dict)) if isinstance(details, list) else ()
    for given in (*named, error.get("retry_after")):
        with suppress(ValueError, TypeError):
            if math.isfinite(wait_s := float(str(given).removesuffix("s"))):
                return max(0.0, wait_s)
    found = AGAIN.search(words[:4_000])
    with suppress(ValueError):
        if found and (found[1] or found[2]):
            return 60.0 * int(found[1] or 0) + float(found[2] or 0) / (1_000 if found[3] == "ms" else 1)
    return None


def _status(code: str) -> int:
    """Return the HTTP status that an error code means; gateways send the status itself as the code."""
    return int(code) if re.fullmatch("[45][0-9]{2}", code) else STATUS.get(code, 0)


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and its chain of causes."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def words_of(body: object) -> str:
    """Return the message in the body of an error. The body has one of several usual shapes; "": there is no body."""
    body = body[0] if isinstance(body, list) and body else body  # Gemini's
    body = (body.get("error") or body) if isinstance(body, dict) else body
    return str((isinstance(body, dict) and body.get("message")) or body or "")


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Return the seconds in the header `retry-after-ms`, or else in `Retry-After` (seconds or a date).

    None: both headers are missing or invalid.
    """
    value = headers.get("retry-after", "")
    with suppress(ValueError):
        if math.isfinite(wait_s := float(headers.get("retry-after-ms", "")) / 1_000):
            return max(0.0, wait_s)
    try:
        wait_s = float(value)
    except ValueError:
        date = email.utils.parsedate_tz(value)
        wait_s = email.utils.mktime_tz(date) - SystemClock().now() if date else math.nan
    return max(0.0, wait_s) if math.isfinite(wait_s) else None


LIMITS = ("max_tokens", "max_completion_tokens")
"""The request fields that limit a reply: nearly all servers know the first, OpenAI's newest models only the second."""
ROLES = "roles"
"""Pseudo-field in `lacks`: the endpoint refuses the system role, or several messages of one role in a row."""
MAX_ENDPOINTS = 1_000
"""Maximum number of endpoints and models whose findings are stored; if there are more, all findings are discarded."""
_THINKERS = re.compile(r"(?<![a-z0-9])(r1|qwq|think|thinking|reasoning|reasoner)(?![a-z0-9])", re.IGNORECASE)
"""Names of models whose chat templates insert the opening mark of the thoughts. The replies then lack this mark."""


@dataclass
class Capabilities:
    """The findings about one model at one endpoint.

    Attributes:
        lacks: fields of a request that the endpoint refuses; ROLES stands for the roles of its messages.
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
"""Matches the errors of reasoning models that refuse a limit of one token, which `decide` sets when it requests
probabilities."""
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
"""Matches errors of endpoints that refuse the system role, or roles that do not alternate (Gemma, Mistral, Llama 2,
o1-mini, Gemma at Google)."""
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

    ROLES means that the roles of the messages are refused:
    - If the request has a system message, or two successive messages of the same role (except `tool`), ROLES is kept.
    - Otherwise, if the request has tool messages, the endpoint must have refused them. Then `tools` replaces ROLES.
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
