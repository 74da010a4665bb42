"""Questions with answers, in the forms in which data sets are published.

Only the last line of an answer is compared, because models may reason in the lines before it.
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
from mindstream.encodings import decode_clear, read_csv
from mindstream.errors import InputError, prefixed
from mindstream.models.prompt import complaints
from mindstream.paths import read_bytes

Kind: TypeAlias = Literal["words", "trivia", "number", "yes_no"]
"""How answers are compared: "words" by HotpotQA's scorer, "trivia" by TriviaQA's scorer, "number" as numbers, "yes_no"
as yes or no."""

YES, NO = frozenset({"yes", "true"}), frozenset({"no", "false"})
ARTICLES = frozenset({"a", "an", "the"})
TYPED = "‘’´`"
"""Additional punctuation of TriviaQA's scorer."""
NUMBER = re.compile(r"-?(?:\d[\d,]*(?:\.\d+)?|\.\d+)")


@dataclass(frozen=True, slots=True)
class Score:
    """The score of an answer.

    Attributes:
        exact: the answer equals an expected answer. contained: the answer contains an expected answer.
        f1: harmonic mean of precision and recall of the words.
    """

    exact: bool = False
    contained: bool = False
    f1: float = 0.0


def score(kind: Kind, expected: Sequence[str], answer: str) -> Score:
    """Compare an answer with each expected one; return the best value of each measure."""
    line = last_line(answer)
    found = [_compared(kind, line, wanted) for wanted in expected]
    return Score(*(max(getattr(each, name) for each in found) for name in ("exact", "contained", "f1")))


def last_line(answer: str) -> str:
    """Return the last non-empty line of an answer; "" if there is none."""
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
    if not expected:  # the expected answer has no words, such as "!"
        return Score()
    return Score(said == expected, _holds(said, expected), _f1(said, expected))


def words_of(text: str, *, spaced: bool = False) -> list[str]:
    """Return the words of a text in lower case without articles and punctuation; `spaced`: punctuation separates
    words."""
    signs = string.punctuation + TYPED if spaced else string.punctuation
    bare = text.lower().translate(dict.fromkeys(map(ord, signs), " " if spaced else None))
    return [word for word in bare.split() if word not in ARTICLES]


def find_numbers(text: str) -> list[Decimal]:
    """Return the numbers of a text; commas group thousands."""
    return [Decimal(each.replace(",", "")) for each in NUMBER.findall(text)]


def is_number(text: str) -> bool:
    """Return whether a text is a number and nothing else."""
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
"""Marker before the number in GSM8K's answers."""


@dataclass(frozen=True)
class Question:
    """A question with its answers.

    Attributes:
        answers: the accepted answers. kind: how they are compared.
        context: the question's documents, each a title and lines.
    """

    id: str
    text: str
    answers: tuple[str, ...]
    kind: Kind = "words"
    context: tuple[tuple[str, tuple[str, ...]], ...] = ()


class _Row(BaseModel):
    """A row of a data set."""

    model_config = ConfigDict(extra="ignore", populate_by_name=True)
    wanted: ClassVar[str]

    def to_question(self) -> Question:
        """Return the row as a question; `id` is "" if the row has none."""
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
    """Read a set of questions; return it with the name of its format. `form` "": detect it from the first row.

    Raises:
        InputError: the file cannot be read, has another format, or a row has no answer.
    """
    with prefixed(file):
        text = decode_clear(read_bytes(file, LARGEST))
    rows = _rows_of(text)
    named = form or next((name for name, kind in FORMS.items() if rows and _fits(kind, rows[0])), "")
    if not rows or not named:
        forms = "".join(f"\n  {name}: {kind.wanted}" for name, kind in FORMS.items())
        raise InputError(f"{file} has no questions in a known format:{forms}")
    return _unique(_read(file, rows, FORMS[named], named)), named


def draw(questions: Sequence[Question], limit: int, seed: int) -> list[Question]:
    """Draw `limit` questions (0: all), in the given order. With the same seed, a larger draw contains a smaller one."""
    if not 0 < limit < len(questions):
        return list(questions)
    order = sorted(range(len(questions)), key=lambda at: chance.fraction(seed, "question", questions[at].id))
    return [questions[at] for at in sorted(order[:limit])]


def _rows_of(text: str) -> list[Any]:
    """Return the rows of a text in one of these forms: a JSON list, a JSON object with a list `Data`, JSON Lines, or
    CSV. Return [] if the text begins like JSON but is not valid."""
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
    """Return the questions with unique ids: a repeated id gets a number, such as `q1.2`."""
    found: dict[str, Question] = {}
    for each in questions:
        name, number = each.id, 1
        while name in found:
            number += 1
            name = f"{each.id}.{number}"
        found[name] = replace(each, id=name)
    return list(found.values())
