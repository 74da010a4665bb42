"""Operations on the lessons of a pool: list them, give verdicts on work, write, share and retire lessons."""

from __future__ import annotations

from pydantic import Field

from mindstream.clock import Moment
from mindstream.minds.calls import CallLog
from mindstream.service.operations.long_running import RunningOperation
from mindstream.service.operations.operation import Principal, Reply, Short, operation
from mindstream.service.operations.pools import Done, PoolName, open_pool
from mindstream.service.operations.runtime import Runtime


class LessonsRequest(PoolName):
    """Which lessons of a pool to list; `retired`: include lessons that were retired and are no longer shown."""

    retired: bool = False


class VerdictRequest(PoolName):
    """The user's verdict on a run of the planner.

    `run`: the name of the run, "": the newest run that has ended. `right`: the result was right. `words`: what is
    wrong, or a remark.
    """

    run: Short = ""
    right: bool
    words: str = Field("", max_length=2_000)


class WriteLessonRequest(PoolName):
    """A lesson in one or two sentences.

    `applies`: when the lesson applies; "": always. `id`: the lesson to replace; "": write a new lesson. `version`: the
    version of the replaced lesson that the user has read; 0: the current version. If the lesson was amended after this
    version, both texts are kept side by side.
    """

    text: str = Field(min_length=1, max_length=600)
    applies: str = Field("", max_length=200)
    id: Short = ""
    version: int = Field(0, ge=0)


class LessonIdsRequest(PoolName):
    """Lessons by their ids; `because`: the reason, which is kept with retired lessons."""

    ids: list[str] = Field(min_length=1, max_length=100)
    because: str = Field("", max_length=1_000)


class LessonShape(Reply):
    """A lesson and its evidence.

    `state`: confirmed (by a verdict, by a member listed by name who wrote it, or by the owner), or only assumed.
    `sources`: the tasks, corrections and documents from which it was learned. `asked_by`: the user whose words it is
    based on; "" if this user owns the pool or is listed by name. `untrusted`: whether it was learned from third-party
    content, and the owner has not vouched for it.
    `vouched`: whether the owner or a member listed by name wrote the lesson by hand, or the owner vouched for it.
    `confirmed_by`, `contradicted_by`: number of tasks that confirmed and contradicted it; `confirmed_by` is one more if
    `vouched`. `right`, `wrong`: number of right and wrong answers that were given with this lesson. An amendment sets
    `wrong` and `contradicted_by` to 0. `useful`: when an answer with this lesson was last right. `disputes`: ids of the
    listed lessons that contradict it. `retired`: why it is no longer shown; "": it is shown. `by_hand`: the person who
    wrote the current text without naming a source; "": the text has another source, such as a task. `version`: changes
    with each amendment of the text.
    """

    id: str
    text: str
    applies: str
    state: str
    sources: list[str]
    writer: str
    asked_by: str
    private: bool
    untrusted: bool
    at: Moment
    confirmed_by: int
    vouched: bool = False
    contradicted_by: int
    right: int
    wrong: int
    useful: Moment | None
    flagged: bool
    disputes: list[str]
    retired: str
    by_hand: str = ""
    version: int


class LessonList(Reply):
    """Lessons, confirmed ones first."""

    lessons: list[LessonShape]


class VerdictResult(Reply):
    """The effect of a verdict on the lessons of a pool, as ids of lessons.

    `exemplar`: the id of the accepted work that is kept as an exemplar; "": no work is kept. `quoted`: whether the
    answer of the run is only a quotation, because the run had no model.
    """

    run: str
    task: str
    written: list[str]
    confirmed: list[str]
    contradicted: list[str]
    retired: list[str]
    exemplar: str
    quoted: bool = False


@operation("pools.lessons", "read", "GET /users/{user}/pools/{pool}/lessons", mcp="pool_lessons", cli="pool lessons")
async def lessons(runtime: Runtime, principal: Principal, request: LessonsRequest) -> LessonList:
    """List the lessons of a pool that the user may read, with their sources and what verdicts said about them."""
    from mindstream.sharing.lesson import VOUCHED
    from mindstream.sharing.lessons import lessons_of

    async with open_pool(runtime, principal, request.pool) as pool:
        found = await lessons_of(pool, principal.user, retired=request.retired)
    return LessonList(
        lessons=[
            LessonShape.from_object(
                each,
                confirmed_by=len(each.confirmed_by),
                vouched=VOUCHED in each.confirmed_by,
                contradicted_by=len(each.contradicted_by),
                flagged=each.is_flagged,
                disputes=sorted(each.disputes & {one.id for one in found}),
            )
            for each in found
        ]
    )


@operation(
    "pools.verdict",
    "write",
    "POST /users/{user}/pools/{pool}/verdict",
    long=True,
    mcp="pool_verdict",
    cli="pool verdict",
)
async def verdict(
    runtime: Runtime, principal: Principal, request: VerdictRequest, one: RunningOperation
) -> VerdictResult:
    """Tell a pool whether the result of a run was right: its lessons change, and right work may become an exemplar."""
    from mindstream.service.lessons import judge_run
    from mindstream.sharing.lessons import Verdict

    calls, memory = CallLog(), await runtime.memory(principal)
    model, given = (
        runtime.models_of(principal, calls.take).of("scorer"),
        Verdict(request.right, request.words, principal.user, relayed=principal.door == "mcp"),
    )
    async with open_pool(runtime, principal, request.pool) as pool, calls.writing(memory):
        one.report("keeping the lessons")
        judged = await judge_run(pool, model, memory, request.run, given, principal.user)
    return VerdictResult.from_object(
        judged.learned, run=judged.run, task=judged.task, exemplar=judged.exemplar, quoted=judged.is_quotation
    )


@operation("pools.write_lesson", "write", "POST /users/{user}/pools/{pool}/lessons", cli="pool lesson")
async def write(runtime: Runtime, principal: Principal, request: WriteLessonRequest) -> LessonList:
    """Write a lesson by hand, or replace one. The lesson counts as confirmed if the user is listed as a member by name;
    otherwise the lesson is private and only assumed."""
    from mindstream.sharing.lessons import write_lesson

    async with open_pool(runtime, principal, request.pool) as pool:
        await write_lesson(
            pool, request.text, principal.user, applies=request.applies, id_=request.id, version=request.version
        )
    return await lessons(runtime, principal, LessonsRequest(pool=request.pool))


@operation("pools.share_lessons", "write", "POST /users/{user}/pools/{pool}/lessons/share", cli="pool lessons")
async def share(runtime: Runtime, principal: Principal, request: LessonIdsRequest) -> Done:
    """Share private lessons with the members that may read the pairs of the lessons' writers. Lessons that the owner
    shares count as confirmed."""
    from mindstream.sharing.lessons import share_lessons

    async with open_pool(runtime, principal, request.pool) as pool:
        await share_lessons(pool, request.ids, principal.user)
    return Done()


@operation("pools.retire_lessons", "write", "POST /users/{user}/pools/{pool}/lessons/retire", cli="pool lessons")
async def retire(runtime: Runtime, principal: Principal, request: LessonIdsRequest) -> Done:
    """Retire lessons: they are no longer shown."""
    from mindstream.sharing.lessons import retire_lessons

    async with open_pool(runtime, principal, request.pool) as pool:
        await retire_lessons(pool, request.ids, principal.user, request.because)
    return Done()
