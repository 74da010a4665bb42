"""What a run came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mindstream.planning.events import NOTHING_SPENT, Spent
from mindstream.planning.evidence import Evidence
from mindstream.planning.plan import Change, Plan, table_rows
from mindstream.planning.prompts import QUOTED


@dataclass(frozen=True, slots=True)
class Solution:
    """What a run came to.

    Attributes:
        answer: to the task, or to the part of it that could be answered; "" where there is none.
        stopped: why the run ended without an answer, or before all was done; "" where it did not.
        unanswered: what is missing from the answer, in the solver's words; "" where nothing is.
        missing: the steps that gave nothing.
        changes: what each replanning changed.
    """

    task: str
    how: str
    answer: str
    plan: Plan
    evidence: Mapping[str, Evidence] = field(default_factory=dict)
    stopped: str = ""
    changes: tuple[tuple[Change, ...], ...] = ()
    spent: Spent = NOTHING_SPENT
    run: str = ""
    unanswered: str = ""

    @property
    def is_quotation(self) -> bool:
        """Whether the answer is none, but what was found, quoted: no model was there."""
        return self.answer.startswith(QUOTED)

    @property
    def foreign(self) -> bool:
        """Whether the answer was drawn from what strangers wrote: whoever keeps it marks it as tainted."""
        return any(each.foreign for each in self.evidence.values())

    @property
    def own(self) -> tuple[str, ...]:
        """The steps of which a tool found nothing, and the model said what it knows itself."""
        return tuple(id for id, each in self.evidence.items() if each.own)

    def _repr_html_(self) -> str:
        from mindstream.notebook import Failure, table

        rows = []
        for step, tool, called, needs, _ in table_rows(self.plan):
            found = self.evidence.get(step)
            text = found.text if found else "not run"
            rows.append((step, tool, called, needs, Failure(text) if found and found.failed else text))
        said = self.answer or f"no answer: {self.stopped}"
        return table(self.task, ("", "tool", "with", "after", "found"), rows, self.how, said)

    @property
    def missing(self) -> tuple[str, ...]:
        return tuple(id for id, each in self.evidence.items() if each.failed)
