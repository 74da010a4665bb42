"""Prompts of a life, and the texts that they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from pydantic import BaseModel

from mindstream.clock import Moment
from mindstream.life.ledger import Task
from mindstream.models.decide import Question, YesNo
from mindstream.models.model import JsonSchema, ToolSpec
from mindstream.models.prompt import Prompt, rule


class CarryOut(Prompt[str]):
    """Break the task into questions, solve them one by one, and give the result.

    Attributes:
        exemplars: how similar tasks were done; only a model uses them.
        tools: the attached external tools. Only the rule-based default reads this field; a model gets the tools with
            its request.
    """

    role: ClassVar[str] = "M1"

    task: str
    context: str = ""
    exemplars: tuple[str, ...] = ()
    language: str = "en"
    tools: tuple[ToolSpec, ...] = ()


class FoldTurns(Prompt[str]):
    """Summarise turns: write down what must be known about them later."""

    role: ClassVar[str] = "M2"
    reply_tokens: ClassVar[int] = 600
    trim_order: ClassVar = (("turns", "last"),)

    goal: str
    turns: tuple[str, ...]
    language: str = "en"


class IsWorthTurn(YesNo, Question):
    """Is this standing order worth a turn now? `since`: the newest summary of the life's past turns."""

    order: str
    since: tuple[str, ...] = ()
    language: str = "en"


class Live(Prompt[str]):
    """Do the next thing: call tools, or end the turn with a short text that says what was done.

    Attributes:
        earlier: summaries of older turns; the messages of newer turns follow the prompt.
        tasks, now, because: the tasks of the ledger, the time, and the reason for the turn, all as of the beginning of
            the turn. Only the rule-based default reads these fields; a model finds the same in the turn's first
            message.
        news: the news shown in this turn; only the rule-based default reads this field.
        begins: the index of this turn's first message; only the rule-based default reads this field.
    """

    role: ClassVar[str] = "M2"

    goal: str
    orders: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    language: str = "en"
    tasks: tuple[Task, ...] = ()
    now: Moment = 0.0
    because: str = ""
    news: tuple[str, ...] = ()
    begins: int = 0


MOST = 3


class WorkFound(BaseModel, frozen=True):
    """The tasks that M2, the role that decides, proposes for the goal, or the reason why there are none.

    Attributes:
        because: the reason.
        until: if there are no tasks: when M2 wants to look for work again, in words; "": M2 names no time.
    """

    because: str
    tasks: list[str] = []
    until: str = ""


class ProposeWork(Prompt[WorkFound]):
    """Propose work that is worth doing for the goal.

    Attributes:
        earlier, memories: the newest summary of past turns, and the memories that a recall finds for the goal.
            Summaries and memories that are based on third-party content are left out.
        over: tasks that are done or given up, with their results.
        waiting: unfinished tasks.
        room: the rest of today's budget, as text; "": there is no daily limit.
    """

    role: ClassVar[str] = "M2"

    goal: str
    now: str
    orders: tuple[str, ...] = ()
    earlier: tuple[str, ...] = ()
    memories: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    waiting: tuple[str, ...] = ()
    room: str = ""
    language: str = "en"


@rule(ProposeWork)
def propose_nothing(ask: ProposeWork) -> WorkFound:
    """Answer without a model: propose no work."""
    return WorkFound(
        because="没有配置模型，看不出还有什么值得做。" if ask.language == "zh" else "no model looks for work"
    )


class ThinkDeeply(Prompt[str]):
    """Think about a question, and give the result."""

    role: ClassVar[str] = "M0"
    reply_tokens: ClassVar[int] = 2_000

    question: str
    context: str = ""
    language: str = "en"


@dataclass(frozen=True, slots=True)
class Words:
    """The description of a tool (`does`) and of each of its arguments, as models read them."""

    does: str
    arguments: Mapping[str, str]


