"""An answer in an interview without a model: the memory that answers best."""

from __future__ import annotations

from mindstream.models.prompt import rule
from mindstream.town.prompts.answer_interview import AnswerInterview


@rule(AnswerInterview)
def quote_memory(ask: AnswerInterview) -> str:
    """Quote what comes to mind first."""
    return ask.memories[0] if ask.memories else "I do not know."
