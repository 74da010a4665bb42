"""Residents do not tell others their thoughts about themselves."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

from hamlet import hamlet, live
from mindstream_town.events import Talked
from mindstream_town.inspect.history import read_history

from mindstream.models.model import Part, Piece, Request
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.reasoners.reflect.reflect import OWN, Found, Insight, Insights, Questions, SalientQuestions

FOUR_DAYS = 4 * 8_640 - 1


class Reflects:
    """Reply that everyone matters, and that the day was long."""

    name = "reflects"

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        prompt = request.prompt
        if isinstance(prompt, SalientQuestions):
            yield Piece(Questions(questions=[f"What moves {prompt.who}?"]).model_dump_json())
        elif isinstance(prompt, Insights):
            texts = (f"{prompt.who} is at home here.", f"The day was long: {prompt.memories[-1][:40]}")
            found = Found(insights=[Insight(text=text, because=[len(prompt.memories)]) for text in texts])
            yield Piece(found.model_dump_json())
        else:
            async for part in Rules().reply(request):
                yield part


async def test_thoughts_about_oneself_are_not_told_to_others(folder: Path) -> None:
    await live(folder, hamlet(reflect_at=20.0), FOUR_DAYS, Models(Rules(), {"reasoner": Reflects()}))
    history = await read_history(folder)
    own = 0
    for name in history.names:
        thoughts = [each for each in history.by_id[name].values() if each.by == "reflect"]
        assert all((name in each.text) == bool(each.data.get(OWN)) for each in thoughts)
        kept = {each.id for each in thoughts if each.data.get(OWN)}
        assert not kept & {id_ for _, talk in history.events(name, Talked) for line in talk.lines for id_ in line.told}
        own += len(kept)
    assert own
