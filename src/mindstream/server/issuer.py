"""An OIDC issuer, whose signed tokens give access to a tenant, with scopes, until they expire.

Tokens are checked with the issuer's public keys, which are fetched over HTTPS (OpenID Connect Discovery 1.0, RFC 7517)
and cached. The issuer is not contacted for each token, so a revoked token is accepted until it expires.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Sequence
from typing import Any
from urllib.parse import urlsplit

import httpx2
import jwt
from pydantic import BaseModel, ValidationError

from mindstream.clock import Clock
from mindstream.errors import InputError
from mindstream.identifiers import StreamName
from mindstream.log.erasures import digest_of
from mindstream.models.providers import wire
from mindstream.server.admission import is_loopback
from mindstream.server.problems import Refusal
from mindstream.server.tokens import ISSUED, IssuedLimits, Token
from mindstream.service.operations.operation import LOCAL, checked_scopes, checked_tenant_name

CONFIGURATION = "/.well-known/openid-configuration"
KEY_TYPES = {"RS256": "RSA", "ES256": "EC"}
"""The accepted signature algorithms and their key types; a token cannot choose any other."""
MIN_BITS = {"RSA": 2_048, "EC": 256}
"""Minimum size of a key in bits, by its type."""
LEEWAY_S = 30.0
"""Maximum difference in seconds between the clocks of the issuer and of this machine."""
KEPT_S, RETRY_S, FIRST_RETRY_S, FETCH_S = 3_600.0, 30.0, 1.0, 5.0
"""Times in seconds.

