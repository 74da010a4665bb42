"""Which conditions of objects mean something in a town: keys of its file, never read from their words."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Conditions(BaseModel):
    """Conditions by name, as they are written where an object comes into one; small and capital letters are the same.

    Attributes:
        danger: these wake who sleeps beside them, and come before everything.
        fine: nobody does anything about these. What is neither is not as it should be, and waits to be mended.
    """

    model_config = ConfigDict(frozen=True)

    danger: tuple[str, ...] = ()
    fine: tuple[str, ...] = ()

    def is_fine(self, condition: str) -> bool:
        """Tell whether the file says that nothing is to be done about this condition."""
        return condition.strip().casefold() in {each.strip().casefold() for each in self.fine}
