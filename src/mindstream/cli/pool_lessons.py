"""`mindstream pool`: the lessons of a pool, and verdicts on the work of agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from mindstream.cli.pool import ME, Name
from mindstream.cli.shell.flags import AsJson, command, flag, group, next_command, switch, word
from mindstream.cli.shell.output import complain, say, tell
from mindstream.errors import InputError
from mindstream.service.calling import calling
from mindstream.settings import Settings
from mindstream.text.words import count_of

if TYPE_CHECKING:
    from mindstream.service.operations.lessons import LessonShape

app = group()
Ids = list[str] | None


@command(
    app,
    "data user",
    "mindstream pool lessons shop",
    "mindstream pool lessons shop --retire 7fk2 --because 'it changed'",
)
async def lessons(
    settings: Settings,
    name: Name,
    retire: Annotated[Ids, flag("ID", "Stop showing this lesson; repeatable.", "--retire")] = None,
    share: Annotated[Ids, flag("ID", "Show this private lesson to other members; repeatable.", "--share")] = None,
    because: Annotated[str, flag("WORDS", "The reason for --retire.")] = "",
    all_: Annotated[bool, switch("--all", "Also list retired lessons.")] = False,
    json: AsJson = False,
) -> None:
    """List the lessons of a pool with their sources, or share or retire lessons.

    A lesson is one or two sentences from experience that agents read before a task. A `confirmed` lesson is supported
    by a verdict; an `assumed` one is a model's inference. An id may be shortened.
    """
    async with calling(settings, own=bool(retire or share)) as call:
        known = (await call("pools.lessons", pool=name, retired=True)).lessons
        if retire:
            await call("pools.retire_lessons", pool=name, ids=[_full(each, known) for each in retire], because=because)
        if share:
            await call("pools.share_lessons", pool=name, ids=[_full(each, known, hidden=True) for each in share])
        found = (await call("pools.lessons", pool=name, retired=all_)).lessons
    for each in found:
        tell(json, each.model_dump(mode="json"), *_lines(each))
    if not found and not json:
        teaching = next_command(settings, f"mindstream pool verdict {name} --wrong WORDS")
        say(f"no lessons yet: `{teaching}` after a run teaches the first")


@command(app, "data user", "mindstream pool lesson shop 'Amounts are in cents.' --when 'money is asked for'", user=ME)
async def lesson(
    settings: Settings,
    name: Name,
    words: Annotated[list[str], word("WORDS", "The lesson, in one or two sentences.")],
    when: Annotated[str, flag("WORDS", "The condition under which the lesson applies [always].")] = "",
    amend: Annotated[str, flag("ID", "The id of an existing lesson whose text is replaced.")] = "",
    json: AsJson = False,
) -> None:
    """Write a lesson by hand, or replace the text of a lesson.

    The lesson counts as confirmed if you are listed as a member by name; otherwise it is private and assumed.
    """
    async with calling(settings, own=True) as call:
        known = (await call("pools.lessons", pool=name)).lessons
        id_ = _full(amend, known) if amend else ""
        version = next((each.version for each in known if each.id == id_), 0)
        found = (
            await call("pools.write_lesson", pool=name, text=" ".join(words), applies=when, id=id_, version=version)
        ).lessons
    tell(json, {"pool": name, "lessons": len(found)}, f"{name} has {count_of(len(found), 'lesson')}")


@command(
    app,
    "model budget_calls budget_tokens budget_usd data user",
    "mindstream pool verdict shop --right",
    "mindstream pool verdict shop pj9ke2 --wrong 'Revenue is without VAT here.'",
    user=ME,
    model="The model that writes the lessons (role scorer).",
)
async def verdict(
    settings: Settings,
    name: Name,
    run: Annotated[str, word("RUN", "The name of a run of `mindstream solve` [the newest run].")] = "",
    right: Annotated[bool, switch("--right", "The result was right.")] = False,
    wrong: Annotated[str, flag("WORDS", "The result was wrong, and why: the correction in your words.")] = "",
    json: AsJson = False,
) -> None:
    """Record in a pool whether the result of a run of `mindstream solve` was right, or why it was wrong.

    A model turns the correction into lessons for later tasks, in one call; the work of a right run becomes an exemplar.
    """
    if right == bool(wrong):
        raise InputError("name the verdict: either --right, or --wrong WORDS")
    async with calling(settings, own=True) as call:
        found = await call("pools.verdict", pool=name, run=run, right=right, words=wrong)
        shown = {each.id: each for each in (await call("pools.lessons", pool=name)).lessons}
    tell(
        json,
        found.model_dump(mode="json"),
        f"{found.run}: {found.local}{'; kept as an exemplar' * bool(found.exemplar)}",
    )
    if wrong and not (json or found.written or found.confirmed or found.contradicted):
        complain(
            "no lesson was written: a model makes lessons of corrections (see --model), or write one yourself:"
            f" {next_command(settings, f'mindstream pool lesson {name} WORDS')}"
        )
    for id_ in () if json else found.written:
        if id_ in shown:
            say("\n".join(_lines(shown[id_])))
    for id_ in [] if json else [id_ for id_ in found.written if id_ in shown and shown[id_].private]:
        sharing = next_command(settings, f"mindstream pool lessons {name} --share {id_}")
        say(f"private until a named member shares it: {sharing}")


def _full(id_: str, known: Sequence[LessonShape], *, hidden: bool = False) -> str:
    """Return the whole id of a lesson that is given by its beginning.

    `hidden`: accept an unknown id, because it may be the whole id of another user's lesson, which is not listed.
    """
    found = [each.id for each in known if each.id == id_] or [each.id for each in known if each.id.startswith(id_)]
    if hidden and not found:
        return id_
    if len(found) != 1:
        raise InputError(
            f"expected the id of one lesson: {len(found)} ids begin with {id_!r}; `mindstream pool lessons` lists them"
        )
    return found[0]


def _lines(one: LessonShape) -> list[str]:
    marks = [one.state, *["private"] * one.private, *["learned from untrusted text"] * one.untrusted]
    counts = f"confirmed by {one.confirmed_by}, contradicted by {one.contradicted_by}"
    outcomes = f"right {one.right}, wrong {one.wrong}{'; flagged' * one.flagged}"
    return [
        f"{one.id[:8]}  {one.text}{f' When: {one.applies}.' if one.applies else ''}",
        f"          {', '.join(marks)}; {counts}; {outcomes}",
        *(f"          from: {' '.join(each.split())[:160]}" for each in one.sources),
        *([f"          contradicts: {', '.join(each[:8] for each in one.disputes)}"] if one.disputes else []),
        *([f"          retired: {one.retired}"] if one.retired else []),
    ]
