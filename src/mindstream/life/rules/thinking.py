"""The rule of M0: it reads what it was given, sentence by sentence, and quotes what answers the question."""

from __future__ import annotations

import re

from mindstream.life.rules.phrases import phrase
from mindstream.life.rules.quoting import find_quotes, read_passages
from mindstream.life.think_deeply import ThinkDeeply
from mindstream.models.prompt import rule

ABOUT = re.compile(r"^(?P<part>.+?) ?[(（](?:about: |关于：)(?P<subject>.+)[)）]$", re.DOTALL)


@rule(ThinkDeeply)
def think_by_rules(ask: ThinkDeeply) -> str:
    """Quote the sentences of the context that answer; say so where none does."""
    part, subject = split_about(ask.question)
    quotes = find_quotes(part, subject, read_passages(ask.context))
    return "\n".join(quote.written(ask.language) for quote in quotes) or phrase("nothing", ask.language)


def split_about(question: str) -> tuple[str, str]:
    """Return a part of a question and the subject that it names: "who decided (about: the closing of the mill)"."""
    found = ABOUT.match(question.strip())
    return (found["part"], found["subject"]) if found else (question.strip(), "")
