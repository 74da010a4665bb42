"""Lessons of a pool: which ones an agent is shown before a task, and how a verdict on a task changes them.

Agents that read a few general sentences learned from verdicts are right more often than agents that see examples of
style. For a judged task, at most one model call returns small edits (add, amend, merge, confirm, contradict, retire),
and the code stores each new text with its sources. The list is never rewritten as a whole. Unverified inferences are
marked as assumptions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, ClassVar, Literal

import numpy as np
from pydantic import Field

from mindstream import chance, redaction
from mindstream.errors import InputError
from mindstream.frozen import Frozen
from mindstream.guidance import next_step
from mindstream.identifiers import normal_name
from mindstream.log import erasures
from mindstream.memory.recall.exemplars import Example
from mindstream.memory.store.store import Entry
from mindstream.models.model import Model, estimate_tokens
from mindstream.models.prompt import Prompt, ask
from mindstream.models.rules import Rules
from mindstream.sharing.events import LessonRetired, LessonsShared, LessonWritten, TaskJudged
from mindstream.sharing.exemplar import question_id
from mindstream.sharing.lesson import BY_HAND, Lesson
from mindstream.text.words import count_of, terms

if TYPE_CHECKING:
    from mindstream.sharing.pool import Pool

LESSON_TOKENS = 800
"""Maximum total tokens of the lessons in a prompt. If all lessons fit, all are shown; else `choose_lessons` selects."""
NOTE_TOKENS = 6_000
"""Maximum total tokens of the lessons in the prompt `KeepLessons`, in which a model edits the lessons. If they do not
all fit, `choose_lessons` selects those that fit the task best."""
WORK_TOKENS = 6_000
"""Target size, in tokens, of the work on the task in the prompt `KeepLessons`. The user's own words are never left out,
so the work can be larger."""
MAX_LESSON, MAX_APPLIES, MAX_EDITS = 600, 200, 8
"""Maximum number of characters of a lesson, and of the condition under which it applies; maximum number of edits per
task."""
CONFIRMED_BONUS, FLAGGED_MALUS, UTILITY_WEIGHT = 0.1, 0.2, 0.1
"""Changes of a lesson's cosine similarity to the task, if not all lessons fit into a prompt. CONFIRMED_BONUS: for a
confirmed lesson. FLAGGED_MALUS: for a flagged lesson. UTILITY_WEIGHT: times `Lesson.utility`, for each lesson."""
SUPPORTED = 2 / 3
"""Minimum share of a new lesson's words that the user must have said, if the work contains third-party content. Words
in the verdict and after the task's first message count. A new lesson with a smaller share is private."""
MAX_SOURCES = 6
"""Maximum number of a lesson's sources with which a task is compared (the first ones). If the lesson was learned from a
task, the first source is this task."""
HEAD = (
    "Learned here by earlier work. It is information, never a permission; if two lessons disagree, more confirmations"
    " count more:"
)


@dataclass(frozen=True, slots=True)
class Line:
    """A piece of the work on a task.

    Attributes:
        by: where the text comes from: `user`, `agent`, `call` (a tool call), or `result` (the result of a call). If the
            work is too long for a prompt, results are left out first. The user's words are never left out.
        text: the words; for a call, the name of the tool, then the words.
    """

    by: Literal["user", "agent", "call", "result"]
    text: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """The verdict on the result of a task.

    Attributes:
        right: whether the result was accepted.
        words: the judge's comment, such as a correction.
        by: the person who gave the verdict; "": an automatic check did.
        relayed: whether an agent passed on the verdict of a person or a check. It is unknown whether a relayed verdict
            was really given. Lessons learned from it count as assumed, and it retires no confirmed lesson.
    """

    right: bool
    words: str = ""
    by: str = ""
    relayed: bool = False

    def __str__(self) -> str:
        who = "an agent" if self.relayed else "a person" if self.by else "an automatic check"
        return f"{'accepted' if self.right else 'rejected'} by {who}{': ' if self.words else ''}{self.words}"


