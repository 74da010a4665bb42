"""A scripted model for scenes: typed replies, and a list of its requests."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any

from mindstream_town.formats.town_file import parse_town
from mindstream_town.profile import Profile
from mindstream_town.scenes.prompts import LetOn, PlanScenes, ReflectScenes, TalkScene, WhatCame
from mindstream_town.setting import Setting
from mindstream_town.source import setting_of
from villages import CHINESE

from mindstream.memory.lifecycle.importance import RateImportance
from mindstream.models.model import Part, Piece, Request
from mindstream.models.prompt import Prompt

HOST, GUEST, HERMIT = "王秀兰", "赵林", "石婆婆"
INN = "柳村:老茶馆:大堂"
INN_WORDS = "大堂 of 老茶馆"
LUNCH = "在茶馆吃午饭"
HOUR, DAY = 360, 8_640
Answer = Callable[[Any], Any]


def liucun(extra: Callable[[str], str] = lambda text: text, **profile: Any) -> Setting:
    """Return the Chinese village, ready to begin."""
    return setting_of(parse_town(extra(CHINESE), Path()), seed=3, profile=Profile.model_validate(profile))


class SceneMind:
    """Answer each kind of prompt with the test's function, if given, or with a minimal reply.

    Args:
        talk: what happens in a scene.
    """

    name = "a scene mind"

    def __init__(self, **answers: Answer) -> None:
        self.answers = answers
        self.asked: list[Prompt[Any]] = []
        self.rendered: list[str] = []

    def of(self, kind: type[Prompt[Any]]) -> list[Any]:
        """Return its requests of one kind."""
        return [each for each in self.asked if isinstance(each, kind)]

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        prompt = request.prompt
        self.asked.append(prompt)
        self.rendered.append("\n".join(each.text for each in request.messages))
        given = self.answers.get(prompt.label())
        answer = given(prompt) if given else self._plainly(prompt)
        yield Piece(answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False))

    def _plainly(self, ask: Prompt[Any]) -> Any:
        match ask:
            case RateImportance():
                return {"ratings": [5] * len(ask.memories)}
            case PlanScenes():
                return day()
            case TalkScene():
                return talk(ask)
            case WhatCame():
                return {"text": f"{ask.who}: {ask.question}"}
            case LetOn():
                return {}
            case ReflectScenes():
                return {
                    "insights": [{"text": f"{ask.who} had a day.", "because": [1, 2]}],
                    "currently": "A day is over.",
                }
            case _:
                return "no"


def day(out: str = INN_WORDS) -> dict[str, Any]:
    """Return a day with a morning, nine to ten at a place, and the rest at home."""
    items = [
        {"from": "07:00", "to": "08:00", "what": "起床吃早饭", "place": ""},
        {"from": "08:00", "to": "08:50", "what": "收拾屋子", "place": ""},
        {"from": "08:50", "to": "10:00", "what": "喝茶", "place": out, "weight": 2},
        *(
            {"from": f"{hour}:00", "to": f"{hour + 1}:00", "what": f"干活{hour}", "place": ""}
            for hour in range(10, 22)
        ),
    ]  # fmt: skip
    return {"items": items}


def talk(ask: TalkScene, **more: Any) -> dict[str, Any]:
    """Return a conversation of two lines."""
    one, two = (side.who for side in ask.sides)
    lines = [{"who": one, "says": f"早啊,{two}!"}, {"who": two, "says": "早!"}]
    remember = [{"who": name, "text": f"{one}和{two}在茶馆里说了话。", "weight": 3} for name in (one, two)]
    return {"talk": True, "lines": lines, "remember": remember} | more
