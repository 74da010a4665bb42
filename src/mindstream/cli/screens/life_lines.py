"""What happens in a life, a line for each event, in the language of its goal; commands and errors are English."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from mindstream.cli.shell.output import short
from mindstream.clock import Moment, format_spoken
from mindstream.life.events import (
    Answered,
    Asked,
    Beat,
    Commanded,
    Folded,
    LifeBegan,
    Noticed,
    PermissionAsked,
    PermissionGiven,
    Proposed,
    Questioned,
    Replied,
    Rested,
    TaskChanged,
    TurnBegan,
    TurnEnded,
)
from mindstream.life.ledger import Task
from mindstream.life.roles import CLOSED, OPENED
from mindstream.life.state import LifeSpent, LifeState
from mindstream.life.waking import known_orders
from mindstream.log.events import Event
from mindstream.text.words import count_of

ENGLISH = {
    "rules": "rules: no model is configured; see `mindstream doctor`",
    "goal": "goal: {}",
    "orders": "; orders: {}",
    "order": "standing order {}: {}",
    "next_order": "standing order {}, next {}: {}",
    "unknown_order": "standing order {} cannot be read: {}; give it anew with `mindstream live --every`",
    "turn": "turn {} · {} · {}",
    "failed": "turn {} failed: {}",
    "unanswered": "{} could not answer: {}",
    "you": "you: {}",
    "dreamt": "dreamt: ",
    "no_dream": "nothing was forgotten, and nothing dreamt",
    "nothing": "nothing",
    "folded": "turns {} to {} became a memory: {}",
    "waits": "task {} waits until {}: {}",
    "done": "task {} is done: {}",
    "dropped": "task {} was dropped: {}",
    "not_done": "task {} is not done: {} → {}",
    "task": "task {}: {}",
    "asks": "asks you: {}",
    "asks_quiet": "asks you (nobody is disturbed now): {}",
    "answered": "you answered: {}",
    "leave": "wants leave for {}({}), which may change something",
    "strangers": "; words of strangers stand in it",
    "allow": "  /allow or /refuse, or: mindstream life allow {}",
    "allowed": "you allowed the call {}",
    "refused": "you refused the call {}",
    "worth": "standing order {} came due: worth a turn",
    "not_worth": "standing order {} came due: not worth a turn",
    "noticed": "noticed: {}",
    "proposes": "proposes: {}{}",
    "looks_again": "{}; looks again {}",
    "pause": "paused",
    "resume": "goes on",
    "stop": "stopped",
    "why": ": {}",
    "halted": "{}; {}",
    "rests": "rests: {}",
    "room": "goes on: there is room in the budget again",
    "rests_until": "rests until {}",
    "rests_open": "rests until somebody acts",
    "nobody_stays": "; nobody lives it now, `mindstream live --wait-for-input` does",
    "nobody": "nobody lives it now; `mindstream live` goes on",
    "nobody_turn": "nobody lives it now; `mindstream live` goes on with turn {}",
    "in_turn": "in turn {}",
    "works": "works",
    "tasks": "tasks:",
    "line_waits": "{}. {} (waits until {})",
    "line_waits_open": "{}. {} (waits)",
    "line_done": "{}. {} (done)",
    "line_stopped": "{}. {} (given up)",
    "line_open": "{}. {}",
    "open_question": "asks you ({}): {}",
    "late_question": "asks you ({}) (not waited for any longer): {}",
    "open_leave": "wants leave ({}) for {}({})",
    "ended_done": "nothing is left to do; `mindstream life add` gives it a task, `life say` tells it something, "
    "`live --goal` gives another goal",
    "undone": "not done: task {} (`mindstream life open NUMBER` has it tried again); else {}",
    "ended_turns": "as many turns as were wished",
    "ended_time": "the time is over",
    "ended_halted": "it rests",
    "ended_left": "you left; nothing is lost",
    "way_budget": "`mindstream live` with a larger limit goes on",
    "way_resume": "`mindstream life resume` lets it go on",
    "way_again": "`mindstream live` tries again",
    "way_typed": "/resume lets it go on",
    "again": "this goes on with it: {}",
    "so_far": "{}, {} so far",
    "tokens": "{}, {} tokens{}",
    "left": "{} left",
    "typed": "what you type is said to it, or answers what it asks; /help says what else there is, Ctrl-C leaves",
    "waits_for_you": "turn {}: it waits for your answer",
    "thinks": "turn {}: {} thinks, {} s",
    "at_work": "turn {}: at work",
    "answer": "answer: ",
    "say": "say: ",
}
CHINESE = {
    "rules": "由规则来做：没有配置模型，见 `mindstream doctor`",
    "goal": "目标：{}",
    "orders": "；长期安排：{}",
    "order": "长期安排{}：{}",
    "next_order": "长期安排{}，下次{}：{}",
    "unknown_order": "长期安排{}读不懂：{}；请用 `mindstream live --every` 重新给出",
    "turn": "第{}轮 · {} · {}",
    "failed": "第{}轮没有成功：{}",
    "unanswered": "{}没能回答：{}",
    "you": "你：{}",
    "dreamt": "梦：",
    "no_dream": "没有遗忘什么，也没有做梦",
    "nothing": "没有内容",
    "folded": "第{}到{}轮成了一段记忆：{}",
    "waits": "任务{}等到{}：{}",
    "done": "任务{}完成：{}",
    "dropped": "任务{}取消：{}",
    "not_done": "任务{}没有完成：{} → {}",
    "task": "任务{}：{}",
    "asks": "问你：{}",
    "asks_quiet": "问你（此刻不打扰）：{}",
    "answered": "你回答：{}",
    "leave": "请求许可：{}({})，可能会改动东西",
    "strangers": "；其中有陌生人的话",
    "allow": "  /allow 允许，/refuse 拒绝；或者：mindstream life allow {}",
    "allowed": "你允许了调用 {}",
    "refused": "你拒绝了调用 {}",
    "worth": "长期安排{}到时间了：值得一轮",
    "not_worth": "长期安排{}到时间了：不值得一轮",
    "noticed": "得知：{}",
    "proposes": "提出：{}{}",
    "looks_again": "{}；{}再看",
    "pause": "暂停",
    "resume": "继续",
    "stop": "停止",
    "why": "：{}",
    "halted": "{}；{}",
    "rests": "休息：{}",
    "room": "继续：预算又有余地了",
    "rests_until": "休息到{}",
    "rests_open": "休息，等人来叫",
    "nobody_stays": "；现在没有进程在过它，`mindstream live --wait-for-input` 可以",
    "nobody": "现在没有进程在过它；`mindstream live` 可以继续",
    "nobody_turn": "现在没有进程在过它；`mindstream live` 从第{}轮继续",
    "in_turn": "正在第{}轮",
    "works": "在做事",
    "tasks": "任务：",
    "line_waits": "{}. {}（等到{}）",
    "line_waits_open": "{}. {}（等待）",
    "line_done": "{}. {}（完成）",
    "line_stopped": "{}. {}（取消）",
    "line_open": "{}. {}",
    "open_question": "问你（{}）：{}",
    "late_question": "问过你（{}，已不再等）：{}",
    "open_leave": "请求许可（{}）：{}({})",
    "ended_done": "没有要做的事了；`mindstream life add` 加任务，`life say` 对它说话，`live --goal` 换目标",
    "undone": "没有完成：任务{}（`mindstream life open 编号` 再试一次）；此外{}",
    "ended_turns": "要求的轮数到了",
    "ended_time": "时间到了",
    "ended_halted": "休息",
    "ended_left": "你离开了，什么都没有丢",
    "way_budget": "`mindstream live` 加大限额可以继续",
    "way_resume": "`mindstream life resume` 可以继续",
    "way_again": "`mindstream live` 会再试",
    "way_typed": "/resume 可以继续",
    "again": "继续请用：{}",
    "so_far": "到现在{}，{}",
    "tokens": "{}，{}个token{}",
    "left": "还有{}",
    "typed": "你输入的话会说给它听，或者回答它的问题；/help 有其他命令，Ctrl-C 离开",
    "waits_for_you": "第{}轮：等你回答",
    "thinks": "第{}轮：{} 在想，{} 秒",
    "at_work": "第{}轮：在做事",
    "answer": "回答：",
    "say": "说：",
}
STATES = {
    "task": "有任务",
    "order": "长期安排",
    "user": "你说了话",
    "news": "有消息",
    "goes on": "继续",
    "paused": "暂停",
    "stopped": "停止",
}
"""What woke it and what halts it, in Chinese; other words, an error's, stay as they are."""


