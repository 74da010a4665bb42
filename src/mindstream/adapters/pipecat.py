"""A coach in a Pipecat pipeline: transcriptions are answered at once, follow-ups come later.

async with Mind.open("data", user="ann", responder=Coach.using()) as mind:
    pipeline = Pipeline([transport.input(), stt, CoachProcessor(mind), tts, transport.output()])
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeAlias

from pipecat.frames.frames import (
    CancelFrame,
    EndFrame,
    Frame,
    InterruptionFrame,
    LLMFullResponseEndFrame,
    LLMFullResponseStartFrame,
    LLMTextFrame,
    TranscriptionFrame,
)
from pipecat.processors.frame_processor import FrameDirection, FrameProcessor

from mindstream.adapters.delegate import MindDelegate, Spoken
from mindstream.log.events import Piece, Said
from mindstream.minds.mind import Mind

AskFunction: TypeAlias = Callable[[str], Awaitable[str]]


class CoachProcessor(FrameProcessor):
    """Answers transcriptions, and passes on all other frames.

    An interruption, or a new transcription, cancels the text that is not spoken yet. A mind continues to reason about
    utterances that it has heard, for its memory. The end of the pipeline waits for the newest answer.

    Args:
        coach: a mind, or a function `async def coach(question) -> answer`.
        update_after: with a function, the seconds after which `still_thinking` is spoken. A mind has its own fillers.
        thinking: with a function, the text spoken at the beginning.
        still_thinking: with a function, the text spoken during a long wait.
        sorry: the text spoken after a failure.
    """

    def __init__(
        self,
        coach: Mind | AskFunction,
        *,
        update_after: float = 2.0,
        thinking: str = "Let me think.",
        still_thinking: str = "Still thinking.",
        sorry: str = "Sorry, my coach is not available.",
        **options: Any,
    ) -> None:
        super().__init__(**options)
        self._delegate = MindDelegate(coach) if isinstance(coach, Mind) else None
        self._function = None if isinstance(coach, Mind) else coach
        self._update_after, self._sorry = update_after, sorry
        self._thinking, self._still_thinking = thinking, still_thinking
        self._job: asyncio.Task[None] | None = None
        self._answered = asyncio.Event()

    async def process_frame(self, frame: Frame, direction: FrameDirection) -> None:
        """Answer transcriptions; pass on other frames. A new transcription, an interruption or a cancellation stops the
        answer in progress; the end of the pipeline waits for it."""
        await super().process_frame(frame, direction)
        if isinstance(frame, TranscriptionFrame):
            await self._drop()
            if frame.text.strip():
                self._answered.clear()
                if self._function:
                    await self._say(self._thinking)
                self._job = self.create_task(self._answer(frame.text), "coach")
            return
        if isinstance(frame, InterruptionFrame | CancelFrame):
            await self._drop()
        elif isinstance(frame, EndFrame) and self._job:
            await self._answered.wait()
            await self._drop()
        await self.push_frame(frame, direction)

    async def cleanup(self) -> None:
        """Cancel the text that is not spoken yet."""
        await self._drop()
        await super().cleanup()

    async def _answer(self, question: str) -> None:
        try:
            if self._delegate:
                async with aclosing(self._delegate.ask(question)) as events:
                    await self._speak(events)
            else:
                await self._by_function(question)
        except Exception as error:  # noqa: BLE001  an error of the coach ends its answer, not the pipeline
            await self.push_error(f"coach failed: {error}")
            await self._say(self._sorry)
        finally:
            self._answered.set()

    async def _by_function(self, question: str) -> None:
        assert self._function is not None
        asking = asyncio.ensure_future(self._function(question))
        try:
            if not (await asyncio.wait([asking], timeout=self._update_after))[0]:
                await self._say(self._still_thinking)
            await self._say(*(await asking).split(". "))
        finally:
            asking.cancel()

    async def _speak(self, events: AsyncGenerator[Spoken]) -> None:
        """Speak the events of a mind: pieces of its answer as they come, and all other texts as a whole."""
        speaking = False
        try:
            async for event in events:
                if isinstance(event, Piece):
                    if not speaking:
                        await self.push_frame(LLMFullResponseStartFrame())
                    speaking = True
                    await self.push_frame(LLMTextFrame(event.text))
                elif isinstance(event, Said) and speaking:
                    speaking = False
                    await self.push_frame(LLMFullResponseEndFrame())
                else:
                    await self._say(event.text)
                if isinstance(event, Said):
                    self._answered.set()
        finally:
            if speaking:  # the answer was interrupted
                await self.push_frame(LLMFullResponseEndFrame())

    async def _say(self, *sentences: str) -> None:
        await self.push_frame(LLMFullResponseStartFrame())
        for sentence in sentences:
            await self.push_frame(LLMTextFrame(sentence))
        await self.push_frame(LLMFullResponseEndFrame())

    async def _drop(self) -> None:
        job, self._job = self._job, None
        if job and not job.done():
            await self.cancel_task(job)
