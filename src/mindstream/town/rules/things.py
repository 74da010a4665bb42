"""At which thing something is done: by the words that both share, and by nearness of meaning."""

from __future__ import annotations

from collections.abc import Sequence

from mindstream.text.words import terms


def thing_for(what: str, things: Sequence[str]) -> str:
    """Return the thing (an address) that fits best what is done; "" where none fits."""
    words = set(terms(what))
    scored = [(len(words & set(terms(thing.rsplit(":", 1)[-1]))), thing) for thing in things]
    best = max(scored, default=(0, ""), key=lambda each: each[0])
    if best[0]:
        return best[1]
    if "sleep" in what or "bed" in what:
        return next((thing for thing in things if "bed" in thing.rsplit(":", 1)[-1]), "")
    return ""
