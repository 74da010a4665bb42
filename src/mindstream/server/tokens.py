"""Tokens: who holds one is a tenant with scopes, until it ends or is revoked. The store keeps hashes alone.

It is asked each time, so what is made or revoked by another process counts at once.
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
from mindstream.service.operations.own import SERVER, TOKEN
from mindstream.service.operations.principal import checked_scopes, checked_tenant_name

PREFIX = "ms_"
ISSUED = "iss-"
"""Beginning of the ids of an issuer's tokens; one of our own has letters and digits alone."""


class Token(BaseModel):
    """A token as the store keeps it.

    Attributes:
        id: by which it is listed and revoked; it opens nothing.
        hash: of the token, SHA-256: a token is 256 bits of chance, so that nothing can be guessed from it.
        user: the one user it is for; "": any of the tenant's.
        a_minute, at_once: how many requests, and how many at the same time; None: as many as the server allows.
        bytes_a_day: of requests' bodies, taken in at an even rate; None: as much as comes.
        tokens, usd: what may be spent on models in its name, a day; None: what the server may.
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
        """Return what may be seen of it."""
        return self.model_dump(exclude={"hash"}, exclude_none=True)


@dataclass(frozen=True, slots=True)
class IssuedLimits:
    """What each holder of an issuer's tokens may spend on models, a day; None: what the server may."""

    tokens: int | None = None
    usd: float | None = None

    def limited(self, id_: str) -> Token:
        """Return the limits of a holder by the id of their tokens; it opens nothing."""
        return Token(id=id_, hash="", tenant="", scopes=[], made=0.0, ends=0.0, tokens=self.tokens, usd=self.usd)


class Tokens:
    """The tokens of a server's data; `store` gives the store that is no tenant's, once the data are open."""

    def __init__(self, store: Callable[[], KeptStore], clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def find(self, token: str) -> Token | None:
        """Return what a token stands for; None where it stands for nothing, has ended or was revoked."""
        for each in await self._store().kept(SERVER, TOKEN + _hash(token)):
            found = Token.model_validate_json(each.value)
            return found if found.ends > self._clock.now() else None
        return None

    async def left_s(self, token: str) -> float:
        """Return how long a token still holds; 0 where it does not."""
        found = await self.find(token)
        return found.ends - self._clock.now() if found is not None else 0.0

    async def each(self) -> list[Token]:
        """Return all, those that have ended too."""
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
        """Make a token and keep its hash; the token itself is nowhere but in what is returned.

        Raises:
            InputError: there is no such tenant or scope; it would end before it begins.
            StorageError: it cannot be written.
        """
        if not 0 < days <= 3_660:
            raise InputError("a token lasts for some days, at most ten years")
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
        await self.keep(made)
        return token, made

    async def revoke(self, id_: str) -> Token:
        """Let a token open nothing any more.

        Raises:
            InputError: there is none of that id.
        """
        found = next((each for each in await self.each() if each.id == id_), None)
        if found is None:
            raise InputError(f"there is no token {id_!r} here: `mindstream token list` names them")
        await self._store().keep(SERVER, TOKEN + found.hash, self._clock.now(), lambda _: None)
        return found

    async def keep(self, made: Token) -> None:
        """Keep a token as it is."""
        text = made.model_dump_json(exclude_none=True)
        await self._store().keep(SERVER, TOKEN + made.hash, made.made, lambda _: text)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
