"""The models of a mind, by role."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from mindstream.clock import Clock, SystemClock
from mindstream.engines import Engine
from mindstream.errors import SettingsError
from mindstream.models.model import Model
from mindstream.models.providers.adapter import Waits
from mindstream.models.providers.provider import EngineModel, Provider, provider
from mindstream.models.recording import Cache, Playback, Recorder
from mindstream.models.rules import Rules
from mindstream.models.wrappers.meter import Budget, Budgeted, Meter, Metered, WithListener
from mindstream.models.wrappers.override import PromptOverride
from mindstream.models.wrappers.recovery import Breaker, Fallback, Fit, Guard, Limit, Mend, Repair, Retry
from mindstream.plugins import stand_by

DEFAULT = "default"


class Models:
    """The models of a mind, by role. A role without its own model gets the default model, if there is one.

    `Models.named({"default": "openai:gpt-5-mini"})` opens models by name; `Models(model)` takes the caller's own
    models.
    """

    def __init__(self, default: Model | None = None, roles: Mapping[str, Model] = MappingProxyType({})) -> None:
        self._models = ({DEFAULT: default} if default else {}) | dict(roles)
        self._waits: Mapping[str, Waits] = {}
        self._found: dict[tuple[str, ...], str | None] = {}
        self._providers: tuple[Provider, ...] = ()

    def of(self, *roles: str) -> Model:
        """Return the model of the first of these roles that has a model; a substitute role's model counts. If none has,
        return the default.

        Raises:
            SettingsError: there is no such model and no default.
        """
        if (found := self._find(roles)) is None:
            role = roles[0] if roles else DEFAULT
            raise SettingsError(
                f"no model is configured for the role {role!r}: name one for this role (--role {role}=MODEL), or one"
                f' for all roles (--model MODEL; in Python: model={{"{role}": …}}, or model=NAME for all)'
            )
        return self._models[found]

    def check(self, *roles: str) -> None:
        """Raise SettingsError if one of these roles has no model."""
        for role in roles:
            self.of(role)

    def has(self, role: str) -> bool:
        """Return whether a role has a model of its own."""
        return role in self._models

    def waits(self, *roles: str) -> Waits:
        """Return the timeouts of these roles' model."""
        return self._waits.get(self._find(roles) or DEFAULT, Waits())

    def _find(self, roles: tuple[str, ...]) -> str | None:
        if roles not in self._found:
            able = (each for role in roles for each in stand_by(role) if each in self._models)
            self._found[roles] = next(able, DEFAULT if DEFAULT in self._models else None)
        return self._found[roles]

    @property
    def names(self) -> dict[str, str]:
        """The name of each role's model, the default first if there is one."""
        return {role: model.name for role, model in self._models.items()}

    @property
    def only_rules(self) -> bool:
        """Whether no model is configured: rules answer everything, and every interface should say so."""
        return set(self.names.values()) == {Rules.name}

    def each(self, wrap: Callable[[Model], Model]) -> Models:
        """Return a copy with a wrapper around each model; the models themselves are shared, not copied."""
        return self.with_roles({role: wrap(model) for role, model in self._models.items()}, self._waits)

    def with_roles(self, roles: Mapping[str, Model], waits: Mapping[str, Waits] = MappingProxyType({})) -> Models:
        """Return a copy with other models for some roles. The models of the remaining roles are shared, not copied.

        Args:
            waits: the timeouts of the new models, by role. A role without an entry gets the usual timeouts.
        """
        models = Models(None, {**self._models, **roles})
        models._waits = {role: each for role, each in self._waits.items() if role not in roles} | dict(waits)
        return models

    def with_listener(self, on_call: Callable[[Metered], None]) -> Models:
        """Return a copy that reports the calls made through it to `on_call`; the models are shared, not copied."""
        return self.each(lambda model: WithListener(model, on_call))

    @classmethod
    def named(
        cls,
        table: Mapping[str, str],
        *,
        clock: Clock | None = None,
        on_call: Callable[[Metered], None] | None = None,
        retry: int = 3,
        repair: int = 2,
        budget: Budget | None = None,
        cache_dir: Path | str | None = None,
        record: Path | str | None = None,
        words_dir: Path | str | None = None,
        at_once: int = 8,
        patience_s: Mapping[str, float] | float | None = None,
        context: Mapping[str, int] | int | None = None,
        fallback: str = "",
        keeps_words: bool = False,
        engine: Engine | None = None,
    ) -> Models:
        """Build the models of a table role -> name; a name that occurs twice is built once.

        An empty table means rules for all roles. With any other table, requesting the model of a role is an error if
        the role, its substitute roles and `default` all have no model.

        Args:
            patience_s: maximum seconds before the first part of a reply and between two parts, for all models or by
                model name.
            context: context window in tokens, for all models or by model name.
            fallback: the model that is asked if another one fails; "": none.
            keeps_words: `on_call` and listeners get the full text of requests and answers, except those of rules.
            engine: an engine whose workers fetch the answers; recordings are still read in this process.

        Raises:
            SettingsError: an unknown name, a missing key, package, recording or folder of prompt texts.
        """
        clock = clock or SystemClock()

        def wrapped(name: str, inner: Model) -> Model:
            """Put wrappers around a model.

            Rules get only Meter and Recorder; recordings get also Mend, Repair and PromptOverride.

            From the outside in, the wrappers are:
            - PromptOverride: chooses the prompt's text;
            - Mend: acts after all repairs failed;
            - Repair;
            - Recorder: records answers, not attempts;
            - Cache;
            - Guard: inside Cache, so no degenerate reply is stored;
            - Fit;
            - Breaker: sees a failure only after all attempts;
            - Retry;
            - Budgeted: counts each attempt;
            - Limit;
            - Meter: measures each attempt, without the time in the queue of Limit.
            """
            model = inner
            if engine and isinstance(inner, Rules | Provider):
                model = EngineModel(name, engine, patience.get(name), windows.get(name))
            model = Meter(model, on_call, clock, keeps_words=keeps_words and not isinstance(inner, Rules))
            if isinstance(inner, Provider):
                model = Limit(model, at_once)
                model = Budgeted(model, budget) if budget else model
                model = Breaker(Retry(model, retry, clock=clock), clock=clock)
                model = Guard(Fit(model, windows.get(name) or inner.window), only_words=inner.is_here)
                model = Cache(model, cache_dir) if cache_dir else model
            model = Recorder(model, record) if record else model
            if isinstance(inner, Rules):
                return model
            model = Mend(Repair(model, repair))
            return PromptOverride(model, words_dir) if words_dir else model

        table = table or {DEFAULT: Rules.name}
        names = dict.fromkeys(filter(None, (*table.values(), fallback)))
        windows = context if isinstance(context, Mapping) else dict.fromkeys(names, context)
        patience = patience_s if isinstance(patience_s, Mapping) else dict.fromkeys(names, patience_s)
        inner = {name: _named(name, patience.get(name), windows.get(name)) for name in names}
        built = {name: wrapped(name, model) for name, model in inner.items()}
        if fallback:
            last, safe = built[fallback], (fallback, Rules.name)
            built = {name: each if name in safe else Fallback((each, last)) for name, each in built.items()}
        models = cls(None, {role: built[table[role]] for role in sorted(table, key=lambda role: role != DEFAULT)})
        models._providers = tuple(model for model in inner.values() if isinstance(model, Provider))
        waits = {model.name: model.waits for model in models._providers}
        models._waits = {role: waits[inner[name].name] for role, name in table.items() if inner[name].name in waits}
        return models

    async def aclose(self) -> None:
        """Close idle connections."""
        for model in self._providers:
            await model.aclose()

    async def __aenter__(self) -> Models:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


