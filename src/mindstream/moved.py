"""Modules that were renamed or moved to other distributions. Their old names still work for one version, with a
warning."""

from __future__ import annotations

import importlib
import importlib.machinery
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from operator import attrgetter
from types import ModuleType
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

MOVED = {
    "mindstream.server.asgi": "mindstream.server",
    "mindstream.server.rest": "mindstream.server.api_app",
    "mindstream.memory.privacy_watch": "mindstream.memory.store.sql_store",
    "mindstream.memory.recall.question": "mindstream.memory.recall.ranking",
    "mindstream.service.operations.shapes": "mindstream.service.operations.operation",
    "mindstream.service.operations.principal": "mindstream.service.operations.operation",
    "mindstream.service.operations.table": "mindstream.service.operations.operation",
    "mindstream.text.context": "mindstream.minds.responder",
    "mindstream.tools.loop": "mindstream.tools.call",
    "mindstream.tools.approval": "mindstream.tools.call",
    "mindstream.memory.belief": "mindstream.memory.stream",
    "mindstream.coach.gates.gate": "mindstream.coach.talker",
    "mindstream.coach.gates": "mindstream.coach",
    "mindstream.models.ask": "mindstream.models.prompt",
    "mindstream.memory.store.rows": "mindstream.memory.store.queries",
    "mindstream.log.names": "mindstream.identifiers",
    "mindstream.planning.check": "mindstream.planning.plan",
    "mindstream.planning.references": "mindstream.planning.plan",
    "mindstream.memory.recall.touch": "mindstream.memory.recall.recall",
    "mindstream.memory.store.validation": "mindstream.memory.store.record",
    "mindstream.log.feed": "mindstream.log.events",
    "mindstream.tracing.genai": "mindstream.tracing",
    "mindstream.models.embedders.wordllama": "mindstream.models.embedders.embedder",
    "mindstream.models.providers.limits": "mindstream.models.providers.adapter",
    "mindstream.log.timeline": "mindstream.log.events",
    "mindstream_town.metrics.measures": "mindstream_town.metrics",
    "mindstream_town.packs.find": "mindstream_town.packs",
    "mindstream.engines.engine": "mindstream.engines",
    "mindstream.tools.web.web": "mindstream.tools.web",
    "mindstream.tools.web.search": "mindstream.tools.web",
    "mindstream.tools.web.addresses": "mindstream.tools.addresses",
    "mindstream.sharing.grading.prompts": "mindstream.sharing.grading",
    "mindstream.sharing.grading.rubric": "mindstream.sharing.grading",
    "mindstream.sharing.guarding.answer_fit": "mindstream.sharing.guarding",
    "mindstream.coach.belief.stand_in": "mindstream.coach.belief.think",
    "mindstream.reasoners.turns": "mindstream.reasoners.background",
    "mindstream.coach.calibration": "mindstream.coach.belief.plan",
    "mindstream.coach.stand_in": "mindstream.coach.talker",
    "mindstream.coach.belief.library": "mindstream.coach.belief.think",
    "mindstream.coach.handover": "mindstream.coach.talker",
    "mindstream.memory.store.word_index.places": "mindstream.memory.store.word_index.candidates",
    "mindstream.memory.store.old_streams": "mindstream.memory.store.tables",
    "mindstream.memory.recall.part": "mindstream.memory.recall.selection",
    "mindstream.memory.curation.candidates": "mindstream.memory.curation.mentions",
    "mindstream.memory.store.cutting": "mindstream.memory.store.sqlite",
    "mindstream.memory.store.scan": "mindstream.memory.store.word_index.in_sqlite",
    "mindstream.memory.recall.policies": "mindstream.memory.recall.ranking",
    "mindstream.memory.traced": "mindstream.memory.stream",
    "mindstream.memory.missing_vectors": "mindstream.memory.recall.embedding",
    "mindstream.memory.recall.filters": "mindstream.memory.recall.ranking",
    "mindstream.memory.recall.recent_texts": "mindstream.memory.recall.recall",
    "mindstream.memory.store.column_lookups": "mindstream.memory.store.columns",
    "mindstream.memory.recall.relevance": "mindstream.memory.recall.ranking",
    "mindstream.planning.export": "mindstream.planning.exemplars",
    "mindstream.planning.events": "mindstream.planning.journal",
    "mindstream.planning.formats.inputs": "mindstream.planning.formats.rewoo",
    "mindstream.tools.own_tools": "mindstream.tools.named",
    "mindstream.models.providers.secrets": "mindstream.models.providers.address",
    "mindstream.models.providers.text_logprobs": "mindstream.models.providers.openai_chat",
    "mindstream.models.providers.event_stream": "mindstream.models.providers.wire",
    "mindstream.models.providers.typed_calls": "mindstream.models.providers.tool_calls",
    "mindstream.models.providers.prices": "mindstream.models.providers.adapter",
    "mindstream.models.embedders.in_process": "mindstream.models.embedders.embedder",
    "mindstream.models.wrappers.fallback": "mindstream.models.wrappers.recovery",
    "mindstream.models.wrappers.cache": "mindstream.models.recording",
    "mindstream.models.bounded_schema": "mindstream.models.schema",
    "mindstream.models.engine_model": "mindstream.models.providers.provider",
    "mindstream.models.judge_answer": "mindstream.models.decide",
    "mindstream.models.calibration": "mindstream.models.decide",
    "mindstream.models.fake": "mindstream.models.rules",
    "mindstream.models.attribution": "mindstream.models.model",
    "mindstream.memory.fading": "mindstream.memory.forgetting_curve",
    "mindstream.conformance.promise": "mindstream_evals.conformance.samples",
    "mindstream.town.metrics.diffusion": "mindstream_town.metrics",
    "mindstream.town.metrics.fact": "mindstream_town.metrics",
    "mindstream.town.world.address": "mindstream_town.world.tree",
    "mindstream.town.formats.whispers": "mindstream_town.formats.saves",
    "mindstream.town.saves.packed": "mindstream_town.saves.importing",
    "mindstream.town.residents.percept": "mindstream_town.residents.turn",
    "mindstream.town.ways": "mindstream_town.clockwork",
    "mindstream.town.slots": "mindstream_town.scheduler",
    "mindstream.town.evaluation.prompts": "mindstream_evals.town.evaluate",
    "mindstream.coach.contest.judge": "mindstream_evals.contest.contest",
    "mindstream.memory.evaluation.report": "mindstream_evals.memory.evaluate",
    "mindstream.planning.arguments": "mindstream.planning.plan",
    "mindstream.planning.as_tool": "mindstream.planning.planner",
    "mindstream.planning.formats.rewoo_text": "mindstream.planning.formats.rewoo",
    "mindstream.planning.permission": "mindstream.planning.executor",
    "mindstream.sharing.grading.draft_rubric": "mindstream.sharing.grading",
    "mindstream.tools.traits": "mindstream.tools.tool",
    "mindstream.intake": "mindstream.redaction",
    "mindstream.ledger": "mindstream.evaluation_cache",
    "mindstream.notebook": "mindstream.html_tables",
    "mindstream.tools.algebra": "mindstream.tools.calculator",
    "mindstream.tools.ask_model": "mindstream.tools.named",
    "mindstream.tools.by_need": "mindstream.tools.tool_search",
    "mindstream.tools.given_addresses": "mindstream.tools.call",
    "mindstream.tools.read_page": "mindstream.tools.web",
    "mindstream.tools.recall": "mindstream.tools.named",
    "mindstream.town.evaluation": "mindstream_evals.town",
    "mindstream.town": "mindstream_town",
    "mindstream.studio": "mindstream_studio",
    "mindstream.reasoners.conversation": "mindstream.memory.conversation",
    "mindstream.conformance": "mindstream_evals.conformance",
    "mindstream.coach.contest": "mindstream_evals.contest",
    "mindstream.planning.evaluation": "mindstream_evals.planning",
    "mindstream.memory.evaluation": "mindstream_evals.memory",
    "mindstream.models.cause": "mindstream.models.model",
    "mindstream.models.embedders.named": "mindstream.models.embedders.embedder",
    "mindstream.models.questions": "mindstream.models.decide",
    "mindstream.sharing.experiment": "mindstream_evals.sharing",
}


