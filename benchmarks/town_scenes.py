"""What a day in scenes asks of a model: on a model that answers plainly, with talks of six lines wherever two meet."""

from __future__ import annotations

import json
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path
from typing import Any

from mindstream.memory.lifecycle.rate_importance import RateImportance
from mindstream.models.model import Part, Piece, Request
from mindstream.models.prompt import Prompt
from mindstream.models.roles import Models
from mindstream.models.shorten import estimate_tokens
from mindstream.town.prompts.scenes.plan_scenes import PlanScenes
from mindstream.town.prompts.scenes.reflect_scenes import ReflectScenes
from mindstream.town.prompts.scenes.talk_scene import TalkScene
from mindstream.town.setting import Setting
from mindstream.town.town import Town

PEOPLE = 5
USD_IN, USD_OUT = 0.05, 0.40
"""Dollars for a million tokens, in and out, of a small model (openai:gpt-5-nano)."""
LINE = "That is news to me, and I will tell it to whoever comes by this afternoon."


class Plain:
    """Answers as plainly as can be, and counts."""

    name = "plain"

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.tokens_in: Counter[str] = Counter()
        self.tokens_out: Counter[str] = Counter()

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        prompt = request.prompt
        text = json.dumps(answer(prompt), ensure_ascii=False)
        self.calls[prompt.label()] += 1
        self.tokens_in[prompt.label()] += sum(estimate_tokens(each.text) for each in request.messages)
        self.tokens_out[prompt.label()] += estimate_tokens(text)
        yield Piece(text)


def answer(ask: Prompt[Any]) -> Any:
    """Return a plain answer: a day at home and at the places one knows in turn, a talk of six lines, two insights."""
    match ask:
        case RateImportance():
            return {"ratings": [4] * len(ask.memories)}
        case PlanScenes():
            return {"items": [_item(ask, minute) for minute in range(7 * 60, 22 * 60, 45)]}
        case TalkScene():
            names = [side.who for side in ask.sides]
            lines = [{"who": names[at % 2], "says": LINE} for at in range(6)]
            kept = [{"who": name, "text": f"{names[0]} and {names[1]} talked: {LINE}", "weight": 3} for name in names]
            return {"talk": True, "lines": lines, "remember": kept, "overheard": f"{names[0]}: {LINE}"}
        case ReflectScenes():
            thought = {"text": f"{ask.who} has heard what the others think of it.", "because": [1, 2]}
            return {"insights": [thought, thought | {"because": [3]}], "currently": f"{ask.who} goes on as before."}
        case _:
            return "no"


def _item(ask: PlanScenes, minute: int) -> dict[str, Any]:
    places = sorted(each.words for each in ask.places if not each.home) or [""]
    place = places[minute // 180 % len(places)] if 9 * 60 <= minute < 18 * 60 else ""
    start, end = (f"{each // 60:02d}:{each % 60:02d}" for each in (minute, minute + 45))
    return {"from": start, "to": end, "what": f"doing what there is to do at {start}", "place": place, "weight": 2}


async def count_scenes(setting: Setting) -> dict[str, Any]:
    """Let five residents of a town live a day in scenes; return what an agent-day takes."""
    people = dict(sorted(setting.people.items())[:PEOPLE])
    model, day = Plain(), replace(setting, people=people)
    with tempfile.TemporaryDirectory() as folder:
        async with Town.open(Path(folder) / "town", day, models=Models(model)) as town:
            await town.run(until=setting.profile.a_day - 1)
    taken, given = model.tokens_in.total(), model.tokens_out.total()
    return {
        "residents": PEOPLE,
        "calls_per_agent_day": round(model.calls.total() / PEOPLE, 1),
        "tokens_per_agent_day": round((taken + given) / PEOPLE),
        "usd_per_agent_day": round((taken * USD_IN + given * USD_OUT) / 1e6 / PEOPLE, 5),
        "calls_by_kind": dict(sorted(model.calls.items())),
    }
