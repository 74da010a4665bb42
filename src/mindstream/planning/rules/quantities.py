"""The clauses of a word problem, with its numbers, fractions and prices in one form."""

from __future__ import annotations

import re

from mindstream.text.numerals import fractions_in_digits, in_digits

NUMBER = r"\d+(?:\.\d+)?(?:/\d+|%)?"
MONEY = {"$": "dollars", "€": "euros", "£": "pounds"}
LEADING = re.compile(
    r"(?:(?:At|On|In|After|During)\b[^,0-9]*(?:, | (?=\d+ [a-z]+ ))|(?:Then|Later|Next|Finally|Now),? )"
)
JOINT = re.compile(r",? and then |, then |, but |, and |, (?=\d)| and (?=[^,]*\d)")


def read_clauses(task: str) -> list[str]:
    """Return the clauses, the last is the question."""
    text = " ".join(task.replace("’", "'").split())
    text = re.sub(r"([$€£])(\d[\d,.]*\d|\d)", lambda found: f"{found[2]} {MONEY[found[1]]}", text)
    text = re.sub(r"(?<=\d),(?=\d{3})", "", fractions_in_digits(in_digits(text)))
    text = re.sub(r"\b(?:twice|double)(?= as )", "2 times", text)
    text = re.sub(r"\b[Aa]n? (?=[a-z]+ (?:for|at) \d)", "1 ", text)
    sentences = [
        each.strip(" .!?") for each in re.split(r"(?<=[A-Za-z0-9%])[.;!?](?:\s+|$)", text) if each.strip(" .!?")
    ]
    if len(sentences) < 2:
        return []
    clauses = [LEADING.sub("", clause).strip() for each in sentences[:-1] for clause in JOINT.split(each)]
    return [*clauses, LEADING.sub("", sentences[-1])]


def is_number(word: str) -> bool:
    """Tell whether a word is a number."""
    return re.fullmatch(NUMBER, word) is not None
