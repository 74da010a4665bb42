"""What a package adds to mindstream: roles of models, kinds of events, operations, commands, pages.

A distribution joins by an entry point of the group `mindstream.plugins` that names a `Plugin`:

    [project.entry-points."mindstream.plugins"]
    garden = "mindstream_garden:PLUGIN"

    PLUGIN = Plugin("garden", roles=(Role("gardener", "says what to plant"),))

The module that holds it should import nothing heavy: it is loaded by every command.
"""

from __future__ import annotations

import importlib
import importlib.metadata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Role:
    """A purpose for which models are asked; each can be given a model of its own.

    Attributes:
        does: what its model is asked for, in a few words.
        otherwise: the roles whose models answer for it when it has none, the first configured one of them; then the
            default model.
    """

    name: str
    does: str
    otherwise: tuple[str, ...] = ()


def _no_events() -> Iterable[type]:
    return ()


@dataclass(frozen=True, slots=True)
class Plugin:
    """A part of mindstream, or of another distribution, as the core sees it.

    Attributes:
        roles: its roles; several plugins may name the same role.
        events: imports and returns its event classes (see log/events).
        operations: names of the modules that declare its operations (see service/operations/table).
        commands: command or group -> (help text, names of the modules whose `app` holds the commands); an existing
            group is extended, and its help text stays.
        pages: adds pages to the application that `mindstream serve` runs with --studio.
    """

    name: str
    roles: tuple[Role, ...] = ()
    events: Callable[[], Iterable[type]] = _no_events
    operations: tuple[str, ...] = ()
    commands: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    pages: Callable[[Any], None] | None = None


GROUP = "mindstream.plugins"
CORE = Plugin(
    "",
    (
        Role("talker", "answers at once"),
        Role("reasoner", "thinks in the background"),
        Role("facts", "extracts facts from what was said", ("reasoner",)),
        Role("worker", "answers where a tool asks a model"),
        Role("importance", "rates how much a memory matters"),
        Role("reader", "answers questions from memory, in an evaluation"),
        Role("judge", "says which answer is right, or more believable, in an evaluation"),
        Role("reranker", "reorders what recall found", ("reasoner",)),
    ),
)
SHIPPED = ("coach", "planning", "life", "sharing", "service.chat")
"""The packages of mindstream itself that hold a PLUGIN."""
_plugins: dict[str, Plugin] = {}
_roles: dict[str, Role] = {}


def register(*plugins: Plugin) -> None:
    """Add plugins; those that are shipped and those of entry points are added without it.

    Raises:
        ValueError: there is another plugin of that name.
    """
    if not _plugins:
        _load()
    for plugin in plugins:
        _add(plugin)


def registered() -> tuple[Plugin, ...]:
    """Return all plugins, the core first."""
    if not _plugins:
        _load()
    return tuple(_plugins.values())


def roles() -> dict[str, Role]:
    """Return the roles of all plugins; where several name one, the first."""
    registered()
    return dict(_roles)


def stand_by(role: str) -> tuple[str, ...]:
    """Return a role, then the roles whose models answer for it when it has none of its own."""
    registered()
    known = _roles.get(role)
    return (role, *known.otherwise) if known is not None else (role,)


def _load() -> None:
    _add(CORE)
    for package in SHIPPED:
        _add(importlib.import_module(f"mindstream.{package}").PLUGIN)
    for point in sorted(importlib.metadata.entry_points(group=GROUP)):
        _add(point.load())


def _add(plugin: Plugin) -> None:
    if _plugins.setdefault(plugin.name, plugin) is not plugin:
        raise ValueError(f"there are two plugins named {plugin.name!r}")
    for role in plugin.roles:
        _roles.setdefault(role.name, role)
