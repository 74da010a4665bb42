"""Forks (copies) of simulated towns. Each is a directory below the server's data, with a file that describes it.

Names and the limit per tenant are reserved under a lock on the parent directory, so that parallel requests and other
processes never take the same name or exceed the limit. A directory's name begins with a digest of its tenant's name, so
the tenant of a fork is known even if its description is damaged or unfinished.
"""

from __future__ import annotations

import contextlib
import hashlib
import shutil
from collections import Counter
from collections.abc import Awaitable, Callable, Collection, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from pydantic import BaseModel, ValidationError

from mindstream.chance import token
from mindstream.errors import Conflict, InputError
from mindstream.file_locks import locked_folder
from mindstream.location import Location
from mindstream.log.files import private_folder
from mindstream.service.operations.operation import NotFound, Principal

FORKS, FORK = "towns", "fork.json"
"""Names: the directory of all forks in a data folder, and the description file in each fork's own directory."""
RESERVED = f"{FORK}.new"
"""Name of the description file while the fork is still being copied."""
MAX_FORKS = 20
"""Maximum number of forks per tenant."""


Copy: TypeAlias = Callable[[Location, Path, int], Awaitable[object]]
"""Copies the town stored at a location, in its state after a step, to a new directory."""


@dataclass(frozen=True)
class Fork:
    """A copy of the town named `of`, in its state after `step`; `place`: where the copy is stored."""

    name: str
    of: str
    step: int
    place: Location


class Description(BaseModel):
    """The content of `fork.json`.

    Attributes:
        of: the town that was copied.
        step: the step whose state was copied.
        part: the tenant's name within the fork's own database.
    """

    tenant: str
    name: str
    of: str
    step: int
    part: str = ""


class ForkedTowns:
    """The forks of a server's towns. Requests name a fork, never its directory.

    Args:
        data: the location of the server's data. Forks are local directories even if the data are in a database.
    """

    def __init__(self, data: Location) -> None:
        self._folder = data.beside / FORKS

    def all(self, principal: Principal) -> dict[str, Fork]:
        """Return the tenant's complete forks, by name."""
        found = [
            (folder, description)
            for folder in self.folders(principal.tenant)
            if (description := _described(folder / FORK))
        ]
        names = Counter(description.name for _, description in found)
        forks = dict[str, Fork]()
        for folder, description in found:
            # earlier versions could give one name to several forks: such forks are shown with a unique suffix
            name = description.name if names[description.name] == 1 else f"{description.name}.{folder.name[-8:]}"
            forks[name] = Fork(name, description.of, description.step, Location(folder, tenant=description.part))
        return forks

    def notices(self, principal: Principal) -> list[str]:
        """Return a line for each of the tenant's forks that cannot be read."""
        return [
            f"the fork in {FORKS}/{folder.name} is left out, because its {FORK} is damaged: restore this file from a"
            " backup, or delete the directory"
            for folder in self.folders(principal.tenant)
            if (folder / FORK).exists() and _described(folder / FORK) is None
        ]

    def folders(self, tenant: str) -> list[Path]:
        """Return every directory of a tenant's forks: complete, unfinished and damaged ones."""
        found = list[Path]()
        for folder in sorted(self._folder.glob("*/")):
            owner, dash, _ = folder.name.partition("-")
            if dash:
                is_own = owner == _digest(tenant)
            else:  # made by an earlier version, which did not put the tenant's digest in the name
                description = _described(folder / FORK)
                is_own = description is not None and description.tenant == tenant
            if is_own:
                found.append(folder)
        return found

    async def add(
        self, principal: Principal, of: str, source: Location, step: int, taken: Collection[str], copy: Copy
    ) -> Fork:
        """Copy the town at `source`, in its state after `step`, and return the fork.

        Args:
            of: the name of that town.
            taken: names of other towns, which the fork must not get.
            copy: makes the copy.

        Raises:
            InputError: the town has not reached that step, or the tenant has too many forks.
            Conflict: the fork was deleted while it was being copied.
        """
        with self._reserved(principal, of, source, step, taken) as (folder, description):
            await copy(source, folder, step)
            try:
                (folder / RESERVED).replace(folder / FORK)
            except FileNotFoundError:
                raise Conflict(
                    f"the fork {description.name!r} was deleted while it was being copied: try again"
                ) from None
        return Fork(description.name, of, step, Location(folder, tenant=source.tenant))

    @contextlib.contextmanager
    def _reserved(
        self, principal: Principal, of: str, source: Location, step: int, taken: Collection[str]
    ) -> Iterator[tuple[Path, Description]]:
        """Reserve a name and a directory for a fork; if the `with` block fails, the directory is removed."""
        with contextlib.ExitStack() as copying:
            with locked_folder(private_folder(self._folder)):
                self._remove_abandoned(principal.tenant)
                there, forks = self.folders(principal.tenant), self.all(principal)
                if len(there) >= MAX_FORKS:
                    raise InputError(
                        f"there are {len(there)} forks already, and at most {MAX_FORKS} are kept: delete one first"
                    )
                pending = {each.name for folder in there if (each := _described(folder / RESERVED))}
                names = {*taken, *forks, *pending}
                origin = forks[of].of if of in forks else of
                numbered = (f"{origin}-{number}" for number in range(2, len(names) + 3))
                name = next(each for each in numbered if each not in names)
                description = Description(tenant=principal.tenant, name=name, of=of, step=step, part=source.tenant)
                folder = self._folder / f"{_digest(principal.tenant)}-{token(8)}"
                folder.mkdir(mode=0o700)
                copying.enter_context(locked_folder(folder))
                (folder / RESERVED).write_text(description.model_dump_json())
            try:
                yield folder, description
            except BaseException:
                shutil.rmtree(folder, ignore_errors=True)
                raise

    def drop(self, principal: Principal, name: str) -> None:
        """Delete a fork.

        Raises:
            NotFound: the tenant has no fork of that name.
        """
        found = self.all(principal).get(name)
        if found is None:
            raise NotFound(f"you have no fork named {name!r}")
        with locked_folder(self._folder), contextlib.suppress(FileNotFoundError):  # another request may have dropped it
            (found.place.beside / FORK).unlink()
        shutil.rmtree(found.place.beside, ignore_errors=True)

    def _remove_abandoned(self, tenant: str) -> None:
        """Remove unfinished forks whose process died while it copied: no process locks their directories any more."""
        for folder in self.folders(tenant):
            if not (folder / FORK).exists():
                with contextlib.suppress(OSError):
                    with locked_folder(folder, wait=False):
                        pass
                    shutil.rmtree(folder)


def _described(file: Path) -> Description | None:
    """Return the description in a file; None if the file is missing or damaged."""
    try:
        return Description.model_validate_json(file.read_bytes())
    except (OSError, ValidationError):
        return None


def _digest(tenant: str) -> str:
    return hashlib.sha256(tenant.encode()).hexdigest()[:16]
