"""By what shall a domain's pairs be graded? The draft, for a person to review; and the rule's, which is modest."""

from __future__ import annotations

from typing import ClassVar

from mindstream.models.prompt import Prompt, rule
from mindstream.sharing.grading.rubric import Rubric, general_rubric


class DraftRubric(Prompt[Rubric]):
    """Draft criteria that sum to 100, one of them the use to the domain's other agents, and a threshold."""

    role: ClassVar[str] = "scorer"

    domain: str
    samples: tuple[str, ...] = ()

    trim_order = (("samples", "first"),)


@rule(DraftRubric)
def draft_general_rubric(ask: DraftRubric) -> Rubric:
    """Give what holds in any domain; nobody has thought about this one."""
    return general_rubric(ask.domain)
