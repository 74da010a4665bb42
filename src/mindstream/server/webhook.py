"""A webhook: what a mind adds after its answer is posted to an address of the operator's, in the log's order.

Each is posted until it is taken, at least once: whoever receives it knows it by its `webhook-id`. Of several servers
one posts; where it dies, another goes on after what was taken last. Signed as the Standard Webhooks specification has
it, which libraries of most languages check.
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
from mindstream.server.ledger import Ledger
from mindstream.service.operations.principal import LOCAL

KINDS = (FollowUp.kind, "left_unsaid")
"""What comes late: said unasked, or kept for the next answer where a chat page could not be told."""
LOOK_S, PATIENCE_S = 1.0, 10.0
"""How often it is looked whether something was written; so long a receiver may take."""
LEASE_S = 15.0
"""So long whoever posts need not say again that it does: a post, and a while."""
FIRST_S, LONGEST_S = 1.0, 300.0
"""The first wait after a failure, and the longest; each is twice the one before."""
NOT_THIS = (400, 413, 422)
"""What says that the message itself is not taken; after so many tries the next one has its turn."""
TRIES = 8
KEEP_EVERY = 1_000
LEAST_SECRET = 16
SECRET = "MINDSTREAM_WEBHOOK_SECRET"
"""The environment's name for it."""


@dataclass(frozen=True)
class Receiver:
    """Who is told; the operator's word.

    Attributes:
        url: http:// or https://; what is posted there is signed, and only encrypted by the latter.
        secret: at least 16 characters, or `whsec_` and base64.

    Raises:
        InputError: it is no such address or secret.
    """

    url: str
    secret: str = field(repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError("--webhook takes an address with https:// or http://")
        if len(self.key) < LEAST_SECRET:
            raise InputError(
                f"a webhook wants a secret of {LEAST_SECRET} characters: --webhook-secret FILE, or {SECRET}"
            )

    @property
    def key(self) -> bytes:
        """The bytes that it is signed with."""
        secret = self.secret.strip()
        if not secret.startswith("whsec_"):
            return secret.encode()
        try:
            return base64.b64decode(secret.removeprefix("whsec_"), validate=True)
        except binascii.Error:
            return b""

    @property
    def name(self) -> str:
        """What the ledger calls it."""
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
    """Posts to one receiver, one message after the other, beside everything else.

    Args:
        is_alone: no other server has these data.
    """

    def __init__(
        self, receiver: Receiver, log: SqlStore, ledger: Ledger, clock: Clock, metrics: Metrics, *, is_alone: bool
    ) -> None:
        self._receiver, self._log, self._ledger, self._clock = receiver, log, ledger, clock
        self._counts, self._is_alone = metrics.webhook, is_alone
        self._owner, self._is_held, self._look_at = chance.token(), False, 0.0
        self._at = self._kept = 0
        """All up to this seq was posted, or was nothing to be posted; and what of it the ledger knows."""

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Post as long as the block goes on: what was written since the last seq that was taken, and what comes."""
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
                    await self._ledger.hold(self._receiver.name, self._owner, 0.0)
            await self._log.close()

    async def _hold(self) -> bool:
        """Tell whether it is this server that posts; whoever begins to goes on after what was taken last."""
        was_held, name, now = self._is_held, self._receiver.name, self._clock.elapsed()
        if now < self._look_at:
            return was_held
        self._is_held = self._is_alone or await self._ledger.hold(name, self._owner, LEASE_S)
        self._look_at = now + LEASE_S / 5
        if self._is_held and not was_held:
            delivered = await self._ledger.delivered(name)
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
                await self._clock.sleep(LOOK_S)

    async def _post_new(self, client: httpx2.AsyncClient) -> None:
        """Post all that is there; a row is read anew before each try, for it may be forgotten meanwhile."""
        upto, tries = await self._log.last_seq(), 0
        while await self._hold() and (row := await self._log.next_row(self._at, KINDS)) is not None:
            status = 204 if isinstance(row.event, Unknown) else await self._post(client, row)
            tries += 1
            if 200 <= status < 300 or (status in NOT_THIS and tries >= TRIES):
                self._at, tries = row.seq, 0
                await self._keep()
            else:
                await self._rest(min(LONGEST_S, FIRST_S * 2 ** min(tries - 1, 20)))
        if self._is_held:
            self._at = max(self._at, upto)
            if self._at - self._kept >= KEEP_EVERY:
                await self._keep()

    async def _rest(self, seconds: float) -> None:
        """Wait, and go on saying that it is this server that posts."""
        while seconds > 0 and await self._hold():
            await self._clock.sleep(min(seconds, LEASE_S / 5))
            seconds -= LEASE_S / 5

    async def _post(self, client: httpx2.AsyncClient, row: Logged) -> int:
        """Return the status with which it was answered; 0: it was not."""
        told = {**row.row(), "tenant": tenant_of(row.mind) or LOCAL, "user": shown_name(row.mind)}
        body = json.dumps(told, ensure_ascii=False).encode()
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
            await self._ledger.deliver(self._receiver.name, self._at)
            self._kept = self._at
