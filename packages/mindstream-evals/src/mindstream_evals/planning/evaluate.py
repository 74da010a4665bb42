"""Have several strategies solve questions, and judge the answers; results are stored, so a run can be resumed.

Tools can fail at a given rate. The seed decides which calls of a question fail: the same ones in every strategy.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from mindstream import chance
from mindstream.clock import SystemClock
from mindstream.errors import (
    BudgetSpent,
    InputError,
    ModelDenied,
    ModelError,
    ModelRefused,
    ModelUnavailable,
    ReplyInvalid,
    ToolError,
)
from mindstream.evaluation_cache import EvaluationCache, of_row
from mindstream.models.cached_prompts import CachedPrompts
from mindstream.models.decide import JudgeAnswer
from mindstream.models.model import Call, Model, Part, Piece, Request, ToolSpec, Usage, estimate_tokens
from mindstream.models.recording import fingerprint
from mindstream.models.wrappers.meter import Metered
from mindstream.planning.exemplars import SHIPPED_FILE, shipped_exemplars
from mindstream.planning.formats.rewoo import IN_THE_PAPER
from mindstream.planning.planner import UNPLANNED, WITHOUT_TOOLS, Planner, Strategy
from mindstream.planning.prompts import ActOnTask, AnswerAlone, AnswerFromEvidence, KnowInstead, MakePlan, MendPlan
from mindstream.tools.documents import open_documents
from mindstream.tools.named import model_tool
from mindstream.tools.tool import Tool, Traits, traits_of
from mindstream_evals.planning.questions import Question, score

NOTHING = "No evidence found."
"""The message of a failed call, as in the paper."""
NAMED = {"web": "web_search", "llm": "LLM", "docs": "search_documents", "documents": "search_documents", **IN_THE_PAPER}
"""Names of the tools in this package, by the names that users may type; these include the paper's."""


def read_failures(given: Sequence[str]) -> dict[str, float]:
    """Parse `web=0.3` as a tool and the probability that a call of it fails.

    Raises:
        InputError: a text is not a tool and a number from 0 to 1.
    """
    found = {}
    for each in given:
        name, _, share = each.partition("=")
        try:
            value = float(share)
        except ValueError:
            value = -1.0
        if not name.strip() or not 0 <= value <= 1:
            raise InputError(f"expected a tool and its failure rate (0 to 1), such as web=0.3, found {each[:80]!r}")
        found[NAMED.get(name.strip().casefold(), name.strip())] = value
    return found


def check_failures(failures: Mapping[str, float], names: Sequence[str]) -> None:
    """Refuse a failure rate for a tool that no strategy calls.

    Raises:
        InputError: a rate is given for such a tool.
    """
    for name in failures:
        if name not in names:
            there = f"use one of: {', '.join(names)}" if names else "the chosen strategies call no tools"
            raise InputError(f"--fail: no strategy calls a tool {name!r}; {there}")


@dataclass
class Failing:
    """A tool whose calls fail with a given probability (`share`)."""

    tool: Tool
    share: float
    seed: int
    question: str
    calls: int = 0
    failed: int = 0

    @property
    def spec(self) -> ToolSpec:
        return self.tool.spec

    @property
    def traits(self) -> Traits:
        return replace(traits_of(self.tool), batch=None)  # no batches: each call must pass through this wrapper

    async def __call__(self, call: Call) -> str:
        self.calls += 1
        if chance.fraction(self.seed, self.question, self.spec.name, self.calls) < self.share:
            self.failed += 1
            raise ToolError(NOTHING)
        return await self.tool(call)


def with_failures(
    tools: Sequence[Tool], failures: Mapping[str, float], seed: int, question: str
) -> tuple[tuple[Tool, ...], list[Failing]]:
    """Return the tools for a question, with failing tools wrapped, and the wrappers."""
    failing = {
        name: Failing(tool, failures[name], seed, question) for tool in tools if (name := tool.spec.name) in failures
    }
    return tuple(failing.get(tool.spec.name, tool) for tool in tools), list(failing.values())


CLOCK = SystemClock()
HALTING = (BudgetSpent, ModelDenied, ModelUnavailable)
PARTS = TypeAdapter(list[Part])
USED = TypeAdapter(list[Usage])


