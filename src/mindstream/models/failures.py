"""Whatever an endpoint does wrong becomes a `ModelError` that says what it is."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mindstream.errors import ModelError, ModelRefused, ModelSilent, ModelUnavailable, PromptTooLong, RateLimited
from mindstream.models.address import Address

if TYPE_CHECKING:
    from pydantic_ai.exceptions import ModelAPIError

TOO_LONG = re.compile(
    r"context[ _-]?(length|size|window|limit)|maximum (model|prompt|input) length|maximum length of"
    r"|prompt (is )?too long|input (is )?too long|too many (input )?tokens|input tokens exceed|input token count"
    r"|reduce the length|`?inputs`? (tokens|must have)|tokens \+ `?max_new_tokens",
    re.IGNORECASE,
)
"""How OpenAI, vLLM, llama.cpp, Anthropic, Google, Ollama, TGI, Mistral and LM Studio say that a prompt is too long."""
WINDOW = (
    r"> ?(\d+)", r"<= ?(\d+)", r"(\d+) maximum context", r"less than (\d+) tokens", r"limit of (\d+)", r"only (\d+)",
    r"tokens allowed \((\d+)\)", r"context[ _](?:length|size|window)\D{0,20}(\d+)", r"model length of (\d+)",
)  # fmt: skip
"""Where those words name the window; the first that is found."""
COUNTED = (
    r"resulted in (\d+)", r"(\d+) in the messages", r"has (\d+) input", r"passed (\d+) input",
    r"request \((\d+) tokens", r"too long: (\d+)", r"limit: (\d+) \+", r"token count \((\d+)",
    r"length (\d+)\) is longer", r"given: (\d+)", r"contains (\d+) tokens", r"requested tokens \((\d+)",
)  # fmt: skip
"""… and how many tokens were counted in the question."""
LONGEST_REPLY = (r"at most (\d+) (?:completion|output) tokens", r"> (\d+), which is the maximum allowed")
DISCONNECTED = re.compile(r"disconnected|closed connection|incomplete|reset", re.IGNORECASE)


def _not_at_all(_: str) -> str:
    return ""


@contextmanager
def failures(at: Address, ask_otherwise: Callable[[str], str] = _not_at_all) -> Iterator[None]:
    """Turn whatever an endpoint does wrong into a `ModelError`.

    Args:
        ask_otherwise: is shown a refusal's words; says what will be done otherwise next time, or "".
    """
    from pydantic_ai.exceptions import ModelAPIError, UnexpectedModelBehavior

    from mindstream.models.wire import HTTP_ERRORS, Refusal

    try:
        yield
    except TimeoutError:
        raise ModelSilent(f"{at.name} said nothing for too long. Is it busy, or still loading?") from None
    except ModelAPIError as error:
        failure = _failure(at, error)
        changed = ask_otherwise(str(failure)) if isinstance(failure, ModelRefused) else ""
        raise (ModelUnavailable(f"{at.name} {changed}") if changed else failure) from None
    except HTTP_ERRORS as error:  # where an adapter lets it through
        how = "cannot be listened to" if isinstance(error, Refusal) else "broke off"
        raise ModelUnavailable(f"{at.name} {how} ({type(error).__name__}: {at.quoted(error)})") from None
    except (UnexpectedModelBehavior, AttributeError, TypeError, ValueError, LookupError, RecursionError) as error:
        raise _off_protocol(at, f"{type(error).__name__}: {at.quoted(error)}") from None


def _failure(at: Address, error: ModelAPIError) -> ModelError:
    from pydantic_ai import exceptions as pydantic

    status = error.status_code if isinstance(error, pydantic.ModelHTTPError) else 0
    words = _words(error)
    what = f"HTTP {status}: {at.quoted(words)}" if status else at.quoted(words)
    if not status:
        return _broken(at, error, what)
    if isinstance(error, pydantic.ModelQuotaExceededError):
        return ModelRefused(f"{at.name} has no credit left ({what}). Asking again will not help")
    if status in (400, 413, 422, 500) and (too_long := _too_long(at, error, words, what)):
        return too_long
    if status == 429:
        return RateLimited(f"{at.name} asks to wait ({what})", error.retry_after)
    if status in (401, 403):
        return ModelRefused(f"{at.name} refuses the key ({what}). Check {at.where_the_key_is()}")
    if status == 404:
        return ModelRefused(f"{at.name} is not there ({what}). Check the model's name{at.hint()}")
    passing = status in (408, 409, 425) or not 400 <= status < 500
    if passing and not isinstance(error, pydantic.ModelRequestRejectedError):
        return ModelUnavailable(f"{at.name} failed ({what}). It may work later")
    return ModelRefused(f"{at.name} refuses the request ({what})")


def _broken(at: Address, error: ModelAPIError, what: str) -> ModelError:
    """Say what happened where no whole answer of HTTP came: no connection, no protocol, no end."""
    from pydantic_ai import exceptions as pydantic

    from mindstream.models.wire import Refusal

    causes = list(_causes(error))
    if any(isinstance(cause, Refusal) for cause in causes):
        return ModelUnavailable(f"{at.name} cannot be listened to ({what})")
    if isinstance(error, pydantic.ModelContextWindowExceededError):
        return PromptTooLong(f"{at.name}: the prompt is too long for it ({what})")
    if isinstance(error, pydantic.ModelConnectionError):
        if error.phase == "connect":
            where = at.url or "its address"
            return ModelUnavailable(f"{at.name} cannot be reached ({what}). Is it running at {where}?")
        if type(causes[-1]).__name__ == "RemoteProtocolError" and not DISCONNECTED.search(str(causes[-1])):
            return _off_protocol(at, what)
        return ModelUnavailable(f"{at.name} broke off ({what}). It may work later")
    if any(isinstance(cause, ValueError) for cause in causes):
        return _off_protocol(at, what)
    failed = "broke off" if "finish_reason" in str(error) else "failed"
    return ModelUnavailable(f"{at.name} {failed} ({what}). It may work later")


def _off_protocol(at: Address, what: str) -> ModelUnavailable:
    return ModelUnavailable(f"{at.name} answered what is not of its protocol ({what}){at.hint()}")


def _too_long(at: Address, error: ModelAPIError, words: str, what: str) -> PromptTooLong | None:
    from pydantic_ai.exceptions import ModelContextWindowExceededError

    longest = _number(words, LONGEST_REPLY)
    known = isinstance(error, ModelContextWindowExceededError) or getattr(error, "status_code", 0) == 413
    if not (known or longest or TOO_LONG.search(words)):
        return None
    message = f"{at.name}: the prompt is too long for it ({what})"
    if longest:
        return PromptTooLong(message, longest_reply=longest)
    return PromptTooLong(message, _number(words, WINDOW), _number(words, COUNTED))


def _number(words: str, places: tuple[str, ...]) -> int | None:
    """Return the first number that stands where one is looked for, if it can be one of a model's."""
    plain = re.sub(r"(?<=\d),(?=\d{3})", "", words[:4_000])
    for place in places:
        if (found := re.search(place, plain, re.IGNORECASE)) and 64 <= int(found[1][:9]) <= 20_000_000:
            return int(found[1])
    return None


def _causes(error: BaseException) -> Iterator[BaseException]:
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__


def _words(error: ModelAPIError) -> str:
    """The words of an error's body, in any of the usual shapes; without a body, those of whatever caused it."""
    body = error.body.get("error", error.body) if isinstance(error.body, dict) else error.body
    if body:
        return str(body.get("message") or body) if isinstance(body, dict) else str(body)
    *_, cause = _causes(error)
    return f"{type(cause).__name__}: {cause}"
