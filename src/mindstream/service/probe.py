"""Check whether a model is available, by listing the models of its endpoint, which costs nothing."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from importlib import import_module

from mindstream.errors import ModelRefused, ModelSilent
from mindstream.models.model import Model
from mindstream.models.providers.address import Address, address
from mindstream.models.providers.failures import failures
from mindstream.models.roles import Models

PATIENCE_S = 3.0
"""Timeout of a request in seconds."""
LIST_BYTES = 4_000_000
"""Maximum bytes of a list of models."""
LISTS_NONE = (400, 404, 405, 501)
"""Status codes of endpoints that cannot list their models."""
HOMES = {
    "openai": "https://api.openai.com/v1",
    "anthropic": "https://api.anthropic.com/v1",
    "google": "https://generativelanguage.googleapis.com/v1beta",
}


async def probe(name: str) -> str:
    """Check whether a model is available, and return a sentence that says so.

    Raises:
        SettingsError: the name is malformed, or a key, a package or a recording is missing.
        ModelError: the endpoint cannot be reached, refuses the key, or does not offer the model.
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
    offered = _names(await _list_models(at, home))
    if offered and at.model not in offered and f"{at.model}:latest" not in offered and at.model != "default":
        some = ", ".join(sorted(offered)[:5]) + (", …" if len(offered) > 5 else "")
        raise ModelRefused(f"{name}: the endpoint {home} does not offer {at.model!r}; it offers {some}")
    return f"{name} can be reached at {home}"


async def offered(name: str) -> set[str]:
    """Return the names of the models that an OpenAI-compatible endpoint offers.

    Raises:
        ModelError: the endpoint cannot be reached, or refuses the request.
    """
    at = address(name)
    return _names(await _list_models(at, (at.url or HOMES[at.vendor]).rstrip("/")))


async def _list_models(at: Address, home: str) -> object:
    """Return an endpoint's list of models as plain data; None if it cannot list its models in JSON."""
    wire = await asyncio.to_thread(import_module, "mindstream.models.providers.wire")
    path, headers = "/models", {}
    if at.is_azure:  # a deployment is one model
        return None
    if at.vendor == "anthropic":
        headers = {"Authorization": "", "x-api-key": at.key, "anthropic-version": "2023-06-01"}
    elif at.vendor == "google":
        path, headers = "/models?pageSize=1000", {"Authorization": "", "x-goog-api-key": at.key}
    with failures(at, wire.ERROR_READERS):
        try:
            async with asyncio.timeout(PATIENCE_S), wire.Client(replace(at, url=home), LIST_BYTES) as client:
                listed: object = await client.ask("GET", path, headers=headers)
                return listed
        except TimeoutError:
            raise ModelSilent(
                f"{at.name}: {home} did not answer within {PATIENCE_S:g} s; is it running there?"
            ) from None
        except wire.EndpointError as error:
            if error.status not in LISTS_NONE:
                raise
        except (ValueError, RecursionError):
            pass  # the list is not JSON
    return None


def _names(data: object) -> set[str]:
    """Return the names of the models in an endpoint's list."""
    listed = (data.get("data") or data.get("models")) if isinstance(data, dict) else None
    entries = listed if isinstance(listed, list) else []
    names = {str(each.get("id") or each.get("name") or "") for each in entries if isinstance(each, dict)}
    return {name.removeprefix("models/") for name in names if name}
