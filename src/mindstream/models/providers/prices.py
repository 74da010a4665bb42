"""Prices of tokens, by genai-prices."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from mindstream.errors import SettingsError
from mindstream.models.providers.address import Address, address


def price(model: str, at: Address, asked: int, answered: int, cached: int = 0) -> float | None:
    """Return the price of tokens in US dollars by genai-prices; None if it is not known.

    Args:
        model: the model's name in the endpoint's reply; if it has no price, the name in the address is used.
        asked, answered: numbers of input and output tokens.
        cached: number of the input tokens that were read from the endpoint's cache, usually at a lower price.
    """
    model = next((name for name in (model, at.model) if _is_priced(name, at.vendor, at.url)), "")
    if not model:
        return None
    from genai_prices import Usage, calc_price

    used = Usage(input_tokens=asked, output_tokens=answered, cache_read_tokens=min(cached, asked))
    place: Any = {"provider_api_url": at.url} if at.url else {"provider_id": at.vendor}
    try:
        return float(calc_price(used, model, **place).total_price)
    except (LookupError, ValueError):
        return None


def has_price(name: str) -> bool:
    """Return whether the calls of a model, by its address, are free or have a known price in US dollars."""
    try:
        at = address(name)
    except SettingsError:
        return True  # rules, a recording, or a model object of the calling program
    return at.vendor in ("gguf", "ollama") or price(at.model, at, 1, 1) is not None


@lru_cache(maxsize=256)  # the name comes from the endpoint
def _is_priced(model: str, vendor: str, url: str | None) -> bool:
    """Return whether a model has a price; cached, since a failed look-up takes genai-prices 2 ms."""
    from genai_prices.data_snapshot import get_snapshot

    try:
        get_snapshot().find_provider_model(model, None, None if url else vendor, url)
    except (LookupError, ValueError):
        return False
    return True
