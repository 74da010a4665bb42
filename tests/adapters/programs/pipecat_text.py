"""A voice tutor's slow coach, in a text-only Pipecat pipeline (offline).

A processor takes the learner's transcriptions, answers at once with a short line, asks a slow coach in
the background for the real answer, says something while that takes long, and emits the coach's answer
as text frames. An interruption cancels what the coach was thinking about.
"""
import asyncio

from loguru import logger

from pipecat.frames.frames import (
    BotStoppedSpeakingFrame, Frame, InterimTranscriptionFrame, InterruptionFrame, LLMFullResponseEndFrame,
    LLMFullResponseStartFrame, LLMTextFrame, TextFrame, TranscriptionFrame,
)
from pipecat.pipeline.pipeline import Pipeline
from pipecat.processors.filters.frame_filter import FrameFilter
from pipecat.tests.utils import SleepFrame, run_test
from pipecat.utils.time import time_now_iso8601

from pipecat_coach import CoachProcessor

new_processor = CoachProcessor  # <- here    new_processor(coach, update_after=…) makes one for a pipeline

logger.remove()
log: list[tuple[str, str]] = []  # what happened to the coach: (event, question)


async def coach(question: str) -> str:
    """The slow one. (A real one would ask a large model.)"""
    log.append(("asked", question))
    try:
        if "broken" in question:
            raise RuntimeError("no connection")
        await asyncio.sleep(0.6 if "hard" in question else 0.05)
    except asyncio.CancelledError:
        log.append(("cancelled", question))
        raise
    log.append(("answered", question))
    return f"About {question}: start small. Then practise daily"


def heard(text: str) -> TranscriptionFrame:
    return TranscriptionFrame(text=text, user_id="learner", timestamp=time_now_iso8601(), finalized=True)


async def play(*frames: Frame, **kwargs) -> tuple[list[str], list[Frame], list[Frame]]:
    """Send the frames; return the spoken text, and all frames down and up."""
    log.clear()
    down, up = await run_test(new_processor(coach, update_after=0.3), frames_to_send=list(frames), **kwargs)
    return [f.text for f in down if isinstance(f, TextFrame)], list(down), list(up)


async def main() -> None:
    # A quick question: an acknowledgement at once, then the answer, each as one response.
    response = [LLMFullResponseStartFrame, LLMTextFrame, LLMFullResponseEndFrame]
    said, down, _ = await play(
        heard("scales"), SleepFrame(sleep=0.2),
        expected_down_frames=response + [response[0], LLMTextFrame, LLMTextFrame, response[2]],
    )
    assert said == ["Let me think.", "About scales: start small", "Then practise daily"], said
    assert not any(isinstance(f, TranscriptionFrame) for f in down)

    # A hard one: an update in between, and the end of the pipeline waits for the answer.
    said, _, _ = await play(heard("hard chords"))
    assert said == ["Let me think.", "Still thinking.", "About hard chords: start small", "Then practise daily"], said
    assert log == [("asked", "hard chords"), ("answered", "hard chords")]

    # Frames of others pass while the coach is thinking; interim transcriptions start nothing.
    interim = InterimTranscriptionFrame(text="hard ch", user_id="learner", timestamp=time_now_iso8601())
    said, down, _ = await play(interim, heard("hard chords"), SleepFrame(sleep=0.1), TextFrame("[page turned]"))
    assert said[:3] == ["hard ch", "Let me think.", "[page turned]"] and said[-1] == "Then practise daily", said
    assert [event for event, _ in log] == ["asked", "answered"]

    # An interruption cancels the coach: nothing is spoken.
    said, down, _ = await play(heard("hard chords"), SleepFrame(sleep=0.1), InterruptionFrame(), SleepFrame(sleep=0.8))
    assert said == ["Let me think."] and any(isinstance(f, InterruptionFrame) for f in down), said
    assert log == [("asked", "hard chords"), ("cancelled", "hard chords")], log

    # After an interruption the next question is answered as usual.
    said, _, _ = await play(
        heard("hard chords"), SleepFrame(sleep=0.4), InterruptionFrame(), SleepFrame(sleep=0.1), heard("scales"))
    assert said == ["Let me think.", "Still thinking.", "Let me think.", "About scales: start small",
                    "Then practise daily"], said
    # A new question without an interruption replaces the one the coach is at.
    said, _, _ = await play(heard("hard chords"), SleepFrame(sleep=0.1), heard("scales"))
    assert ("cancelled", "hard chords") in log and said.count("Let me think.") == 2
    assert not any("chords" in text for text in said) and "About scales: start small" in said

    # An interruption with nothing to interrupt does no harm.
    said, _, _ = await play(InterruptionFrame(), SleepFrame(sleep=0.05), heard("scales"), SleepFrame(sleep=0.2),
                            InterruptionFrame(), BotStoppedSpeakingFrame())
    assert said[-1] == "Then practise daily" and log == [("asked", "scales"), ("answered", "scales")]

    # A failing coach is reported upstream, and the learner hears something.
    said, _, up = await play(heard("broken strings"), SleepFrame(sleep=0.1))
    assert said == ["Let me think.", "Sorry, my coach is not available."], said
    assert any("coach failed" in getattr(f, "error", "") for f in up)

    # Two learners in two pipelines at the same time; here behind a filter that lets only text pass.
    filtered = [Pipeline([new_processor(coach, update_after=0.3), FrameFilter(types=(TextFrame,))]) for _ in range(2)]
    log.clear()
    results = await asyncio.gather(*(
        run_test(p, frames_to_send=[heard(q)]) for p, q in zip(filtered, ["hard pieces", "scales"])))
    first, second = ([f.text for f in down if isinstance(f, TextFrame)] for down, _ in results)
    assert "About hard pieces: start small" in first and "Still thinking." in first, first
    assert "About scales: start small" in second and "Still thinking." not in second, second


asyncio.run(main())
print("ok")
