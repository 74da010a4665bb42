"""`mindstream pool`: the lessons of a pool, and verdicts on the work of agents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from mindstream.cli.pool import ME, Name, lesson_lines
from mindstream.cli.shell.flags import AsJson, command, flag, group, next_command, switch, word
from mindstream.cli.shell.output import complain, say, tell
from mindstream.errors import InputError
from mindstream.models.rules import Rules
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
    "mindstream pool lessons shop --user ann",
    "mindstream pool lessons shop --retire 7fk2 --because 'it changed' --user ann",
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
        tell(json, each.model_dump(mode="json"), *lesson_lines(each))
    if not found and not json:
        say(
            f"no lessons yet; write one by hand:\n  {next_command(settings, f'mindstream pool lesson {name} WORDS')}\n"
            "or, after a run, let a model write it from your correction:\n"
            f"  {next_command(settings, f'mindstream pool verdict {name} --wrong WORDS --model NAME')}"
        )


@command(
    app,
    "data user",
    "mindstream pool lesson shop 'Amounts are in cents.' --when 'money is asked for' --user ann",
    user=ME,
)
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
    "mindstream pool verdict shop --right --user ann",
    "mindstream pool verdict shop pj9ke2 --wrong 'Revenue is without VAT here.' --user ann",
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
        has_model = call.runtime.models.of("scorer").name != Rules.name
        shown = {each.id: each for each in (await call("pools.lessons", pool=name)).lessons}
    changed = found.written or found.confirmed or found.contradicted or found.retired
    done = str(found.local) if changed else "the verdict is stored; no lesson was changed"
    tell(json, found.model_dump(mode="json"), f"{found.run}: {done}{'; kept as an exemplar' * bool(found.exemplar)}")
    if wrong and not (json or changed):
        why = "the model found none to write" if has_model else "no model answered (see --model)"
        by_hand = next_command(settings, f"mindstream pool lesson {name} WORDS")
        complain(f"{why}; write the lesson yourself: {by_hand}")
    if right and found.quoted and not json:
        complain(f"the run {found.run} had no model and only quoted what it found: there is no answer to learn from")
    for id_ in () if json else found.written:
        if id_ in shown:
            say("\n".join(lesson_lines(shown[id_])))
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
