"""Three agents share a pool: what one wrote stands before the next one's question, until it is withdrawn.

    python examples/three_agents.py

No key and no download. Rules grade the form of what is offered and nothing else (they say so); the agents, their
seeds and the rubric are those that come with the package (mindstream/sharing/agents).
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Sequence
from textwrap import indent

from mindstream_evals.sharing.agents import load_cast

from mindstream import Member, Pool
from mindstream.memory.recall.exemplars import Example
from mindstream.models.rules import Rules
from mindstream.sharing.admission import Pair, lay_in

OWNER = "olga"
ASKED = "Write a sonnet about a sailor who is afraid of fish."


async def main() -> None:
    cast = load_cast(["limerick", "wuyanlushi", "sonnet"])
    limerick, chinese, sonnet = cast.agents
    rubric = cast.rubrics["literature"]
    with tempfile.TemporaryDirectory() as folder:
        async with Pool.open(folder, "verse") as pool:
            await pool.create(rubric.domain, OWNER, members=[each.name for each in cast.agents])
            await pool.freeze_rubric(rubric, OWNER)
            seeds = [Pair(each.query, each.answer) for agent in cast.agents for each in agent.seeds[:1]]
            await lay_in(pool, seeds, OWNER)
            print(f"The pool verse is {OWNER}'s, with {len(seeds)} seeds. Its rubric wants {rubric.threshold} of:")
            print("  " + ", ".join(f"{each.name} {each.points}" for each in rubric.criteria))

            print("\n1. What is offered is judged by the rubric.")
            first = limerick.stream[0]
            await offer(Member(pool, limerick.name, "model A", Rules()), first.query, first.answer, ())
            await offer(Member(pool, limerick.name, "model A", Rules()), first.query, "cod " * 30, ())
            poem = chinese.stream[0]
            await offer(Member(pool, chinese.name, "model B", Rules()), poem.query, poem.answer, ())

            print("\n2. Another agent, on another model, is shown what the first one wrote.")
            poet = Member(pool, sonnet.name, "model C", Rules())
            shown = await ask(poet)
            answer = sonnet.stream[0].answer
            drawn = await offer(poet, ASKED, answer, shown)

            print("\n3. What the first one wrote is withdrawn, and what was drawn from it goes with it.")
            gone = await pool.withdraw(writer=limerick.name, by=OWNER, because="found elsewhere")
            print(f"{OWNER} withdraws all of {limerick.name}: {len(gone)} pairs, admitted or not")
            await ask(poet)
            served = pool.served(await pool.state(), chinese.name)
            print(f"is {sonnet.name}'s own still served to {chinese.name}? {'yes' if drawn in served else 'no'}")


async def offer(agent: Member, query: str, answer: str, shown: Sequence[Example]) -> str:
    """Offer a pair, print what became of it, and return its id."""
    judged = await agent.offer(query, answer, shown)
    print(f"{agent.agent} ({agent.model}) offers {query!r}")
    print(f"  {judged.verdict}, {judged.score:g} points: {judged.reasons[0]}")
    return judged.id


async def ask(agent: Member) -> Sequence[Example]:
    """Print what an agent is shown before a question, and return it."""
    shown = await agent.examples(ASKED, 1)
    print(f"{agent.agent} ({agent.model}) asks {ASKED!r} and is shown:")
    print(indent("\n".join(map(str, shown)), "  | "))
    return shown


if __name__ == "__main__":
    asyncio.run(main())
