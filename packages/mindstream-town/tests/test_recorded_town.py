"""A morning of the hamlet with a language model for its three people, played back verbatim.

The model answered every request, step by step (`lives=paper`): days, hours, tasks, importance, reactions to residents
in sight, every line of every conversation, the memories of it, two reflections, and three answers in an interview. It
had no other information about the town.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hamlet import hamlet
from mindstream_town.events import Acted, DayPlanned, Decided, Talked
from mindstream_town.inspect.history import read_history
from mindstream_town.metrics import count_events
from mindstream_town.residents.interview import interview
from mindstream_town.town import Town

from mindstream.models.recording import Playback
from mindstream.models.roles import Models

RECORDINGS = Path(__file__).parents[3] / "tests" / "recordings"
STORY: dict[str, Any] = json.loads((RECORDINGS / "town.json").read_text("utf-8"))


async def live(folder: Path, models: Models, story: dict[str, Any] = STORY) -> list[str]:
    """Run the morning; return the answers of the interview."""
    async with Town.open(folder, hamlet(**story["profile"]), model=models) as town:
        await town.run(until=town.setting.step_at(0, story["leaks_at"]))
        await town.set_object(story["leaks"], "leaking", danger=False)
        await town.run(until=town.setting.step_at(0, story["until"]))
        asked = [await interview(town, who, question, models=models) for who, question in story["asked"]]
    return [each.answer for each in asked]


async def test_a_morning_of_three_residents_with_a_recorded_model(folder: Path) -> None:
    model, thinks = (Playback(RECORDINGS / "town.jsonl", strict=False) for _ in range(2))
    answers = await live(folder, Models(model, {"reasoner": thinks}))
    history = await read_history(folder)
    planned = {name: [e.broad for _, e in history.events(name, DayPlanned)] for name in history.names}
    assert all(len(days) == 1 and 5 <= len(days[0]) <= 8 for days in planned.values())
    assert "09:00 tune the piano" in planned["Ben Hale"][0]
    (saw, _), *_ = [each for each in history.events("Ada Brook", Decided) if each[1].about == "the shower is leaking"]
    acts = [e.act for at, e in history.events("Ada Brook", Acted) if at >= saw and e.act.why in ("react", "plan")]
    assert acts[0].why == "react" and acts[0].what.startswith("turning the water off")
    assert any(each.leaves == "repaired" for each in acts)
    partners = [e.partner for _, e in history.events("Ada Brook", Talked)]
    assert partners == ["Ben Hale"]
    counts = count_events(history)
    assert sum(counts.reflections.values()) == 2
    assert (
        "changed the washer" in answers[0]
        and "reading evening" in answers[1]
        and "don't know anybody by that name" in answers[2]
    )
