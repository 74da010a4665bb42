"""Two villages for tests, in German and in Chinese, and a scripted model that answers for their people."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mindstream_town.formats.town_file import parse_town
from mindstream_town.prompts.conduct import AnswerInterview, IsDanger, SeeTo, ShouldAct, TakeFromTalk, Utter
from mindstream_town.prompts.plans import BreakDown, PlanDay
from mindstream_town.setting import Setting
from mindstream_town.source import setting_of

from mindstream.memory.lifecycle.importance import RateImportance
from mindstream.models.decide import Question
from mindstream.models.model import Part, Piece, Request
from mindstream.models.prompt import Prompt
from mindstream.models.rules import Rules

MAP = '''
start = 2024-06-03T00:00:00

[map]
rows = """
##########################
#aaaaa#bbbbb#cccccc#ddddd#
#aaaaa#bbbbb#cccccc#ddddd#
#aaaaa#bbbbb#cccccc#ddddd#
###.#####.#####.#####.####
#........................#
##########################
"""
things = """
..........................
.1.s...1........t.k...1...
..........................
..........................
..........................
..........................
..........................
"""
'''
GERMAN = f"""
[town]
name = "Tal"
{MAP}
[map.places]
a = "Mühle:Stube"
b = "Forsthaus:Kammer"
c = "Gasthof Linde:Gaststube"
d = "Altes Pfarrhaus:Zimmer"
[map.objects]
1 = "Bett"
s = "Herd"
t = "Stammtisch"
k = "Tresen"

[[residents]]
name = "Käthe Brandt"
age = 41
learned = "Käthe Brandt ist Müllerin."
home = "Mühle:Stube"
bed = "Mühle:Stube:Bett"
knows = ["Gasthof Linde:Gaststube:Stammtisch"]

[[residents]]
name = "Jörg Wald"
age = 50
learned = "Jörg Wald ist Förster."
home = "Forsthaus:Kammer"
bed = "Forsthaus:Kammer:Bett"
knows = ["Gasthof Linde:Gaststube:Stammtisch", "Altes Pfarrhaus:Zimmer"]
[[residents.seeds]]
text = "Im alten Pfarrhaus soll es am Abend Musik geben."
what = "Musik hören"
where = "Altes Pfarrhaus:Zimmer"
from = 2024-06-03T20:00:00
to = 2024-06-03T21:00:00

[[residents]]
name = "Ute Stein"
age = 77
learned = "Ute Stein lebt zurückgezogen."
home = "Altes Pfarrhaus:Zimmer"
bed = "Altes Pfarrhaus:Zimmer:Bett"
"""
CHINESE = f"""
[town]
name = "柳村"
{MAP}
[map.places]
a = "磨坊:卧室"
b = "林屋:小间"
c = "老茶馆:大堂"
d = "旧祠堂:厢房"
[map.objects]
1 = "床"
s = "炉灶"
t = "方桌"
k = "柜台"

[[residents]]
name = "王秀兰"
age = 41
learned = "王秀兰开磨坊。"
home = "磨坊:卧室"
bed = "磨坊:卧室:床"
knows = ["老茶馆:大堂:方桌"]

[[residents]]
name = "赵林"
age = 50
learned = "赵林看林子。"
home = "林屋:小间"
bed = "林屋:小间:床"
knows = ["老茶馆:大堂:方桌", "旧祠堂:厢房"]
[[residents.seeds]]
text = "听说今晚旧祠堂里有人唱戏。"
what = "听戏"
where = "旧祠堂:厢房"
from = 2024-06-03T20:00:00
to = 2024-06-03T21:00:00

