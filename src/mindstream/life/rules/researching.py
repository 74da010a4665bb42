"""A question over documents: split into parts in the ledger, each looked up by M1, remembered, and put into a brief."""

from __future__ import annotations

import re

from mindstream.life.ledger import LONGEST, Task
from mindstream.life.live import Live
from mindstream.life.outside import HELD
from mindstream.life.rules.brief import ASPECTS, is_missing, missing, write_brief
from mindstream.life.rules.parts import FILE, Question, read_question
from mindstream.life.rules.phrases import CHINESE, ENGLISH, phrase
from mindstream.life.rules.reading import READ, Wanted, is_question, read_task
from mindstream.life.rules.script import Script, call
from mindstream.life.rules.thinking import split_about

RESULT = 1_000
"""As much of what was found stays in the ledger, in characters."""
PARTS = tuple(
    re.compile(re.escape(words["part"]).replace(r"\{\}", r"(?P<of>\d+)", 1).replace(r"\{\}", "(?P<asked>.+)"))
    for words in (ENGLISH, CHINESE)
)


def research(ask: Live, task: Task) -> Script:
    """Take the next step of a task that asks something: split it, look up one part, or write down what was found."""
    if part := next((found for pattern in PARTS if (found := pattern.fullmatch(task.text))), None):
        return (yield from _find_out(ask, task, part["asked"]))
    goal = " ".join(ask.goal.split())
    text = goal if goal.startswith(task.text) and len(task.text) == min(LONGEST, len(goal)) else task.text
    wanted = read_task(text)
    question = read_question(wanted.about)
    parts = {part.number: found["asked"] for part in ask.tasks for pattern in PARTS
             if (found := pattern.fullmatch(part.text)) and int(found["of"]) == task.number}  # fmt: skip
    if not parts:
        return (yield from _split(ask, task, wanted, question))
    mine = [each for each in ask.tasks if each.number in parts]
    if left := next((each for each in mine if each.can_be_done(ask.now)), None):
        return (yield from _find_out(ask, left, parts[left.number]))
    findings = [
        (split_about(parts[each.number])[0], each.result) for each in sorted(mine, key=lambda each: each.number)
    ]
    if wanted.kind == "write":
        return (
            yield from _write(ask, task, text, write_brief(question.title, findings, ask.language), missing(findings))
        )
    said = "\n".join(phrase("found", ask.language, *each) for each in findings)
    yield [call("finish_task", task=task.number, result=said[:RESULT])]
    return said


def _split(ask: Live, task: Task, wanted: Wanted, question: Question) -> Script:
    """Put the parts of a question into the ledger; one that has none is looked up at once."""
    parts = question.parts
    if len(parts) == 1 and wanted.kind == "write":
        question = Question(parts[0], (*parts, *(phrase(name, ask.language) for name in ASPECTS)))
        parts = question.parts
    if len(parts) == 1:
        return (yield from _find_out(ask, task, _about(ask, parts[0], question.subject)))
    texts = [phrase("part", ask.language, task.number, _about(ask, part, question.subject_of(part))) for part in parts]
    added = yield [call("add_task", text=text) for text in texts]
    if not any(" was added" in each for each in added):
        yield [call("finish_task", task=task.number, result=added[0])]
        return added[0]
    return phrase("split", ask.language, "; ".join(parts))


def _about(ask: Live, part: str, subject: str) -> str:
    return phrase("about", ask.language, part, subject) if subject and subject != part else part


def _find_out(ask: Live, task: Task, asked: str) -> Script:
    """Have M1 look a question up, and remember what it found."""
    (found,) = yield [call("M1", task=phrase("look", ask.language, asked))]
    part = split_about(asked)[0]
    if is_missing(found):
        yield [call("finish_task", task=task.number, result=phrase("nothing", ask.language))]
        is_part = task.text != part and not task.text.endswith(part)
        name = "missing" if is_part or is_question(part) else "cannot"
        return phrase(name, ask.language, part)
    kept = _whole_lines(found)
    learned = phrase("learned", ask.language, asked, kept)
    yield [call("U", memory=learned), call("finish_task", task=task.number, result=kept)]
    return phrase("found", ask.language, part, kept)


def _write(ask: Live, task: Task, text: str, brief: str, lacking: list[str]) -> Script:
    """Have M1 write the brief into a file; where it cannot, the brief is what is said."""
    named = FILE.search(text[:READ])
    name = named["name"] if named else phrase("file", ask.language)
    (said,) = yield [call("M1", task=phrase("save", ask.language, name), context=brief)]
    if HELD in said:
        yield [call("wait_task", task=task.number, until=phrase("tomorrow", ask.language))]
        return phrase("held", ask.language)
    lacks = phrase("lacks", ask.language, "; ".join(lacking)) if lacking else phrase("complete", ask.language)
    wrote = phrase("wrote", ask.language, name, lacks) if name in said else f"{said} {lacks}"
    yield [call("finish_task", task=task.number, result=wrote[:RESULT])]
    return wrote if name in said else brief


def _whole_lines(text: str) -> str:
    """Return as many lines of a text as stay in the ledger, whole."""
    kept = text[:RESULT]
    return kept if len(text) <= RESULT or "\n" not in kept else kept.rpartition("\n")[0]