COUNTED = {"turn": "轮", "step of rules": "步规则", "call of models": "次模型调用", "task": "项任务"}


def words(name: str, language: str, *filled: object) -> str:
    """Return what stands around a life, filled in."""
    return (CHINESE if language == "zh" else ENGLISH)[name].format(*filled)


def cause(because: str, language: str) -> str:
    """Return what woke it or halts it; what follows its first words stays: order 1, paused: lunch."""
    found = next((each for each in STATES if because.startswith(each)), "") if language == "zh" else ""
    return STATES[found] + because.removeprefix(found).replace(": ", "：", 1) if found else because


def count(n: int, noun: str, language: str) -> str:
    """Return a number with its noun: 2 turns, 2轮."""
    return f"{n:,}{COUNTED[noun]}" if language == "zh" else count_of(n, noun)


WORTH = 0.5


def describe_life(event: Event, language: str = "en") -> str:
    """Return a line about an event of a life; "" for all others. What a screen never shows is English."""
    match event:
        case LifeBegan():
            orders = words("orders", language, "; ".join(event.orders)) if event.orders else ""
            return words("goal", language, event.goal) + orders
        case TurnBegan():
            return f"turn {event.turn}, because of: {event.because}"
        case Asked():
            return f"{event.role} is asked ({event.id}), about {event.tokens:,} tokens"
        case Replied() if event.error:
            return words("unanswered", language, event.role, event.error)
        case Replied():
            calls = ", ".join(wish.tool for wish in event.calls)
            return f"{event.role}: {short(event.text, 400)}{f' → {calls}' if calls else ''}"
        case TurnEnded() if event.error:
            return words("failed", language, event.turn, event.error)
        case TurnEnded():
            return f"turn {event.turn} is over: {event.words}"
        case Folded():
            return words("folded", language, event.since, event.upto, short(event.text, 400))
        case _:
            return _describe_outside(event, language)


