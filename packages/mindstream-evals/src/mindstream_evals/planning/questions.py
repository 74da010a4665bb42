"""Questions with answers, read from files in the forms in which their makers publish them.

Compared is the last line of an answer: before it somebody may have thought aloud.
"""

from __future__ import annotations

import json
import re
import string
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeAlias

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, StrictBool, StrictStr, ValidationError

from mindstream import chance
from mindstream.encodings import decode_clear
from mindstream.errors import InputError
from mindstream.models.prompt import complaints
from mindstream.paths import read_bytes
from mindstream.text.csv_rows import read_csv

Kind: TypeAlias = Literal["words", "trivia", "number", "yes_no"]
"""How answers are compared: as HotpotQA's scorer does, as TriviaQA's, by the number, by yes or no."""

YES, NO = frozenset({"yes", "true"}), frozenset({"no", "false"})
ARTICLES = frozenset({"a", "an", "the"})
TYPED = "‘’´`"
"""What TriviaQA's scorer takes for punctuation, too."""
NUMBER = re.compile(r"-?(?:\d[\d,]*(?:\.\d+)?|\.\d+)")


@dataclass(frozen=True, slots=True)
class Score:
    """How right an answer is.

    Attributes:
        exact: it is one of the expected ones. contained: it holds one of them.
        f1: the harmonic mean of the words that it shares, over its own and over the expected ones.
    """

    exact: bool = False
    contained: bool = False
    f1: float = 0.0


def score(kind: Kind, expected: Sequence[str], answer: str) -> Score:
    """Compare an answer with those that are expected; the best of them counts."""
    line = last_line(answer)
    found = [_compared(kind, line, wanted) for wanted in expected]
    return Score(*(max(getattr(each, name) for each in found) for name in ("exact", "contained", "f1")))


def last_line(answer: str) -> str:
    """Return the last line of an answer that says something."""
    return next((line.strip() for line in reversed(answer.splitlines()) if line.strip()), "")


def _compared(kind: Kind, line: str, wanted: str) -> Score:
    if kind == "number":
        numbers, value = find_numbers(line), find_numbers(wanted)[-1]
        exact = numbers[-1:] == [value]
        return Score(exact, value in numbers, float(exact))
    said, expected = (words_of(text, spaced=kind == "trivia") for text in (line, wanted))
    if kind == "yes_no" or (set(expected) <= YES | NO and len(expected) == 1):
        positive = expected[0] in YES
        decided = next((word for word in said if word in YES | NO), "")
        contained = bool(decided) and (decided in YES) == positive
        exact = contained and len(said) == 1
        return Score(exact, contained, float(exact))
    if not expected:  # an alias of signs alone: nothing is an answer to it
        return Score()
    return Score(said == expected, _holds(said, expected), _f1(said, expected))


def words_of(text: str, *, spaced: bool = False) -> list[str]:
    """Return a text's words in lower case without articles and punctuation; `spaced`: a sign parts words."""
    signs = string.punctuation + TYPED if spaced else string.punctuation
    bare = text.lower().translate(dict.fromkeys(map(ord, signs), " " if spaced else None))
    return [word for word in bare.split() if word not in ARTICLES]


def find_numbers(text: str) -> list[Decimal]:
    """Return the numbers of a text; commas part thousands."""
    return [Decimal(each.replace(",", "")) for each in NUMBER.findall(text)]


def is_number(text: str) -> bool:
    """Tell whether a text is a number and nothing else."""
    try:
        return Decimal(text.strip().replace(",", "")).is_finite()
    except InvalidOperation:
        return False


def _holds(said: Sequence[str], expected: Sequence[str]) -> bool:
    size = len(expected)
    return any(said[at : at + size] == expected for at in range(len(said) - size + 1))


def _f1(said: Sequence[str], expected: Sequence[str]) -> float:
    shared = (Counter(said) & Counter(expected)).total()
    return 2 * shared / (len(said) + len(expected)) if shared else 0.0


LARGEST = 1 << 30
GSM8K = "####"
"""Stands before the number in GSM8K's answers."""


@dataclass(frozen=True)
class Question:
    """A question with its answers.

    Attributes:
        text: as it is put. answers: each is right. kind: how they are compared.
        context: documents that come with it: title, and lines.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    kind: Kind = "words"
    context: tuple[tuple[str, tuple[str, ...]], ...] = ()


class _Row(BaseModel):
    """A question as a set has it."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)
    wanted: ClassVar[str]

    def to_question(self) -> Question:
        """Return it as a question; one without an id is called by its row."""
        raise NotImplementedError


class _Hotpot(_Row):
    wanted = "a JSON list of {_id, question, answer, context: [[title, [sentence, …]], …]}"

    id: StrictStr = Field(alias="_id")
    question: StrictStr
    answer: StrictStr
    context: list[tuple[str, list[str]]]

    def to_question(self) -> Question:
        documents = tuple((title, tuple(map(str.strip, lines))) for title, lines in self.context)
        return Question(self.id, self.question, (self.answer,), context=documents)


