"""The location of data: a folder of this machine, or a PostgreSQL database named by a URL.

State that several processes share is stored with the data. Files that concern only this machine (the terminal's input
history, approvals that were given here) are stored in the folder `Location.beside`: the data folder itself, or for a
database a subfolder of the user's state folder.
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
from mindstream.identifiers import OWN
from mindstream.paths import own_folder, usable

SHOWN = ("host", "port", "user", "dbname", "sslmode", "options", "target_session_attrs")
"""Settings in a URL that may be shown; others may contain a password."""
NO_URL = (
    "not a URL of a PostgreSQL database: expected postgresql://user@host:port/db; in a password write %40 for @, %2F"
    " for /, %3F for ? and %23 for #, or better keep the password in PGPASSWORD or ~/.pgpass"
)


@dataclass(frozen=True, slots=True)
class Location:
    """The location of the data of a command, server or mind. Its text form never contains a password.

    Attributes:
        folder: the data folder; None: the data is in a database.
        url: the complete URL of the database, to be passed only to its driver.
        tenant: the tenant whose part of the database is used; "": data without a tenant.
    """

    folder: Path | None
    url: str = field(default="", repr=False)
    tenant: str = ""

    @classmethod
    def of(cls, data: AnyData) -> Location:
        """Parse a location.

        Raises:
            InputError: `data` is neither a valid folder name nor the URL of a PostgreSQL database; or `data` is a
                `Path` that contains a URL.
        """
        if isinstance(data, Location):
            return data
        if not is_database(data):
            if isinstance(data, str) and _SCHEME.match(data):
                raise InputError(
                    "a folder or the URL of a PostgreSQL database (postgresql://…) is expected, found a URL that begins"
                    f" with {data.partition('//')[0]}//"
                )
            return cls(usable(data))
        if not isinstance(data, str):
            raise InputError(f"pass a URL as text, not as a path: {NO_URL}")  # Path turns // into /
        _shown(data)
        return cls(None, data)

    def __str__(self) -> str:
        return str(self.folder) if self.folder is not None else _shown(self.url)

    @property
    def beside(self) -> Path:
        """The folder for files that belong to this data but concern only this machine.

        Raises:
            SettingsError: the user's home directory is unknown.
        """
        if self.folder is not None:
            return self.folder
        if (state := own_folder("XDG_STATE_HOME", ".local/state")) is None:
            raise SettingsError("your home directory is unknown: set XDG_STATE_HOME to a folder")
        return state / "databases" / hashlib.blake2b(str(self).encode(), digest_size=12).hexdigest()

    def part(self, name: str) -> Location:
        """Return the location of a part of the data with its own streams.

        In a folder, this is a subfolder. In a database, it is a tenant that mindstream creates. A database location
        that names a tenant already is returned unchanged.
        """
        if self.folder is not None:
            return Location(self.folder / name)
        return replace(self, tenant=self.tenant or f"{OWN}{name}")

    def rooms(self, name: str) -> tuple[Location, Location]:
        """Return the usual and the alternative location of data that must not be mixed with users' conversations.

        Such data is, for example, a town.

        - In a folder, the usual location is the folder itself, and the alternative is a tenant.
        - In a database, the usual location is a tenant, and the alternative is the database without a tenant.

        The data is at the alternative location after all data was copied from a database into a folder, or from a
        folder into a database.
        """
        tenant = replace(self, tenant=self.tenant or f"{OWN}{name}")
        return (self, tenant) if self.folder is not None else (tenant, replace(self, tenant=""))

    def as_folder(self) -> Path:
        """Return the folder, for operations on files.

        Raises:
            InputError: the data is in a database.
        """
        if self.folder is None:
            raise InputError(
                f"this operation works on folders only, and {self} is a database: copy it to a folder first, by"
                " `mindstream data copy`"
            )
        return self.folder

    def under(self, folder: Path) -> Location:
        """Return this location; if it is a relative path, it is resolved against `folder`."""
        return self if self.folder is None else Location(folder / self.folder)

    def resolved(self) -> Location:
        """Return this location; a folder by its absolute path without symbolic links."""
        return self if self.folder is None else Location(self.folder.resolve())

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_plain_validator_function(
            _validated, serialization=core_schema.to_string_ser_schema()
        )


AnyData: TypeAlias = str | Path | Location
"""A folder, the URL of a database, or a location."""


def is_database(data: str | Path) -> bool:
    """Return whether `data` is the URL of a PostgreSQL database, or a Path of such a URL (a Path turns // into /)."""
    return str(data).lower().startswith(("postgresql:/", "postgres:/"))


def _validated(value: object) -> Location:
    if not isinstance(value, str | Path | Location):
        raise PydanticCustomError("path_type", "input should be a path")
    return Location.of(value)


def _shown(url: str) -> str:
    """Return a URL without its password and without settings that are not in SHOWN. If the URL had no password and no
    such settings, the result can be used to connect.

    Raises:
        InputError: the URL is not valid. The message does not repeat the URL, since any part of the URL may belong to a
            password.
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
    """Return whether a text is empty or a host, with or without a port.

    A host is a name, an address, or [an IPv6 address].
    """
    host, bracket, port = text.rpartition("]" if text.startswith("[") else ":")
    if not bracket:
        host, port = text, ""
    port = port.removeprefix(":")
    return (not port or (port.isascii() and port.isdigit())) and not set(host) - _IN_HOST


_IN_HOST = set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_%[:")
_SCHEME = re.compile(r"\s{0,100}[A-Za-z][A-Za-z0-9+.-]{1,100}://")