[[residents]]
name = "石婆婆"
age = 77
learned = "石婆婆不爱见人。"
home = "旧祠堂:厢房"
bed = "旧祠堂:厢房:床"
"""


@dataclass(frozen=True)
class Village:
    """A village in one language: its file, names and objects for tests, and scripted speech.

    Attributes:
        host, guest: two people who meet at the inn in the morning. hermit: admits no one.
        agreed: the agreements for noon at the inn, and for six at the host's. fire, drip: conditions.
        says: texts of the scripted model: at home, at the inn, hello, the end, about, putting out, told.
    """

    file: str
    host: str
    guest: str
    hermit: str
    inn: str
    homes: tuple[str, str, str]
    stove: str
    lunch: str
    supper: str
    rumour: str
    fire: str
    drip: str
    says: dict[str, str] = field(default_factory=dict)

    def setting(self, **profile: Any) -> Setting:
        """Return the setting, ready to begin."""
        town = parse_town(self.file, Path())
        found, own = setting_of(town, seed=3), {"reflect_at": 10_000.0, "lives": "paper"}
        return setting_of(town, seed=3, profile=found.profile.model_copy(update=own | profile))


TAL = Village(
    GERMAN, "Käthe Brandt", "Jörg Wald", "Ute Stein", "Tal:Gasthof Linde:Gaststube",
    ("Tal:Mühle:Stube", "Tal:Forsthaus:Kammer", "Tal:Altes Pfarrhaus:Zimmer"), "Tal:Mühle:Stube:Herd",
    "Mittagessen am Stammtisch", "Abendbrot bei Käthe", "Musik hören", "steht in Flammen", "tropft",
    {
        "home": "zu Hause sein", "inn": "Kaffee trinken", "hello": "Grüß dich! Kommst du um zwölf zum Essen?",
        "end": "Gern, bis dann.", "about": "das Mittagessen", "put out": "das Feuer löschen",
    },
)  # fmt: skip
LIUCUN = Village(
    CHINESE, "王秀兰", "赵林", "石婆婆", "柳村:老茶馆:大堂", ("柳村:磨坊:卧室", "柳村:林屋:小间", "柳村:旧祠堂:厢房"),
    "柳村:磨坊:卧室:炉灶", "在方桌吃午饭", "在秀兰家吃晚饭", "听戏", "着火了", "有点漏水",
    {
        "home": "在家", "inn": "喝茶", "hello": "早啊！十二点一起吃饭好吗？", "end": "好，到时候见。",
        "about": "吃午饭的事", "put out": "灭火",
    },
)  # fmt: skip


class Mind:
    """Typed answers for a village's people in their language; requests are recorded.

    Args:
        garbled: numbers of the calls that get an unusable reply.
    """

    name = Rules.name  # asked by prompts of days without scenes or steps

    def __init__(self, village: Village, garbled: Collection[int] = ()) -> None:
        self.village, self.garbled = village, garbled
        self.asked: list[Prompt[Any]] = []

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        self.asked.append(request.prompt)
        if len(self.asked) in self.garbled:
            yield Piece("…" if isinstance(request.prompt, Question) else "{'nichts'")
            return
        answer = self._answer(request.prompt)
        yield Piece(answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False))

    def _answer(self, ask: Prompt[Any]) -> Any:
        town, says = self.village, self.village.says
        match ask:
            case RateImportance():
                return {"ratings": [5] * len(ask.memories)}
            case PlanDay():
                return self._day(ask)
            case BreakDown():
                return {"tasks": [{"minutes": ask.minutes, "what": ask.what, "place": 0}]}
            case IsDanger():
                return "yes" if ask.condition == town.fire else "no"
            case ShouldAct():
                return "yes" if ask.danger else "no"
            case SeeTo():
                return {"tasks": [{"minutes": 5, "what": says["put out"], "place": ask.at, "mends": True}]}
            case Utter():
                known = [n for n, each in enumerate(ask.memories, 1) if each.appointment]
                return {"text": says["end" if ask.lines else "hello"], "passes_on": known, "ends": bool(ask.lines)}
            case TakeFromTalk():
                return self._taken(ask)
            case AnswerInterview():
                return says["end"]
            case _:
                return "yes"

    def _day(self, ask: PlanDay) -> Any:
        """Plan the morning at the inn, and the rest at an unknown place number; the hermit stays at home."""
        at = {place.address: number for number, place in enumerate(ask.places, 1)}
        out = 0 if ask.who == self.village.hermit else at[self.village.inn]
        says = self.village.says
        items = [
            {"start": "06:30", "minutes": 120, "what": says["home"], "place": 0},
            {"start": "08:30", "minutes": 90, "what": says["inn"], "place": out},
            {"start": "10:00", "minutes": 690, "what": says["home"], "place": 9_000},
        ]
        return {"wake": "06:30", "bed": "22:00", "items": items}

    def _taken(self, ask: TakeFromTalk) -> Any:
        """Agree on noon at the inn, on six at the host's, and on a place that admits no one."""
        town = self.village
        both = {"day": "2024-06-03", "who": [town.host, town.guest]}
        inn, home = (
            next((n for n, each in enumerate(ask.places, 1) if all(part in each for part in place.split(":")[1:])), 0)
            for place in (town.inn, town.homes[0])
        )
        noon = {"text": town.lunch, "what": town.lunch, "place": inn, "start": "12:00", "end": "13:00"}
        six = {"text": town.supper, "what": town.supper, "place": home, "start": "18:00", "end": "19:00"}
        agreed = [noon | both, six | both]
        agreed += [
            {"text": town.rumour, "of": n} for n, told in enumerate(ask.told, 1)
            if told.appointment and told.appointment.what == town.rumour
        ]  # fmt: skip
        return {"about": town.says["about"], "memo": [], "agreed": agreed}
