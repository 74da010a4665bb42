"""Retention: data older than a tenant's rule allows are erased permanently, with records derived only from them.

A rule applies to all users of a tenant, and is stored with the data. Strong memories are erased as well, because a
retention period is a promise to users. A rule can name the kinds of records that it erases; others are kept.
"""

from __future__ import annotations

import logging
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import get_args

from mindstream import chance, plugins
from mindstream.clock import DAY_S, Clock, Moment
from mindstream.errors import InputError, MindstreamError
from mindstream.identifiers import id_of, name_of
from mindstream.log import retention
from mindstream.log.audit import Deed
from mindstream.log.erasure import erase_typed
from mindstream.log.events import Event
from mindstream.log.retention import Rule
from mindstream.memory.curation.forgetting import ForgetRequest, find_removal, remove
from mindstream.memory.lease import LEASE_S, renewing_by
from mindstream.memory.memory import Memory
from mindstream.memory.store import erasure
from mindstream.memory.store.record import Kind
from mindstream.memory.store.sql_store import SqlStore
from mindstream.memory.store.store import Erasure, read_log
from mindstream.models.embedders.embedder import Embedder

LOG = logging.getLogger("mindstream.server")
EVERY_S, POLL_S = DAY_S, 600.0
"""Seconds: the interval at which each rule is applied, and the interval of checks for due rules."""
MIN_PERIOD_S = DAY_S
"""Shortest retention period in seconds."""


@dataclass(frozen=True, slots=True)
class Expired:
    """The numbers of expired data that were found or erased.

    Attributes:
        users: users with expired data.
        drawn: records derived only from expired ones.
        items: items of beliefs and plans.
        rows: rows of the log.
        typed: lines of the terminal's input history.
    """

    users: int = 0
    records: int = 0
    drawn: int = 0
    items: int = 0
    rows: int = 0
    typed: int = 0

    def __add__(self, other: Expired) -> Expired:
        return Expired(*(getattr(self, name) + getattr(other, name) for name in self.__slots__))

    def counts(self) -> dict[str, int]:
        """Return these numbers by field name, such as `records`."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class TenantData:
    """A tenant's store, and the folder with its files next to the database."""

    store: SqlStore
    embedder: Embedder
    clock: Clock
    folder: Path | None = None


async def set_rule(store: SqlStore, rule: Rule) -> None:
    """Set a tenant's rule, and replace its previous one.

    Raises:
        InputError: the period is shorter than a day, or a kind of record does not exist.
    """
    if rule.after_s < MIN_PERIOD_S:
        raise InputError("the shortest retention period is a day: use --after 1d, or longer")
    if odd := set(rule.kinds) - set(get_args(Kind)):
        raise InputError(f"there is no kind of record {sorted(odd)[0]!r}; the kinds are {', '.join(get_args(Kind))}")
    await store.write(lambda rows: retention.put(rows, rule))


async def drop_rule(store: SqlStore, tenant: str) -> None:
    """Delete a tenant's rule: its data are kept until they are erased explicitly."""
    await store.write(lambda rows: retention.drop(rows, tenant))


async def rules_of(store: SqlStore, tenant: str | None = None) -> list[Rule]:
    """Return retention rules, at most one for each tenant.

    A tenant's store returns only its own tenant's rule. A store without a tenant returns the rule of `tenant`; None:
    the rules of all tenants.
    """
    seen = store.tenant.name or tenant
    return await store.read(lambda rows: retention.read(rows, seen))


async def find_expired(place: TenantData, rule: Rule) -> Expired:
    """Count what a rule would erase now; nothing is changed."""
    return await _apply_rule(place, rule, erase=False)


async def erase_expired(place: TenantData, rule: Rule) -> Expired:
    """Erase a tenant's expired data, then compact the store (`compact`).

    Raises:
        StorageError: the erasure failed before its end; data that were already erased remain erased.
    """
    try:
        return await _apply_rule(place, rule, erase=True)
    finally:
        await place.store.compact()


async def _apply_rule(place: TenantData, rule: Rule, *, erase: bool) -> Expired:
    until, whole = place.clock.now() - rule.after_s, Expired()
    async for memory in _memories(place):
        whole += await _of_user(place, memory, rule, until, erase=erase)
    return whole


