"""Names of users, sessions, pools, agents, towns and residents: each has one normal form, in which it is compared.

`StreamName` is the name of a stream: a kind, a name within that kind, and a tenant. Its key is the name under which a
store saves the stream. The caller determines the kind of a stream; it is never read from a name that a user typed.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Literal, NewType, TypeAlias, get_args

from mindstream.errors import InputError

MAX_NAME = 100
"""Maximum length of a name, in characters."""
NAME = re.compile(rf"\w[\w .:|@+/'-]{{0,{MAX_NAME - 1}}}")
INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]"
)
"""Characters that are not visible (Unicode: Default_Ignorable_Code_Point)."""


_JOINERS = re.compile("[\u00ad\u115f\u1160\u200c\u200d\u3164\ufe00-\ufe0f\uffa0]")
"""Invisible characters that belong to the spelling of a word, and letters without a glyph. They are removed: a name
with them is the same name."""
_APOSTROPHES = dict.fromkeys(map(ord, "\u2019\u02bc\u2018"), "'")
"""Typographic apostrophes, which phones and word processors write, are replaced by ': O’Neill becomes O'Neill."""
_AROUND = "\ufeff\u200b\u2060"
"""Invisible characters that may be copied along with a name; they are removed from its ends."""


def normal_name(name: str) -> str:
    """Return the normal form of an identifier, in which it is stored and compared.

    - The normal form is Unicode NFKC, so NFD, NFC and full-width spellings are one name.
    - Apostrophes become plain. Joiners are removed, and at the ends also white space and zero-width characters.
    - Letter case is kept. Other invisible characters and characters that change the direction of text are kept, too:
      `checked_name` rejects them.
    - A text whose normal form is not a valid name is returned unchanged.

    Every interface (command line, REST, MCP, chat headers, adapters, Python) passes the names of users, sessions,
    pools, residents, towns and tenants through this function, for writing and for reading.
    """
    if name.isascii() and name.isprintable() and name == name.strip():
        return name
    visible = _JOINERS.sub("", unicodedata.normalize("NFKC", name)).translate(_APOSTROPHES)
    normal = unicodedata.normalize("NFKC", visible)  # again: without a joiner, a mark may combine with its letter
    while normal != (inner := normal.strip().strip(_AROUND)):
        normal = inner
    return normal if is_name(normal) else name


def is_name(text: str) -> bool:
    """Return whether a text is valid as an identifier; combining marks count as parts of letters."""
    if text.isascii():
        return NAME.fullmatch(text) is not None
    letters = "".join(each for each in text if not unicodedata.category(each).startswith("M"))
    return len(text) <= MAX_NAME and text[:1] == letters[:1] and NAME.fullmatch(letters) is not None


def checked_name(name: str, what: str = "name") -> str:
    """Return the normal form of the name of a user, agent or session.

    Raises:
        InputError: the name is empty, too long, does not begin with a letter or digit, or contains characters other
            than letters, digits and ` _.:|@+/'-`.
    """
    if not isinstance(name, str):
        raise InputError(f"{what}: expected a name as a string, found {type(name).__name__}")
    normal = normal_name(name)
    if not is_name(normal):
        shown = name if len(name) <= MAX_NAME else f"{name[:40]}…"
        raise InputError(
            f"{what} {shown!r}: use 1 to {MAX_NAME} letters, digits, spaces and . _ : | @ + / ' -,"
            " beginning with a letter or digit; emoji and other symbols are not allowed in names"
        )
    return normal


StreamKind: TypeAlias = Literal["user", "pool", "resident", "town", "documents"]
StreamKey = NewType("StreamKey", str)
"""The key of a stream in a store's rows; `StreamName.key` makes it."""
OWN = "_"
"""First character of the names of tenants that mindstream creates for itself. `checked_tenant` rejects such a name if a
caller gives it."""
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
        id: the name as the user typed it. Two names are the same if their normal forms are equal.
        tenant: the tenant; "": the tenant of the store in which the stream is opened.

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
        checked_name(self.id, self.kind)
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
        """The key of the stream, made from the normalised name.

        If an earlier version wrote the stream under a key made from the name as it was typed, the store uses that key
        instead (`Store.key`).
        """
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


EVERYONE = "*"
"""Stands for all tenants together. A server's operator uses it to read the rows of all tenants. No stream's key belongs
to it, so nothing can be written with it."""


class Tenant:
    """The tenant of a store; "": no tenant."""

    def __init__(self, name: str) -> None:
        self.name = name if name == EVERYONE else str(checked_tenant(name))

    def own(self, key: StreamKey) -> StreamKey:
        """Return a key if it belongs to this tenant.

        Raises:
            InputError: it belongs to another tenant.
        """
        if tenant_of(key) != self.name:
            raise InputError(f"{shown_name(key)!r} belongs to another tenant: open the store of that tenant")
        return key

    def owned(self, column: str) -> str:
        """Return the SQL condition that a column contains the key of a stream of this tenant."""
        if self.name == EVERYONE:
            return "1 = 1"
        if not self.name:
            return f"instr({column}, '{MARK}') <= 1"
        first = f"{self.name}{MARK}"  # safe in SQL: the name has only letters, digits, . _ and -
        return f"({column} >= '{first}' AND {column} < '{first[:-1]}{chr(ord(MARK) + 1)}')"