ENGLISH = {
    "R": Words("recall related memories", {"query": "the sentence to look for in memory"}),
    "U": Words(
        "remember a piece of memory",
        {
            "memory": "a piece of memory to remember, about 300 words; returns ok",
            "replaces": "words of an earlier memory, as R gave it, that is not true any more: this one takes its "
            "place, or nothing where `memory` is empty",
        },
    ),
    "S": Words("tidy memory, stay efficient", {}),
    "M0": Words(
        "think deeply about one concrete question",
        {"question": "the question", "context": "all that has to be known for it"},
    ),
    "M1": Words("carry out a concrete task", {"task": "the task", "context": "all that has to be known for it"}),
    "find_tools": Words(
        "look for more tools that you can call; what is found can be called next",
        {"need": "what you need to get done, in a short sentence"},
    ),
    "I": Words(
        "ask the user for input",
        {
            "tip": "what the user is told",
            "timeout": "how many seconds to wait for the user; after that it returns: the user has not replied yet",
        },
    ),
    "add_task": Words(
        "put a task into the ledger",
        {"text": "what is to be done", "when": "at once where it is empty; else: in 2 hours, tomorrow at 9"},
    ),
    "finish_task": Words(
        "say that a task of the ledger is over",
        {
            "task": "its number",
            "result": "what came of it",
            "done": "false where it could not be done: say why in result",
        },
    ),
    "wait_task": Words(
        "let a task of the ledger wait", {"task": "its number", "until": "in 2 hours, tomorrow at 9, on Monday at 8"}
    ),
}
CHINESE = {
    "R": Words("回忆相关记忆", {"query": "需要在记忆中检索的句子"}),
    "U": Words(
        "记住一段记忆",
        {
            "memory": "一段需要记住的记忆，300词左右，会返回一个 ok",
            "replaces": "R 给出的、已经不对的一段旧记忆的原话，由这一段取代；memory 留空则只撤回旧的",
        },
    ),
    "S": Words("整理记忆、保持高效", {}),
    "M0": Words("针对具体问题进行深入思考", {"question": "具体问题", "context": "思考所需的全部信息"}),
    "M1": Words("执行具体明确的任务", {"task": "具体明确的任务", "context": "执行所需的全部信息"}),
    "find_tools": Words("查找更多可以调用的工具，找到的下一步即可调用", {"need": "需要完成什么，一句话"}),
    "I": Words(
        "请求用户输入",
        {
            "tip": "输入提示信息",
            "timeout": "愿意等待用户的时间（秒），超时后将返回 用户暂未回复，否则返回用户输入的信息",
        },
    ),
    "add_task": Words(
        "把一项任务记入清单", {"text": "要做什么", "when": "留空为立即；否则按此写法：in 2 hours、tomorrow 9:00"}
    ),
    "finish_task": Words(
        "把清单里的一项任务标为结束",
        {"task": "任务编号", "result": "结果", "done": "没能完成则为 false，并在 result 里说明原因"},
    ),
    "wait_task": Words(
        "让清单里的一项任务等待", {"task": "任务编号", "until": "按此写法：in 2 hours、tomorrow 9:00、monday 8:00"}
    ),
}
TYPES: dict[str, JsonSchema] = {
    "timeout": {"type": "integer", "minimum": 0},
    "task": {"type": "integer", "minimum": 1},
    "done": {"type": "boolean"},
}
OPTIONAL = {"context": "", "result": "", "when": "", "replaces": "", "done": True}
DREAM = {
    "en": "From these fragments of information, make a dream: one short paragraph, as it is told on waking, in the "
    "language of most fragments. I am the dreamer, and nobody of the fragments: who is named there keeps the name. "
    "Every person, thing, place and number in it stands in a fragment, and none is added; what happens among them is "
    "yours. The result is the dream itself: no heading, no interpretation, no word on what it rests on.",
    "zh": "根据这些信息碎片生成一个梦：一小段话，像醒来时讲的那样，用多数碎片的语言。"
    "做梦的是我，不是碎片里的人：碎片里有名字的人保留自己的名字。"
    "梦里的每个人、每样东西、每个地方、每个数字都出自碎片，一样也不添；它们之间发生什么由你来写。"
    "结果就是这个梦：不要标题，不要解释，不要说明依据什么。",
}
"""The task that the tool S (sleep) gives to M1, the role that does tasks, by language: write a dream."""
NOT_YET = {"en": "the user has not replied yet", "zh": "用户暂未回复"}
"""By language: the result of the tool I (ask the user) if the user does not answer before the tool's timeout."""


def spec_of(name: str, language: str) -> ToolSpec:
    """Return the specification of a built-in tool of a role, in a language."""
    words = (CHINESE if language == "zh" else ENGLISH)[name]
    properties: dict[str, JsonSchema] = {}
    for argument, description in words.arguments.items():
        kind = TYPES.get(argument) if (name, argument) != ("M1", "task") else None
        properties[argument] = {**(kind or {"type": "string"}), "description": description}
        if argument in OPTIONAL:
            properties[argument]["default"] = OPTIONAL[argument]
    required = [argument for argument in words.arguments if argument not in OPTIONAL]
    return ToolSpec(name, words.does, {"type": "object", "properties": properties, "required": required})
