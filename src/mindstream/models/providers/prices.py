"""What tokens cost, by genai-prices."""

from __future__ import annotations

from functools import lru_cache

from mindstream.errors import SettingsError
from mindstream.models.providers.address import Address, address


def price(model: str, at: Address, asked: int, answered: int, cached: int = 0) -> float | None:
    """Return what so many tokens cost in US dollars by genai-prices; None where it does not know.

    `model`: as the endpoint calls it; where that has no price, what was asked for has. `cached`: how many of those
    asked were read from the endpoint's cache, mostly at a lower price.
    """
    model = next((name for name in (model, at.model) if _is_priced(name, at.vendor, at.url)), "")
    if not model:
        return None
    from genai_prices import Usage as Used
    from genai_prices import calc_price

    used = Used(input_tokens=asked, output_tokens=answered, cache_read_tokens=min(cached, asked))
    try:
        if at.url:
            return float(calc_price(used, model, provider_api_url=at.url).total_price)
        return float(calc_price(used, model, provider_id=at.vendor).total_price)
    except (LookupError, ValueError):
        return None


def has_price(name: str) -> bool:
    """Return whether the calls of a model, by its address, are free or have a known price in US dollars."""
    try:
        at = address(name)
    except SettingsError:
        return True  # rules, a recording, a model that a program brings
    return at.vendor in ("gguf", "ollama") or price(at.model, at, 1, 1) is not None


@lru_cache(maxsize=256)  # an endpoint says itself what its model is called
def _is_priced(model: str, vendor: str, url: str | None) -> bool:
    """Look once whether a model is known: to find out that it is not takes genai-prices 2 ms."""
    from genai_prices.data_snapshot import get_snapshot

    try:
        get_snapshot().find_provider_model(model, None, None if url else vendor, url)
    except (LookupError, ValueError):
        return False
    return True