async def _memories(place: TenantData) -> AsyncIterator[Memory]:
    for key in await place.store.minds():
        if id_of(key, "user"):
            async with Memory(place.store, name_of(key), place.embedder, place.clock) as memory:
                yield memory


async def _of_user(place: TenantData, memory: Memory, rule: Rule, until: Moment, *, erase: bool) -> Expired:
    """Erase one user's expired data and return their numbers.

    If `erase` is false, only count the data, without the lines of the input history.
    """
    kinds: tuple[Kind, ...] = rule.kinds  # type: ignore[assignment]
    removal = await find_removal(memory, ForgetRequest(until=until, kinds=kinds))
    rows = frozenset() if kinds else await _wordy_rows(memory, until)
    typed = 0
    if erase:
        if removal:
            await remove(memory, removal, compact=False)
        if rows:
            await memory.store.erase(memory.key, Erasure(ids=(), rows=rows))
        if place.folder is not None and not kinds:
            typed = erase_typed(place.folder, memory.key, lambda _: False, until)
    touched = bool(removal or rows or typed)
    return Expired(int(touched), len(removal.asked), len(removal.drawn), len(removal.items), len(rows), typed)


async def _wordy_rows(memory: Memory, until: Moment) -> frozenset[int]:
    """Return the numbers of old log rows that contain words. Rows of a life are left out while the mind has open
    work."""
    life = {plugin.name: plugin for plugin in plugins.registered()}.get("life")
    lives = (
        {each.kind for each in life.events() if issubclass(each, Event)}
        if life and await memory.store.open_work(memory.key)
        else set()
    )
    return frozenset(
        [
            row.seq
            async for row in read_log(memory.store, memory.key)
            if row.at <= until and row.event.kind not in lives and erasure.has_words(row.event)
        ]
    )


class KeepRules:
    """Applies the retention rules that are due, of all tenants. A lease ensures that only one process at a time applies
    a rule."""

    def __init__(
        self,
        store_of: Callable[[str], SqlStore],
        embedder: Callable[[], Embedder],
        clock: Clock,
        folder: Path | None,
        lease_s: float = LEASE_S,
    ) -> None:
        self._store_of, self._embedder, self._clock, self._folder = store_of, embedder, clock, folder
        self._lease_s = lease_s
        self._owner = f"{os.getpid()}-{chance.token()}"

    async def apply_due(self) -> None:
        """Apply the rules that are due; after an error, the next check tries again."""
        try:
            for rule in await rules_of(self._store_of("")):
                await self._apply(rule)
        except MindstreamError as error:
            LOG.warning("a retention rule could not be applied; the next check tries again: %s", error)

    async def _apply(self, rule: Rule) -> None:
        store, clock = self._store_of(rule.tenant), self._clock
        now = clock.now()
        ours = await store.write(
            lambda rows: retention.claim(rows, rule.tenant, self._owner, now, now + self._lease_s, EVERY_S)
        )
        if not ours:
            return

        async def renew(until: Moment) -> None:
            await store.write(lambda rows: retention.renew(rows, rule.tenant, self._owner, until))

        try:
            with renewing_by(renew, clock, self._lease_s):
                expired = await erase_expired(TenantData(store, self._embedder(), clock, self._folder), rule)
        except BaseException:
            await store.write(lambda rows: retention.let_go(rows, rule.tenant, self._owner))
            raise
        await store.write(lambda rows: retention.done(rows, rule.tenant, self._owner, clock.now()))
        if expired.users:
            await store.note(
                clock.now(),
                Deed("retention_applied", "upkeep", f"process {os.getpid()}", "", rule.tenant, expired.counts()),
            )


def describe(rule: Rule) -> str:
    """Return a sentence that describes a rule."""
    kinds = f"kind{'s' * (len(rule.kinds) > 1)} {', '.join(rule.kinds)}"
    what, are = (f"records of the {kinds}", "are") if rule.kinds else ("everything", "is")
    whose = f"users of {rule.tenant}" if rule.tenant else "this machine's own users"
    days = rule.after_s / DAY_S
    return f"{what} of {whose} {are} erased after {days:g} day{'s' * (days != 1)}"
