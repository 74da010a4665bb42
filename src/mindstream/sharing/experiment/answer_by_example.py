"""What does an agent answer, after exemplars? The k-shot prompt of the experiment; rules copy the nearest exemplar."""

from __future__ import annotations

from typing import ClassVar

from mindstream.models.prompt import Prompt, rule
from mindstream.sharing.experiment.agents import Exchange


class AnswerByExample(Prompt[str]):
    """Answer a question as an agent of a domain, after examples, the nearest last."""

    role: ClassVar[str] = "answerer"
    reply_tokens: ClassVar[int] = 500
    trim_order = (("examples", "last"),)

    about: str
    query: str
    examples: tuple[Exchange, ...] = ()


@rule(AnswerByExample)
def copy_nearest(ask: AnswerByExample) -> str:
    """Copy the answer of the nearest exemplar: what a retriever alone is worth. There may be none."""
    return ask.examples[-1].answer if ask.examples else "…"
