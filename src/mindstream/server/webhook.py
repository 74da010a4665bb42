"""A webhook: follow-ups of minds are posted to an address of the operator's, in the order of the log.

Each message is posted at least once, until it is accepted; the receiver recognises repeats by `webhook-id`. Of several
servers one posts; if it dies, another continues after the last accepted message. Messages are signed as the Standard
Webhooks specification says, for which most languages have a library.
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
from mindstream.log.events import FollowUp, Logged, Unknown
from mindstream.log.names import shown_name, tenant_of
from mindstream.memory.store.sql_store import SqlStore
from mindstream.server.health import Metrics
from mindstream.server.server_state import ServerState
from mindstream.service.operations.principal import LOCAL

KINDS = (FollowUp.kind, "left_unsaid")
"""Kinds of events that are posted: unsolicited follow-ups, and those kept for the next answer because a chat page could
not show them."""
POLL_S, PATIENCE_S = 1.0, 10.0
"""Seconds: poll interval of the log; timeout of a post."""
LEASE_S = 15.0
"""Lease of the server that posts, in seconds: longer than a post."""
FIRST_PAUSE_S, MAX_PAUSE_S = 1.0, 300.0
"""The first wait after a failure and the longest, in seconds; each is twice the one before."""
REJECTED = (400, 413, 422)
"""Statuses that reject the message itself; after TRIES attempts the next message is posted."""
TRIES = 8
KEEP_EVERY = 1_000
"""Rows without a message after which the position is stored."""
MIN_SECRET = 16
SECRET = "MINDSTREAM_WEBHOOK_SECRET"
"""The environment variable with the secret."""


@dataclass(frozen=True)
class Receiver:
    """The operator's receiver.

    Attributes:
        url: http:// or https://; messages are signed, but only https:// encrypts them.
        secret: at least 16 characters, or `whsec_` and base64.

    Raises:
        InputError: the address or the secret cannot be used.
    """

    url: str
    secret: str = field(repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError("--webhook takes an address with https:// or http://")
        if len(self.key) < MIN_SECRET:
            raise InputError(f"a webhook needs a secret of {MIN_SECRET} characters: --webhook-secret FILE, or {SECRET}")

    @property
    def key(self) -> bytes:
        """The bytes of the secret."""
        secret = self.secret.strip()
        if not secret.startswith("whsec_"):
            return secret.encode()
        try:
            return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
        except binascii.Error:
            return b""

    @property
    def name(self) -> str:
        """Its name in the server state."""
        return hashlib.sha256(self.url.encode()).hexdigest()[:32]

    def sign(self, id_: str, at: int, body: bytes) -> dict[str, str]:
        """Return the headers of a message."""
        signature = hmac.new(self.key, f"{id_}.{at}.".encode() + body, hashlib.sha256).digest()
        return {
            "content-type": "application/json",
            "user-agent": "mindstream",
            "webhook-id": id_,
            "webhook-timestamp": str(at),
            "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
        }


class Webhook:
    """Posts to one receiver, one message after the other, in the background.

    Args:
        is_alone: no other server uses these data.
    """

    def __init__(
        self, receiver: Receiver, log: SqlStore, state: ServerState, clock: Clock, metrics: Metrics, *, is_alone: bool
    ) -> None:
        self._receiver, self._log, self._state, self._clock = receiver, log, state, clock
        self._counts, self._is_alone = metrics.webhook, is_alone
        self._owner, self._is_held, self._look_at = chance.token(), False, 0.0
        self._at = self._kept = 0
        """Rows up to `_at` were posted, or are no messages; `_kept`: the row that is stored."""

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Post messages written since the last accepted one, and new ones, while the block runs."""
        await self._hold()
        posting = asyncio.ensure_future(self._post_all())
        try:
            yield
        finally:
            posting.cancel()
            await asyncio.gather(posting, return_exceptions=True)
            if self._is_held:
                await self._keep()
                if not self._is_alone:
                    await self._state.hold(self._receiver.name, self._owner, 0.0)
            await self._log.close()

    async def _hold(self) -> bool:
        """Return whether this server posts; it begins after the last accepted message."""
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
        """Post all new messages; a row is read again before each attempt, as it may have been erased."""
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
        """Wait, and renew the lease."""
        while seconds > 0 and await self._hold():
            await self._clock.sleep(min(seconds, LEASE_S / 5))
            seconds -= LEASE_S / 5

    async def _post(self, client: httpx2.AsyncClient, row: Logged) -> int:
        """Return the status of the response; 0: there was none."""
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
