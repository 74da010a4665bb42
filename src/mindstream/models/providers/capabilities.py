"""What an endpoint turned out to support, by its address and model, for as long as the process lives."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from mindstream.models.providers.address import Address

LIMITS = ("max_tokens", "max_completion_tokens")
"""The fields that limit a reply: nearly all servers know the first, OpenAI's newest models only the second."""
MOST = 1_000
"""Endpoints that are remembered."""
_THINKERS = re.compile(r"(?<![a-z0-9])(r1|qwq|think|thinking|reasoning|reasoner)(?![a-z0-9])", re.IGNORECASE)
"""Names of models whose chat templates open the thoughts themselves."""


@dataclass
class Capabilities:
    """The findings about one model at one endpoint.

    Attributes:
        lacks: fields of a request that it refuses; ROLES: the system role, or several messages of one role in a row.
        opens_thoughts: its thoughts begin with a mark or have a field of their own; False: only a closing mark comes;
            None: not known before its first reply.
    """

    lacks: set[str] = field(default_factory=set)
    opens_thoughts: bool | None = None
    expects_thoughts: bool = False
    """Its name says that it thinks first."""

    def limit_field(self, without: set[str]) -> str:
        """Return the field that limits a reply; "" where none is known."""
        return next((name for name in LIMITS if name not in self.lacks | without), "")


ROLES = "roles"
_known: dict[tuple[str, str], Capabilities] = {}


def capabilities_of(at: Address) -> Capabilities:
    """Return what is known of an address's endpoint and model; whoever finds out more adds to it."""
    if len(_known) >= MOST:
        _known.clear()
    key = (at.url or at.vendor, at.model)
    if (found := _known.get(key)) is None:
        found = _known[key] = Capabilities()
        if at.vendor == "openai":
            found.lacks.add(LIMITS[0])
        if at.vendor in ("openai", "gguf", "anthropic", "google", "ollama"):
            found.opens_thoughts = True  # thoughts have a field of their own, or the server finds them
        found.expects_thoughts = bool(_THINKERS.search(at.model))
    return found


def forget_all() -> None:
    """Forget all findings: for tests, whose servers share addresses one after the other."""
    _known.clear()
