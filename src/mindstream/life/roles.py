"""M1 and M0 as tools: M2 calls M1 to do a task, M1 calls M0 to think about a question; only results are returned."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from mindstream.errors import BudgetSpent, ModelError, ModelUnavailable, ReplyInvalid
from mindstream.foreign_code import ForeignFailure, ForeignTask
from mindstream.life.agent import LAST, StepCalls, StepModel, Toolbox
from mindstream.life.prompts import DREAM, CarryOut, ThinkDeeply, spec_of
from mindstream.life.steps import Done, Steps
from mindstream.life.tools import Arguments, LifeTool, OutsideTools, OwnTool, Where, recall_tool, retain_tool
from mindstream.log.events import Failed
from mindstream.memory.lifecycle.sleep import Compose, Dreamt, compose_dream, fragments_of
from mindstream.memory.recall.exemplars import Example, Exemplars, find_examples
from mindstream.memory.store.record import Record, is_tainted
from mindstream.models.model import Call, Model
from mindstream.models.prompt import Prompt
from mindstream.models.roles import Models
from mindstream.models.rules import Rules
from mindstream.text.links import links
from mindstream.tools.call import Observation, run_loop, show_result

if TYPE_CHECKING:
    from mindstream.life.life import LifeConfig

STEPS = {"M1": 12, "M0": 4}
"""Maximum number of model calls of the role M1 for one task, and of the role M0 for one question."""
EXEMPLAR_S, OFFER_S = 10.0, 120.0
"""EXEMPLAR_S: maximum seconds that M1 (the role that does tasks) waits for exemplars (solved tasks of others) before a
task. OFFER_S: maximum seconds for offering M1's result as an exemplar, including the grading."""
OPENED, CLOSED = "<|thinking_start|>", "<|thinking_end|>"
"""Marks around the result of M0 (the role that thinks) in the prompt of M1 (the role that does tasks). Marks inside
M0's text are escaped, like all data."""


def show_thoughts(call: Call, text: str) -> str:
    """Return the text of a result as data between tags; the marks around M0's result are not escaped."""
    if call.tool != "M0" or not (text.startswith(OPENED) and text.endswith(CLOSED)):
        return show_result(call, text)
    tag, _, rest = show_result(call, text[len(OPENED) : -len(CLOSED)]).partition("\n")
    thoughts, _, end = rest.rpartition("\n")
    return f"{tag}\n{OPENED}{thoughts}{CLOSED}\n{end}"


