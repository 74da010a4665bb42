"""Plugins: packages that add roles of models, kinds of events, operations, commands or pages to mindstream.

A distribution joins by an entry point of the group `mindstream.plugins` that names a `Plugin`:

    [project.entry-points."mindstream.plugins"]
    garden = "mindstream_garden:PLUGIN"

    PLUGIN = Plugin("garden", roles=(Role("gardener", "says what to plant"),))

The module that defines it should not import slow modules, because every command loads it.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Role:
    """A purpose for which models are called, such as `talker`. The user can choose a model for each role.

    Attributes:
        does: what the model of this role does, in a few words.
        otherwise: other roles, in order. If no model is set for this role, the model of the first of these roles that
            has one is used. If none of these roles has a model, the default model is used.
    """

    name: str
    does: str
    otherwise: tuple[str, ...] = ()


def _no_events() -> Iterable[type]:
    return ()


@dataclass(frozen=True, slots=True)
class Plugin:
    """The additions of one package to the core.

    Attributes:
        roles: the roles of models that the plugin uses; several plugins may define the same role.
        events: a function that imports and returns the plugin's event classes (see log/events).
        operations: names of the modules that declare the plugin's operations (see service/operations/operation).
        commands: by name of a command or group: the help text, then names of modules, each with the commands in `app`.
            A group that exists already is extended and keeps its help text.
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
        Role("worker", "answers the questions that tools ask a model"),
        Role("importance", "rates how much a memory matters"),
        Role("reader", "answers questions from memory, in an evaluation"),
        Role("judge", "says which answer is right, or more believable, in an evaluation"),
        Role("reranker", "reorders what recall found", ("reasoner",)),
    ),
)
SHIPPED = ("coach", "planning", "life", "sharing", "service.chat")
"""The packages of mindstream itself that define a PLUGIN."""
_plugins: dict[str, Plugin] = {}
_roles: dict[str, Role] = {}


def register(*plugins: Plugin) -> None:
    """Add plugins. Shipped plugins and those of entry points are added automatically.

    Raises:
        ValueError: another plugin has the same name.
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
    """Return the roles of all plugins by name. If several plugins define a role, the first definition counts."""
    registered()
    return dict(_roles)


def stand_by(role: str) -> tuple[str, ...]:
    """Return the roles whose models may be used for a role: the role itself, then its `otherwise` roles in order."""
    if not _plugins:
        _load()
    known = _roles.get(role)
    return (role, *known.otherwise) if known is not None else (role,)


def _load() -> None:
    _add(CORE)
    for package in SHIPPED:
        _add(importlib.import_module(f"mindstream.{package}").PLUGIN)
    for point in sorted(importlib.metadata.entry_points(group=GROUP)):
        try:
            _add(point.load())
        except ImportError as error:
            warnings.warn(f"the plugin {point.name!r} is left out: {error}", RuntimeWarning, stacklevel=1)


def _add(plugin: Plugin) -> None:
    if _plugins.setdefault(plugin.name, plugin) is not plugin:
        raise ValueError(f"two different plugins are named {plugin.name!r}: rename one of them")
    for role in plugin.roles:
        _roles.setdefault(role.name, role)
