"""Which errors of the server may pass if one asks again: it went away, or somebody else was first."""

from __future__ import annotations

import psycopg

PASSING = ("08", "40", "57P", "25P03")
"""Classes of SQLSTATE: a connection's exceptions, a transaction that was rolled back (serialization, deadlock), a
server that is being stopped or started; and one that ended a transaction in which it was asked nothing for long, as
where a machine slept."""


def may_go_again(error: psycopg.Error) -> bool:
    """Tell whether it may help to ask again."""
    if error.sqlstate is not None:
        return error.sqlstate.startswith(PASSING)
    return isinstance(error, psycopg.OperationalError | psycopg.InterfaceError) and not _is_refusal(error)


def _is_refusal(error: psycopg.Error) -> bool:
    """Tell whether the server can be reached and will not have us; libpq gives such words, and no state."""
    told = str(error)
    return any(each in told for each in ("authentication failed", "does not exist", "no pg_hba.conf entry", "invalid "))
