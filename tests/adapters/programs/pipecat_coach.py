"""A Pipecat processor that delegates messages to a slow coach, and speaks the answer when it arrives."""
import asyncio
from collections.abc import Awaitable, Callable

from pipecat.frames.frames import (
    CancelFrame, EndFrame, Frame, InterruptionFrame, LLMFullResponseEndFrame, LLMFullResponseStartFrame, LLMTextFrame,
    TranscriptionFrame,
)
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor

Coach = Callable[[str], Awaitable[str]]


class CoachProcessor(FrameProcessor):
    """TranscriptionFrame -> an acknowledgement now, the coach's answer when it is there."""

    def __init__(self, coach: Coach, *, update_after: float = 0.3, **kwargs):
        super().__init__(**kwargs)
        self._coach = coach
        self._update_after = update_after
        self._job: asyncio.Task | None = None

    async def process_frame(self, frame: Frame, direction: FrameDirection):
        await super().process_frame(frame, direction)
        if isinstance(frame, TranscriptionFrame):
            await self._drop_job()  # a new question replaces the old one
            await self._say("Let me think.")
            self._job = self.create_task(self._answer(frame.text), "coach")
            return  # the transcription is consumed here
        if isinstance(frame, (InterruptionFrame, CancelFrame)):
            await self._drop_job()
        elif isinstance(frame, EndFrame) and self._job:
            await asyncio.wait([self._job])  # the last answer is still said before the end
        await self.push_frame(frame, direction)

    async def cleanup(self):
        await self._drop_job()
        await super().cleanup()

    async def _answer(self, question: str) -> None:
        thinking = asyncio.ensure_future(self._coach(question))
        try:
            done, _ = await asyncio.wait([thinking], timeout=self._update_after)
            if not done:
                await self._say("Still thinking.")
            await self._say(*(await thinking).split(". "))
        except asyncio.CancelledError:
            thinking.cancel()
            raise
        except Exception as error:
            await self.push_error(f"coach failed: {error}")
            await self._say("Sorry, my coach is not available.")

    async def _say(self, *sentences: str) -> None:
        await self.push_frame(LLMFullResponseStartFrame())
        for sentence in sentences:
            await self.push_frame(LLMTextFrame(sentence))
        await self.push_frame(LLMFullResponseEndFrame())

    async def _drop_job(self) -> None:
        job, self._job = self._job, None
        if job and not job.done():
            await self.cancel_task(job)
