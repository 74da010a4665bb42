"""What the operator offers in addition to memory and minds: tools, documents, MCP servers, towns.

A request can select from these, never add to them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from mindstream.errors import SettingsError
from mindstream.identifiers import checked_name
from mindstream.location import AnyData, Location
from mindstream.service.operations.operation import LOCAL, NotFound, Principal, checked_tenant_name

T = TypeVar("T")

USUAL = ("calculator", "recall")
"""The tools that are offered by default."""
MAX_WATCHED = 4
"""Maximum number of towns whose recordings are cached."""


@dataclass(frozen=True)
class Offered:
    """The tools, documents, MCP servers and towns that callers may use.

    Attributes:
        tools: names of tools (see tools/named) for plans and lives.
        docs: folders of documents that the tools can search; all tenants can read them.
        mcp: MCP servers, as command lines or URLs; the operator has accepted their tools' descriptions.
        towns: locations of towns (folders or database URLs), by tenant and name.
    """

    tools: tuple[str, ...] = USUAL
    docs: tuple[Path, ...] = ()
    mcp: tuple[str, ...] = ()
    towns: Mapping[tuple[str, str], AnyData] = field(default_factory=dict)

    def chosen(self, names: Sequence[str] | None) -> tuple[str, ...]:
        """Return the named tools without duplicates, or all offered tools for None.

        Raises:
            NotFound: a tool is not offered.
        """
        if names is None:
            return self.tools
        for name in names:
            if name not in self.tools:
                raise NotFound(f"this server offers no tool {name[:50]!r}; it offers {', '.join(self.tools)}")
        return tuple(dict.fromkeys(names))

    def town(self, principal: Principal, name: str) -> Location:
        """Return the location of a town.

        Raises:
            NotFound: the tenant has no town with this name.
        """
        found = self.towns.get((principal.tenant, name))
        if found is None:
            raise NotFound(f"this server offers you no town {name!r}")
        return Location.of(found)


def read_towns(given: Sequence[str]) -> dict[tuple[str, str], Location]:
    """Parse option values that offer towns: `NAME=DIR` for users on this machine, or `TENANT/NAME=DIR` for a tenant.

    DIR may also be a database URL.

    Raises:
        SettingsError: a value has another form.
    """
    found: dict[tuple[str, str], Location] = {}
    for each in given:
        name, equals, folder = each.partition("=")
        tenant, slash, short = name.rpartition("/")
        if not (equals and short and folder):
            raise SettingsError(f"a town is offered as NAME=DIR or TENANT/NAME=DIR, not as {each!r}")
        found[checked_tenant_name(tenant) if slash else LOCAL, checked_name(short, "town")] = Location.of(folder).rooms(
            "town"
        )[0]
    return found


class WatchedTowns:
    """A cache of recordings of the most recently watched towns; a cached recording grows by reading only new rows."""

    def __init__(self) -> None:
        self._towns: OrderedDict[Location, Any] = OrderedDict()

    def of(self, data: Location, open_recording: Callable[[Location], T]) -> T:
        """Return the recording of the town at a location; open it if it is not cached."""
        found: T = self._towns.get(data) or self._towns.setdefault(data, open_recording(data))
        self._towns.move_to_end(data)
        if len(self._towns) > MAX_WATCHED:
            self._towns.popitem(last=False)
        return found