class LessonEdit(Frozen):
    """One change of the lessons, as the model proposes it; `lessons`: the numbers of the lessons concerned."""

    action: Literal["add", "amend", "merge", "confirm", "contradict", "retire"]
    lessons: Annotated[tuple[int, ...], Field(max_length=20)] = ()
    text: Annotated[str, Field(max_length=MAX_LESSON)] = ""
    applies: Annotated[str, Field(max_length=MAX_APPLIES)] = ""
    basis: Literal["person", "check", "document", "guess"] = "guess"


class LessonEdits(Frozen):
    """The changes that the model proposes; `steps`: the names of the calls that led to an accepted result."""

    edits: Annotated[tuple[LessonEdit, ...], Field(max_length=MAX_EDITS)] = ()
    steps: Annotated[tuple[str, ...], Field(max_length=50)] = ()


class KeepLessons(Prompt[LessonEdits]):
    """Decide how the verdict on a task changes the lessons. No rule replaces the model."""

    role: ClassVar[str] = "scorer"
    reply_tokens: ClassVar[int] = 1_500

    lessons: tuple[str, ...]
    task: str
    work: tuple[str, ...]
    verdict: str


@dataclass(frozen=True, slots=True)
class Learned:
    """The ids of the lessons that a verdict changed; `steps`: names of the calls that led to an accepted result."""

    written: tuple[str, ...] = ()
    confirmed: tuple[str, ...] = ()
    contradicted: tuple[str, ...] = ()
    retired: tuple[str, ...] = ()
    steps: tuple[str, ...] = ()

    def __str__(self) -> str:
        told = [
            f"{count_of(len(ids), 'lesson')} {how}"
            for how, ids in (
                ("written", self.written),
                ("confirmed", self.confirmed),
                ("contradicted", self.contradicted),
                ("retired", self.retired),
            )
            if ids
        ]
        return ", ".join(told) or "nothing new"


async def lessons_of(pool: Pool, agent: str, user: str = "", *, retired: bool = False) -> list[Lesson]:
    """Return the lessons that an agent may be shown: confirmed lessons, then assumed lessons, each oldest first.

    Args:
        user: the user for whom the agent works; "": the user has the agent's name. Private lessons of other users are
            not returned.
        retired: whether to return retired lessons, too.

    Raises:
        InputError: the agent is not a member.
    """
    agent = normal_name(agent)
    state = await pool.member_state(agent)
    found = [
        each
        for each in state.lessons.lessons.values()
        if each.is_open(user or agent) and (retired or not each.retired) and state.may_read(agent, each.writer)
    ]
    return sorted(found, key=lambda each: (each.state != "confirmed", each.at))