class _Gsm8k(_Row):
    wanted = "JSON Lines of {question, answer}, where the answer ends with #### and a number"

    question: StrictStr
    answer: StrictStr = Field(pattern=rf"{GSM8K}\s*-?[\d.,]+\s*$")

    def to_question(self) -> Question:
        return Question("", self.question, (self.answer.rpartition(GSM8K)[2].strip(),), "number")


class _Strategy(_Row):
    wanted = "a JSON list of {qid, question, answer: true or false}"

    qid: StrictStr
    question: StrictStr
    answer: StrictBool

    def to_question(self) -> Question:
        return Question(self.qid, f"{self.question} Answer yes or no.", ("yes" if self.answer else "no",), "yes_no")


class _TriviaAnswer(BaseModel):
    value: StrictStr = Field(alias="Value")
    aliases: list[str] = Field([], alias="Aliases")
    normalised: list[str] = Field([], alias="NormalizedAliases")


class _Trivia(_Row):
    wanted = "a JSON object {Data: [{QuestionId, Question, Answer: {Value, Aliases, NormalizedAliases}}, …]}"

    id: StrictStr = Field(alias="QuestionId")
    question: StrictStr = Field(alias="Question")
    answer: _TriviaAnswer = Field(alias="Answer")

    def to_question(self) -> Question:
        known = dict.fromkeys((self.answer.value, *self.answer.aliases, *self.answer.normalised))
        return Question(self.id, self.question, tuple(known), "trivia")


class _Plain(_Row):
    wanted = "CSV with the columns question and answer (or input and target), or JSON Lines of these"

    id: StrictStr | int | None = None
    question: StrictStr = Field(min_length=1, validation_alias=AliasChoices("question", "input"))
    answer: StrictBool | int | float | StrictStr | list[str] = Field(validation_alias=AliasChoices("answer", "target"))

    def to_question(self) -> Question:
        if isinstance(self.answer, bool):
            answers = ["yes" if self.answer else "no"]
        else:
            answers = self.answer if isinstance(self.answer, list) else [str(self.answer)]
        if all(each.strip().casefold() in YES | NO for each in answers):
            kind: Kind = "yes_no"
        else:
            kind = "number" if all(map(is_number, answers)) else "words"
        return Question("" if self.id is None else str(self.id), self.question, tuple(answers), kind)


FORMS: Mapping[str, type[_Row]] = {
    "hotpotqa": _Hotpot,
    "gsm8k": _Gsm8k,
    "strategyqa": _Strategy,
    "triviaqa": _Trivia,
    "plain": _Plain,
}


def read_questions(file: Path, form: str = "") -> tuple[list[Question], str]:
    """Read a set of questions; return it, and the form that it has. `form`: "" is told from the first row.

    Raises:
        InputError: it cannot be read, is in no such form, or a row has no answer; the message says what is wanted.
    """
    try:
        text = decode_clear(read_bytes(file, LARGEST))
    except InputError as error:
        raise InputError(f"{file} {error}") from None
    rows = _rows_of(text)
    named = form or next((name for name, kind in FORMS.items() if rows and _fits(kind, rows[0])), "")
    if not rows or not named:
        forms = "".join(f"\n  {name}: {kind.wanted}" for name, kind in FORMS.items())
        raise InputError(f"{file} holds no questions in a form that is known:{forms}")
    return _unique(_read(file, rows, FORMS[named], named)), named


def draw(questions: Sequence[Question], limit: int, seed: int) -> list[Question]:
    """Draw so many (0: all), in their order; of one seed a larger draw holds the smaller ones."""
    if not 0 < limit < len(questions):
        return list(questions)
    order = sorted(range(len(questions)), key=lambda at: chance.fraction(seed, "question", questions[at].id))
    return [questions[at] for at in sorted(order[:limit])]


def _rows_of(text: str) -> list[Any]:
    """Return the rows of a text: of a JSON list, of the list `Data` of an object, of JSON Lines, or of CSV."""
    if not text.lstrip().startswith(("[", "{")):
        return list(read_csv(text))
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        try:
            return [json.loads(line) for line in text.splitlines() if line.strip()]
        except (ValueError, RecursionError):
            return []
    if isinstance(found, dict):
        found = found.get("Data", [found])
    return found if isinstance(found, list) else []


def _fits(kind: type[_Row], row: object) -> bool:
    try:
        kind.model_validate(row)
    except ValidationError:
        return False
    return True


def _read(file: Path, rows: Sequence[Any], kind: type[_Row], name: str) -> list[Question]:
    found = []
    for number, row in enumerate(rows, 1):
        try:
            question = kind.model_validate(row).to_question()
        except ValidationError as error:
            why = f"is not in the form {name} ({kind.wanted}): {complaints(error)}"
            raise InputError(f"{file}, row {number} {why}") from None
        found.append(replace(question, id=question.id or str(number)))
    return found


def _unique(questions: Iterable[Question]) -> list[Question]:
    """Give each a name of its own."""
    found: dict[str, Question] = {}
    for each in questions:
        name, number = each.id, 1
        while name in found:
            number += 1
            name = f"{each.id}.{number}"
        found[name] = replace(each, id=name)
    return list(found.values())
