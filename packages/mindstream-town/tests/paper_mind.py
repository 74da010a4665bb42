"""A scripted model for the prompts of `lives=paper`: typed replies for the people of a village, in their language."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mindstream_town.paper.prompts import (
    MeetPerson,
    PlanHours,
    PlanStrokes,
    PlanTasks,
    RenewIdentity,
    RewriteDay,
    SayNext,
    SumUpRelation,
)
from mindstream_town.prompts.conduct import TakeFromTalk
from mindstream_town.setting import Setting
from villages import LIUCUN, Mind, Village

from mindstream.models.prompt import Prompt
from mindstream.reasoners.reflect.reflect import Insights, SalientQuestions

RENEWED = "她如今常想着学唱戏。"


class PaperMind(Mind):
    """Answers step by step.

    Args:
        meets: the reaction to people. second: the answer of the person spoken to.
        out: the visitors of the inn in the morning. forgets: a rewritten day omits the agreements.
    """

    name = "a mind"

    def __init__(
        self, village: Village = LIUCUN, *, meets: str = "talk", second: str = "ends", out: Sequence[str] = (),
        garbled: Sequence[int] = (), forgets: bool = False,
    ) -> None:  # fmt: skip
        super().__init__(village, garbled)
        self.forgets = forgets
        self.meets, self.second = meets, second
        self.out = out or (village.host, village.guest)

    def of(self, kind: type[Prompt[Any]]) -> list[Any]:
        """Return its requests of a kind."""
        return [each for each in self.asked if isinstance(each, kind)]

    def _answer(self, ask: Prompt[Any]) -> Any:
        says = self.village.says
        match ask:
            case PlanStrokes():
                return self._strokes(ask)
            case PlanHours():
                return {"hours": [{"start": f"{hour:02}:00", "what": f"{ask.what} {hour}"} for hour in range(6, 23)]}
            case PlanTasks():
                return {"tasks": [{"minutes": 15, "what": f"{ask.what} ({n})", "thing": ["1"]} for n in range(8)]}
            case MeetPerson():
                return self.meets
            case SayNext():
                known = [n for n, each in enumerate(ask.memories, 1) if each.appointment]
                if not ask.lines:
                    return {"says": says["hello"], "passes_on": known}
                words = "" if self.second == "walks on" else says["end"]
                return {"says": words, "does": self.second, "passes_on": known if self.second == "ends" else []}
            case RewriteDay():
                if self.forgets:
                    return {"strokes": [{"start": "01:00", "what": says["home"], "keeps": 1}]}
                return {"strokes": [
                    {"start": f"{at.start:%H:%M}", "what": at.what, "place": ask.places[0].split(" (")[0], "keeps": n}
                    for n, each in enumerate(ask.agreed, 1) if (at := each.appointment)
                ] + [{"start": "20:00", "what": says["home"], "place": []}]}  # fmt: skip
            case RenewIdentity():
                return {"summary": RENEWED}
            case SumUpRelation():
                return {"relation": f"{ask.who}和{ask.other}是老邻居。"}
            case SalientQuestions():
                return {"questions": [f"{ask.who}看重什么？"]}
            case Insights():
                return {"insights": [{"text": f"{ask.who}想学唱戏。", "because": [1]}]}
            case TakeFromTalk():
                taken = self._taken(ask)
                return taken | {"agreed": taken["agreed"][:6]}
            case _:
                return super()._answer(ask)

    def _strokes(self, ask: PlanStrokes) -> Any:
        inn = self.village.inn.split(":")[1:]
        says, goes = self.village.says, ask.who in self.out
        return {
            "wake": "06:30", "bed": "22:00", "currently": "",
            "strokes": [
                {"start": "06:30", "what": says["home"], "place": []},
                {"start": "08:30", "what": says["inn"], "place": inn if goes else []},
                {"start": "10:00", "what": says["home"], "place": ["没有这个地方"]},
            ],
        }  # fmt: skip


def village_of(*more: str, **profile: Any) -> Setting:
    """Return the Chinese village with step-by-step lives, with additional people in the guest's home."""
    setting = LIUCUN.setting(**({"lives": "paper"} | profile))
    guest = setting.people[LIUCUN.guest]
    added = {name: guest.model_copy(update={"name": name, "memories": ()}) for name in more}
    return replace(setting, people={**setting.people, **added})
