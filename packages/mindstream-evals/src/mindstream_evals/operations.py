"""The operation that evaluates a town."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from pydantic import Field, JsonValue

from mindstream.minds.calls import CallLog
from mindstream.service.operations.house import House
from mindstream.service.operations.lasting import Running
from mindstream.service.operations.shapes import Ask, Reply
from mindstream.service.operations.table import operation
from mindstream.service.operations.who import Who

if TYPE_CHECKING:
    pass
from mindstream_town.operations.towns import CONDITIONS, Condition, StatusRequest, bill_of, settings_of


class PersonAnswer(Ask):
    """What a person answered in a resident's place, to a question by its id."""

    resident: str = Field(min_length=1, max_length=100)
    question: str = Field(min_length=1, max_length=100)
    answer: str = Field(max_length=10_000)


class EvaluateRequest(StatusRequest):
    """How believable residents are: who is asked, in which conditions, how much of it is drawn.

    `questions`, `pairs`: so many to each, and of all; 0: all. `shuffled`: a control, answers of other residents.
    """

    residents: list[Annotated[str, Field(min_length=1, max_length=100)]] = Field([], max_length=1_000)
    conditions: list[Condition] = Field(list(CONDITIONS), min_length=1, max_length=len(CONDITIONS))
    questions: int = Field(5, ge=0, le=1_000)
    pairs: int = Field(40, ge=0, le=1_000_000)
    shuffled: bool = False
    claims: bool = True
    person: list[PersonAnswer] = Field([], max_length=10_000)
    seed: int = Field(0, ge=0, le=2**40)


class Evaluation(Reply):
    """What an evaluation found, as `mindstream town evaluate --json` prints it."""

    town: str
    judged_by: str
    findings: JsonValue


@operation("towns.evaluate", "write", "POST /towns/{town}/evaluate", long=True, cli="town evaluate")
async def evaluate(house: House, who: Who, ask: EvaluateRequest, one: Running) -> Evaluation:
    """Ask residents with parts of their memory hidden, and have a model judge blind whose answers are believable."""
    from mindstream_evals.runs import town as service
    from mindstream_evals.town.evaluate import Design

    settings = service.with_judge(settings_of(house, who, ask.town), "")
    design = Design(
        tuple(ask.residents),
        tuple(dict.fromkeys(ask.conditions)),
        ask.questions,
        ask.pairs,
        ask.shuffled,
        ask.claims,
        ask.seed,
    )
    person = service.answers_of([(each.resident, each.question, each.answer) for each in ask.person])
    wish = service.Wish(design, ask.at, read_person=person)

    def told(done: int, total: int, doing: str) -> None:
        if done % 20 == 0 or done == total:
            one.tell(f"{doing}: {done} of {total}")

    calls = CallLog()
    models = None if house.models.only_rules else house.models_of(who, calls.take)
    async with (
        calls.writing(bill_of(house, who, ask.town)),
        service.open_evaluation(settings, wish, told, models=models) as (evaluation, spent),
    ):
        service.require_use(evaluation, wish)
        found = await service.evaluate(evaluation, wish, spent)
    return Evaluation(town=ask.town, judged_by=found.judged_by, findings=found.as_json())
