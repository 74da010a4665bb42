"""By what shall a domain's pairs be graded? The draft, for a person to review; and the rule's, which is modest."""

from __future__ import annotations

from typing import ClassVar

from mindstream.models.prompt import Prompt, rule
from mindstream.sharing.rubric import Criterion, Rubric


class DraftRubric(Prompt[Rubric]):
    """Draft criteria that sum to 100, one of them the use to the domain's other agents, and a threshold."""

    role: ClassVar[str] = "scorer"

    domain: str
    agents: tuple[str, ...] = ()
    samples: tuple[str, ...] = ()

    lets_go = (("samples", "first"),)


@rule(DraftRubric)
def general_rubric(ask: DraftRubric) -> Rubric:
    """Give what holds in any domain; nobody has thought about this one."""
    return Rubric(
        domain=" ".join(ask.domain.split())[:300] or "general",
        threshold=60,
        criteria=(
            Criterion(name="answers the question", points=30, asks="Does the answer do what the question asks for?"),
            Criterion(name="right", points=25, asks="Is it right, and does it keep to the form that is asked for?"),
            Criterion(name="clear", points=20, asks="Can it be understood without anything else?"),
            Criterion(
                name="use to others", points=25, others=True,
                asks="Would an agent of the domain with another task learn from it how to answer?",
            ),
        ),
    )  # fmt: skip
