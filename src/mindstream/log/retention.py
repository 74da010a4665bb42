"""Retention: how long a tenant's data is kept, and a lease that lets only one process at a time apply the rule."""

from __future__ import annotations

from dataclasses import dataclass

from mindstream.clock import Moment
from mindstream.log.sql import Sql


@dataclass(frozen=True, slots=True)
class Rule:
    """The rule that data of a tenant is erased when it is older than `after_s` seconds.

    Attributes:
        kinds: the kinds of records to erase; (): records of all kinds, and also rows of the log.
        applied: when the rule was last applied; 0: never.
    """

    tenant: str
    after_s: float
    kinds: tuple[str, ...] = ()
    applied: Moment = 0.0


def put(connection: Sql, rule: Rule) -> None:
    """Set a tenant's rule, in place of an existing one."""
    drop(connection, rule.tenant)
    connection.execute(
        "INSERT INTO retention (tenant, kinds, after_s, owner, lease, applied) VALUES (?, ?, ?, '', 0, 0)",
        (rule.tenant, " ".join(rule.kinds), rule.after_s),
    )


def drop(connection: Sql, tenant: str) -> None:
    """Remove a tenant's rule."""
    connection.execute("DELETE FROM retention WHERE tenant = ?", (tenant,))


def read(connection: Sql, tenant: str | None) -> list[Rule]:
    """Return a list with a tenant's rule; [] without a rule. For the tenant None, return the rules of all visible
    tenants."""
    where, values = ("WHERE tenant = ?", (tenant,)) if tenant is not None else ("", ())
    rows = connection.execute(
        f"SELECT tenant, after_s, kinds, applied FROM retention {where} ORDER BY tenant", values
    ).fetchall()
    return [Rule(row[0], row[1], tuple(row[2].split()), row[3]) for row in rows]


def claim(connection: Sql, tenant: str, owner: str, now: Moment, lease: Moment, every_s: float) -> bool:
    """Claim the right to apply a rule until `lease`. Return False if the rule is claimed already, was applied less than
    `every_s` seconds ago, or does not exist."""
    sql = "UPDATE retention SET owner = ?, lease = ? WHERE tenant = ? AND lease <= ? AND applied <= ?"
    return bool(connection.execute(sql, (owner, lease, tenant, now, now - every_s)).rowcount)


def renew(connection: Sql, tenant: str, owner: str, lease: Moment) -> None:
    """Extend `owner`'s claim on applying a tenant's retention rule until `lease`, unless another process has taken it
    over."""
    sql = "UPDATE retention SET lease = ? WHERE tenant = ? AND owner = ?"
    connection.execute(sql, (lease, tenant, owner))


def done(connection: Sql, tenant: str, owner: str, now: Moment) -> None:
    """Record that a tenant's rule was applied, and release the claim that `owner` has on it."""
    sql = "UPDATE retention SET owner = '', lease = 0, applied = ? WHERE tenant = ? AND owner = ?"
    connection.execute(sql, (now, tenant, owner))


def let_go(connection: Sql, tenant: str, owner: str) -> None:
    """Release the claim of `owner` on a tenant's retention rule without having applied the rule."""
    connection.execute("UPDATE retention SET owner = '', lease = 0 WHERE tenant = ? AND owner = ?", (tenant, owner))
