"""Tokens: who holds one is a tenant with scopes, until it ends or is revoked. The file keeps hashes alone.

The file is read again whenever it has changed, so what is made or revoked by another process counts at once.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from mindstream.chance import token as chance_token
from mindstream.clock import DAY_S, Clock, Moment
from mindstream.errors import InputError, StorageError
from mindstream.log.names import StreamName
from mindstream.paths import read_text
from mindstream.private_files import make_private_folder
from mindstream.service.operations.who import checked_scopes, checked_wall

FILE = "tokens.json"
PREFIX = "ms_"
MOST_BYTES = 16_000_000


class Token(BaseModel):
    """A token as the file keeps it.

    Attributes:
        id: by which it is listed and revoked; it opens nothing.
        hash: of the token, SHA-256: a token is 256 bits of chance, so that nothing can be guessed from it.
        user: the one user it is for; "": any of the tenant's.
        a_minute, at_once: how many requests, and how many at the same time; None: as many as the server allows.
        bytes_a_day: of requests' bodies, taken in at an even rate; None: as much as comes.
        tokens, usd: what may be spent on models in its name, a day; None: what the server may.
    """

    model_config = ConfigDict(frozen=True)

    id: str
    hash: str
    tenant: str
    scopes: list[str]
    made: Moment
    ends: Moment
    user: str = ""
    a_minute: int | None = None
    at_once: int | None = None
    bytes_a_day: int | None = None
    tokens: int | None = None
    usd: float | None = None

    def shown(self) -> dict[str, object]:
        """Return what may be seen of it."""
        return self.model_dump(exclude={"hash"}, exclude_none=True)


class _File(BaseModel):
    tokens: list[Token] = []


class Tokens:
    """The tokens of a file."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self.path, self._clock = path, clock
        self._stamp: tuple[int, int, int] | None = None
        self._by_hash: dict[str, Token] = {}

    def find(self, token: str) -> Token | None:
        """Return what a token stands for; None where it stands for nothing, has ended or was revoked."""
        self._read_anew()
        found = self._by_hash.get(_hash(token))
        return found if found is not None and found.ends > self._clock.now() else None

    def left_s(self, token: str) -> float:
        """Return how long a token still holds; 0 where it does not."""
        found = self.find(token)
        return found.ends - self._clock.now() if found is not None else 0.0

    def each(self) -> list[Token]:
        """Return all, those that have ended too."""
        self._read_anew()
        return list(self._by_hash.values())

    def new(
        self, tenant: str, scopes: str, days: float, *, user: str = "", a_minute: int | None = None,
        at_once: int | None = None, tokens: int | None = None, usd: float | None = None,
        bytes_a_day: int | None = None,
    ) -> tuple[str, Token]:  # fmt: skip
        """Make a token and keep its hash; the token itself is nowhere but in what is returned.

        Raises:
            InputError: there is no such tenant or scope; it would end before it begins.
            StorageError: the file cannot be written.
        """
        if not 0 < days <= 3_660:
            raise InputError("a token lasts for some days, at most ten years")
        now, token = self._clock.now(), PREFIX + secrets.token_urlsafe(32)
        made = Token(
            id=chance_token(10), hash=_hash(token), tenant=checked_wall(tenant), scopes=sorted(checked_scopes(scopes)),
            made=now, ends=now + days * DAY_S, user=StreamName("user", user).normal if user else "", a_minute=a_minute,
            at_once=at_once, bytes_a_day=bytes_a_day, tokens=tokens, usd=usd,
        )  # fmt: skip
        with self._changing() as held:
            held.append(made)
        return token, made

    def revoke(self, id_: str) -> Token:
        """Let a token open nothing any more.

        Raises:
            InputError: there is none of that id.
        """
        with self._changing() as held:
            found = next((each for each in held if each.id == id_), None)
            if found is None:
                raise InputError(f"there is no token {id_!r} in {self.path}: `mindstream token list` names them")
            held.remove(found)
        return found

    @contextlib.contextmanager
    def _changing(self) -> Iterator[list[Token]]:
        """Give the list to be changed; nobody else changes it meanwhile, and it is replaced whole."""
        try:
            make_private_folder(self.path.parent)
            with _locked(self.path.with_name(f".{self.path.name}.lock")):
                held = self._load()
                yield held
                part = self.path.with_name(f".{chance_token()}.part")
                with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
                    file.write(_File(tokens=held).model_dump_json(indent=1, exclude_none=True))
                    file.flush()
                    os.fsync(file.fileno())
                part.replace(self.path)
        except OSError as error:
            raise StorageError(f"the tokens in {self.path} cannot be written: {error.strerror}") from None

    def _read_anew(self) -> None:
        try:
            stat = self.path.stat()
            stamp = (stat.st_mtime_ns, stat.st_size, stat.st_ino)
        except OSError:
            self._stamp, self._by_hash = None, {}
            return
        if stamp != self._stamp:
            self._by_hash = {each.hash: each for each in self._load()}
            self._stamp = stamp

    def _load(self) -> list[Token]:
        if not self.path.exists():
            return []
        try:
            return _File.model_validate_json(read_text(self.path, MOST_BYTES)).tokens
        except (ValidationError, InputError):
            raise StorageError(
                f"{self.path} holds no tokens that could be read: move it away, and make new ones"
            ) from None


@contextlib.contextmanager
def _locked(path: Path) -> Iterator[None]:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _hash(token: str) -> str:
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
