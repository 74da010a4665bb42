"""Membership in a pool: `Member`, which minds, planners and lives take to use a pool; and `Offering`, to offer answers.

Answers that are offered by `Offering` are private until the user shares them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from mindstream.errors import InputError, MindstreamError
from mindstream.foreign_code import describe
from mindstream.memory.recall.exemplars import Example
from mindstream.models.model import Model
from mindstream.models.roles import AnyModels, open_models
from mindstream.sharing.admission import Pair, offer
from mindstream.sharing.events import ExemplarJudged
from mindstream.sharing.exemplar import TOKENS, Exemplar, render_shot, shots
from mindstream.sharing.lessons import Learned, Line, Verdict, choose_lessons, learn, show_lessons
from mindstream.sharing.pool import Pool


@dataclass(frozen=True)
class Member:
    """An agent as a member of a pool. Minds, planners and lives take this object as `exemplars=`.

        member = Member(pool, "ann", scorer="openai:gpt-5-mini")
        planner = Planner(model="openai:gpt-5-mini", exemplars=member)  # its prompts show similar good answers
        await member.offer(question, answer, shown=[])  # graded by the scorer; admitted if it is good

    Attributes:
        agent: the name under which the agent reads and writes.
        model: the name of the model that writes the agent's answers.
        scorer: the model that grades the agent's offers: a model, its name, or `Models` (role `scorer`); None: the
            agent only reads.
        private: whether the agent's offers are private: only the agent can read an offer until it shares the offer
            (`Pool.release`).
        tokens: maximum number of tokens of all exemplars in a prompt.
        user: the user for whom the agent works, if the pool does not list this user by name. Lessons from this user's
            verdicts are private until a member shares them.
        render: formats an exemplar for a prompt.
    """

    pool: Pool
    agent: str
    model: str = ""
    scorer: AnyModels | None = None
    private: bool = False
    tokens: int = TOKENS
    render: Callable[[Exemplar], str] = render_shot
    user: str = ""

    async def examples(self, query: str, k: int = 3) -> list[Example]:
        """Return the lessons for a query, as one example, and then the best exemplars.

        There are at most k exemplars, and only as many as fit into `tokens`.
        """
        lessons = show_lessons(await choose_lessons(self.pool, query, self.agent, self.user))
        kept = shots(await self.pool.recall(query, k, reader=self.agent), self.tokens)
        return [*lessons, *(Example(self.render(each), each.id, self.pool.is_untrusted(each.id)) for each in kept)]

    async def learn(
        self, task: str, work: Sequence[Line], verdict: Verdict, shown: Sequence[str] = (), *, untrusted: bool = False
    ) -> Learned:
        """Change the pool's lessons by the verdict on a task; see `mindstream.sharing.lessons.learn`.

        Args:
            shown: ids of the lessons that were in the prompt (`Solution.lessons`, `Example.lessons`).
            untrusted: whether the work contains third-party content.

        Raises:
            InputError: the member has no scorer (the model that also edits lessons), or the agent is not a member.
            SettingsError: the scorer is neither a model nor the name of one.
            ModelError: the model gave no usable answer; nothing was written.
        """
        async with open_models(self._scorer()) as models:
            model, verdict = models.of("scorer"), replace(verdict, by=verdict.by or self.user)
            return await learn(
                self.pool, model, task, work, verdict, writer=self.agent, shown=shown, untrusted=untrusted
            )

    def _scorer(self) -> AnyModels:
        if self.scorer is None:
            raise InputError(
                f"{self.agent!r} can only read from the pool, because it has no scorer; name one: `Member(…, scorer=…)`"
            )
        return self.scorer

    async def offer(self, query: str, answer: str, shown: Sequence[Example], *, asked_by: str = "") -> ExemplarJudged:
        """Offer an answer to the pool, and return the verdict; `shown`: the examples in the prompt of the answer.

        Raises:
            InputError: the member has no scorer, or the offer is invalid (see `admission.offer`).
            SettingsError: the scorer is neither a model nor the name of one.
            ModelError, TimeoutError: the scorer failed or took too long; `judge_open` judges the pair later.
        """
        pair = Pair(query, answer, self.model, asked_by, tuple(each.id for each in shown if each.id), self.private)
        async with open_models(self._scorer()) as models:
            return await offer(self.pool, pair, self.agent, models.of("scorer"))

    async def helped(self, shown: Sequence[Example], value: float, query: str = "") -> None:
        """Record the quality, from 0 to 1, of an answer that had these examples in its prompt.

        Args:
            query: the question. If the same question is asked again, an exemplar that helped with it ranks higher. This
                works only for answers with a single exemplar in the prompt: of several, it is unknown which one helped.
        """
        await self.pool.helped([each.id for each in shown if each.id], value, self.agent, query)


def plan_shot(exemplar: Exemplar) -> str:
    """Format an exemplar whose answer is a plan, for planners."""
    return f"Question: {exemplar.query}\n{exemplar.answer}"


REMEMBERED = 50
"""Maximum number of latest questions for which `Offering` remembers the shown exemplars."""


@dataclass
class Offering:
    """Offer a member's answers to its pool.

    A mind takes this object as `exemplars=`. The object returns exemplars of the pool for a question, and remembers
    them. A later offer of the answer to this question has to name the exemplars.

    Attributes:
        scorer: the model that grades the offers; None: not set yet.
    """

    member: Member
    scorer: Model | None = None
    _shown: dict[str, tuple[Example, ...]] = field(default_factory=dict)

    async def examples(self, query: str, k: int) -> Sequence[Example]:
        """Return exemplars for a question, and remember them."""
        found = tuple(await self.member.examples(query, k))
        self._shown[query] = found
        for old in list(self._shown)[:-REMEMBERED]:
            del self._shown[old]
        return found

    async def offer(self, query: str, answer: str, shown: Sequence[Example] = ()) -> str:
        """Offer an answer as a private pair, unless the answer's prompt contained untrusted text.

        Return the outcome as one line for the user.
        """
        shown = shown or self._shown.get(query, ())
        pool = self.member.pool.name
        if any(each.foreign for each in shown):
            return f"not offered to {pool}: the prompt of the answer contained untrusted text"
        member = replace(self.member, scorer=self.scorer, private=True)
        try:
            judged = await member.offer(query, answer, shown)
        except (MindstreamError, TimeoutError) as error:
            return f"the answer was not admitted to {pool}: {describe(error)}"
        if judged.verdict == "rejected":
            return f"{pool} rejected {judged.id}: {judged.reasons[0] if judged.reasons else 'no reason was recorded'}"
        return (
            f"{pool} admitted {judged.id}; it is private: mindstream pool share {pool} {judged.id} lets others read it"
        )


def offered_pool(pool: str, offer: str) -> str:
    """Return the name of the pool to open: `offer`, or `pool` if `offer` is "".

    Answers based on exemplars of one pool cannot be offered to another pool.

    Args:
        pool: the pool that is only read; "": none.
        offer: the pool to which answers are offered; "": none.

    Raises:
        InputError: both names are given, and they differ.
    """
    if pool and offer and pool != offer:
        raise InputError(f"--offer {offer!r}: answers based on exemplars of {pool!r} can be offered only to {pool!r}")
    return offer or pool
