"""Rules of a life without a language model: they quote, show due orders, and remember the user's words.

These rules only check the form of texts: whether a task comes from a standing order, which tools search or write, where
a passage begins, whether an utterance ends with a question mark. They do not understand tasks. So they finish a task as
done only if a person was shown the task and answered.
"""

from __future__ import annotations

import json
import re
from collections.abc import Generator, Sequence
from typing import TypeAlias

from mindstream.life.agent import AT_ONCE
from mindstream.life.ledger import Task
from mindstream.life.prompts import NOT_YET, CarryOut, FoldTurns, IsWorthTurn, Live
from mindstream.life.schedule import known_orders
from mindstream.life.state import ANSWERED, LEAVE, SAID
from mindstream.life.tools import HELD
from mindstream.models.model import Call, Message
from mindstream.models.prompt import rule

Script: TypeAlias = Generator[list[Call], list[str], str]
"""The script of a rule for one turn: a generator that yields calls, receives their results, and returns the final text.
At each step the script is run again from the beginning, with all results known so far."""

PATIENCE_S = 3_600
"""Timeout of a question to the user, in seconds. A later answer reaches M2 (the role that decides) as news, and is
remembered, too."""
PASSAGES, LONGEST, SHORTER, LONGEST_MEMORY = 4, 700, 300, 3_000
"""PASSAGES: maximum number of passages that are quoted. Maximum characters: LONGEST of a passage in a task's result,
SHORTER of a passage in an answer to the user, LONGEST_MEMORY of a memory."""
PASSAGE = re.compile(r"^(?P<place>[^\n]{1,200}?, (?:lines?|page) [\d-]+)(?: \([^\n]*\))?:\n", re.MULTILINE)
REMEMBERED = re.compile(r"^- (?P<place>\d{4}-\d\d-\d\d(?: \(dream\))?): (?P<words>.+)$", re.MULTILINE)
SAYS = {
    "en": {
        "lead": "No model was there to answer. These passages lie nearest to the words; nothing is concluded.",
        "nothing": "No model is there to answer, and nothing was found that could be quoted.",
        "only": "Not done: without a model it was only looked up. {}",
        "held": "The quotations are ready; leave was asked to write them into a file.",
        "due": "Due now: {}",
        "silent": "Not done: it was shown, and nobody answered.",
        "kept": "Kept: {}",
        "noted": "Noted.",
        "rest": "There is nothing to do.",
    },
    "zh": {
        "lead": "没有模型来回答。以下是字面上最接近的段落，没有据此下任何结论。",
        "nothing": "没有模型来回答，也没有找到可以引用的内容。",
        "only": "没有完成：没有模型，只做了查找。{}",
        "held": "引文已备好，正在征求写入文件的许可。",
        "due": "到时间了：{}",
        "silent": "没有完成：已经提示，没有人回答。",
        "kept": "记下了：{}",
        "noted": "记下了。",
        "rest": "没有要做的事。",
    },
}


@rule(Live)
def live_by_structure(ask: Live, turns: Sequence[Message]) -> str | list[Call]:
    """Rule for M2, which decides: work on a task, answer the user, and remember the user's words."""
    return _next(_turn(ask), turns[ask.begins :])


@rule(CarryOut)
def quote_what_is_found(ask: CarryOut, turns: Sequence[Message]) -> str | list[Call]:
    """Rule for M1, which carries out tasks: search, and quote the results.

    Searched are the memory, and the tools that need only a query. If `context` is set and there is a tool that writes
    files, the quotations are also written to the file with the name `context`.
    """
    return _next(_look_up(ask), turns)


@rule(FoldTurns)
def name_turns(ask: FoldTurns) -> str:
    """Rule for the summary of turns: return the second line of the first turn and the second line of the last turn. The
    user's words need no summary, because they are stored as memories.
    """
    first, last = (text.split("\n", 2)[1] for text in (ask.turns[0], ask.turns[-1]))
    return f"{first} … {last}"


@rule(IsWorthTurn)
def follow_orders(ask: IsWorthTurn) -> dict[str, float]:  # noqa: ARG001
    """Rule: every due standing order is worth a turn."""
    return {"yes": 0.9, "no": 0.1}


