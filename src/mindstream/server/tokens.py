"""Access tokens. Each gives access to a tenant, with scopes, until it expires or is revoked. Only hashes are stored.

The store is read for each request. So a token that another process makes or revokes is accepted or refused at once.
"""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass

from mindstream.chance import token as chance_token
from mindstream.clock import DAY_S, Clock, Moment
from mindstream.errors import InputError
from mindstream.frozen import Frozen
from mindstream.identifiers import StreamName
from mindstream.memory.store.store import KeptStore
from mindstream.service.operations.operation import SERVER, TOKEN, checked_scopes, checked_tenant_name

PREFIX = "ms_"
"""Prefix of all access tokens of this server."""
ISSUED = "iss-"
"""Prefix of the ids of an OIDC issuer's tokens; ids of the server's own tokens contain only letters and digits."""


class Token(Frozen):
    """The stored description of an access token.

    Attributes:
        id: the id by which the token is listed and revoked; the id gives no access.
        hash: the SHA-256 hash of the token. A token has 256 random bits, so it cannot be guessed from its hash.
        made, ends: when it was made, and when it expires.
        user: the only user that it is for; "": all users of the tenant.
        a_minute, at_once: maximum number of requests a minute, and at the same time; None: the server's default.
        bytes_a_day: maximum bytes of all request bodies in a day, refilled at an even rate; None: no limit.
        tokens, usd: daily limits of spending on models with this token; None: no limit of its own.
    """

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
        """Return all fields that are set, except the hash."""
        return self.model_dump(exclude={"hash"}, exclude_none=True)


@dataclass(frozen=True, slots=True)
class IssuedLimits:
    """The daily limits of spending on models for each user or application that signs in through an OIDC issuer; None:
    no limit."""

    tokens: int | None = None
    usd: float | None = None

    def limited(self, id_: str) -> Token:
        """Return a token with this id and these limits. It has no secret and no scopes, so it gives no access."""
        return Token(id=id_, hash="", tenant="", scopes=[], made=0.0, ends=0.0, tokens=self.tokens, usd=self.usd)


class Tokens:
    """The access tokens of a server's data.

    Args:
        store: returns the server's own store; called only after the data were opened.
    """

    def __init__(self, store: Callable[[], KeptStore], clock: Clock) -> None:
        self._store, self._clock = store, clock

    async def find(self, token: str) -> Token | None:
        """Return the description of a token; None if the token is unknown, expired or revoked."""
        for each in await self._store().kept(SERVER, TOKEN + _hash(token)):
            found = Token.model_validate_json(each.value)
            return found if found.ends > self._clock.now() else None
        return None

    async def left_s(self, token: str, _: Token) -> float:
        """Return the seconds for which a token is still valid; 0 if it is not valid."""
        found = await self.find(token)
        return found.ends - self._clock.now() if found is not None else 0.0

    async def each(self) -> list[Token]:
        """Return the descriptions of all tokens, including expired ones."""
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
        """Make a token. Return the token and its description. Only the description, with a hash of the token, is
        stored.

        Args:
            scopes: names of scopes, separated by commas.
            days: the number of days for which the token is valid.
            user: the user that the token is for; "": all users of the tenant.
            a_minute, at_once, tokens, usd, bytes_a_day: the token's limits (see `Token`).

        Raises:
            InputError: a scope does not exist, the name of the tenant or the user is not valid, or `days` is out of
                range.
            StorageError: the description cannot be written.
        """
        if not 0 < days <= 3_660:
            raise InputError(f"a token must be valid for more than 0 and at most 3,660 days, not {days:g}")
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
            InputError: no token has this id.
        """
        found = next((each for each in await self.each() if each.id == id_), None)
        if found is None:
            raise InputError(f"there is no token with the id {id_!r}: `mindstream token list` lists the ids")
        await self._store().keep(SERVER, TOKEN + found.hash, self._clock.now(), lambda _: None)
        return found


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