def _describe_outside(event: Event, language: str) -> str:
    """Return a line about what is between a life and the world."""
    match event:
        case TaskChanged():
            return describe_task(event, language)
        case Questioned():
            return words("asks" if event.shown else "asks_quiet", language, event.tip)
        case Answered():
            return words("answered", language, event.text)
        case PermissionAsked():
            strangers = words("strangers", language) if event.foreign else ""
            return words("leave", language, event.tool, event.arguments) + strangers
        case PermissionGiven():
            return words("allowed" if event.yes else "refused", language, event.id)
        case Beat():
            return words("worth" if event.worth >= WORTH else "not_worth", language, event.order)
        case Proposed() if event.tasks:
            why = words("why", language, event.because) if event.because else ""
            return words("proposes", language, "; ".join(event.tasks), why)
        case Proposed():
            until = format_spoken(event.until, language=language) if event.until else ""
            rests = words("rests", language, event.because or "-")
            return words("looks_again", language, rests, until) if until else rests
        case Noticed():
            return words("noticed", language, event.text)
        case Commanded():
            return words(event.order, language) + (words("why", language, event.because) if event.because else "")
        case Rested():
            return words("rests", language, event.because) if event.because else words("room", language)
    return ""


def describe_task(event: TaskChanged, language: str = "en") -> str:
    """Say what became of a task."""
    match event.standing:
        case "waiting":
            until = format_spoken(event.until, language=language) if event.until else ""
            return words("waits", language, event.task, until, event.text) if until else ""
        case "done":
            return words("done", language, event.task, event.text) + (
                f" → {short(event.result, 600)}" if event.result else ""
            )
        case "stopped" if event.result:
            return words("not_done", language, event.task, event.text, short(event.result, 600))
        case "stopped":
            return words("dropped", language, event.task, event.text)
    return words("task", language, event.task, event.text)