@dataclass
class RunCalls:
    """The model calls of a run.

    Attributes:
        usd: cost in US dollars; None if a price is unknown.
        before_s: seconds that the calls before an interruption of the run took; their replies are stored.
        halted: the error that ended the run without a result: a model is not available, or the budget is spent.
    """

    ledger: EvaluationCache
    run: str
    calls: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = 0.0
    before_s: float = 0.0
    halted: ModelError | None = None
    _asked: Counter[str] = field(default_factory=Counter)

    def key(self, request: Request, name: str) -> str:
        """Count a call, and return its key: a fingerprint of prompt, model and run, and the number of calls so far with
        this fingerprint."""
        asked = fingerprint(request, name, self.run)
        self._asked[asked] += 1
        return f"{asked}.{self._asked[asked]}"

    def take(self, used: list[Usage]) -> None:
        """Count one call, with the tokens and cost of all its attempts; `usd` becomes None if a cost is unknown."""
        self.calls += 1
        for each in used:
            self.input_tokens += each.input_tokens
            self.cached_tokens += each.cached_tokens
            self.output_tokens += each.output_tokens
            self.usd = None if self.usd is None or each.cost_usd is None else self.usd + each.cost_usd


class KeptModel:
    """A model for one run that stores replies in the run's ledger.

    A call whose reply is stored is answered from the ledger. Any other call goes to the wrapped model.
    """

    def __init__(self, model: Model, calls: RunCalls) -> None:
        self.name = model.name
        self._model, self._calls = model, calls

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        calls, key = self._calls, self._calls.key(request, self.name)
        if (found := calls.ledger.find(key)) is not None:
            calls.take(USED.validate_python(found["used"]))
            calls.before_s += found["seconds"]
            for part in PARTS.validate_python(found["parts"]):
                yield part
            return
        began, heard, metered = CLOCK.elapsed(), list[Part](), list[Usage]()
        try:
            async with aclosing(self._model.reply(replace(request, on_call=_into(metered)))) as parts:
                async for part in parts:
                    heard.append(part)
                    yield part
        except HALTING as error:  # a tool may hide a failed model call from its caller; the run must stop
            calls.halted = error
            raise
        finally:
            used = metered or [part for part in heard if isinstance(part, Usage)] or _estimated(request, heard)
            calls.take(used)
        row: dict[str, Any] = {
            "row": "call",
            "prompt": request.prompt.label(),
            "parts": PARTS.dump_python(heard, mode="json"),
            "used": [asdict(each) for each in used],
            "seconds": CLOCK.elapsed() - began,
        }
        calls.ledger.keep(key, row)


def _estimated(request: Request, heard: list[Part]) -> list[Usage]:
    """Estimate the tokens of a model call that was interrupted or has no usage data.

    The result is [] if neither text nor arguments of a tool call were received.
    """
    said = "".join(
        part.text if isinstance(part, Piece) else part.arguments for part in heard if isinstance(part, Piece | Call)
    )
    return [Usage(request.tokens, estimate_tokens(said))] if said else []


def _into(metered: list[Usage]) -> Any:
    def tell(call: Metered) -> None:
        if call.usage is not None:
            metered.append(call.usage)

    return tell


PROMPTS = (MakePlan, MendPlan, KnowInstead, AnswerFromEvidence, ActOnTask, AnswerAlone)
"""Prompts whose text can change the result of a run."""
JUDGED, EXPECTED, NAME = 4_000, 20, 80
"""JUDGED: maximum characters of an answer that a judge is shown. EXPECTED: maximum number of expected answers that it
is shown. NAME: maximum characters of a document's name."""


@dataclass(frozen=True)
class Way:
    """A planning strategy, and its name in the results (`label`).

    Attributes:
        exemplars: exemplars for the planner; None: the shipped exemplars whose tools are available.
    """

    how: Strategy
    label: str
    exemplars: tuple[str, ...] | None = ()

    def shots(self, specs: Sequence[ToolSpec]) -> tuple[str, ...]:
        """Return the planner's exemplars for these tools; empty for a strategy without a plan."""
        if self.how in UNPLANNED:
            return ()
        return shipped_exemplars(specs) if self.exemplars is None else self.exemplars


