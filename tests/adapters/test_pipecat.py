"""A coach in a Pipecat pipeline, in Pipecat's test harness: interruptions cancel the unspoken rest."""

from __future__ import annotations

import asyncio
import shutil
import warnings
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

with warnings.catch_warnings(action="ignore"):  # it imports deprecated modules
    pytest.importorskip("pipecat.tests.utils", reason="pipecat-ai is not installed: `make adapters` has it")

from delegated import Slow, at_once
from pipecat.frames.frames import (
    ErrorFrame,
    InterruptionFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    TextFrame,
    TranscriptionFrame,
)
from pipecat.tests.utils import SleepFrame, run_test

from mindstream import Host, Mind, answer_with
from mindstream.adapters.pipecat import CoachProcessor

OURS = {"from pipecat_coach import CoachProcessor": "from mindstream.adapters.pipecat import CoachProcessor"}


@pytest.mark.parametrize("replaced", [False, True], ids=["its own", "ours"])
def test_the_program_runs(replaced: bool, run_program: Callable[..., None], tmp_path: Path) -> None:
    shutil.copy(Path(__file__).parent / "programs" / "pipecat_coach.py", tmp_path)
    run_program("pipecat_text", OURS if replaced else {})


def said(text: str) -> TranscriptionFrame:
    return TranscriptionFrame(text=text, user_id="ann", timestamp="2026-11-28T08:00:00Z", finalized=True)


async def play(mind: Mind, *frames: Any) -> tuple[list[str], list[Any], list[Any]]:
    down, up = await run_test(CoachProcessor(mind), frames_to_send=list(frames))
    return [each.text for each in down if isinstance(each, TextFrame)], list(down), list(up)


async def heard_by(mind: Mind) -> list[str]:
    return [row.event.text async for row in mind.memory.log(kinds=["heard"])]  # type: ignore[attr-defined]


async def test_the_answer_is_spoken_in_pieces_and_the_follow_up_afterwards(tmp_path: Path) -> None:
    slow = Slow()
    slow.go.set()
    async with Mind.open(tmp_path, user="ann", responder=answer_with(at_once), reasoners=[slow]) as mind:
        words, down, _ = await play(mind, said("scales"), SleepFrame(sleep=2))
        assert words == ["At once ", "about scales", "Later about scales"]
        begin, text, end = LLMFullResponseStartFrame, LLMTextFrame, LLMFullResponseEndFrame
        assert [type(each) for each in down] == [begin, text, text, end, begin, text, end]
        assert await heard_by(mind) == ["scales"] and slow.acts == ["scales"]


async def test_ending_waits_for_the_answer_but_not_for_follow_ups(tmp_path: Path) -> None:
    async with Mind.open(tmp_path, user="ann", responder=answer_with(at_once), reasoners=[Slow()]) as mind:
        assert (await play(mind, said("scales")))[0] == ["At once ", "about scales"]


async def test_an_interruption_drops_unspoken_text_and_stores_no_message_twice(tmp_path: Path) -> None:
    answers, go_on = list[str](), asyncio.Event()

    async def halting(text: str, host: Host) -> AsyncIterator[str]:
        answers.append(text)
        yield "First "
        await go_on.wait()
        yield "second."

    slow = Slow()
    slow.go.set()
    async with Mind.open(tmp_path, user="ann", responder=answer_with(halting), reasoners=[slow]) as mind:
        words, down, _ = await play(mind, said("chords"), SleepFrame(sleep=1), InterruptionFrame(), SleepFrame(sleep=1))
        assert words == ["First "] and any(isinstance(each, InterruptionFrame) for each in down)
        go_on.set()
        coach = CoachProcessor(mind)
        go_on.clear()
        frames = [said("scales"), SleepFrame(sleep=1), InterruptionFrame(), SleepFrame(sleep=0.1), said("Scales")]
        asyncio.get_running_loop().call_later(1.5, go_on.set)
        down, _ = await run_test(coach, frames_to_send=frames)
        assert [each.text for each in down if isinstance(each, TextFrame)] == ["First ", "First ", "second."]
        await mind.settled()
        assert answers == ["chords", "scales", "scales"]
        assert await heard_by(mind) == ["chords", "scales"] and slow.acts == ["chords", "scales"]


async def test_a_failing_mind_apologises_and_reports_the_error(tmp_path: Path) -> None:
    async def broken(text: str, host: Host) -> AsyncIterator[str]:
        raise RuntimeError("no connection")
        yield ""

    async with Mind.open(tmp_path, user="ann", responder=answer_with(broken)) as mind:
        words, _, up = await play(mind, said("scales"))
        assert words == ["Sorry, my coach is not available."]
        assert any("no connection" in each.error for each in up if isinstance(each, ErrorFrame))
