"""The operation that evaluates a town."""

from __future__ import annotations

from typing import Annotated

from mindstream_town.operations.towns import CONDITIONS, Condition, StatusRequest, bill_of, settings_of
from pydantic import Field, JsonValue

from mindstream.minds.calls import CallLog
from mindstream.service.operations.long_running import RunningOperation
from mindstream.service.operations.operation import Ask, NotBlank, Principal, Reply, operation
from mindstream.service.operations.runtime import Runtime


class PersonAnswer(Ask):
    """An answer that a person gives instead of a resident, to the question with this id."""

    resident: NotBlank
    question: NotBlank
    answer: str = Field(max_length=10_000)


class EvaluateRequest(StatusRequest):
    """The residents, conditions and size of an evaluation.

    `questions`: number per resident; 0: all. `pairs`: number of pairs of answers to judge, in total; 0: all.
    `shuffled`: as a control, also judge answers of other residents.
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
    """The results, as printed by `mindstream town evaluate --json`."""

    town: str
    judged_by: str
    findings: JsonValue


@operation("towns.evaluate", "write", "POST /towns/{town}/evaluate", long=True, cli="town evaluate")
async def evaluate(
    runtime: Runtime, principal: Principal, request: EvaluateRequest, one: RunningOperation
) -> Evaluation:
    """Ask residents with parts of their memory hidden, and have a model judge blind how believable the answers are."""
    from mindstream_evals.runs import town as service
    from mindstream_evals.town.evaluate import Design

    settings = service.with_judge(settings_of(runtime, principal, request.town), "")
    design = Design(
        tuple(request.residents),
        tuple(dict.fromkeys(request.conditions)),
        request.questions,
        request.pairs,
        request.shuffled,
        request.claims,
        request.seed,
    )
    person = service.answers_of([(each.resident, each.question, each.answer) for each in request.person])
    wish = service.Wish(design, request.at, read_person=person)

    def told(done: int, total: int, doing: str) -> None:
        if done % 20 == 0 or done == total:
            one.report(f"{doing}: {done} of {total}")

    calls = CallLog()
    models = None if runtime.models.only_rules else runtime.models_of(principal, calls.take)
    async with (
        calls.writing(bill_of(runtime, principal, request.town)),
        service.open_evaluation(settings, wish, told, models=models) as (evaluation, spent),
    ):
        service.require_use(evaluation, wish)
        found = await service.evaluate(evaluation, wish, spent)
    return Evaluation(town=request.town, judged_by=found.judged_by, findings=found.as_json())
