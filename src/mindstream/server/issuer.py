"""An OIDC issuer: whoever holds a token that it has signed for this server is a tenant with scopes, until it ends.

Nobody is asked when a token comes: it is checked against the issuer's public keys, which are fetched over HTTPS
(OpenID Connect Discovery 1.0, RFC 7517) and kept.
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import SplitResult, urlsplit

import httpx2
import jwt
from pydantic import BaseModel, ValidationError

from mindstream.clock import Clock
from mindstream.errors import InputError
from mindstream.log.erasures import digest_of
from mindstream.log.names import StreamName
from mindstream.models.providers import wire
from mindstream.server.problems import Refusal
from mindstream.server.tokens import ISSUED, IssuedLimits, Token
from mindstream.service.operations.principal import LOCAL, checked_scopes, checked_tenant_name

CONFIGURATION = "/.well-known/openid-configuration"
KEY_TYPES = {"RS256": "RSA", "ES256": "EC"}
"""The ways of signing that are taken, and the keys they want; a token's own word for its way opens nothing else."""
LEAST_RSA_BITS = 2_048
LEEWAY_S = 30.0
"""So far the clocks of the issuer and of this machine may be apart."""
KEPT_S, APART_S, FETCH_S = 3_600.0, 30.0, 5.0
"""Keys are fetched anew after an hour; for a key that is not known at most every 30 s, and for 5 s each time."""
MOST_BYTES, LONGEST = 1_000_000, 8_000


class _Configuration(BaseModel):
    issuer: str
    jwks_uri: str


