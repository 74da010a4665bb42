"""Retention: how long a tenant's words are kept, and the lease by which one process at a time applies the rule."""

from __future__ import annotations

from dataclasses import dataclass

from mindstream.clock import Moment
from mindstream.log.sql import Sql


@dataclass(frozen=True, slots=True)
class Rule:
    """Data older than `after_s` is erased.

    Attributes:
        kinds: of records; (): of all kinds, with the rows of the log of the same age.
        applied: the last time it was applied; 0: never.
    """

    tenant: str
    after_s: float
    kinds: tuple[str, ...] = ()
    applied: Moment = 0.0


def put(connection: Sql, rule: Rule) -> None:
    """Set a tenant's rule."""
    drop(connection, rule.tenant)
    connection.execute(
        "INSERT INTO retention (tenant, kinds, after_s, owner, lease, applied) VALUES (?, ?, ?, '', 0, 0)",
        (rule.tenant, " ".join(rule.kinds), rule.after_s),
    )


def drop(connection: Sql, tenant: str) -> None:
    """Remove a tenant's rule."""
    connection.execute("DELETE FROM retention WHERE tenant = ?", (tenant,))


def read(connection: Sql, tenant: str | None) -> list[Rule]:
    """Return a tenant's rule, if it has one; None: those of all visible tenants."""
    where, values = ("WHERE tenant = ?", (tenant,)) if tenant is not None else ("", ())
    rows = connection.execute(
        f"SELECT tenant, after_s, kinds, applied FROM retention {where} ORDER BY tenant", values
    ).fetchall()
    return [Rule(row[0], row[1], tuple(row[2].split()), row[3]) for row in rows]


def claim(connection: Sql, tenant: str, owner: str, now: Moment, lease: Moment, every_s: float) -> bool:
    """Claim the application of a rule until `lease`; False: another process has claimed it, or it is not due."""
    sql = "UPDATE retention SET owner = ?, lease = ? WHERE tenant = ? AND lease <= ? AND applied <= ?"
    return bool(connection.execute(sql, (owner, lease, tenant, now, now - every_s)).rowcount)


def renew(connection: Sql, tenant: str, owner: str, lease: Moment) -> None:
    """Extend the lease, unless another process has it now."""
    sql = "UPDATE retention SET lease = ? WHERE tenant = ? AND owner = ?"
    connection.execute(sql, (lease, tenant, owner))


def done(connection: Sql, tenant: str, owner: str, now: Moment) -> None:
    """Record that it was applied, and release it."""
    sql = "UPDATE retention SET owner = '', lease = 0, applied = ? WHERE tenant = ? AND owner = ?"
    connection.execute(sql, (now, tenant, owner))


def let_go(connection: Sql, tenant: str, owner: str) -> None:
    """Release it without having applied it."""
    connection.execute("UPDATE retention SET owner = '', lease = 0 WHERE tenant = ? AND owner = ?", (tenant, owner))
