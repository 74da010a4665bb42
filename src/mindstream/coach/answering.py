"""How an utterance is answered: at once, or after the Reasoner; with words meanwhile; by rule where all else fails."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Iterator

from mindstream.coach.alarms import Alarms, Verdict
from mindstream.coach.answer import Answer, Aside
from mindstream.coach.exchange import Exchange
from mindstream.coach.gates.gate import Decision, Situation
from mindstream.coach.gates.keeper import Gatekeeper
from mindstream.coach.packs.safety import SAFETY
from mindstream.coach.packs.saying import phrases
from mindstream.coach.second_listener import SecondListener
from mindstream.coach.talker import AGENT, Talker, after, as_pieces, then
from mindstream.errors import ModelError, ModelRefused, ModelResting, ModelUnavailable, StorageError
from mindstream.isolation import describe, is_ours
from mindstream.log.events import Failed, Logged, Piece, Said, Thought, Waiting
from mindstream.memory.record import New
from mindstream.memory.store import Entry
from mindstream.minds.patience import Patience
from mindstream.models.model import Model
from mindstream.reasoners.background import Background
from mindstream.text.language import language_of

WRITES = 3
"""So often an answer that was shown is tried to be kept."""


class Answering:
    """Answers what was heard, one utterance after the other. An alarm waits for nobody.

    Args:
        floor: held while the Talker speaks.
        listener: hears danger beside the Talker, where there is such a model.
    """

    def __init__(
        self,
        talker: Talker,
        gate: Gatekeeper,
        reasoners: Background,
        floor: asyncio.Lock,
        patience: Patience,
        listener: Model | None = None,
    ) -> None:
        self._talker, self._gate, self._reasoners = talker, gate, reasoners
        self._floor, self._patience = floor, patience
        self._stream, self._pack = talker.stream, talker.pack
        self.alarms = Alarms(talker.pack, talker.session)
        self._listener = SecondListener(talker, self.alarms, floor, listener, self._log_failure)
        self._in_turn = asyncio.Lock()  # one answer at a time, in the order of what was heard
        self._answering: set[int] = set()
        self._turns: set[asyncio.Task[None]] = set()
        self._excused = ""
        """Which excuse was made last; it is made once, until the Talker's model answers again."""
        self._last_word_s = _now_s()
        """When something was said last, by whomever, in seconds of the loop's clock."""

    def is_answering(self, heard: int) -> bool:
        """Tell whether an utterance (its seq) is being answered now."""
        return heard in self._answering

    def begin(self, situation: Situation, heard: int, first: Decision, exchange: Exchange) -> asyncio.Task[None]:
        """Begin the turn of an utterance, in a task of its own; it hands its events over and closes the exchange.

        Whoever is being answered, or waits for it, when an alarm stops the talk hears no more of that answer.
        """
        if not self._in_turn.locked():  # else the silence since the last word goes on, whatever the user adds
            self._last_word_s = _now_s()
        verdict = self.alarms.judge(situation)
        if verdict.urgent:
            self._break_off()
            turn = asyncio.ensure_future(self._sound(verdict, situation, heard, first, exchange))
        else:
            turn = asyncio.ensure_future(self._take_turn(situation, heard, first, exchange))
            self._turns.add(turn)
            self._listener.begin(situation, heard, turn)

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

    async def _sound(
        self, verdict: Verdict, situation: Situation, heard: int, first: Decision, exchange: Exchange
    ) -> None:
        """Say what an alarm says, whoever is speaking or waited for."""
        self.alarms.keep(verdict, situation)
        with contextlib.suppress(Exception):  # the gate's decision is logged if that can be; the words come either way
            await self._gate.waits(situation, heard, first, alarmed=True)
        await self._say(Answer(heard, SAFETY, verdict=verdict), as_pieces(verdict.whole), exchange)

    async def _take_turn(self, situation: Situation, heard: int, first: Decision, exchange: Exchange) -> None:
        """Answer when it is this utterance's turn: at once, or after the Reasoner."""
        queued = self._in_turn.locked() or self._floor.locked()
        answer = Answer(heard, self._talker.model.name)
        async with self._in_turn:
            self._answering.add(heard)
            try:
                with self._filling_silence(answer, situation.text, exchange) as silence:
                    if queued:  # what is believed may have moved on
                        situation = await self._talker.situation(situation.text)
                    await self._wait(answer, situation, first, exchange)
                    async with self._floor:
                        await self._speak(answer, situation, exchange, silence)
            finally:
                self._answering.discard(heard)

    async def _wait(self, answer: Answer, situation: Situation, first: Decision, exchange: Exchange) -> None:
        """Wait for the Reasoner where the gate says so; the answer tells whether it did, and whether in vain."""
        heard = answer.heard
        try:
            verdict = self.alarms.judge(situation)
            if not await self._gate.waits(situation, heard, first, alarmed=bool(verdict.whole or verdict.beside)):
                return
            answer.waited = True
            await exchange.show(await self._say_waiting(situation.text, heard, "wait"))
            self._reasoners.release(heard)
            answer.late = not await self._settled(heard)
        except BaseException as error:  # whatever failed in waiting, an answer follows
            if is_ours(error):
                raise
            answer.waited = False
            await self._log_failure(error)

    async def _settled(self, heard: int) -> bool:
        """Wait for the belief; return whether all was done about it before the deadline."""
        try:
            async with asyncio.timeout(self._patience.deadline_s):
                await self._listener.until_sure(heard, self._reasoners.settled(heard, [self._pack.name]))
        except TimeoutError:
            return False
        return True

    async def _speak(
        self, answer: Answer, situation: Situation, exchange: Exchange, silence: asyncio.Task[None]
    ) -> None:
        """Choose whose words answer: the Reasoner's, the Talker's own, or an alarm's, which may come beside them."""
        text, thought = situation.text, None
        answer.verdict = verdict = self._listener.verdict(answer.heard, text) or self.alarms.judge(situation)
        self.alarms.keep(verdict, situation)
        if verdict.whole:
            answer.model = SAFETY
            silence.cancel()
            await self._say(answer, as_pieces(verdict.whole), exchange)
            return
        first, ask = (verdict.first and f"{verdict.first}\n\n"), (verdict.ask and f"\n\n{verdict.ask}")
        if answer.waited and not answer.late:
            with contextlib.suppress(Exception):  # the Talker finds words of its own
                thought = await self._thought(answer.heard)
        if thought and thought.words and thought.about[-1] == answer.heard:
            answer.model = thought.model
            silence.cancel()
            await self._say(answer, as_pieces(first + thought.words + ask), exchange)
            return
        own = self._talker.speak(
            text, answer.heard, answer.late, thought=thought is not None, before=verdict.first, asked_after=verdict.ask
        )
        await self._say(answer, then(self._or_by_rule(answer, text, after(first, own), silence), ask), exchange)

    async def _or_by_rule(
        self, answer: Answer, text: str, own: AsyncGenerator[str], silence: asyncio.Task[None]
    ) -> AsyncGenerator[str]:
        """Give the Talker's words; where its model, or anything else, fails, a rule's, and say so once."""
        try:
            async with contextlib.aclosing(own) as pieces:
                while (piece := await self._next(pieces)) is not None:
                    silence.cancel()
                    yield piece
            self._excused = ""
            return
        except BaseException as error:  # the outermost edge of a turn: whatever failed, somebody waits
            if is_ours(error):
                raise
            failure = error
        silence.cancel()
        answer.model = "rules"
        await self._log_failure(failure)
        if excuse := self._excuse(failure, text):
            yield Aside(f"\n{excuse} " if answer.words else f"{excuse} ")
        yield await self._rule_words(answer, text)

    async def _next(self, pieces: AsyncGenerator[str]) -> str | None:
        """Return the next piece, None after the last; whoever holds the floor may not be silent for ever."""
        try:
            async with asyncio.timeout(self._patience.speaking_s):
                return await anext(pieces, None)
        except TimeoutError:
            name, patience_s = self._talker.model.name, self._patience.speaking_s
            raise ModelUnavailable(f"{name} said nothing for {patience_s:g} s") from None

    async def _say(self, answer: Answer, words: AsyncGenerator[str], exchange: Exchange) -> None:
        """Speak, piece by piece, and keep what was shown, however it ends."""
        said: Logged | None = None
        try:
            async with contextlib.aclosing(words) as pieces:
                async for piece in pieces:
                    self._last_word_s = _now_s()
                    answer.words += piece
                    answer.kept += "" if isinstance(piece, Aside) else piece
                    await exchange.show(self._stream.show(Piece(text=piece, answers=answer.heard), AGENT))
        finally:
            if answer.words.strip():
                said = await self._write(answer)
        if said:
            await exchange.show(said)

    async def _write(self, answer: Answer) -> Logged:
        """Commit what was said, and remember it."""
        kept = answer.kept.strip()
        new = New(text=kept, kind="chat", by=AGENT, episode=self._talker.session, data={"by_user": False})
        records = await self._stream.build_records([new]) if kept else []
        event = Said(
            text=answer.words.strip(), answers=answer.heard, belief_version=self._belief_version(), model=answer.model,
            waited=answer.waited, late=answer.late, record=records[0].id if records else "",
        )  # fmt: skip
        raised = [Entry(each, AGENT) for each in answer.verdict.events(self._talker.session, answer.heard)]
        entries = [Entry(event, AGENT, tuple(records)), *raised, *self._gate.decision(answer.heard)]
        for attempt in range(1, WRITES + 1):
            try:
                return (await self._stream.commit(*entries))[0]
            except StorageError:
                if attempt == WRITES:
                    raise
                await asyncio.sleep(0.1 * attempt)
        raise AssertionError("unreachable")

    def _belief_version(self) -> int:
        """Return the version of the belief that was read last, which is what an answer is spoken from."""
        record = self._stream.last_version(self._pack.name)
        return (record.version or 0) if record else 0

    async def _thought(self, heard: int) -> Thought | None:
        """Return what the Reasoner came to about an utterance."""
        for logged in await self._stream.store.events(self._stream.name, after=heard, kinds=["thought"]):
            event = logged.event
            if isinstance(event, Thought) and event.slot == self._pack.name and heard in event.about:
                return event
        return None

    async def _say_waiting(self, text: str, heard: int, move: str) -> Logged:
        filler = await self._talker.filler(text, move)
        event = Waiting(text=filler, slots=(self._pack.name,), answers=heard, belief_version=self._belief_version())
        return (await self._stream.commit(Entry(event, AGENT), *self._gate.decision(heard)))[0]

    async def _say_longer(self, answer: Answer, text: str) -> Logged:
        """Say that it takes longer, whether that can be logged or not; who waits for no thought, claims none."""
        move, heard = "wait_longer" if answer.waited else "a_moment", answer.heard
        try:
            return await self._say_waiting(text, heard, move)
        except BaseException as error:  # no fault is a reason to be silent
            if is_ours(error):
                raise
            words = next(iter(phrases(self._pack, move, language_of(text, self._pack.languages))), "…")
            return self._stream.show(Waiting(text=words, slots=(), answers=heard, belief_version=0), AGENT)

    @contextlib.contextmanager
    def _filling_silence(self, answer: Answer, text: str, exchange: Exchange) -> Iterator[asyncio.Task[None]]:
        """Say now and then that the answer takes longer, where nothing else is said; until the task is cancelled.

        Only whoever's turn it is says so: what is queued behind a thought ("thanks") is not itself thought about.
        """

        async def fill() -> None:
            while True:
                if (quiet_s := _now_s() - self._last_word_s) < self._patience.word_s:
                    await asyncio.sleep(self._patience.word_s - quiet_s)
                    continue
                self._last_word_s = _now_s()
                exchange.put(await self._say_longer(answer, text))

        filling = asyncio.ensure_future(fill())
        try:
            yield filling
        finally:
            filling.cancel()

    async def _log_failure(self, failure: BaseException) -> None:
        if isinstance(failure, ModelResting):  # that it is down was said when it was found out
            return
        event = Failed(text=describe(failure), where="talker")
        try:
            await self._stream.commit(Entry(event, AGENT))
        except Exception:  # noqa: BLE001 (a failure that cannot be logged is shown)
            self._stream.show(event, AGENT)

    def _excuse(self, failure: BaseException, text: str) -> str:
        """Say what is true of the failure, once, until it has passed."""
        move = "model_failed" if isinstance(failure, ModelError) else "fault"
        move = "model_refused" if isinstance(failure, ModelRefused) else move
        if move == self._excused:
            return ""
        self._excused = move
        return next(iter(phrases(self._pack, move, language_of(text, self._pack.languages))), "")

    async def _rule_words(self, answer: Answer, text: str) -> str:
        try:
            return await self._talker.answer_by_rule(text, answer.heard, answer.late)
        except Exception:  # noqa: BLE001 (not even what memory holds can be read: something true is said all the same)
            return next(iter(phrases(self._pack, "no_words", language_of(text, self._pack.languages))), "…")


def _now_s() -> float:
    return asyncio.get_running_loop().time()
