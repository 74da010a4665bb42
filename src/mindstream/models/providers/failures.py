"""Whatever an endpoint does wrong becomes a `ModelError` that says what it is."""

from __future__ import annotations

import email.utils
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Literal, TypeAlias

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

TOO_LONG = re.compile(
    r"context[ _-]?(length|size|window|limit)|maximum (model|prompt|input) length|maximum length of"
    r"|prompt (is )?too long|input (is )?too long|too many (input )?tokens|input tokens exceed|input token count"
    r"|reduce the length|`?inputs`? (tokens|must have)|tokens \+ `?max_new_tokens",
    re.IGNORECASE,
)
"""How OpenAI, vLLM, llama.cpp, Anthropic, Google, Ollama, TGI, Mistral and LM Studio say that a prompt is too long."""
WINDOW = (
    r"> ?(\d+)",
    r"<= ?(\d+)",
    r"(\d+) maximum context",
    r"less than (\d+) tokens",
    r"limit of (\d+)",
    r"only (\d+)",
    r"tokens allowed \((\d+)\)",
    r"context[ _](?:length|size|window)\D{0,20}(\d+)",
    r"model length of (\d+)",
)
"""Where those words name the window; the first that is found."""
COUNTED = (
    r"resulted in (\d+)",
    r"(\d+) in the messages",
    r"has (\d+) input",
    r"passed (\d+) input",
    r"request \((\d+) tokens",
    r"too long: (\d+)",
    r"limit: (\d+) \+",
    r"token count \((\d+)",
    r"length (\d+)\) is longer",
    r"given: (\d+)",
    r"contains (\d+) tokens",
    r"requested tokens \((\d+)",
)
"""… and how many tokens were counted in the question."""
LONGEST_REPLY = (r"at most (\d+) (?:completion|output) tokens", r"> (\d+), which is the maximum allowed")

BLOCKED = re.compile(
    r"content[ _-]?(management[ _-]?)?(filter|polic)|responsible[ _]?ai|moderation|flagged|usage polic"
    r"|safety (system|polic)|prohibited[ _]content|prohibited_use|inappropriate content|data[ _]inspection|high risk"
    r"|(unsafe|sensitive) content|contentfilter|prompt (was|is) blocked|block_?reason|不安全|敏感|违规",
    re.IGNORECASE,
)
"""How OpenAI, Azure, OpenRouter, Gemini, Mistral, DeepSeek, DashScope, Moonshot and Zhipu say that a filter refused."""
BLOCKED_CODES = frozenset(
    {"invalid_prompt", "content_filter", "content_policy_violation", "1301", "data_inspection_failed"}
)
SPENT = frozenset(
    {
        "insufficient_quota",
        "billing_hard_limit_reached",
        "credit_balance_exhausted",
        "exceeded_current_quota_error",
        "organization_spend_limit_exceeded",
        "project_spend_limit_exceeded",
        "organization_usage_limit_exceeded",
    }
)
"""Codes that say that no credit is left: they come with the status of a rate limit."""
STATUS = {
    "rate_limit_exceeded": 429,
    "rate_limit_error": 429,
    "too_many_requests": 429,
    "context_length_exceeded": 400,
    "service_unavailable": 503,
    "service_unavailable_error": 503,
    "server_is_overloaded": 503,
    "overloaded": 503,
    "server_error": 500,
    "invalid_api_key": 401,
    "model_not_found": 404,
}
"""The status of an error that comes without one, within a stream."""

Kind: TypeAlias = Literal[
    "answered", "blocked", "spent", "too_long", "rejected", "unreachable", "broken", "not_taken", "odd"
]


@dataclass(frozen=True, slots=True)
class Fault:
    """What a client library found, in one form for all of them.

    Attributes:
        words: what the endpoint said; where it said nothing, what the library says.
        kind: it answered with an error; a content filter refused the prompt; no credit is left; the prompt is too
            long; it will never be taken; nothing listens at the address; the connection broke; the response is not
            taken (see wire); it is not of the protocol.
        status: of HTTP; 0 where there was none.
        retry_after_s: how long the endpoint asks to wait, in seconds.
    """

    words: str
    kind: Kind = "answered"
    status: int = 0
    retry_after_s: float | None = None


class failures:  # noqa: N801 (a context manager; as a generator it would cost three times as much for each piece)
    """Turns each failure of an endpoint into a `ModelError`.

    Args:
        told: how to read the errors of a client library.
    """

    __slots__ = ("_at", "_told")

    def __init__(self, at: Address, told: Mapping[type[Exception], Callable[[Exception], Fault]]) -> None:
        self._at, self._told = at, told

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: TracebackType | None) -> None:
        if error is None:
            return
        if isinstance(error, TimeoutError):
            raise ModelSilent(f"{self._at.name} said nothing for too long. Is it busy, or still loading?") from None
        read = next((read for found, read in self._told.items() if isinstance(error, found)), None)
        if read is not None and isinstance(error, Exception):
            raise _failure(self._at, read(error)) from None
        if isinstance(error, (AttributeError, TypeError, ValueError, LookupError, RecursionError)):
            raise _failure(self._at, Fault(f"{type(error).__name__}: {error}", "odd")) from None