@dataclass
class Roles:
    """Creates the tools M1 (does a task) and M0 (thinks about a question), by which other roles call these roles.

    Attributes:
        outside: the external tools.
        exemplars: finds how similar tasks were done, for M1's prompt.
    """

    steps: Steps
    models: Models
    language: str
    outside: OutsideTools
    exemplars: Exemplars | None
    config: LifeConfig

    def m1_tool(self) -> OwnTool:
        """Return the tool M1(task, context), by which the role M1 carries out a task.

        M1 may call R (recall memories), U (remember), M0, and the external tools that the task needs.
        """
        return OwnTool(spec_of("M1", self.language), self._carry_out)

    def m0_tool(self) -> OwnTool:
        """Return the tool M0(question, context), by which the role M0 thinks about a question.

        M0 may call R (recall memories) and U (remember).
        """
        return OwnTool(spec_of("M0", self.language), self._think)

    async def _carry_out(self, given: Arguments, where: Where) -> Done:
        task = str(given.task).strip()
        attached: dict[str, LifeTool] = {tool.spec.name: tool for tool in await self.outside.find(task)}
        own: list[LifeTool] = [*self._memory(), self.m0_tool()]
        if self.outside.has_more:
            own.append(self._find_tools(attached))

        def toolbox() -> Mapping[str, LifeTool]:
            return {tool.spec.name: tool for tool in own} | attached

        specs = tuple(tool.spec for tool in attached.values())
        was_begun = f"{where.id}.1" in self.steps.state.asked
        shown, missed = await find_examples(self.exemplars, task, EXEMPLAR_S)
        prompt = CarryOut(
            task=task, context=given.context, exemplars=tuple(map(str, shown)), language=self.language, tools=specs
        )
        state, texts = self.steps.state, () if where.tainted else (task, given.context)
        trusted = links([state.goal, *state.orders, *state.answers.values(), *texts])
        tainted = where.tainted or any(each.foreign for each in shown)
        found = await self._work(where.id, "M1", prompt, toolbox, tainted, trusted)
        if not (found.failed or found.untrusted or was_begun):  # was_begun: which exemplars M1 saw is unknown
            missed = await self._offer(task, found.text, shown) or missed
        return Done(found, events=(Failed(text=missed, where="exemplars"),) if missed else ())

    async def _work(
        self,
        id_: str,
        role: str,
        prompt: Prompt[str],
        toolbox: Toolbox,
        tainted: bool,
        given: frozenset[str] = frozenset(),
    ) -> Observation:
        """Let a role, M1 or M0, work until it answers; return only the answer.

        Args:
            given: web addresses that may be fetched after third-party content was read.

        Raises:
            BudgetSpent: the budget allows no further model call.
            Halted: a person has paused or stopped the life, or texts were erased.
        """
        model = self.models.of(role)
        calls = StepCalls(self.steps, role, toolbox, tainted, given=given)
        asked = StepModel(model.name, id_, lambda step, request: self.steps.reply(step, role, model, request))
        try:
            answer = await run_loop(
                asked, prompt, calls, steps=STEPS[role], role=role, last=LAST[self.language], show=show_thoughts
            )
        except BudgetSpent:
            raise
        except ModelError as error:
            gave = "gave no answer" if isinstance(error, ReplyInvalid) else "could not answer"
            return Observation(f"{role} {gave}: {error}", failed=True, untrusted=calls.tainted)
        return Observation(answer, untrusted=calls.tainted)

    async def _offer(self, task: str, result: str, shown: Sequence[Example]) -> str:
        """Offer a result to the source of exemplars, if offering is configured. Return why the offer failed; "": it did
        not fail."""
        if (source := self.exemplars) is None or not self.config.offers:
            return ""
        try:
            await ForeignTask(lambda: source.offer(task, result, shown)).result(OFFER_S)
        except ForeignFailure as broken:
            return str(broken)
        return ""

    def dreaming(self, where: Where) -> Compose:
        """Return a function that writes the dream of the tool S (sleep). It asks M1 (the role that does tasks)."""
        model = self.models.of("M1")

        async def compose(rater: Model, forgotten: Sequence[Record]) -> Dreamt:
            if model.name == Rules.name:
                return await compose_dream(rater, forgotten)
            toolbox = self._dream_tools()
            prompt = CarryOut(
                task=DREAM[self.language], context="\n---\n".join(fragments_of(forgotten)), language=self.language
            )
            try:
                tainted = any(map(is_tainted, forgotten))
                found = await self._work(f"{where.id}.dream", "M1", prompt, lambda: toolbox, tainted)
            except BudgetSpent as error:
                raise ReplyInvalid(str(error)) from None
            await self.steps.flush()  # the steps must be on disk before the dream is written
            if found.failed:
                raise ModelUnavailable(found.text)
            return Dreamt(found.text, model.name, found.untrusted)

        return compose

    def _dream_tools(self) -> Mapping[str, LifeTool]:
        own: list[LifeTool] = [*self._memory(), self.m0_tool()] if self.config.dream_tools else []
        outside = self.outside.named(self.config.dream_tools)
        return {tool.spec.name: tool for tool in (*own, *outside) if tool.spec.name in self.config.dream_tools}

    async def _think(self, given: Arguments, where: Where) -> Done:
        memory: dict[str, LifeTool] = {tool.spec.name: tool for tool in self._memory()}
        prompt = ThinkDeeply(question=given.question, context=given.context, language=self.language)
        found = await self._work(where.id, "M0", prompt, lambda: memory, where.tainted)
        return Done(found if found.failed else replace(found, text=f"{OPENED}{found.text}{CLOSED}"))

    def _find_tools(self, attached: dict[str, LifeTool]) -> OwnTool:
        """Return the tool find_tools(need), which attaches more external tools to the task in progress."""

        async def look(given: Arguments, where: Where) -> Done:  # noqa: ARG001
            found = await self.outside.find(given.need)
            return Done(Observation("\n".join(f"{each.spec.name}: {each.spec.description}" for each in found)))

        async def attach(given: Arguments) -> None:
            attached.update({tool.spec.name: tool for tool in await self.outside.find(given.need)})

        return OwnTool(spec_of("find_tools", self.language), look, attach)

    def _memory(self) -> tuple[LifeTool, ...]:
        return recall_tool(self.steps, self.language, self.config.returned), retain_tool(self.steps, self.language)