KEPT_S: age at which keys are fetched again. RETRY_S: minimum time between two attempts to fetch keys. FIRST_RETRY_S:
the same before the first successful attempt. FETCH_S: timeout of an attempt.
"""
MAX_BYTES, MAX_TOKEN = 1_000_000, 8_000
"""Maximum bytes of a fetched document, and maximum characters of a token."""


class _Configuration(BaseModel):
    issuer: str
    jwks_uri: str


class Issuer:
    """Checks tokens that an issuer has signed.

    Args:
        url: the issuer's URL, exactly as in the claim `iss` of its tokens.
        audience: accepted audiences; the claim `aud` of a token must contain one of them.
        tenant_claim: the claim that names the tenant.
        user_claim: the claim that names the only user for whom a token is valid, such as `sub`; "": tokens are valid
            for all users.
        tokens, usd: the daily limits of spending on models for each holder of tokens; None: no limit. The holder is the
            tenant's user in `user_claim`; without `user_claim`, the tenant's `sub`.

    Attributes:
        limits: the daily limits of each holder.
        digest: function that returns a keyed digest of the holder of a token. The audit, limits and budgets store the
            digest. The server replaces this function by one whose key is a secret of the server's data.

    Raises:
        InputError: the URL does not begin with https:// (http:// is accepted on this machine); or the URL has a query,
            a fragment or credentials; or no audience is given.
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
            raise InputError("name the audience (claim `aud`) that the issuer's tokens must have: --audience")
        self._tenant_claim, self._user_claim, self._clock = tenant_claim, user_claim, clock
        self.limits = IssuedLimits(tokens, usd)
        self._keys: dict[str, jwt.PyJWK] = {}
        self._fetched: float | None = None
        self._tried: float | None = None
        self._fetching = asyncio.Lock()
        self._secret = secrets.token_hex(32)
        self.digest: Callable[[str], Awaitable[str]] = self._digest

    async def _digest(self, text: str) -> str:
        return digest_of(self._secret, text)

    async def find(self, token: str) -> Token | None:
        """Return the tenant, scopes and user of a token; None if the token is not valid.

        Raises:
            Refusal: no keys could be fetched yet.
        """
        try:
            header = jwt.get_unverified_header(token) if len(token) <= MAX_TOKEN else {}
            algorithm, name = header.get("alg"), header.get("kid")
            if algorithm not in KEY_TYPES or not isinstance(name, str) or not name:
                return None
            key = await self._key(name)
            if key is None or key.key_type != KEY_TYPES[algorithm] or key.algorithm_name != algorithm:
                return None
            claims = jwt.decode(
                token,
                key,
                [algorithm],
                issuer=self.url,
                audience=self._audience,
                leeway=LEEWAY_S,
                options={"require": ["exp", "iss", "aud"]},
            )
        except jwt.PyJWTError:
            return None
        return await self._token(claims)

    async def left_s(self, _: str, found: Token) -> float:
        """Return for how many seconds a token is still accepted; below 0: the token has expired.

        A token is accepted LEEWAY_S longer than it states.
        """
        return found.ends + LEEWAY_S - self._clock.now()

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
            holder = f"{tenant}\n{user or claims.get('sub', '')}"
            return Token(
                id=f"{ISSUED}{(await self.digest(holder))[:20]}",
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
        """Return a key by its name; None: the issuer has no such key.

        The keys are fetched if the name is unknown, or if the known keys are older than KEPT_S. They are not fetched if
        the last attempt was less than RETRY_S ago (FIRST_RETRY_S until an attempt succeeds).

        Raises:
            Refusal: no keys could be fetched yet.
        """
        if self._is_stale(name):
            async with self._fetching:
                retry_s = FIRST_RETRY_S if self._fetched is None else RETRY_S
                if self._is_stale(name) and self._is_since(self._tried, retry_s):
                    await self._fetch()
        if not self._keys:
            raise Refusal(
                "unavailable",
                "the token cannot be checked, because the issuer's keys cannot be fetched at the moment: try again",
                {"Retry-After": "2"},
            )
        return self._keys.get(name)

    def _is_stale(self, name: str) -> bool:
        return name not in self._keys or self._is_since(self._fetched, KEPT_S)

    def _is_since(self, moment: float | None, seconds: float) -> bool:
        return moment is None or self._clock.elapsed() - moment >= seconds

    async def _fetch(self) -> None:
        """Fetch the keys; if that fails, keep the known ones."""
        self._tried = self._clock.elapsed()
        try:
            async with (
                asyncio.timeout(FETCH_S),
                httpx2.AsyncClient(timeout=FETCH_S, follow_redirects=False, verify=wire.certificates()) as client,
            ):
                found = _Configuration.model_validate_json(await _get(client, self.url.rstrip("/") + CONFIGURATION))
                if found.issuer == self.url:
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
    """Return the body of the response at a URL, of at most MAX_BYTES.

    Raises:
        httpx2.HTTPError: the URL cannot be fetched.
        wire.Refusal: the response is too large, compressed, or a redirect.
    """
    async with client.stream("GET", url, headers={"accept-encoding": "identity"}) as answer:
        headers = answer.headers
        wire.check_response(answer.status_code, headers.get("location", ""), headers.get("content-encoding", ""))
        answer.raise_for_status()
        allowance, body = wire.Allowance(MAX_BYTES), b""
        async for part in answer.aiter_raw():
            allowance.take(part)
            body += part
        return body


def read_keys(document: object) -> dict[str, jwt.PyJWK]:
    """Return the signing keys of a JSON Web Key Set, by name; unsuitable keys are skipped."""
    keys = document.get("keys") if isinstance(document, dict) else None
    found = {}
    for each in keys if isinstance(keys, list) else []:
        try:
            key = jwt.PyJWK(each)
            bits = getattr(key.key, "key_size", 0)
        except (jwt.PyJWTError, ValueError, TypeError, AttributeError):
            continue
        is_usable = key.public_key_use in (None, "sig") and KEY_TYPES.get(key.algorithm_name) == key.key_type
        if is_usable and isinstance(key.key_id, str) and bits >= MIN_BITS[key.key_type or ""]:
            found[key.key_id] = key
    return found


def read_scopes(claims: dict[str, Any]) -> list[str]:
    """Return those scopes in the claim `scope` or `scp` that this server knows. The claim is a list, or a text with the
    scopes separated by spaces."""
    given = claims.get("scope", claims.get("scp", ""))
    found: set[str] = set()
    for each in given.split() if isinstance(given, str) else given if isinstance(given, list) else []:
        try:
            found |= checked_scopes(str(each))
        except InputError:
            continue  # a scope that is not this server's, such as openid or profile
    return sorted(found)


def checked_address(url: str) -> str:
    """Return a URL unchanged, after checking that its server is authenticated by HTTPS or is on this machine.

    Raises:
        InputError: the URL is neither HTTPS nor HTTP on this machine, or has a query, a fragment or credentials.
    """
    try:
        parts = urlsplit(url)
    except ValueError:
        parts = urlsplit("")
    host = parts.hostname or ""
    is_safe = parts.scheme == "https" or (parts.scheme == "http" and (host == "localhost" or is_loopback(host)))
    if not (host and is_safe) or parts.query or parts.fragment or parts.username:
        raise InputError(
            f"{url[:200]!r} must be a URL that begins with https:// (http:// only on this machine), without a query, a"
            " fragment or credentials"
        )
    return url