def _failure(at: Address, fault: Fault) -> ModelError:
    what = f"HTTP {fault.status}: {at.quote(fault.words)}" if fault.status else at.quote(fault.words)
    match fault.kind:
        case "not_taken":
            return ModelUnavailable(f"{at.name} cannot be listened to ({what})")
        case "unreachable":
            where = at.url or "its address"
            return ModelUnavailable(f"{at.name} cannot be reached ({what}). Is it running at {where}?")
        case "odd":
            return ModelUnavailable(f"{at.name} answered what is not of its protocol ({what}){at.hint()}")
        case "broken":
            return ModelUnavailable(f"{at.name} broke off ({what}). It may work later")
        case "spent":
            return ModelDenied(f"{at.name} has no credit left ({what}). Asking again will not help")
    return _answered(at, fault, what)


def _answered(at: Address, fault: Fault, what: str) -> ModelError:
    """Read an error that the endpoint itself tells."""
    status = fault.status
    if fault.kind == "blocked" or (status in (0, 400, 403, 422, 451) and BLOCKED.search(fault.words)):
        return PromptBlocked(f"{at.name} refuses the prompt: its content filter found it unfit ({what})")
    if status in (0, 400, 413, 422, 500) and (too_long := _too_long(at, fault, what)):
        return too_long
    if status == 429:
        return RateLimited(f"{at.name} asks to wait ({what})", fault.retry_after_s)
    if status in (401, 403):
        return ModelDenied(f"{at.name} refuses the key ({what}). Check {at.key_source()}")
    if status == 404:
        return ModelDenied(f"{at.name} is not there ({what}). Check the model's name{at.hint()}")
    passing = status in (408, 409, 425) or not 400 <= status < 500
    if passing and fault.kind != "rejected":
        return ModelUnavailable(f"{at.name} failed ({what}). It may work later")
    return ModelRefused(f"{at.name} refuses the request ({what})")


def _too_long(at: Address, fault: Fault, what: str) -> PromptTooLong | None:
    longest = _number(fault.words, LONGEST_REPLY)
    if not (fault.kind == "too_long" or fault.status == 413 or longest or TOO_LONG.search(fault.words)):
        return None
    message = f"{at.name}: the prompt is too long for it ({what})"
    if longest:
        return PromptTooLong(message, longest_reply=longest)
    return PromptTooLong(message, _number(fault.words, WINDOW), _number(fault.words, COUNTED))


def _number(words: str, places: tuple[str, ...]) -> int | None:
    """Return the first number that stands where one is looked for, if it can be one of a model's."""
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", words[:4_000])
    for place in places:
        if (found := re.search(place, plain, re.IGNORECASE)) and 64 <= int(found[1][:9]) <= 20_000_000:
            return int(found[1])
    return None


def error_fault(body: object, message: str, status: int, headers: Mapping[str, str]) -> Fault:
    """Read an error that an endpoint of OpenAI's protocol reports; `status` 0: within a stream."""
    found = body.get("error", body) if isinstance(body, dict) else body
    codes = {str(found.get(key)) for key in ("code", "type")} if isinstance(found, dict) else set()
    inner = found.get("innererror") if isinstance(found, dict) else None  # Azure's
    codes |= {str(inner.get("code"))} if isinstance(inner, dict) else set()
    wait_s = retry_after_s(headers) if status else None
    status = status or next(filter(None, map(_status, codes)), 0)
    kind: Kind = "spent" if codes & SPENT or status == 402 else "answered"
    kind = "blocked" if codes & BLOCKED_CODES else kind
    kind = "too_long" if "context_length_exceeded" in codes else kind
    return Fault(words_of(body) or message, kind, status, wait_s)


def _status(code: str) -> int:
    """Return the status that a code stands for; gateways send the status itself."""
    return int(code) if re.fullmatch("[45][0-9]{2}", code) else STATUS.get(code, 0)


def causes(error: BaseException) -> Iterator[BaseException]:
    """Give an error, what it was raised from, and so on."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def words_of(body: object) -> str:
    """Return the words of an error's body, in any of the usual shapes; "" without a body."""
    body = body[0] if isinstance(body, list) and body else body  # Gemini's
    body = (body.get("error") or body) if isinstance(body, dict) else body
    return str((isinstance(body, dict) and body.get("message")) or body or "")


def retry_after_s(headers: Mapping[str, str]) -> float | None:
    """Read `Retry-After`: seconds, or a date."""
    wish = headers.get("retry-after", "")
    try:
        wait_s = float(wish)
    except ValueError:
        date = email.utils.parsedate_tz(wish)
        wait_s = email.utils.mktime_tz(date) - SystemClock().now() if date else math.nan
    return max(0.0, wait_s) if math.isfinite(wait_s) else None
