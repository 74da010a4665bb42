"""Tokens: each gives access to a tenant, with scopes, until it ends or is revoked. Only hashes are stored.

The store is read for each request, so that what another process makes or revokes takes effect at once.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from pydantic import BaseModel, ConfigDict

from mindstream.chance import token as chance_token
from mindstream.clock import DAY_S, Clock, Moment
from mindstream.errors import InputError
from mindstream.log.names import StreamName
from mindstream.memory.store.store import KeptStore
from mindstream.service.operations.principal import SERVER, TOKEN, checked_scopes, checked_tenant_name

PREFIX = "ms_"
ISSUED = "iss-"
"""Beginning of the ids of an issuer's tokens; ids of our own tokens contain letters and digits alone."""


class Token(BaseModel):
    """A token as the store keeps it.

    Attributes:
        id: by which it is listed and revoked; it gives no access.
        hash: of the token, SHA-256: a token has 256 random bits, so that it cannot be guessed from its hash.
        user: the one user it is for; "": any of the tenant's.
        a_minute, at_once: maximum number of requests a minute, and at the same time; None: the server's limits.
        bytes_a_day: maximum size of all requests' bodies in a day, at an even rate; None: no limit.
        tokens, usd: what may be spent on models in its name, a day; None: no limit of its own.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    hash: str
    tenant: str
    scopes: list[str]
    made: Moment
    ends: Moment
    user: str = ""
    a_minute: int | None = None
    at_once: int | None = None
    bytes_a_day: int | None = None
    tokens: int | None = None
    usd: float | None = None

    def shown(self) -> dict[str, object]:
        """Return everything but the hash."""
        return self.model_dump(exclude={"hash"}, exclude_none=True)


@dataclass(frozen=True, slots=True)
class IssuedLimits:
    """What each holder of an issuer's tokens may spend on models, a day; None: no limit of its own."""

    tokens: int | None = None
    usd: float | None = None

    def limited(self, id_: str) -> Token:
        """Return a token that has these limits and gives no access."""
        return Token(id=id_, hash="", tenant="", scopes=[], made=0.0, ends=0.0, tokens=self.tokens, usd=self.usd)


class Tokens:
    """The tokens of a server's data; `store` returns the server's own store, once the data are open."""

    def __init__(self, store: Callable[[], KeptStore], clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def find(self, token: str) -> Token | None:
        """Return a token's entry; None if it is unknown, has ended or was revoked."""
        for each in await self._store().kept(SERVER, TOKEN + _hash(token)):
            found = Token.model_validate_json(each.value)
            return found if found.ends > self._clock.now() else None
        return None

    async def left_s(self, token: str, _: Token) -> float:
        """Return for how many seconds a token is still valid; 0 if it is not."""
        found = await self.find(token)
        return found.ends - self._clock.now() if found is not None else 0.0

    async def each(self) -> list[Token]:
        """Return all entries, including those that have ended."""
        return [Token.model_validate_json(each.value) for each in await self._store().kept(SERVER, TOKEN)]

    async def new(
        self,
        tenant: str,
        scopes: str,
        days: float,
        *,
        user: str = "",
        a_minute: int | None = None,
        at_once: int | None = None,
        tokens: int | None = None,
        usd: float | None = None,
        bytes_a_day: int | None = None,
    ) -> tuple[str, Token]:
        """Make a token and store its hash; the token itself is only returned.

        Raises:
            InputError: there is no such scope, the tenant's name cannot be used, or `days` is out of range.
            StorageError: it cannot be written.
        """
        if not 0 < days <= 3_660:
            raise InputError("a token is valid for more than 0 and at most 3,660 days")
        now, token = self._clock.now(), PREFIX + secrets.token_urlsafe(32)
        made = Token(
            id=chance_token(10),
            hash=_hash(token),
            tenant=checked_tenant_name(tenant),
            scopes=sorted(checked_scopes(scopes)),
            made=now,
            ends=now + days * DAY_S,
            user=StreamName("user", user).normal if user else "",
            a_minute=a_minute,
            at_once=at_once,
            bytes_a_day=bytes_a_day,
            tokens=tokens,
            usd=usd,
        )
        text = made.model_dump_json(exclude_none=True)
        await self._store().keep(SERVER, TOKEN + made.hash, now, lambda _: text)
        return token, made

    async def revoke(self, id_: str) -> Token:
        """Make a token invalid.

        Raises:
            InputError: there is no token with this id.
        """
        found = next((each for each in await self.each() if each.id == id_), None)
        if found is None:
            raise InputError(f"there is no token {id_!r} here: `mindstream token list` names them")
        await self._store().keep(SERVER, TOKEN + found.hash, self._clock.now(), lambda _: None)
        return found


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
