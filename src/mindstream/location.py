"""Where data lie: in a folder of this machine, or in a PostgreSQL database that a URL names.

What several processes must agree on lies in the data themselves; what is only this machine's comfort (typed history,
what was accepted of programs here) lies `beside` them: in the folder, or in the user's state folder.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, quote, urlencode, urlsplit

from pydantic import GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from mindstream.errors import InputError, SettingsError
from mindstream.paths import own_folder, usable

OWN = "_"
"""First character of the names of tenants that mindstream makes for itself. `log.names.checked_tenant` refuses it."""
SHOWN = ("host", "port", "user", "dbname", "sslmode", "options", "target_session_attrs")
"""The settings in a URL that are shown; a password may stand in others."""
NO_URL = (
    "that is no URL of a PostgreSQL database: postgresql://user@host:port/db; in a password @ is written %40, / %2F,"
    " ? %3F and # %23, and PGPASSWORD or ~/.pgpass keep it better"
)


@dataclass(frozen=True, slots=True)
class Location:
    """Where the data of a command, a server or a mind lie. As text it is what may be shown: never a password.

    Attributes:
        folder: None: they lie in a database.
        url: of the database, with all that is in it: for its driver alone.
        tenant: whose part of the database it is; "": what is no tenant's.
    """

    folder: Path | None
    url: str = field(default="", repr=False)
    tenant: str = ""

    @classmethod
    def of(cls, data: AnyData) -> Location:
        """Read what a person named.

        Raises:
            InputError: no folder can be called so, or it is no URL of such a database.
        """
        if isinstance(data, Location):
            return data
        if not is_database(data):
            if isinstance(data, str) and _SCHEME.match(data):
                raise InputError(
                    f"a folder or the URL of a PostgreSQL database is expected, found one that begins with"
                    f" {data.partition('//')[0]}//"
                )
            return cls(usable(data))
        if not isinstance(data, str):
            raise InputError(f"a URL is handed in as a text, not as a path: {NO_URL}")  # a path has lost a slash
        _shown(data)
        return cls(None, data)

    def __str__(self) -> str:
        return str(self.folder) if self.folder is not None else _shown(self.url)

    @property
    def beside(self) -> Path:
        """Where files of this machine lie that belong to it.

        Raises:
            SettingsError: nobody knows the user's home.
        """
        if self.folder is not None:
            return self.folder
        if (state := own_folder("XDG_STATE_HOME", ".local/state")) is None:
            raise SettingsError("nobody knows your home directory: set XDG_STATE_HOME to a folder")
        return state / "databases" / hashlib.blake2b(str(self).encode(), digest_size=12).hexdigest()

    def part(self, name: str) -> Location:
        """Return a part of it with streams of its own: a folder in the folder, a tenant of ours in the database."""
        if self.folder is not None:
            return Location(self.folder / name)
        return replace(self, tenant=self.tenant or f"{OWN}{name}")

    def rooms(self, name: str) -> tuple[Location, Location]:
        """Return where what cannot live among people's talks lives: a folder that is named is its own, a database has a
        part for it; and the other of the two, into which a copy of all data brings it."""
        tenant = replace(self, tenant=self.tenant or f"{OWN}{name}")
        return (self, tenant) if self.folder is not None else (tenant, replace(self, tenant=""))

    def as_folder(self) -> Path:
        """Return the folder, for what copies files.

        Raises:
            InputError: they lie in a database.
        """
        if self.folder is None:
            raise InputError(f"that works on folders, and {self} is a database: `mindstream data copy` carries it over")
        return self.folder

    def under(self, folder: Path) -> Location:
        """Return it, a path in it beginning from a folder."""
        return self if self.folder is None else Location(folder / self.folder)

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            _validated, serialization=core_schema.to_string_ser_schema()
        )


AnyData: TypeAlias = str | Path | Location
"""What names data: a folder, a URL, or a location."""


def is_database(data: str | Path) -> bool:
    """Tell whether it is the URL of a PostgreSQL database; one that was taken for a path has lost a slash."""
    return str(data).lower().startswith(("postgresql:/", "postgres:/"))


def _validated(value: object) -> Location:
    if not isinstance(value, str | Path | Location):
        raise PydanticCustomError("path_type", "input should be a path")
    return Location.of(value)


def _shown(url: str) -> str:
    """Return a URL without what may be secret; where it leads alone, a tool may be called with it again.

    Raises:
        InputError: it is none; it is not repeated, since a piece of a password may stand anywhere in it.
    """
    try:
        found = urlsplit(url)
        more = parse_qsl(found.query, strict_parsing=True) if found.query else []
    except ValueError:
        raise InputError(NO_URL) from None
    before, _, hosts = found.netloc.rpartition("@")
    user = before.partition(":")[0]
    odd = "@" in before or "@" in found.path + found.query + found.fragment or found.fragment
    if odd or not url.lower().startswith(("postgresql://", "postgres://")) or not all(map(_is_host, hosts.split(","))):
        raise InputError(NO_URL)
    kept = urlencode([(name, value) for name, value in more if name in SHOWN], safe="/", quote_via=quote)
    return f"postgresql://{user}{'@' * bool(user)}{hosts}{found.path}{'?' * bool(kept)}{kept}"


def _is_host(text: str) -> bool:
    """Tell whether it is a host, with or without a port: a name, an address, [an IPv6 address]; or nothing."""
    host, bracket, port = text.rpartition("]" if text.startswith("[") else ":")
    if not bracket:
        host, port = text, ""
    port = port.removeprefix(":")
    return (not port or (port.isascii() and port.isdigit())) and not set(host) - _IN_HOST


_IN_HOST = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_%[:")
_SCHEME = re.compile(r"\s{0,100}[A-Za-z][A-Za-z0-9+.-]{1,100}://")