class MovedModules:  # no base class: `importlib.abc` takes a third of the import time
    """Import hook that finds modules under their old names and returns the module with the new name."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        """Return a spec for an old name; None for any other."""
        return importlib.machinery.ModuleSpec(fullname, self) if _new_name(fullname) else None  # type: ignore[arg-type]

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return the module with the new name.

        Raises:
            ModuleNotFoundError: the distribution that contains it is not installed.
        """
        new = _new_name(spec.name)
        assert new is not None
        try:
            module = importlib.import_module(new)
        except ModuleNotFoundError as error:
            if error.name != new.partition(".")[0]:
                raise
            wanted = new.partition(".")[0].replace("_", "-")
            raise ModuleNotFoundError(
                f"{spec.name} is now {new}, in another distribution: pip install {wanted}", name=spec.name
            ) from None
        warnings.warn(f"{spec.name} has moved: import {new}", DeprecationWarning, stacklevel=2)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's own spec, and do nothing else: the module was already executed when `create_module`
        imported the module by its new name."""
        module.__spec__ = self._spec


def _new_name(name: str) -> str | None:
    for old, new in MOVED.items():
        if name == old or name.startswith(f"{old}."):
            return new + name.removeprefix(old)
    return None


def renamed(module: str, **names: str) -> Callable[[str], Any]:
    """Return a `__getattr__` for a module that accepts earlier names (old=new), with a warning."""

    def get(name: str) -> Any:
        if name not in names:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        warnings.warn(f"{module}.{name} is called {names[name]} now", DeprecationWarning, stacklevel=2)
        return getattr(sys.modules[module], names[name])

    return get


def _rename(called: str, names: Mapping[str, str], given: dict[str, Any]) -> None:
    """Rename the arguments that a call passes under earlier names, and warn the caller of `called`."""
    for old in names.keys() & given.keys():
        warnings.warn(f"{called}({old}=) is called {names[old]}= now", DeprecationWarning, stacklevel=3)
        given[names[old]] = given.pop(old)


def renamed_arguments(**names: str) -> Callable[[type[T]], type[T]]:
    """Return a class decorator for earlier names (old=new) of arguments and attributes.

    An earlier name of an argument gives a warning; an earlier name of an attribute gives none.
    """

    def decorate(cls: type[T]) -> type[T]:
        made: Callable[..., None] = cls.__init__

        @wraps(made)
        def init(self: T, *values: Any, **given: Any) -> None:
            _rename(cls.__name__, names, given)
            try:
                made(self, *values, **given)
            except TypeError as error:
                from mindstream.guidance import explain_arguments

                explain_arguments(cls.__name__, made, given, error)

        setattr(cls, "__init__", init)  # noqa: B010 (a type checker does not accept a plain assignment)
        for old, new in names.items():
            setattr(cls, old, property(attrgetter(new)))
        return cls

    return decorate


def renamed_keywords(**names: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator of a function that accepts earlier names (old=new) of keyword arguments, with a warning."""

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        @wraps(function)
        def calling(*args: P.args, **given: P.kwargs) -> T:
            _rename(function.__qualname__, names, given)
            return function(*args, **given)

        return calling

    return decorate


sys.meta_path.insert(0, MovedModules())  # first, or Python would find old folders with bytecode as packages