def _turn(ask: Live) -> Script:
    says, said = SAYS[ask.language], list[str]()
    leave = any(line.startswith(LEAVE) for line in ask.news)  # tasks that wait for approval can continue
    ready = (task for task in ask.tasks if task.can_be_done(ask.now) or (leave and task.standing == "waiting"))
    if task := next(ready, None):
        ordered = {order.what for _, order in known_orders(ask.orders)}
        said.append((yield from (_show if task.text in ordered else _quote)(ask, task)))
    told = [line.removeprefix(SAID).removeprefix(ANSWERED) for line in ask.news if line.startswith((SAID, ANSWERED))]
    for start in range(0, len(told), AT_ONCE):
        wishes = [_wish(line) for line in told[start : start + AT_ONCE]]
        results = yield wishes
        said += [text if wish.tool == "M1" else says["noted"] for wish, text in zip(wishes, results, strict=True)]
    return "\n".join(said) or says["rest"]


def _wish(line: str) -> Call:
    return _call("M1", task=line) if line.endswith(("?", "？")) else _call("U", memory=line[:LONGEST_MEMORY])


def _show(ask: Live, task: Task) -> Script:
    """Ask the user with the words of the standing order, store the answer as a memory, and let the memory sleep. If the
    user does not answer, finish the task as not done.
    """
    says = SAYS[ask.language]
    (answer,) = yield [_call("I", tip=says["due"].format(task.text), timeout=PATIENCE_S)]
    if answer in NOT_YET.values():
        yield [_call("finish_task", task=task.number, result=says["silent"], done=False)]
        return says["silent"]
    memory = f"{task.text}: {answer}"[:LONGEST_MEMORY]
    yield [_call("U", memory=memory), _call("finish_task", task=task.number, result=answer[:LONGEST]), _call("S")]
    return says["kept"].format(answer)


def _quote(ask: Live, task: Task) -> Script:
    says, name = SAYS[ask.language], "brief.md" if task.number == 1 else f"brief-{task.number}.md"
    (found,) = yield [_call("M1", task=task.text, context=name)]
    if HELD in found:
        yield [_call("wait_task", task=task.number, until="in 1 day")]
        return says["held"]
    said = says["only"].format(found)
    yield [_call("finish_task", task=task.number, result=said[:LONGEST], done=False)]
    return said


def _look_up(ask: CarryOut) -> Script:
    says, asked = SAYS[ask.language], ask.task.strip()
    searches = [each.name for each in ask.tools if each.parameters.get("required") == ["query"]]
    results = yield [_call(name, query=asked) for name in ("R", *searches[: AT_ONCE - 1])]
    remembered = [(each["place"], each["words"]) for each in REMEMBERED.finditer(results[0])]
    parts = [PASSAGE.split(text)[1:] for text in results[1:]]
    found = [pair for part in parts for pair in zip(part[::2], part[1::2], strict=True)][:PASSAGES]
    longest = LONGEST if ask.context else SHORTER
    passages = found if found and ask.context else [*remembered[: PASSAGES // 2], *found][:PASSAGES]
    if not passages:
        return says["nothing"]
    quoted = [f"> {' '.join(words.split())[:longest]}\n— {place}" for place, words in passages]
    text = "\n\n".join((says["lead"], *quoted))
    writer = next((each.name for each in ask.tools if each.parameters.get("required") == ["name", "text"]), "")
    if not (writer and ask.context):
        return text
    (written,) = yield [_call(writer, name=ask.context, text=f"# {asked}\n\n{text}\n")]
    return f"{written}\n{text}"


# A script's next step.


def _call(tool: str, **arguments: object) -> Call:
    return Call(tool, json.dumps(arguments, ensure_ascii=False))


def _next(script: Script, turns: Sequence[Message]) -> str | list[Call]:
    """Return the script's next calls, or its final text.

    If the turn contains other calls than the script's, the turn ends here, and the next turn runs the script from its
    beginning.
    """
    results = {
        each.call_id: each.text.strip().removeprefix("<result>").removesuffix("</result>").strip().replace("&lt;", "<")
        for each in turns
        if each.role == "tool"
    }
    try:
        wished = next(script)
        for made in (each.calls for each in turns if each.role == "assistant" and each.calls):
            if [each.tool for each in made] != [each.tool for each in wished]:
                return "…"
            wished = script.send([results.get(each.id, "") for each in made])
    except StopIteration as end:
        return str(end.value)
    return wished
