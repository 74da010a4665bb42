"""Modules that moved to other distributions: their old names can be imported for one version, with a warning."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys
import warnings
from collections.abc import Sequence
from types import ModuleType

MOVED = {
    "mindstream.town.evaluation": "mindstream_evals.town",
    "mindstream.town": "mindstream_town",
    "mindstream.studio": "mindstream_studio",
    "mindstream.reasoners.conversation": "mindstream.memory.conversation",
    "mindstream.conformance": "mindstream_evals.conformance",
    "mindstream.coach.contest": "mindstream_evals.contest",
    "mindstream.planning.evaluation": "mindstream_evals.planning",
    "mindstream.memory.evaluation": "mindstream_evals.memory",
    "mindstream.sharing.experiment": "mindstream_evals.sharing",
}


class MovedModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds modules under their old names; the module that is returned is the one at the new place."""

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002
        target: ModuleType | None = None,  # noqa: ARG002
    ) -> importlib.machinery.ModuleSpec | None:
        """Return a spec for an old name; None for any other."""
        return importlib.machinery.ModuleSpec(fullname, self) if _new_name(fullname) else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        """Return the module at the new place.

        Raises:
            ModuleNotFoundError: its distribution is not installed.
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
                f"{spec.name} is {new} now, in another distribution: pip install {wanted}", name=spec.name
            ) from None
        warnings.warn(f"{spec.name} has moved: import {new}", DeprecationWarning, stacklevel=2)
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Do nothing: the module at the new place has been executed; its own spec is restored."""
        module.__spec__ = self._spec


def _new_name(name: str) -> str | None:
    for old, new in MOVED.items():
        if name == old or name.startswith(f"{old}."):
            return new + name.removeprefix(old)
    return None


sys.meta_path.insert(0, MovedModules())  # an old folder that still holds bytecode would be found as a package