def thought(text: str) -> str:
    """Return what M0 thought, without the marks around it."""
    return text.removeprefix(OPENED).removesuffix(CLOSED)


def describe_standing(state: LifeState, now: Moment, wakes: Moment | None, is_lived: bool) -> str:
    """Say what a life does now.

    Args:
        wakes: when there is something to do by itself; None: not before somebody acts.
    """
    language = state.language
    halted = (
        words("halted", language, cause(state.halted, language), describe_way_on(state, is_lived))
        if state.halted
        else ""
    )
    if state.in_turn or state.unread or state.wishes or (wakes is not None and wakes <= now):
        if halted:
            return halted
        if is_lived:
            return words("in_turn", language, state.turn) if state.in_turn else words("works", language)
        return words("nobody_turn", language, state.turn) if state.in_turn else words("nobody", language)
    if wakes is not None:
        rests = describe_rest(wakes, language) + ("" if is_lived else words("nobody_stays", language))
    else:
        rests = describe_end(state)
    return words("halted", language, halted, rests) if halted else rests


def describe_end(state: LifeState) -> str:
    """Say that nothing is left to do, and what of its goal was given up."""
    orders = {order.what for _, order in known_orders(state.orders)}
    given_up = (each for each in state.ledger.ordered() if each.standing == "stopped" and each.result)
    undone = ", ".join(str(each.number) for each in given_up if each.text not in orders)
    ended = words("ended_done", state.language)
    return words("undone", state.language, undone, ended) if undone else ended


def describe_rest(wakes: Moment | None, language: str) -> str:
    """Say until when it rests."""
    if wakes is None:
        return words("rests_open", language)
    return words("rests_until", language, format_spoken(wakes, language=language))


def describe_way_on(state: LifeState, is_lived: bool) -> str:
    """Say what lets a life go on that was halted."""
    if state.halted.startswith("budget"):
        return words("way_budget", state.language)
    is_ordered = is_lived or state.halted.startswith(("paused", "stopped"))
    return words("way_resume" if is_ordered else "way_again", state.language)


def describe_spent(spent: LifeSpent, language: str = "en") -> str:
    """Say what it has spent, in a line."""
    if spent.calls and not spent.tokens:
        return count(spent.calls, "step of rules", language)
    money = f", ${spent.usd:.4f}" if spent.usd else ""
    return words("tokens", language, count(spent.calls, "call of models", language), f"{spent.tokens:,}", money)


def describe_so_far(state: LifeState) -> str:
    """Say how many turns it has lived, and what they took."""
    spent = describe_spent(state.spent, state.language)
    return words("so_far", state.language, count(state.turn, "turn", state.language), spent)


def list_tasks(tasks: Iterable[Task], now: Moment, language: str = "en") -> Iterator[str]:
    """Write tasks, a line each, with what came of them."""
    for task in tasks:
        name, until = f"line_{task.standing}", list[str]()
        if task.standing == "waiting":
            name = "line_open" if task.can_be_done(now) else "line_waits" if task.until else "line_waits_open"
            until = [format_spoken(task.until, language=language)] if task.until else []
        line = words(name, language, task.number, task.text, *until)
        yield line + (f" → {short(task.result, 200)}" if task.result else "")


def list_open(state: LifeState) -> Iterator[str]:
    """Write what waits for a person: questions, and calls that want leave."""
    for id_, question in (state.questions | state.late).items():
        if id_ not in state.answers:
            yield words("late_question" if id_ in state.late else "open_question", state.language, id_, question.tip)
    for id_, wish in state.wishes.items():
        strangers = words("strangers", state.language) if wish.foreign else ""
        yield words("open_leave", state.language, id_, wish.tool, short(wish.arguments, 400)) + strangers
