"""The rule of M2: what the user says is heard first; then, of the ledger, what is of this hour, then what is asked."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from mindstream.clock import format_iso
from mindstream.errors import InputError
from mindstream.life.guards import AT_ONCE
from mindstream.life.ledger import Task
from mindstream.life.live import Live
from mindstream.life.rules import carrying_out, fold_by_rules, thinking  # noqa: F401 (register the other rules)
from mindstream.life.rules.answering import answer_from_memory, period, review
from mindstream.life.rules.brief import is_missing
from mindstream.life.rules.phrases import phrase
from mindstream.life.rules.reading import is_command, is_question, read_task, turn_to_user
from mindstream.life.rules.researching import research
from mindstream.life.rules.script import Script, call, next_step
from mindstream.life.schedule import read_order
from mindstream.life.state import ANSWERED, SAID
from mindstream.life.words import NOT_YET
from mindstream.models.model import Call, Message
from mindstream.models.prompt import rule

PATIENCE_S = 3_600
"""So long an answer is waited for; one that comes later is news."""
LONGEST = 3_000
TOPICS = 4
"""A review looks up so many of the things that the standing orders ask about."""


@rule(Live)
def live_by_rules(ask: Live, turns: Sequence[Message]) -> str | list[Call]:
    """Take the next step of this turn."""
    return next_step(_turn(ask), turns[ask.begins :])


def _turn(ask: Live) -> Script:
    said = []
    works = ask.because != "user" or any(not line.startswith((SAID, ANSWERED)) for line in ask.news)
    if works and (task := _next_task(ask)):
        said.append((yield from _work(ask, task)))
    if ask.news:
        said.append((yield from _hear(ask)))
    return "\n".join(filter(None, said)) or phrase("rest", ask.language)


def _next_task(ask: Live) -> Task | None:
    """Return what is to be done first: what is of this hour before what takes as long as it takes."""
    to_do = [task for task in ask.tasks if task.can_be_done(ask.now)]
    if ask.because == "user":  # leave was given: what waits for it can go on
        to_do += [task for task in ask.tasks if task.standing == "waiting"]
    return next(iter(sorted(to_do, key=lambda task: read_task(task.text).kind in ("write", "find", "keep"))), None)


def _work(ask: Live, task: Task) -> Script:
    wanted = read_task(task.text)
    match wanted.kind:
        case "ask":
            return (yield from _ask_user(ask, task, wanted.about))
        case "remind":
            yield [call("I", tip=phrase("reminder", ask.language, turn_to_user(wanted.about)), timeout=0), _done(task)]
            return phrase("reminder", ask.language, wanted.about)
        case "sleep":
            (dream,) = yield [call("S")]
            said = phrase("dreamt", ask.language, dream) if dream else phrase("slept", ask.language)
            yield [_done(task, said)]
            return said
        case "recall":
            said = yield from _look_back(ask, wanted.about)
            yield [_done(task, said)]
            return said
        case "keep":
            said = phrase("kept", ask.language) if ask.orders else phrase("cannot", ask.language, wanted.about)
            yield [_done(task, said)]
            return said
        case _:
            return (yield from research(ask, task))


def _ask_user(ask: Live, task: Task, about: str) -> Script:
    tip = phrase("tell", ask.language, turn_to_user(about))
    (answer,) = yield [call("I", tip=tip, timeout=PATIENCE_S)]
    if answer in NOT_YET.values():
        yield [_done(task, phrase("silent", ask.language))]
        return phrase("silent", ask.language)
    memory = f"{format_iso(ask.now)[:10]}, {about}: {answer[:LONGEST]}"
    said = phrase("answered", ask.language, answer)
    yield [call("U", memory=memory), _done(task, said), *_sleep_tonight(ask)]
    return said


def _look_back(ask: Live, about: str) -> Script:
    """Recall what was told, and what the standing orders ask about, of the time that is meant."""
    if is_question(about):
        (recalled,) = yield [call("R", query=about)]
        if answer := answer_from_memory(about, recalled, ask.now, ask.language):
            return answer
        return review(about, [recalled], ask.now, ask.language)
    when = period(about, ask.now, ask.language)
    results = yield [call("R", query=f"{topic} {when}".strip()) for topic in (about, *_topics(ask))]
    return review(f"{about} {when}", results, ask.now, ask.language)


def _topics(ask: Live) -> Iterator[str]:
    for text in ask.orders[:TOPICS]:
        order = read_order(text)
        wanted = read_task(order.what) if order else None
        if wanted and wanted.kind == "ask":
            yield wanted.about


# What others said.


def _hear(ask: Live) -> Script:
    """Answer what the user asks, put into the ledger what they want done, remember what they tell."""
    said: list[str] = []
    for start in range(0, len(ask.news), AT_ONCE - 1):
        lines = [_without_lead(line) for line in ask.news[start : start + AT_ONCE - 1]]
        wishes = [_wish(line) for line in lines]
        remembers = any(wish.tool == "U" for wish in wishes)
        results = yield [*wishes, *(_sleep_tonight(ask) if remembers and not start else ())]
        answers = [_reply(ask, *each) for each in zip(lines, wishes, results, strict=False)]
        unknown = [at for at, answer in enumerate(answers) if not answer]
        if unknown:
            found = yield [call("M1", task=phrase("look", ask.language, lines[at])) for at in unknown]
            for at, text in zip(unknown, found, strict=True):
                answers[at] = phrase("unknown", ask.language) if is_missing(text) else text
        said += answers
    return "\n".join(said)


def _without_lead(line: str) -> str:
    return line.removeprefix(SAID)


def _wish(line: str) -> Call:
    """Return the call that a line of the user's wants."""
    if line.startswith(ANSWERED):  # whatever it says, it is told with what it answers
        return call("U", memory=line.removeprefix(ANSWERED)[:LONGEST])
    if is_question(line) or (is_command(line) and read_task(line).kind == "recall"):
        return call("R", query=line)
    return call("add_task", text=line) if is_command(line) and not _is_order(line) else call("U", memory=line[:LONGEST])


def _reply(ask: Live, line: str, wish: Call, result: str) -> str:
    """Return what is said to a line of the user's; "" where memory does not answer it."""
    if wish.tool == "R":
        found = answer_from_memory(line, result, ask.now, ask.language)
        is_review = not found and not is_question(line)
        return review(line, [result], ask.now, ask.language) if is_review else found
    if _is_order(line):
        return phrase("order", ask.language)
    return phrase("accepted" if wish.tool == "add_task" else "noted", ask.language)


def _is_order(line: str) -> bool:
    try:
        order = read_order(line)
    except InputError:
        return False
    return order is not None and is_command(order.what)


def _done(task: Task, result: str = "") -> Call:
    return call("finish_task", task=task.number, result=result[:LONGEST])


def _sleep_tonight(ask: Live) -> list[Call]:
    """Return the wish to sleep the coming night, where days follow one another and that is not planned yet."""
    planned = any(read_task(t.text).kind == "sleep" and t.standing in ("open", "waiting") for t in ask.tasks)
    if planned or not ask.orders:
        return []
    return [call("add_task", text=phrase("sleep_task", ask.language), when=phrase("sleep_at", ask.language))]
