"""How an utterance is answered: at once, or after the Reasoner; with words meanwhile, and where no model answers."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from dataclasses import replace

from mindstream.coach.alarms import NOTHING, Alarms, SecondListener, Verdict
from mindstream.coach.answer_log import UNAVAILABLE, Answer, AnswerLog, Aside
from mindstream.coach.gates.gate import Decision, Gatekeeper, Situation
from mindstream.coach.handover import Handover
from mindstream.coach.packs.safety import SAFETY
from mindstream.coach.talker import AGENT, Talker, as_pieces
from mindstream.errors import ModelUnavailable
from mindstream.foreign_code import is_ours
from mindstream.log.events import Logged, Piece, Reading, Waiting
from mindstream.minds.responder import Timeouts
from mindstream.models.cause import Cause, calls_for
from mindstream.models.model import Model
from mindstream.models.rules import Rules
from mindstream.reasoners.background import Background
from mindstream.reasoners.turns import LOOK_S
from mindstream.tracing import genai, span, tell

GONE_S = 1.0
"""A listener that does not come back for so long holds up nobody: the turn goes on without it."""
AT_ONCE = 3
"""Number of rounds of the event loop in which a listener may take an event before it is waited for with a timeout."""


class Exchange:
    """Hands events over.

    The turn waits until each piece was taken: an answer that is broken off is remembered as far as it was shown.
    """

    def __init__(self) -> None:
        self._events: asyncio.Queue[Logged | None] = asyncio.Queue()
        self._open = 0
        self._free = asyncio.Event()
        self._free.set()
        self._gone = False

    def put(self, logged: Logged) -> None:
        """Hand an event over without waiting."""
        self._open += 1
        self._free.clear()
        self._events.put_nowait(logged)

    async def show(self, logged: Logged) -> None:
        """Hand an event over and return when it was taken, or when nobody comes to take it."""
        self.put(logged)
        if self._gone:
            return
        for _ in range(AT_ONCE):  # mostly it is taken at once: then no timer is needed
            await asyncio.sleep(0)
            if self._free.is_set():
                return
        try:
            async with asyncio.timeout(GONE_S):
                await self._free.wait()
        except TimeoutError:
            self._gone = True

    def close(self) -> None:
        """Say that nothing more will come."""
        self._events.put_nowait(None)

    async def events(self) -> AsyncGenerator[Logged]:
        """Give the events until the exchange is closed."""
        while (logged := await self._events.get()) is not None:
            yield logged
            self._gone = False
            self._open -= 1
            if not self._open:
                self._free.set()


class Answering:
    """Answers what was heard, one utterance after the other. An alarm waits for nobody.

    Args:
        reasoners: think behind it; their floor is held while the Talker speaks.
        listener: hears danger beside the Talker, where there is such a model.
    """

    def __init__(
        self,
        talker: Talker,
        gate: Gatekeeper,
        reasoners: Background,
        timeouts: Timeouts,
        listener: Model | None = None,
    ) -> None:
        self._talker, self._gate, self._reasoners = talker, gate, reasoners
        self._floor, self._timeouts = reasoners.floor, timeouts
        self._stream, self._pack = talker.stream, talker.pack
        self._log = AnswerLog(talker, gate, reasoners)
        self.alarms = Alarms(talker.pack, talker.session, listened_to=listener is not None)
        self._listener = SecondListener(talker, self.alarms, reasoners.floor, listener, self._log.fail)
        self._in_turn = asyncio.Lock()  # one answer at a time, in the order of what was heard
        self._answering: set[int] = set()
        self._turns: set[asyncio.Task[None]] = set()
        self._last_word_s = _now_s()
        """When something was said last, by whomever, in seconds of the loop's clock."""

    def is_answering(self, heard: int) -> bool:
        """Tell whether an utterance (its seq) is being answered now."""
        return heard in self._answering

    def begin(
        self, situation: Situation, heard: int, first: Decision, exchange: Exchange, *, one_answer: bool = False
    ) -> asyncio.Task[None]:
        """Begin the turn of an utterance, in a task of its own; it hands its events over and closes the exchange.

        Whoever is being answered, or waits for it, when an alarm stops the talk hears no more of that answer.

        Args:
            one_answer: nothing can follow the answer.
        """
        if not self._in_turn.locked():  # else the silence since the last word goes on, whatever the user adds
            self._last_word_s = _now_s()
        answer = Answer(heard, self._talker.model.name, first, one_answer)
        verdict = self.alarms.judge(situation)
        with calls_for(Cause(rows=(heard,))):
            if verdict.urgent:
                self._break_off()
                turn = asyncio.ensure_future(self._sound(verdict, situation, answer, exchange))
            else:
                turn = asyncio.ensure_future(self._take_turn(situation, answer, exchange))
                self._turns.add(turn)
                self._listener.begin(situation, heard, turn, one_answer)

        def end(turn: asyncio.Task[None]) -> None:
            self._turns.discard(turn)
            if not turn.cancelled():
                turn.exception()  # told to whoever hears it; where nobody does, that is no news for the loop
            exchange.close()
            self._reasoners.release(heard)  # they think about what was heard and what was said to it

        turn.add_done_callback(end)
        return turn

    async def close(self) -> None:
        """Break off the answers that go on; what was shown of them is kept."""
        turns = self._break_off()
        await self._listener.close()
        await asyncio.gather(*turns, return_exceptions=True)

    def _break_off(self) -> list[asyncio.Task[None]]:
        turns = list(self._turns)
        for turn in turns:
            turn.cancel()
        return turns

    async def _sound(self, verdict: Verdict, situation: Situation, answer: Answer, exchange: Exchange) -> None:
        """Say what an alarm says, whoever is speaking or waited for."""
        self.alarms.keep(verdict)
        answer.model, answer.verdict, answer.decision = SAFETY, verdict, _at_once(answer.decision)
        await self._say(answer, situation, as_pieces(verdict.whole), exchange)

    async def _take_turn(self, situation: Situation, answer: Answer, exchange: Exchange) -> None:
        """Answer when it is this utterance's turn: at once, or after the Reasoner."""
        queued, heard = self._in_turn.locked() or self._floor.locked(), answer.heard
        async with self._turn(answer) as waited:
            self._answering.add(heard)
            try:
                with self._filling_silence(answer, situation, exchange):
                    if queued or waited:  # what is believed may have moved on
                        situation = await self._talker.situation(situation.text)
                        answer.decision = replace(self._gate.decide(situation), thinks=answer.decision.thinks)
                    if self.alarms.is_open or self._gate.hints(situation.text):
                        await self._listener.hear_out(heard)
                    if self._waits_first(answer, situation):
                        await self._wait(answer, situation, exchange)
                    async with self._floor:
                        await self._speak(answer, situation, exchange)
                    if answer.hands_over:
                        await self._wait(answer, situation, exchange)
                        async with self._floor:
                            await self._speak(answer, situation, exchange)
            finally:
                self._answering.discard(heard)
                if answer.words.strip() and not answer.written:  # broken off while it waited
                    await self._log.keep(answer, situation)

    @contextlib.asynccontextmanager
    async def _turn(self, answer: Answer) -> AsyncIterator[bool]:
        """Take the turn, among all processes, then among ours; tell whether another process was waited for."""
        talks: dict[str, genai.Value] = {genai.AGENT: "talker", genai.CONVERSATION: self._talker.session}
        began, task = _now_s(), asyncio.current_task()
        assert task is not None
        async with self._reasoners.turns.of(answer.heard, task.cancel) as answer.turn:
            waited = _now_s() - began > LOOK_S
            async with self._in_turn:
                with span(genai.INVOKE_AGENT, "talker", talks) as traced:
                    yield waited
                    tell(traced, {genai.ANSWERED: genai.write_answer(answer.words)})

    def _waits_first(self, answer: Answer, situation: Situation) -> bool:
        """Tell whether the gate waits before anybody speaks. An alarm waits for nobody.

        Where nothing can follow the answer, a gate that does not hear what is wished for always waits; the log says so.
        """
        decision, verdict = answer.decision, self.alarms.judge(situation)
        if verdict.whole or verdict.beside:
            answer.decision = replace(_at_once(decision), hands_over=decision.hands_over)
            return False
        if answer.one_answer and not decision.hands_over and not decision.waits:
            answer.decision = replace(decision, why=f"nothing can follow the answer; {decision.why}")
            return decision.thinks
        return decision.thinks and decision.waits

    async def _wait(self, answer: Answer, situation: Situation, exchange: Exchange) -> None:
        """Wait for the Reasoner; the answer tells whether it did, and whether in vain."""
        try:
            answer.waited, answer.speaking = True, False
            answer.decision = replace(answer.decision, waits=True)
            filler = await self._talker.filler(situation.text)
            await exchange.show(await self._log.wait(answer, situation, filler))
            self._reasoners.release(answer.heard)
            answer.late = not await self._settled(answer)
        except BaseException as error:  # whatever failed in waiting, an answer follows
            if is_ours(error):
                raise
            await self._log.fail(error)
            answer.late = True

    async def _settled(self, answer: Answer) -> bool:
        """Wait for the belief; return whether all was done about it before the deadline."""
        deadline_s = self._timeouts.thinking_s if answer.one_answer else self._timeouts.deadline_s
        try:
            async with asyncio.timeout(deadline_s):
                settled = self._reasoners.settled(answer.heard, [self._pack.name])
                await self._listener.until_sure(answer.heard, settled)
        except TimeoutError:
            return False
        return True

    async def _speak(self, answer: Answer, situation: Situation, exchange: Exchange) -> None:
        """Choose whose words answer: the Talker's, or an alarm's, which may come beside them."""
        first = self._judge(answer, situation)
        verdict = answer.verdict or NOTHING
        if verdict.whole:
            answer.model = SAFETY
            await self._say(answer, situation, as_pieces(verdict.whole), exchange)
            return
        own = self._or_excuse(answer, situation, self._own(answer, situation))
        first = "" if self._in_own_words(verdict) else first
        await self._say(answer, situation, self._whole(answer, situation, first, own), exchange)

    def _in_own_words(self, verdict: Verdict) -> bool:
        """Tell whether a model is to say what a sign calls for; danger to life is answered by the pack's own words."""
        return verdict.beside is not None and self._talker.model.name != Rules.name

    def _judge(self, answer: Answer, situation: Situation) -> str:
        """Say what alarms add to the answer, in its verdict; return what comes before it and was not said yet."""
        heard = self._listener.verdict(answer.heard, situation)
        before = answer.verdict
        if before is None:
            answer.verdict = heard or self.alarms.judge(situation)
        elif heard and (heard.whole or (heard.ask and not before.ask)):
            answer.verdict = heard
        else:
            return ""
        self.alarms.keep(answer.verdict)
        return answer.verdict.first

    async def _own(self, answer: Answer, situation: Situation) -> AsyncGenerator[str]:
        """Give the Talker's own words; nobody who holds the floor may be silent for ever."""
        may_wait = answer.decision.hands_over and not answer.waited
        if answer.erasures is None:
            answer.erasures = await self._stream.erasures_at(answer.heard)
        answer.handover, verdict = Handover(may_wait=may_wait), answer.verdict or NOTHING
        unsaid = await self._talker.unsaid() if answer.one_answer else ""
        words = {"called_for" if self._in_own_words(verdict) else "before": verdict.first}
        own = self._talker.speak(
            situation.text,
            answer.heard,
            answer.handover,
            decides=answer.decision.hands_over,
            late=answer.late,
            thought=answer.waited and not answer.late,
            unsaid=unsaid,
            one_answer=answer.one_answer,
            asked_after=verdict.ask,
            **words,
        )
        answer.reading = True
        async with contextlib.aclosing(own) as pieces:
            while True:
                try:
                    async with asyncio.timeout(self._timeouts.silence_s):
                        piece = await anext(pieces, None)
                except TimeoutError:
                    name, silence_s = self._talker.model.name, self._timeouts.silence_s
                    raise ModelUnavailable(f"{name} said nothing for {silence_s:g} s") from None
                answer.model, answer.reading = self._talker.model.name, False  # it may be a fallback's
                if piece is None:
                    return
                yield piece

    async def _or_excuse(self, answer: Answer, situation: Situation, own: AsyncGenerator[str]) -> AsyncGenerator[str]:
        """Give the Talker's words; where its model, or anything else, fails, say so: shorter after the first time."""
        try:
            async with contextlib.aclosing(own) as pieces:
                async for piece in pieces:
                    yield piece
            self._talker.failures = 0
            return
        except BaseException as error:  # the outermost edge of a turn: whatever failed, somebody waits
            if is_ours(error):
                raise
            failure = error
        answer.model, answer.handover = UNAVAILABLE, Handover()
        await self._log.fail(failure)
        excuse = self._talker.excuse(failure, situation.text)
        yield Aside(f"\n{excuse}" if answer.words else excuse)

    async def _whole(
        self, answer: Answer, situation: Situation, first: str, own: AsyncGenerator[str]
    ) -> AsyncGenerator[str]:
        """Give what an alarm says before an answer, the answer, and what is asked after it."""
        async with contextlib.aclosing(own) as pieces:
            if first:
                yield f"{first}\n\n"
            begins = bool(answer.words) and not first
            async for piece in pieces:
                yield f"\n\n{piece}" if begins else piece
                begins = False
        if answer.hands_over:
            return
        if answer.one_answer:  # what is heard later could not be said
            await self._listener.hear_out(answer.heard)
            late = self._judge(answer, situation)
            if answer.verdict and answer.verdict.whole:
                yield f"\n\n{answer.verdict.whole}"
            elif late:
                yield f"\n\n{late}"
        if answer.verdict and answer.verdict.ask:
            yield f"\n\n{answer.verdict.ask}"

    async def _say(self, answer: Answer, situation: Situation, words: AsyncGenerator[str], exchange: Exchange) -> None:
        """Speak, piece by piece, and keep what was shown, however it ends."""
        said: Logged | None = None
        try:
            async with contextlib.aclosing(words) as pieces:
                async for piece in pieces:
                    self._last_word_s, answer.speaking = _now_s(), True
                    answer.words += piece
                    answer.kept += "" if isinstance(piece, Aside) else piece
                    await exchange.show(self._stream.show(Piece(text=piece, answers=answer.heard), AGENT))
        finally:
            if answer.words.strip() and not answer.hands_over:
                said = await self._log.keep(answer, situation)
        if said:
            await exchange.show(said)

    async def _say_longer(self, answer: Answer, situation: Situation) -> Logged:
        """Say that it takes longer, whether that can be logged or not; who waits for no thought, claims none."""
        move = "wait_longer" if answer.waited else "a_moment"
        try:
            return await self._log.wait(answer, situation, await self._talker.filler(situation.text, move))
        except BaseException as error:  # no fault is a reason to be silent
            if is_ours(error):
                raise
            words = self._talker.phrase(move, situation.text)
            return self._stream.show(Waiting(text=words, slots=(), answers=answer.heard, belief_version=0), AGENT)

    @contextlib.contextmanager
    def _filling_silence(self, answer: Answer, situation: Situation, exchange: Exchange) -> Iterator[None]:
        """Say now and then that the answer takes longer, while nothing of it has been said.

        Only whoever's turn it is says so: what is queued behind a thought ("thanks") is not itself thought about. That
        a model still reads is said once; then screens show it.
        """

        async def fill() -> None:
            told = False
            while True:
                quiet_s = 0.0 if answer.speaking else _now_s() - self._last_word_s
                if quiet_s < self._timeouts.filler_s:
                    await asyncio.sleep(self._timeouts.filler_s - quiet_s)
                    continue
                self._last_word_s = _now_s()
                if told and answer.reading:
                    exchange.put(self._stream.show(Reading(model=answer.model, answers=answer.heard), AGENT))
                else:
                    told = told or answer.reading
                    exchange.put(await self._say_longer(answer, situation))

        filling = list[asyncio.Task[None]]()
        quiet_s = _now_s() - self._last_word_s
        first_s = max(0.0, self._timeouts.filler_s - quiet_s)  # an answer that begins before needs no task
        begin = asyncio.get_running_loop().call_later(first_s, lambda: filling.append(asyncio.ensure_future(fill())))
        try:
            yield
        finally:
            begin.cancel()
            for task in filling:
                task.cancel()


def _at_once(decision: Decision) -> Decision:
    return replace(decision, waits=False, hands_over=False, why=f"an alarm; {decision.why}")


def _now_s() -> float:
    return asyncio.get_running_loop().time()
