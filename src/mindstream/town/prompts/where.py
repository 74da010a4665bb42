"""A place as a reply names it: by its names as they stand, from the widest to the narrowest."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BeforeValidator, Field


def _names(given: Any) -> Any:
    """Take one name, or a number, for a list of one; nothing for none."""
    if given is None or given == "":
        return []
    return [str(given)] if isinstance(given, str | int) else [str(each) for each in given]


Where = Annotated[list[str], BeforeValidator(_names), Field(max_length=4)]
"""As in `["Oak Cafe", "cafe", "counter"]`; `[]` nowhere in particular. A number alone is that of a line of the list:
for small models that do not spell names."""


def path_of(names: object) -> str:
    """Write a place as prompts show it: `Oak Cafe > cafe > counter`."""
    return " > ".join(str(names).split(":")[1:])