@dataclass(frozen=True)
class Outcome:
    """The result of a strategy for a question.

    Attributes:
        tool_calls: number of tool calls; failed: number of tool calls that the evaluation made fail (see `Failing`).
        input_tokens: input tokens, including tokens read from a cache.
    """

    question: str
    way: str
    answer: str = ""
    stopped: str = ""
    unanswered: str = ""
    calls: int = 0
    tool_calls: int = 0
    failed: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    usd: float | None = None
    seconds: float = 0.0

    @property
    def tokens(self) -> int:
        """Number of input and output tokens; cached ones count in full."""
        return self.input_tokens + self.output_tokens

    @property
    def tokens_at_a_tenth(self) -> float:
        """Number of input and output tokens; cached ones count a tenth."""
        return self.tokens - 0.9 * self.cached_tokens


@dataclass
class Evaluation:
    """A set of questions, strategies, and their tools.

    Attributes:
        tools: tools for every question; a question with documents gets a search tool in addition.
        with_llm: whether the model is also a tool. own_documents: whether each question's documents can be searched.
        named: other settings in the keys of stored runs: tools, folders, prompts.
        elsewhere: solves a question in another process; None: this process solves all questions.
    """

    asked: CachedPrompts
    ways: Sequence[Way]
    tools: Sequence[Tool] = ()
    with_llm: bool = False
    own_documents: bool = True
    failures: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    replans: int = 1
    own_knowledge: bool = False
    embed: str = "wordllama"
    named: str = ""
    elsewhere: Callable[[Question], Awaitable[list[Outcome]]] | None = None

    def __post_init__(self) -> None:
        self._words = [prompt.words() for prompt in PROMPTS]

    def key(self, question: Question, way: Way, specs: Sequence[ToolSpec]) -> str:
        """Return the key of a run: everything that its answer depends on."""
        names = [(role, self._named(role).name) for role in self._roles(way)]
        tools = () if way.how in WITHOUT_TOOLS else (*(spec.name for spec in specs), self.with_llm)
        failures = (self.seed, sorted(self.failures.items())) if self.failures and tools else ()
        context = question.context if tools and self.own_documents else ()
        shown = () if way.how in UNPLANNED else way.exemplars
        shown = (SHIPPED_FILE.read_text("utf-8"),) if shown is None else shown
        terms = (self.replans, self.own_knowledge, self.embed, self.named) if tools else ()
        return chance.keyed_token(
            32, "run", question.text, context, way.how, shown, tools, failures, terms, names, self._words
        )

    async def solve(self, questions: Sequence[Question]) -> list[Outcome]:
        """Solve each question by each strategy. Stored results are reused.

        Raises:
            ModelError: a model is not available, or the budget is spent. Earlier results are stored.
        """
        found = await self.asked.each("solving", questions, self.solve_one)
        return [outcome for outcomes in found for outcome in outcomes]

    def find(self, question: Question, way: Way, specs: Sequence[ToolSpec]) -> Outcome | None:
        """Return a stored result; None: there is none."""
        row = self.asked.ledger.find(self.key(question, way, specs))
        return of_row(Outcome, {**row, "question": question.id, "way": way.label}) if row else None

    def llm(self, calls: RunCalls | None = None) -> tuple[Tool, ...]:
        """Return the model as a tool, if `with_llm`; else an empty tuple."""
        calls = calls or RunCalls(self.asked.ledger, "")
        return (model_tool(self._model(calls, "worker")),) if self.with_llm else ()

    def specs(self, documents: Sequence[Tool] = ()) -> list[ToolSpec]:
        """Return the specs of the shared tools and of a question's documents."""
        return [tool.spec for tool in (*self.tools, *documents)]

    async def solve_one(self, question: Question) -> list[Outcome]:
        """Solve a question by each strategy; stored results are reused. Raise ModelError if a model is not available,
        or the budget is spent."""
        own = self.own_documents and bool(question.context)
        specs = self.specs()
        found = {way.label: self.find(question, way, specs) for way in self.ways}
        if not all(found.values()) and self.elsewhere is not None:
            return await self.elsewhere(question)
        if not all(found.values()):
            async with self.documents(question) if own else nullcontext(()) as documents:
                for way in self.ways:
                    found[way.label] = found[way.label] or await self._solve(question, way, documents)
        return [outcome for outcome in found.values() if outcome]

    async def _solve(self, question: Question, way: Way, documents: Sequence[Tool]) -> Outcome:
        key = self.key(question, way, self.specs())
        calls = RunCalls(self.asked.ledger, key)
        models = {role: self._model(calls, role) for role in self._roles(way)}
        all_tools = () if way.how in WITHOUT_TOOLS else (*self.tools, *documents, *self.llm(calls))
        tools, failing = with_failures(all_tools, self.failures, self.seed, question.id)
        planner = Planner(
            model=models,
            tools=tools,
            how=way.how,
            exemplars=way.shots([tool.spec for tool in tools]),
            replans=self.replans,
            own_knowledge=self.own_knowledge,
        )
        began, answer, stopped, unanswered, tool_calls = CLOCK.elapsed(), "", "", "", 0
        try:
            solution = await planner.solve(question.text)
            answer, stopped, unanswered = solution.answer, solution.stopped, solution.unanswered
            tool_calls = solution.spent.tool_calls
        except (ReplyInvalid, ModelRefused) as error:  # counts as a wrong answer, with its cost
            stopped = str(error)
        if calls.halted:
            raise calls.halted
        outcome = Outcome(
            question.id,
            way.label,
            answer,
            stopped,
            unanswered,
            calls.calls,
            tool_calls,
            sum(each.failed for each in failing),
            calls.input_tokens,
            calls.cached_tokens,
            calls.output_tokens,
            calls.usd,
            CLOCK.elapsed() - began + calls.before_s,
        )
        self.asked.ledger.keep(key, {"row": "run", **asdict(outcome)})
        return outcome

    def _roles(self, way: Way) -> tuple[str, ...]:
        """Return the roles whose models affect a strategy's answer; the judge is not among them."""
        if way.how in UNPLANNED:
            return ("worker",)
        return ("planner", "solver", "replanner", *(["worker"] if self.with_llm else []))

    def _named(self, role: str) -> Model:
        return self.asked.models.of(role, *(("planner",) if role == "replanner" else ()))

    def _model(self, calls: RunCalls, role: str) -> Model:
        return KeptModel(self._named(role), calls)

    @asynccontextmanager
    async def documents(self, question: Question) -> AsyncIterator[tuple[Tool, ...]]:
        """Open a question's documents as search tools."""
        with tempfile.TemporaryDirectory(prefix="mindstream-") as folder:
            _write_documents(Path(folder), question)
            async with open_documents(folder, embed=self.embed) as documents:
                await documents.refresh()  # index now, so that its time is not added to the first strategy
                yield documents.tools()

    # Judging.

    async def judge(self, questions: Sequence[Question], outcomes: Sequence[Outcome]) -> dict[tuple[str, str], bool]:
        """Let a model judge the answers; return whether each is right, by question and strategy.

        An empty answer is wrong and an exact one right without a call. Answers whose verdict cannot be read are left
        out.
        """
        by_id = {each.id: each for each in questions}

        async def one(outcome: Outcome) -> tuple[tuple[str, str], bool] | None:
            right = await self._judge(by_id[outcome.question], outcome.answer)
            return None if right is None else ((outcome.question, outcome.way), right)

        return dict(await self.asked.each("judging", outcomes, one))

    async def _judge(self, question: Question, answer: str) -> bool | None:
        if not answer.strip() or score(question.kind, question.answers, answer).exact:
            return bool(answer.strip())  # decided without a call of the judge
        prompt = judge_prompt(question, answer)
        kept = await self.asked.kept(prompt, {"row": "verdict", "question": question.id})
        return None if kept is None else kept.reply.right


def _write_documents(folder: Path, question: Question) -> None:
    """Write each document of a question to a file that is named by the document's title, with one sentence per line."""
    for number, (title, lines) in enumerate(question.context, 1):
        name = "".join(sign if sign.isalnum() or sign in " -_()," else "_" for sign in title)[:NAME].strip()
        path = folder / f"{name or number}.txt"
        path = path.with_name(f"{name} {number}.txt") if path.exists() else path
        path.write_text("\n".join((title, "", *lines)), "utf-8", "replace")


def judge_prompt(question: Question, answer: str) -> JudgeAnswer:
    return JudgeAnswer(question=question.text, expected=question.answers[:EXPECTED], answer=answer[-JUDGED:])


def shuffled(questions: Sequence[Question], outcomes: Sequence[Outcome]) -> list[Outcome]:
    """Return the control: as answer to each question, the answer of the same strategy to the next question.

    Empty if there is only one question.
    """
    order = [each.id for each in questions]
    following = dict(zip(order, [*order[1:], *order[:1]], strict=True))
    said: dict[tuple[str, str], Any] = {(each.question, each.way): each.answer for each in outcomes}
    return [
        Outcome(each.question, each.way, said[following[each.question], each.way])
        for each in outcomes
        if len(order) > 1
    ]