class Issuer:
    """Checks tokens that an issuer has signed.

    Args:
        url: the issuer, as it names itself in its tokens (`iss`).
        audience: what a token must be for (`aud`), one of these.
        tenant_claim: what says whose tenant it is.
        user_claim: what says the one user that it is for, as `sub`; "": it is for any of the tenant's.
        tokens, usd: what each holder may spend on models, a day; None: what the server may. A holder is a tenant's user
            (`user_claim`), else a tenant's `sub`.

    Raises:
        InputError: it is no HTTPS address (HTTP only on this machine), or there is no audience.
    """

    def __init__(
        self,
        url: str,
        audience: Sequence[str],
        clock: Clock,
        *,
        tenant_claim: str = "tenant",
        user_claim: str = "",
        tokens: int | None = None,
        usd: float | None = None,
    ) -> None:
        self.url = checked_address(url)
        self._audience = [each for each in audience if each]
        if not self._audience:
            raise InputError("name what the issuer's tokens must be for: --audience")
        self._tenant_claim, self._user_claim, self._clock = tenant_claim, user_claim, clock
        self.limits = IssuedLimits(tokens, usd)
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched: float | None = None
        self._tried: float | None = None
        self._one_at_a_time = asyncio.Lock()
        self.digest: Callable[[str], Awaitable[str]] = _digester()
        """Makes a keyed digest of who holds a token: the audit, limits and budgets know them by that.

        The server puts one in its place whose key is a secret of its data.
        """

    async def find(self, token: str) -> Token | None:
        """Return what a token stands for; None where it stands for nothing.

        Raises:
            Refusal: its key is not known, and the issuer cannot be asked.
        """
        try:
            head = jwt.get_unverified_header(token) if len(token) <= LONGEST else {}
        except jwt.PyJWTError:
            return None
        way, name = head.get("alg"), head.get("kid")
        if way not in KEY_TYPES or not isinstance(name, str) or not name:
            return None
        key = await self._key(name)
        if key is None or key.key_type != KEY_TYPES[way] or key.algorithm_name != way:
            return None
        try:
            claims = jwt.decode(
                token,
                key,
                [way],
                issuer=self.url,
                audience=self._audience,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.PyJWTError:
            return None
        return await self._token(claims)

    def left_s(self, token: Token) -> float:
        """Return how long a token of the issuer's still holds; below 0 where it does not any more."""
        return token.ends + LEEWAY_S - self._clock.now()

    async def _token(self, claims: dict[str, Any]) -> Token | None:
        tenant, user = claims.get(self._tenant_claim), claims.get(self._user_claim) if self._user_claim else ""
        if (
            not isinstance(tenant, str)
            or not isinstance(user, str)
            or tenant == LOCAL
            or (self._user_claim and not user)
        ):
            return None
        try:
            principal = f"{tenant}\n{user or claims.get('sub', '')}"
            return Token(
                id=f"{ISSUED}{(await self.digest(principal))[:20]}",
                hash="",
                tenant=checked_tenant_name(tenant),
                scopes=read_scopes(claims),
                made=float(claims.get("iat", 0)),
                ends=float(claims["exp"]),
                user=StreamName("user", user).normal if user else "",
                tokens=self.limits.tokens,
                usd=self.limits.usd,
            )
        except (InputError, ValueError, TypeError):
            return None

    async def _key(self, name: str) -> jwt.PyJWK | None:
        """Return a key by its name, fetched where it is not known or the keys are old."""
        if name not in self._keys or self._is_since(self._fetched, KEPT_S):
            async with self._one_at_a_time:
                if (name not in self._keys or self._is_since(self._fetched, KEPT_S)) and self._is_since(
                    self._tried, APART_S if self._fetched is not None else 1.0
                ):
                    await self._fetch()
        if not self._keys:
            raise Refusal("unavailable", "the issuer of tokens cannot be asked for its keys", {"Retry-After": "2"})
        return self._keys.get(name)

    def _is_since(self, moment: float | None, seconds: float) -> bool:
        return moment is None or self._clock.elapsed() - moment >= seconds

    async def _fetch(self) -> None:
        """Fetch the keys; where that fails, those that are there stay."""
        self._tried = self._clock.elapsed()
        try:
            async with (
                asyncio.timeout(FETCH_S),
                httpx2.AsyncClient(timeout=FETCH_S, follow_redirects=False, verify=wire.certificates()) as client,
            ):
                found = _Configuration.model_validate_json(await _get(client, self.url.rstrip("/") + CONFIGURATION))
                if found.issuer != self.url:
                    return
                self._keys = read_keys(json.loads(await _get(client, checked_address(found.jwks_uri))))
                self._fetched = self._clock.elapsed()
        except (
            httpx2.HTTPError,
            httpx2.InvalidURL,
            httpx2.StreamError,
            wire.Refusal,
            TimeoutError,
            ValidationError,
            ValueError,
            InputError,
        ):
            return


async def _get(client: httpx2.AsyncClient, url: str) -> bytes:
    """Return the body at a URL, of at most MOST_BYTES.

    Raises:
        httpx2.HTTPError: it cannot be fetched.
        wire.Refusal: it is too large, compressed, or a redirect.
    """
    async with client.stream("GET", url, headers={"accept-encoding": "identity"}) as answer:
        headers = answer.headers
        wire.check_response(answer.status_code, headers.get("location", ""), headers.get("content-encoding", ""))
        answer.raise_for_status()
        allowance, body = wire.Allowance(MOST_BYTES), b""
        async for part in answer.aiter_raw():
            allowance.take(part)
            body += part
        return body


def _digester() -> Callable[[str], Awaitable[str]]:
    key = secrets.token_hex(32)

    async def digest(text: str) -> str:
        return digest_of(key, text)

    return digest


def read_keys(told: object) -> dict[str, jwt.PyJWK]:
    """Return the keys that are for signing, by name; others are passed over."""
    keys = told.get("keys") if isinstance(told, dict) else None
    found = {}
    for each in keys if isinstance(keys, list) else []:
        if not isinstance(each, dict) or each.get("use", "sig") != "sig" or not isinstance(each.get("kid"), str):
            continue
        try:
            key = jwt.PyJWK(each)
        except (jwt.PyJWTError, ValueError, TypeError):
            continue
        if KEY_TYPES.get(key.algorithm_name) == key.key_type and getattr(key.key, "key_size", 0) >= _least(key):
            found[each["kid"]] = key
    return found


def _least(key: jwt.PyJWK) -> int:
    return LEAST_RSA_BITS if key.key_type == "RSA" else 256


def read_scopes(claims: dict[str, Any]) -> list[str]:
    """Return those scopes of a token that mean something here; `scope` has blanks between them, or is a list."""
    told = claims.get("scope", claims.get("scp", ""))
    found: set[str] = set()
    for each in told.split() if isinstance(told, str) else told if isinstance(told, list) else []:
        try:
            found |= checked_scopes(str(each))
        except InputError:
            continue  # openid, profile, another service's
    return sorted(found)


def checked_address(url: str) -> str:
    """Return an address that can be trusted to be whose it says.

    Raises:
        InputError: it is none.
    """
    parts = _split(url)
    is_plain = bool(parts.hostname) and not (parts.query or parts.fragment or parts.username)
    if is_plain and (parts.scheme == "https" or (parts.scheme == "http" and _is_here(parts.hostname or ""))):
        return url
    raise InputError(f"{url[:200]!r} must be an address with https:// (http:// only on this machine)")


def _split(url: str) -> SplitResult:
    try:
        return urlsplit(url)
    except ValueError:
        return urlsplit("")


def _is_here(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
