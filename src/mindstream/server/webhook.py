"""A webhook: what a mind adds after its answer is posted to an address of the operator's, in the log's order.

Each is posted until it is taken, at least once: whoever receives it knows it by its `webhook-id`. Signed as the
Standard Webhooks specification has it, which libraries of most languages check.
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

from mindstream.clock import Clock
from mindstream.errors import InputError, StorageError
from mindstream.log.events import FollowUp, Logged, Unknown
from mindstream.log.names import shown_name, tenant_of
from mindstream.memory.store.sql_store import SqlStore
from mindstream.server.health import Metrics
from mindstream.server.ledger import Ledger
from mindstream.service.operations.who import LOCAL

KINDS = (FollowUp.kind, "left_unsaid")
"""What comes late: said unasked, or kept for the next answer where a chat page could not be told."""
LOOK_S, PATIENCE_S = 1.0, 10.0
"""How often it is looked whether something was written; so long a receiver may take."""
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
            "content-type": "application/json", "user-agent": "mindstream", "webhook-id": id_,
            "webhook-timestamp": str(at), "webhook-signature": f"v1,{base64.b64encode(signature).decode()}",
        }  # fmt: skip


class Webhook:
    """Posts to one receiver, one message after the other, beside everything else."""

    def __init__(self, receiver: Receiver, log: SqlStore, ledger: Ledger, clock: Clock, metrics: Metrics) -> None:
        self._receiver, self._log, self._ledger, self._clock = receiver, log, ledger, clock
        self._counts = metrics.webhook
        self._at = self._kept = 0
        """All up to this seq was posted, or was nothing to be posted; and what of it the ledger knows."""

    @contextlib.asynccontextmanager
    async def run(self) -> AsyncIterator[None]:
        """Post as long as the block goes on: what was written since the last seq that was taken, and what comes."""
        delivered = await self._ledger.delivered(self._receiver.name)
        self._at = await self._log.last_seq() if delivered is None else delivered
        await self._keep()
        posting = asyncio.ensure_future(self._post_all())
        try:
            yield
        finally:
            posting.cancel()
            await asyncio.gather(posting, return_exceptions=True)
            await self._keep()
            await self._log.close()

    async def _post_all(self) -> None:
        seen = -1
        async with httpx2.AsyncClient(timeout=PATIENCE_S, follow_redirects=False) as client:
            while True:
                try:
                    version = await self._log.version()
                    if version != seen:
                        await self._post_new(client)
                    seen = version
                except StorageError:
                    pass
                await self._clock.sleep(LOOK_S)

    async def _post_new(self, client: httpx2.AsyncClient) -> None:
        """Post all that is there; a row is read anew before each try, for it may be forgotten meanwhile."""
        upto, tries = await self._log.last_seq(), 0
        while (row := await self._log.next_row(self._at, KINDS)) is not None:
            status = 204 if isinstance(row.event, Unknown) else await self._post(client, row)
            tries += 1
            if 200 <= status < 300 or (status in NOT_THIS and tries >= TRIES):
                self._at, tries = row.seq, 0
                await self._keep()
            else:
                await self._clock.sleep(min(LONGEST_S, FIRST_S * 2 ** min(tries - 1, 20)))
        self._at = max(self._at, upto)
        if self._at - self._kept >= KEEP_EVERY:
            await self._keep()

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
