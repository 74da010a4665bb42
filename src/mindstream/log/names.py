"""The name of a stream (a kind, a name within that kind, and a tenant), and the key under which a store saves it.

The caller determines the kind of a stream; it is never read from a name that a user typed.
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
"""The key of a stream in a store's rows; `StreamName.key` makes it."""
MARK = "#"
"""Separates the parts of a key; no valid name contains it."""
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
"""Replaces letters of other scripts by the Latin letters that look the same."""


@dataclass(frozen=True, slots=True)
class StreamName:
    """The name of a stream.

    Attributes:
        id: the name as the user typed it; two names are the same if their normal forms are equal.
        tenant: the tenant; "": that of the store in which the stream is opened.

    Raises:
        InputError: the kind, the name or the tenant is invalid.
    """

    kind: StreamKind
    id: str
    tenant: str = ""

    def __post_init__(self) -> None:
        if self.kind not in get_args(StreamKind):
            kinds = ", ".join(get_args(StreamKind))
            raise InputError(f"stream {self.id[:80]!r}: expected a kind of stream ({kinds}), found {self.kind!r}")
        checked_name(self.normal, self.kind)
        _checked_form(self.tenant)

    @property
    def normal(self) -> str:
        """The form in which names are stored and compared (see `normal_name`)."""
        return normal_name(self.id)

    @property
    def looks(self) -> str:
        """A form of the name that is equal for names that look the same."""
        return " ".join(INVISIBLE.sub("", self.normal.translate(ALIKE)).split())

    @property
    def key(self) -> StreamKey:
        """The key of the stream. A store may use another key, which an earlier version made from the name as it was
        typed (`Store.key`)."""
        return self.key_of(self.normal)

    @property
    def typed_key(self) -> StreamKey:
        """The key that earlier versions, which did not normalise names, made for the stream."""
        return self.key_of(self.id)

    def key_of(self, id_: str) -> StreamKey:
        # A user without a tenant has the plain name as key, as in versions without kinds. No name contains a MARK.
        return StreamKey(id_ if self.kind == "user" and not self.tenant else MARK.join((self.tenant, self.kind, id_)))


class OwnTenant(str):
    """A tenant that mindstream creates for its own data in a database; callers cannot name it."""

    __slots__ = ()


def checked_tenant(tenant: str) -> str:
    """Return the normal form (see `normal_name`) of a tenant's name that a caller gave; "" means no tenant.

    Raises:
        InputError: the name is too long, begins with a dot or a dash, contains characters other than letters, digits,
            dots, dashes and underscores, or is reserved.
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
    """Parse a key into the name of its stream.

    Raises:
        InputError: the key is invalid.
    """
    tenant, *kind, id_ = key.split(MARK) if MARK in key else ("", "user", key)
    name = StreamName(kind[0], id_, tenant) if len(kind) == 1 else None  # type: ignore[arg-type]
    if name is None or name.typed_key != key:
        raise InputError(f"{key!r} is not the key of a stream: expected a user's name, or tenant{MARK}kind{MARK}name")
    return name


def shown_name(key: str) -> str:
    """Return the last part of a key, which is the name that people see; the key may be damaged."""
    return key.rpartition(MARK)[2]


def id_of(key: str, kind: StreamKind) -> str:
    """Return the name in a key if its stream is of this kind; otherwise ""."""
    parts = key.split(MARK) if MARK in key else ["", "user", key]
    return parts[2] if len(parts) == 3 and parts[1] == kind else ""


def tenant_of(key: str) -> str:
    """Return the tenant in a key; "" if there is none."""
    return key.partition(MARK)[0] if MARK in key else ""
