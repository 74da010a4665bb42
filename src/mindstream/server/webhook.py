"""A webhook: follow-ups of minds are posted to a URL of the operator, in the order of the log.

Each message is posted until it is accepted, so perhaps more than once; the receiver recognizes repeats by `webhook-id`.
A message that the receiver rejects (REJECTED) is skipped after TRIES attempts.
If there are several servers, one of them posts; if it dies, another continues after the last accepted message. Messages
are signed according to the Standard Webhooks specification, for which most languages have a library.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
import hashlib
import hmac
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from urllib.parse import urlsplit

import httpx2

from mindstream import chance
from mindstream.clock import Clock
from mindstream.errors import InputError, StorageError
from mindstream.identifiers import shown_name, tenant_of
from mindstream.log.events import FollowUp, Logged, Unknown
from mindstream.memory.store.sql_store import SqlStore
from mindstream.server.health import Metrics
from mindstream.server.server_state import ServerState
from mindstream.service.operations.operation import LOCAL
from mindstream.together import background

KINDS = (FollowUp.kind, "left_unsaid")
"""Kinds of events that are posted: unsolicited follow-ups, and follow-ups that the mind keeps for its next answer.

Some follow-ups are kept because a chat page cannot show a message without a request.
"""
POLL_S, PATIENCE_S = 1.0, 10.0
"""Seconds: the poll interval of the log, and the timeout of a post."""
LEASE_S = 15.0
"""Duration in seconds of the lease of the server that posts; longer than the timeout of a post."""
FIRST_PAUSE_S, MAX_PAUSE_S = 1.0, 300.0
"""Seconds: the first and the longest wait after failures; each wait is twice as long as the one before."""
REJECTED = (400, 413, 422)
"""Status codes with which a receiver rejects a message because of its content; TRIES limits the attempts."""
TRIES = 8
"""Number of attempts after which a rejected message is skipped."""
KEEP_EVERY = 1_000
"""Number of rows without a message after which the position in the log is stored."""
MIN_SECRET = 16
"""Minimum length of the secret in bytes."""
SECRET = "MINDSTREAM_WEBHOOK_SECRET"
"""The environment variable that contains the secret."""


@dataclass(frozen=True)
class Receiver:
    """The receiver that the operator has configured.

    Attributes:
        url: the receiver's URL (http:// or https://). Messages are always signed; only https:// encrypts them.
        secret: the key of the signatures: at least 16 characters, or `whsec_` followed by base64 of at least 16 bytes.

    Raises:
        InputError: the URL or the secret is not valid.
    """

    url: str
    secret: str = field(repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError(f"--webhook must be a URL with a host, https://… or http://…, not {self.url[:200]!r}")
        if len(self.key) < MIN_SECRET:
            raise InputError(
                f"a webhook needs a secret of at least {MIN_SECRET} characters, or `whsec_` and base64 of at least"
                f" {MIN_SECRET} bytes: pass it with --webhook-secret FILE, or in the environment variable {SECRET}"
            )

    @property
    def key(self) -> bytes:
        """The bytes of the secret; empty if its base64 is invalid."""
        secret = self.secret.strip()
        if not secret.startswith("whsec_"):
            return secret.encode()
        try:
            return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
        except binascii.Error:
            return b""

    @property
    def name(self) -> str:
        """The name of the receiver in the server state: a digest of its URL."""
        return hashlib.sha256(self.url.encode()).hexdigest()[:32]

    def sign(self, id_: str, at: int, body: bytes) -> dict[str, str]:
        """Return the headers of a message, which contain its signature; `at`: the time in seconds."""
        signature = hmac.new(self.key, f"{id_}.{at}.".encode() + body, hashlib.sha256).digest()
        return {
            "content-type": "application/json",
            "user-agent": "mindstream",
            "webhook-id": id_,
            "webhook-timestamp": str(at),
            "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
        }


class Webhook:
    """Posts messages to one receiver, one after the other, in the background.

    Args:
        log: the log of all tenants.
        is_alone: no other server uses these data, so no lease is needed.
    """

    def __init__(
        self, receiver: Receiver, log: SqlStore, state: ServerState, clock: Clock, metrics: Metrics, *, is_alone: bool
    ) -> None:
        self._receiver, self._log, self._state, self._clock = receiver, log, state, clock
        self._counts, self._is_alone = metrics.webhook, is_alone
        self._owner, self._is_held, self._look_at = chance.token(), False, 0.0
        self._at = self._kept = 0
        """`_at`: every message in rows up to this number was posted; `_kept`: the number that is stored."""

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """During the `with` block, post the messages that were written after the last accepted one.

        For a receiver that has no stored position yet, only messages that are written from now on are posted.
        """
        await self._hold()
        try:
            async with background(self._post_all()):
                yield
        finally:
            if self._is_held:
                await self._keep()
                if not self._is_alone:
                    await self._state.hold(self._receiver.name, self._owner, 0.0)
            await self._log.close()

    async def _hold(self) -> bool:
        """Take or renew the lease; return whether this server holds it. A new holder reads the last stored position."""
        was_held, name, now = self._is_held, self._receiver.name, self._clock.elapsed()
        if now < self._look_at:
            return was_held
        self._is_held = self._is_alone or await self._state.hold(name, self._owner, LEASE_S)
        self._look_at = now + LEASE_S / 5
        if self._is_held and not was_held:
            delivered = await self._state.delivered(name)
            self._at, self._kept = await self._log.last_seq() if delivered is None else delivered, delivered or 0
            await self._keep()
        return self._is_held

    async def _post_all(self) -> None:
        seen = -1
        async with httpx2.AsyncClient(timeout=PATIENCE_S, follow_redirects=False) as client:
            while True:
                try:
                    was_held = self._is_held
                    version = await self._log.version() if await self._hold() else -1
                    if self._is_held and (version != seen or not was_held):
                        await self._post_new(client)
                    seen = version
                except StorageError:
                    pass
                await self._clock.sleep(POLL_S)

    async def _post_new(self, client: httpx2.AsyncClient) -> None:
        """Post all new messages; one that the receiver rejects is skipped after TRIES attempts. Each row is read again
        before each attempt, because it may have been erased."""
        upto, tries = await self._log.last_seq(), 0
        while await self._hold() and (row := await self._log.next_row(self._at, KINDS)) is not None:
            status = 204 if isinstance(row.event, Unknown) else await self._post(client, row)
            tries += 1
            if 200 <= status < 300 or (status in REJECTED and tries >= TRIES):
                self._at, tries = row.seq, 0
                await self._keep()
            else:
                await self._rest(min(MAX_PAUSE_S, FIRST_PAUSE_S * 2 ** min(tries - 1, 20)))
        if self._is_held:
            self._at = max(self._at, upto)
            if self._at - self._kept >= KEEP_EVERY:
                await self._keep()

    async def _rest(self, seconds: float) -> None:
        """Wait, and renew the lease meanwhile; stop waiting if the lease is lost."""
        while seconds > 0 and await self._hold():
            await self._clock.sleep(min(seconds, LEASE_S / 5))
            seconds -= LEASE_S / 5

    async def _post(self, client: httpx2.AsyncClient, row: Logged) -> int:
        """Post one message; return the status code of the response, 0 if there was none."""
        message = {**row.row(), "tenant": tenant_of(row.mind) or LOCAL, "user": shown_name(row.mind)}
        body = json.dumps(message, ensure_ascii=False).encode()
        headers = self._receiver.sign(f"mindstream-{row.seq}", int(self._clock.now()), body)
        try:
            async with (
                asyncio.timeout(PATIENCE_S),
                client.stream("POST", self._receiver.url, content=body, headers=headers) as answer,
            ):
                status = int(answer.status_code)
        except (httpx2.HTTPError, httpx2.InvalidURL, TimeoutError, OSError):
            status = 0
        self._counts["delivered" if 200 <= status < 300 else "failed"] += 1
        return status

    async def _keep(self) -> None:
        if self._at != self._kept:
            await self._state.deliver(self._receiver.name, self._at)
            self._kept = self._at
