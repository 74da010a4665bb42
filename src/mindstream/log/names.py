"""Names of streams: a kind, a name within it, its tenant; and the key by which a store keeps it.

A name that a user types names one stream of one kind: the kind is never read from the name.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal, NewType, TypeAlias, get_args

from mindstream.errors import InputError
from mindstream.identifiers import INVISIBLE, normal_name
from mindstream.identifiers import checked_name as checked_name
from mindstream.location import OWN

StreamKind: TypeAlias = Literal["user", "pool", "resident", "town", "documents"]
StreamKey = NewType("StreamKey", str)
"""A stream's key in a store's rows; only `StreamName.key` makes it."""
MARK = "#"
"""Separates the parts of a key; no name contains it."""
TENANT = re.compile(r"\w[\w.-]{0,63}")
ALIKE = str.maketrans(
    "аеорсухіјѕԁһԛԝӏѵүгАВЕНІЈКМОРЅСТХҮԚԜӀѴԌЗ"
    "αονρικυγχηΑΒΕΖΗΙΚΜΝΟΡΤΥΧ"
    "օսցհզոյՏՍՕԼ"
    "ıɑɡɩɪᴏᴄᴜᴠᴡᴢꜱǀ"
    "ᎪᏴᏟᎬᏀᎻᎫᏦᏞᎷᏢᎡᏚᎢᏙᎳᏃ"
    "ꓮꓐꓚꓓꓰꓝꓖꓧꓲꓙꓗꓡꓟꓠꓳꓑꓣꓢꓔꓴꓦꓪꓫꓬꓜ",
    "aeopcyxijsdhqwlvyrABEHIJKMOPSCTXYQWIVG3"
    "aovpikuyxnABEZHIKMNOPTYX"
    "oughqnjSUOL"
    "iagiiocuvwzsl"
    "ABCEGHJKLMPRSTVWZ"
    "ABCDEFGHIJKLMNOPRSTUVWXYZ",
)
"""Letters of other scripts that look like Latin ones."""


@dataclass(frozen=True, slots=True)
class StreamName:
    """The name of a stream.

    Attributes:
        id: as it was typed; two are the same if their normal forms are.
        tenant: "": that of the store in which it is opened.

    Raises:
        InputError: the name is invalid.
    """

    kind: StreamKind
    id: str
    tenant: str = ""

    def __post_init__(self) -> None:
        if self.kind not in get_args(StreamKind):
            raise InputError(f"there is no kind of stream {self.kind!r}")
        checked_name(self.normal, self.kind)
        _checked_form(self.tenant)

    @property
    def normal(self) -> str:
        """The form in which names are stored and compared (see `normal_name`)."""
        return normal_name(self.id)

    @property
    def looks(self) -> str:
        """The form that is equal for names that look the same."""
        return " ".join(INVISIBLE.sub("", self.normal.translate(ALIKE)).split())

    @property
    def key(self) -> StreamKey:
        """Its key, unless the store has it from before names had a normal form (see `Store.key`)."""
        return self.key_of(self.normal)

    @property
    def typed_key(self) -> StreamKey:
        """Its key in a store from before names had a normal form."""
        return self.key_of(self.id)

    def key_of(self, id_: str) -> StreamKey:
        # before there were kinds the key of a user was the name, and no name contains a MARK
        return StreamKey(id_ if self.kind == "user" and not self.tenant else MARK.join((self.tenant, self.kind, id_)))


class OwnTenant(str):
    """A tenant that mindstream creates for itself in a database. No name that a caller gives can be one."""

    __slots__ = ()


def checked_tenant(tenant: str) -> str:
    """Return the normal form of a tenant's name (see `normal_name`) as a caller gave it, or "" for none.

    Raises:
        InputError: it is too long, contains other characters than letters, digits, dots, dashes and underscores, or is
            reserved.
    """
    if isinstance(tenant, OwnTenant):
        return tenant
    normal = normal_name(tenant)
    if normal.startswith(OWN):
        raise InputError(f"tenant {tenant[:80]!r}: names that begin with {OWN} are reserved; choose another name")
    return _checked_form(normal)


def _checked_form(tenant: str) -> str:
    if tenant and not TENANT.fullmatch(tenant):
        raise InputError(
            f"tenant {tenant[:80]!r}: use 1 to 64 letters, digits, . _ and -, beginning with a letter or digit"
        )
    return tenant


def name_of(key: str) -> StreamName:
    """Return the name of a key.

    Raises:
        InputError: the key is invalid.
    """
    tenant, *kind, id_ = key.split(MARK) if MARK in key else ("", "user", key)
    name = StreamName(kind[0], id_, tenant) if len(kind) == 1 else None  # type: ignore[arg-type]
    if name is None or name.typed_key != key:
        raise InputError(f"{key!r} names no stream")
    return name


def shown_name(key: str) -> str:
    """Return the name that people use for a key, even a damaged one."""
    return key.rpartition(MARK)[2]


def id_of(key: str, kind: StreamKind) -> str:
    """Return the name of a key's stream; "" if it is of another kind."""
    parts = key.split(MARK) if MARK in key else ["", "user", key]
    return parts[2] if len(parts) == 3 and parts[1] == kind else ""


def tenant_of(key: str) -> str:
    """Return the tenant of a key; "": none."""
    return key.partition(MARK)[0] if MARK in key else ""
