"""Can a model be had? One short question to its endpoint, which costs nothing."""

from __future__ import annotations

import asyncio
import json
from importlib import import_module

from mindstream.errors import ModelRefused, ModelSilent, ModelUnavailable
from mindstream.models.address import Address, address
from mindstream.models.model import Model
from mindstream.models.roles import Models

PATIENCE_S = 3.0
LIST_BYTES = 4_000_000
"""The longest list of models that is read."""
HOMES = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "google": "https://generativelanguage.googleapis.com/v1beta",
}


async def reached(name: str) -> str:
    """Say in a sentence that a model can be had.

    Raises:
        SettingsError: no such form, no key, no package, no recording.
        ModelError: its endpoint is not there, refuses the key, or has no such model.
    """
    if name.startswith("playback:"):
        model: Model = Models.named({"default": name}).of("talker")
        return f"{model.name} can be played back"
    at = address(name)
    if at.vendor == "gguf":
        return f"{name} can be loaded from {at.model}"
    home = (at.url or HOMES[at.vendor]).rstrip("/")
    if at.vendor == "anthropic" and not home.endswith("/v1"):
        home += "/v1"
    status, body = await _asked(at, f"{home}/models")
    if status in (401, 403):
        raise ModelRefused(f"{name} refuses the key (HTTP {status}); check {at.where_the_key_is()}")
    if status >= 500 and status != 501:  # 501: it lists no models
        raise ModelUnavailable(f"{name}: {home} answers, but is in trouble (HTTP {status}); try again later")
    offered = _offered(body)
    if offered and at.model not in offered and f"{at.model}:latest" not in offered and at.model != "default":
        some = ", ".join(sorted(offered)[:5]) + (", …" if len(offered) > 5 else "")
        raise ModelRefused(f"{name}: {home} answers, and does not offer {at.model!r}; it offers {some}")
    return f"{name} can be reached at {home}"


async def _asked(at: Address, url: str) -> tuple[int, bytes]:
    headers = {"Authorization": f"Bearer {at.key}"}
    if at.vendor == "anthropic":
        headers = {"x-api-key": at.key, "anthropic-version": "2023-06-01"}
    elif at.vendor == "google":
        headers = {"x-goog-api-key": at.key}
        url += "?pageSize=1000"
    wire = await asyncio.to_thread(import_module, "mindstream.models.wire")
    try:
        async with asyncio.timeout(PATIENCE_S), wire.http_client(LIST_BYTES, quick=False) as http:
            answer = await http.get(url, headers=headers)
            return answer.status_code, answer.content
    except TimeoutError:
        raise ModelSilent(f"{at.name}: {url} said nothing for {PATIENCE_S:g} s; is it running there?") from None
    except wire.Refusal as error:
        raise ModelUnavailable(f"{at.name} cannot be listened to ({at.quoted(error)})") from None
    except (*wire.HTTP_ERRORS, OSError, ValueError) as error:
        why = at.quoted(error)
        raise ModelUnavailable(f"{at.name} cannot be reached at {url} ({why}); is it running there?") from None


def _offered(body: bytes) -> set[str]:
    """Read the names of the models that an endpoint lists; none where it does not list any."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError):
        return set()
    listed = (data.get("data") or data.get("models")) if isinstance(data, dict) else None
    entries = listed if isinstance(listed, list) else []
    names = {str(each.get("id") or each.get("name") or "") for each in entries if isinstance(each, dict)}
    return {name.removeprefix("models/") for name in names if name}