AnyModels: TypeAlias = Models | Model | str | Mapping[str, Model | str]
"""Values of `model=`: a model or its name for all roles; a table by role; `Models`."""


@asynccontextmanager
async def open_models(models: AnyModels, clock: Clock | None = None) -> AsyncIterator[Models]:
    """Open models in any form of `AnyModels`; models that are opened here are closed at the end.

    Raises:
        SettingsError: an unknown name, or a value that is not a model.
    """
    if isinstance(models, Models):
        yield models
        return
    async with build_models(models, clock) as built:
        yield built


def build_models(models: AnyModels, clock: Clock | None = None) -> Models:
    """Convert any form of `AnyModels` to `Models`.

    The caller closes the result, unless `models` is a `Models` object already.

    Raises:
        SettingsError: an unknown name, or a value that is not a model.
    """
    if isinstance(models, Models):
        return models
    table: Mapping[str, Model | str] = models if isinstance(models, Mapping) else {DEFAULT: models}
    own = {role: each for role, each in table.items() if not isinstance(each, str)}
    for each in own.values():
        if not callable(getattr(each, "reply", None)):
            raise SettingsError(
                "model= takes the name of a model, a model, a mapping from roles to these, or Models, not"
                f" {type(each).__name__}"
            )
    names = {role: each for role, each in table.items() if isinstance(each, str)}
    named = Models.named(names, clock=clock) if names or not table else Models()
    built = named.with_roles(own)
    built._providers = named._providers
    return built


def _named(name: str, patience_s: float | None, window: int | None) -> Model:
    kind, _, rest = name.partition(":")
    if name == Rules.name:
        return Rules()
    if kind == "playback" and rest:
        return Playback(rest)
    return provider(name, patience_s=patience_s, window=window)
