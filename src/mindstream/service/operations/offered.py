"""What the operator offers beside memory and minds: tools, documents, MCP servers, towns. No request adds to it."""

from __future__ import annotations

import json
import shutil
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from mindstream.chance import token
from mindstream.errors import InputError, SettingsError
from mindstream.location import AnyData, Location
from mindstream.log.files import private_folder
from mindstream.log.names import checked_name
from mindstream.service.operations.refusals import NotFound
from mindstream.service.operations.who import LOCAL, Who, checked_wall

if TYPE_CHECKING:
    from mindstream.town.replay.growing import GrowingRecording

USUAL = ("calculator", "recall")

FORKS, FORK = "towns", "fork.json"
"""The folder in a data folder where forks of towns are, each in one of its own; what it says there of itself."""
MOST_FORKS = 20
"""So many forks a tenant may have."""

MOST_WATCHED = 4
"""What was read of so many towns is kept in memory."""


@dataclass(frozen=True)
class Offered:
    """What may be used by whoever asks.

    Attributes:
        tools: by name (tools/named), for plans and lives.
        docs: folders of documents to search; all tenants see them.
        mcp: servers of tools, as command lines or URLs; what they say of themselves was accepted by the operator.
        towns: where towns live (folders, or databases), by tenant and name.
    """

    tools: tuple[str, ...] = USUAL
    docs: tuple[Path, ...] = ()
    mcp: tuple[str, ...] = ()
    towns: Mapping[tuple[str, str], AnyData] = field(default_factory=dict)

    def chosen(self, names: Sequence[str] | None) -> tuple[str, ...]:
        """Return the tools that are named, of those that are offered; None: all of them.

        Raises:
            NotFound: one is not offered.
        """
        if names is None:
            return self.tools
        for name in names:
            if name not in self.tools:
                raise NotFound(f"no tool {name[:50]!r} is offered here; there are {', '.join(self.tools)}")
        return tuple(dict.fromkeys(names))

    def town(self, who: Who, name: str) -> Location:
        """Return where a town lives.

        Raises:
            NotFound: the tenant has none of that name.
        """
        found = self.towns.get((who.tenant, name))
        if found is None:
            raise NotFound(f"there is no town {name!r} here")
        return Location.of(found)


def read_towns(given: Sequence[str]) -> dict[tuple[str, str], Location]:
    """Read `NAME=DIR` (or a database's URL), a town of this machine's own people, or `TENANT/NAME=DIR`.

    Raises:
        SettingsError: it has no such form.
    """
    found: dict[tuple[str, str], Location] = {}
    for each in given:
        name, equals, folder = each.partition("=")
        tenant, slash, short = name.rpartition("/")
        if not (equals and short and folder):
            raise SettingsError(f"a town is offered by NAME=DIR, or TENANT/NAME=DIR, not by {each!r}")
        found[checked_wall(tenant) if slash else LOCAL, checked_name(short, "town")] = Location.of(folder).rooms(
            "town"
        )[0]
    return found


@dataclass(frozen=True)
class Fork:
    """A town that was forked from one that is offered, `of`, as it was after a step; it lives in `place`."""

    name: str
    of: str
    step: int
    place: Location


class ForkedTowns:
    """The forks of a server's towns. Neither their folders nor their names are named by a request.

    Args:
        data: the server's. A fork is a folder of this machine, wherever they lie.
    """

    def __init__(self, data: Location) -> None:
        self._folder = data.beside / FORKS

    def all(self, who: Who) -> dict[str, Fork]:
        """Return the forks of the tenant, by name."""
        found = dict[str, Fork]()
        for file in self._folder.glob(f"*/{FORK}"):
            told = json.loads(file.read_text())
            if told["tenant"] == who.tenant:
                found[told["name"]] = Fork(
                    told["name"], told["of"], told["step"], Location(file.parent, tenant=told.get("part", ""))
                )
        return found

    async def add(self, who: Who, of: str, source: Location, step: int, taken: Collection[str]) -> Fork:
        """Fork the town of a place as it was after a step; `taken`: names that other towns have.

        Raises:
            InputError: it has not lived so far, or the tenant has too many forks.
        """
        from mindstream.town.forking import fork

        forks = self.all(who)
        if len(forks) >= MOST_FORKS:
            raise InputError(f"there are {len(forks)} forks already: let go of one first")
        origin = forks[of].of if of in forks else of
        numbered = (f"{origin}-{number}" for number in range(2, MOST_FORKS + len(taken) + 3))
        name = next(each for each in numbered if each not in taken and each not in forks)
        folder = private_folder(private_folder(self._folder) / token(8))
        try:
            await fork(source, folder, step)
            told = {"tenant": who.tenant, "name": name, "of": of, "step": step, "part": source.tenant}
            (folder / f"{FORK}.new").write_text(json.dumps(told))
            (folder / f"{FORK}.new").replace(folder / FORK)  # it is there whole, or not at all
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return Fork(name, of, step, Location(folder, tenant=source.tenant))

    def drop(self, who: Who, name: str) -> None:
        """Let go of a fork, with all that it has lived.

        Raises:
            NotFound: there is none of that name.
        """
        found = self.all(who).get(name)
        if found is None:
            raise NotFound(f"there is no fork {name!r} here")
        (found.place.beside / FORK).unlink()
        shutil.rmtree(found.place.beside, ignore_errors=True)


class WatchedTowns:
    """What was read of the towns that were looked at last: only what is new is read again."""

    def __init__(self) -> None:
        self._towns: OrderedDict[Location, GrowingRecording] = OrderedDict()

    def of(self, data: Location) -> GrowingRecording:
        """Return what is kept of the town of a place."""
        from mindstream.town.replay.growing import GrowingRecording

        found = self._towns.setdefault(data, GrowingRecording(data))
        self._towns.move_to_end(data)
        if len(self._towns) > MOST_WATCHED:
            self._towns.popitem(last=False)
        return found
