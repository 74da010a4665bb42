"""What the operator offers beside memory and minds: tools, documents, MCP servers, towns. No request adds to it."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from mindstream.errors import SettingsError
from mindstream.location import AnyData, Location
from mindstream.log.names import checked_name
from mindstream.service.operations.who import LOCAL, NotFound, Who, checked_wall

T = TypeVar("T")

USUAL = ("calculator", "recall")

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


class WatchedTowns:
    """Cached recordings of the towns that were looked at last: only what is new is read again."""

    def __init__(self) -> None:
        self._towns: OrderedDict[Location, Any] = OrderedDict()

    def of(self, data: Location, open_recording: Callable[[Location], T]) -> T:
        """Return the recording of a town; one that is not cached is opened."""
        found: T = self._towns.get(data) or self._towns.setdefault(data, open_recording(data))
        self._towns.move_to_end(data)
        if len(self._towns) > MOST_WATCHED:
            self._towns.popitem(last=False)
        return found
