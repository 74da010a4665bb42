"""What is shown of an operation that goes on, as an event that is not kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mindstream.log.declared import NoWords, Quotes
from mindstream.log.events import Event

if TYPE_CHECKING:
    from mindstream.service.operations.lasting.running import Running


class OperationChanged(Event):
    """An operation began, is further, waits for a yes, or has ended: ask for it by its id."""

    kind = "operation"
    kept = False
    id: NoWords[str]
    operation: NoWords[str]
    state: NoWords[str]
    note: Quotes[str] = ""

    @classmethod
    def of(cls, one: Running) -> OperationChanged:
        """Return what there is to show of it."""
        shape = one.shape()
        note = shape.progress[-1].text if shape.progress else ""
        return cls(id=one.id, operation=one.operation, state=one.state, note=note)