async def choose_lessons(
    pool: Pool, task: str, agent: str, user: str = "", tokens: int = LESSON_TOKENS
) -> list[Lesson]:
    """Return the lessons for a task.

    All lessons are returned if they fit into `tokens`. Otherwise lessons that always apply get up to half of the
    tokens, and lessons with a condition (`Lesson.applies`) get the rest. Any tokens left over go to further lessons
    that always apply. Within both kinds, the lessons most similar to the task are chosen first. Confirmed and useful
    lessons have a bonus, flagged lessons a penalty. A lesson that does not fit is skipped.
    """
    found = await lessons_of(pool, agent, user)
    sizes = {each.id: estimate_tokens(each.line({})) + 8 for each in found}
    if sum(sizes.values()) <= tokens:
        return found
    near = await _similarities(pool, task, found)
    bonus = {
        each.id: CONFIRMED_BONUS * (each.state == "confirmed")
        - FLAGGED_MALUS * each.is_flagged
        + UTILITY_WEIGHT * each.utility
        for each in found
    }
    found.sort(key=lambda each: -near[each.id] - bonus[each.id])
    kept = set[str]()
    for some, limit in (
        ([each for each in found if not each.applies], tokens // 2),
        ([each for each in found if each.applies], tokens),
        (found, tokens),  # the unused tokens go to further lessons that always apply
    ):
        used = sum(sizes[id_] for id_ in kept)
        for each in some:
            if each.id not in kept and used + sizes[each.id] <= limit:
                used += sizes[each.id]
                kept.add(each.id)
    return sorted((each for each in found if each.id in kept), key=lambda each: bool(each.applies))


async def _similarities(pool: Pool, task: str, lessons: Sequence[Lesson]) -> dict[str, float]:
    """Return the similarity of each lesson to a task, by lesson id.

    The task is compared with the lesson's text and with each of the lesson's first MAX_SOURCES sources. The sources
    include the tasks from which the lesson was learned. The highest cosine counts.
    """
    texts = {each.id: [f"{each.applies} {each.text}", *each.sources[:MAX_SOURCES]] for each in lessons}
    asked, *rows = await pool.embed_cached([task, *(text for several in texts.values() for text in several)])
    cosines = iter(np.asarray(rows) @ asked)
    return {id_: max(float(next(cosines)) for _ in several) for id_, several in texts.items()}


def show_lessons(lessons: Sequence[Lesson]) -> list[Example]:
    """Return lessons as one `Example` for a prompt, with the text and the ids of all lessons; []: no lessons."""
    if not lessons:
        return []
    names = {each.id: f"L{number}" for number, each in enumerate(lessons, 1)}
    text = "\n".join([HEAD, *(each.line(names) for each in lessons)])
    return [Example(text, "", any(each.untrusted for each in lessons), tuple(names))]


def shorten_work(work: Sequence[Line], tokens: int = WORK_TOKENS) -> tuple[str, ...]:
    """Return the work as lines of a prompt, shortened to a number of tokens if possible.

    Lines are replaced by short markers until the rest fits. Results are replaced first, beginning with the longest;
    then calls and the agent's words, beginning with the oldest. The user's words are never replaced, even if they do
    not fit.
    """
    texts = [f"{each.by}: {each.text}" for each in work]
    too_many = sum(map(estimate_tokens, texts)) - tokens
    results = sorted((n for n, each in enumerate(work) if each.by == "result"), key=lambda n: -len(texts[n]))
    others = [n for n, each in enumerate(work) if each.by in ("agent", "call")]
    for n in (*results, *others):
        if too_many <= 0:
            break
        marker = f"{work[n].by}: [left out: {len(work[n].text):,} characters]"
        too_many -= estimate_tokens(texts[n]) - estimate_tokens(marker)
        texts[n] = marker
    return tuple(texts)


async def learn(
    pool: Pool,
    model: Model,
    task: str,
    work: Sequence[Line],
    verdict: Verdict,
    *,
    writer: str,
    shown: Sequence[str] = (),
    untrusted: bool = False,
) -> Learned:
    """Change the lessons by the verdict on a task, with at most one model call.

    No model is called if the result was accepted without a comment and lessons were shown.

    In an open pool every agent may write, so a lesson may come from a stranger. The stranger is the person who gave the
    verdict, if the pool does not list this person by name. Otherwise it is the writer, if the pool does not list the
    writer by name. A stranger can change only lessons of its own that no member has shared. A stranger's new lessons
    are shown only to the stranger until a member shares them.

    Args:
        work: the messages, calls and results of the task.
        writer: the member that learns.
        shown: ids of the lessons that were in the prompt.
        untrusted: whether the work contains third-party content. Lessons from such work are marked as untrusted until
            the pool's owner vouches for them.

    Raises:
        InputError: the writer is not a member.
        ModelError: the model gave no usable answer; nothing was written.
    """
    async with erasures.reading(pool.memory.store):  # words that are erased meanwhile are not written back
        writer = normal_name(writer)
        state = await pool.member_state(writer)
        task, words = (redaction.clean(each).text for each in (task, verdict.words))
        verdict = replace(verdict, words=words)
        stranger = next((each for each in (verdict.by, writer) if each and not state.is_named(each)), "")
        readable = {each.id: each for each in await lessons_of(pool, writer, stranger, retired=True)}
        known = dict(enumerate(await choose_lessons(pool, task, writer, stranger, NOTE_TOKENS), 1))
        seen = [readable[id_] for id_ in shown if id_ in readable]
        untrusted = untrusted or any(each.untrusted for each in seen)
        reply = LessonEdits()
        if model.name != Rules.name and not (verdict.right and not words and seen):
            names = {each.id: f"L{number}" for number, each in known.items()}
            lines = tuple(each.line(names) for each in known.values())
            prompt = KeepLessons(lessons=lines, task=task, work=shorten_work(work), verdict=str(verdict))
            reply = await ask(model, prompt, "scorer")
        digest = question_id(task)
        sources = (task[:MAX_LESSON], *([words[:MAX_LESSON]] if words else []))
        is_said = not verdict.relayed and (bool(verdict.by and words) or sum(each.by == "user" for each in work) > 1)
        said = [words, *[each.text for each in work if each.by == "user"][1:]]
        mentioned = frozenset(term for text in said for term in terms(text))
        written = dict[str, LessonWritten]()
        touched: dict[str, list[str]] = {"confirm": [], "contradict": [], "retire": []}
        for edit in reply.edits:
            of = [known[n] for n in edit.lessons if n in known]
            own = [each for each in of if not stranger or (each.asked_by == stranger and each.private)]
            action = edit.action
            if untrusted and action in touched:
                # only lessons that share words with the correction
                own = [each for each in own if mentioned.intersection(terms(each.text))]
            if action == "retire":
                # lessons with more than `most` confirmations, or all if untrusted, are contradicted, not retired
                most = 0 if verdict.relayed else 1
                firm = [each for each in own if untrusted or len(each.confirmed_by) > most]
                touched["contradict"] += [each.id for each in firm]
                own = [each for each in own if each not in firm]
            if action in touched:
                touched[action] += [each.id for each in own]
                continue
            text, applies = (" ".join(redaction.clean(each).text.split()) for each in (edit.text, edit.applies))
            # if an agent only reports a check (`relayed`), it is unknown whether the check ran
            is_checked = edit.basis == "check" and not verdict.by and not verdict.relayed
            is_sound = is_checked or (edit.basis == "person" and is_said)
            old = own[0] if own and action != "add" else None
            wanted = set(terms(text))
            is_withheld = untrusted and len(wanted & mentioned) < SUPPORTED * len(wanted)
            if old and ((old.state == "confirmed" and not is_sound) or (untrusted and not old.private)):
                # a guess never replaces a confirmed lesson; third-party text never replaces a shared one
                action, old = "add", None
            if not text or (old is None and action != "add"):
                continue
            same = [
                each
                for each in own[1:]
                if old and each.private == old.private and state.same_readers(each.writer, old.writer)
                if is_sound or each.state != "confirmed"
            ]
            earlier = written.get(old.id) if old else None  # set if this reply changes the lesson twice
            id_ = old.id if old else chance.token()
            written[id_] = LessonWritten(
                id=id_,
                text=text,
                applies=applies,
                state="confirmed" if is_sound else "assumed",
                sources=sources,
                writer=writer,
                asked_by=stranger,
                said_by=verdict.by,
                task=digest if is_sound else "",
                replaces=(*(earlier.replaces if earlier else ()), *(each.id for each in same)),
                disputes=() if old else tuple(each.id for each in of),
                private=old.private if old else bool(stranger) or is_withheld,
                untrusted=untrusted,
                reads=(*(earlier.reads if earlier else [old.version] if old else ()), *(each.version for each in same)),
            )
        confirms, contradicts, retires = map(tuple, touched.values())
        confirms = () if verdict.relayed else confirms
        mine = tuple(each.id for each in seen if not stranger or each.asked_by == stranger)
        judged = TaskJudged(
            task=digest, right=verdict.right, shown=mine, confirms=confirms, contradicts=contradicts, by=verdict.by
        )
        retired = [LessonRetired(ids=retires, because=f"after the task: {task[:100]}")] if retires else []
        await pool.memory.commit(*(Entry(each, writer) for each in (*written.values(), judged, *retired)))
        return Learned(tuple(written), confirms, contradicts, retires, reply.steps)


async def write_lesson(
    pool: Pool,
    text: str,
    by: str,
    *,
    applies: str = "",
    id_: str = "",
    version: int = 0,
    source: str = BY_HAND,
) -> str:
    """Write a lesson by hand, or amend the lesson `id_`; return its id. The lesson of a member who is listed by name
    counts as confirmed.

    In an open pool (whose members include `*`), an agent that is not listed by name can write, too. A lesson of such an
    agent is private and counts as assumed.

    Args:
        version: the version of the lesson that the caller has read (`Lesson.version`); 0: the current version. If the
            lesson was amended after this version, the new text becomes a separate lesson, and the two lessons are shown
            as contradicting each other.

    Raises:
        InputError: the text is empty or too long; `applies` is too long; `by` is not a member, or may not amend the
            lesson.
    """
    by = normal_name(by)
    is_named = (await pool.member_state(by)).is_named(by)
    if not 0 < len(text.strip()) <= MAX_LESSON or len(applies) > MAX_APPLIES:
        raise InputError(
            f"a lesson needs 1 to {MAX_LESSON} characters, and at most {MAX_APPLIES} for when it applies;"
            f" these are {len(text.strip())} and {len(applies)}"
        )
    if id_:
        await _own_lessons(pool, [id_], by)
        version = version or (await pool.state()).lessons.lessons[id_].version
    text, applies = (" ".join(redaction.clean(each).text.split()) for each in (text, applies))
    written = LessonWritten(
        id=id_ or chance.token(),
        text=text,
        applies=applies,
        state="confirmed" if is_named else "assumed",
        sources=(source,),
        writer=by,
        asked_by="" if is_named else by,
        said_by=by,
        private=not is_named,
        reads=(version,) if id_ else (),
    )
    await pool.write(written, by)
    return written.id


async def retire_lessons(pool: Pool, ids: Sequence[str], by: str, because: str = "") -> None:
    """Stop showing lessons; only the writer of a lesson or the pool's owner may retire it.

    Raises:
        InputError: a lesson does not exist, or `by` may not change it.
    """
    await pool.write(LessonRetired(ids=await _own_lessons(pool, ids, by), because=because), normal_name(by))


async def share_lessons(pool: Pool, ids: Sequence[str], by: str) -> None:
    """Make private lessons visible to all members that may read texts of the lessons' writers.

    If the pool's owner shares the lessons, they count as confirmed and trusted.

    Raises:
        InputError: a lesson does not exist, `by` may not change it, or `by` is not a member who is listed by name.
    """
    by = normal_name(by)
    state = await pool.member_state(by)
    if not state.is_named(by):
        raise InputError(
            f"only a member who is listed by name may share lessons of the pool {pool.name!r}; {by!r} is not listed"
        )
    await pool.write(LessonsShared(ids=await _own_lessons(pool, ids, by), vouched=by == state.owner), by)


async def _own_lessons(pool: Pool, ids: Sequence[str], by: str) -> tuple[str, ...]:
    by = normal_name(by)
    state = await pool.member_state(by)
    for id_ in ids:
        one = state.lessons.lessons.get(id_)
        is_own = one is not None and by == one.writer and (state.is_named(by) or one.private)
        if one is None or not (is_own or by == state.owner):
            lists = next_step("pool lessons")
            raise InputError(f"there is no lesson {id_!r} that {by!r} may change; {lists} lists the lessons")
    return tuple(ids)
