"""Any act can be explained: observations, memories, decisions, plans."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import pytest
from hamlet import hamlet
from mindstream_town.events import Acted, Decided, Talked
from mindstream_town.inspect.history import History, read_history
from mindstream_town.inspect.why import explain
from mindstream_town.town import Town

from mindstream.errors import InputError

EVENING = 19 * 360


@pytest.fixture(scope="module")
def history(tmp_path_factory: pytest.TempPathFactory) -> History:
    folder = tmp_path_factory.mktemp("hamlet")

    async def lived() -> None:
        async with Town.open(folder, hamlet()) as town:
            await town.run(until=EVENING)
            room = town.setting.world.arena_of(town.residents["Ben Hale"].state.spot(EVENING))
            await town.set_object(town.setting.objects_in(str(town.setting.world.places[room]))[0], "leaking")
            await town.run(until=EVENING + 60)

    asyncio.run(lived())
    return asyncio.run(read_history(folder))


def test_a_planned_act_is_explained_by_the_plan(history: History) -> None:
    step, acted = next(
        (at, each)
        for at, each in history.events("Ada Brook", Acted)
        if at > history.setting.step_at(0, 9 * 60)
        and each.act.why == "plan"
        and history.state("Ada Brook", at + 3).act == each.act
    )
    reason = explain(history, "Ada Brook", step + 3)
    text = "\n".join(reason.lines())
    assert f"Ada Brook is {acted.act.what}" in text and "the day's plan" in text and "by plan" in text
    assert reason.data["since"] == step and reason.data["place"] == acted.act.place


def test_a_conversation_is_explained_with_probability_and_draw(history: History) -> None:
    name, talk = next((name, talk) for name, talk in history.talks() if any(line.told for line in talk.lines))
    reason = explain(history, talk.partner, talk.step)
    text = "\n".join(reason.lines())
    assert f"{name} began it" in text and all(line.text in text for line in talk.lines)
    decided = next(
        e for at, e in history.events(name, Decided) if at == talk.step and e.yes and e.other == talk.partner
    )
    assert f"probability {decided.p:.2f}, drawn" in text
    draws = [each for each in json.loads(json.dumps(reason.as_json()))["because"] if each.get("kind") == "decided"]
    assert draws and all((each["draw"] < each["p"]) is each["yes"] for each in draws)
    assert "what came to mind" in text and "which comes from: " in text


def test_a_talk_without_words_is_explained_without_lines(history: History) -> None:
    name, talk = next(history.talks())
    silent = tuple(
        replace(row, event=row.event.model_copy(update={"lines": ()})) if isinstance(row.event, Talked) else row
        for row in history.rows[name]
    )
    reason = explain(replace(history, rows={**history.rows, name: silent}), name, talk.step)
    assert reason.data["why"] == "talk" and "talks with" not in "\n".join(reason.lines())


def test_a_reaction_is_explained_by_the_observation(history: History) -> None:
    step = next(at for at, each in history.events("Ben Hale", Acted) if each.act.why == "react")
    text = "\n".join(explain(history, "Ben Hale", step).lines())
    assert "by what it saw" in text and "is leaking" in text and "new" in text


def test_unknown_residents_and_times_are_reported(history: History) -> None:
    with pytest.raises(InputError, match="Hamlet has no resident"):
        explain(history, "Nobody", 3)
    with pytest.raises(InputError, match="has no known act"):
        explain(history, "Ada Brook", 99_999)
