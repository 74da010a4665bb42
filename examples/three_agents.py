"""Share a pool between three agents: an answer of one is shown to the next, until it is withdrawn.

No API key, no download. Rules grade only the form of offers; agents and rubric ship in mindstream_evals.sharing.
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
            print(f"The pool verse is {OWNER}'s, with {len(seeds)} seeds. Its rubric asks for {rubric.threshold} of:")
            print("  " + ", ".join(f"{each.name} {each.points}" for each in rubric.criteria))

            print("\n1. Offers are judged by the rubric.")
            first = limerick.stream[0]
            await offer(Member(pool, limerick.name, "model A", Rules()), first.query, first.answer, ())
            await offer(Member(pool, limerick.name, "model A", Rules()), first.query, "cod " * 30, ())
            poem = chinese.stream[0]
            await offer(Member(pool, chinese.name, "model B", Rules()), poem.query, poem.answer, ())

            print("\n2. Another agent, on another model, is shown the first one's answer.")
            poet = Member(pool, sonnet.name, "model C", Rules())
            shown = await ask(poet)
            answer = sonnet.stream[0].answer
            drawn = await offer(poet, ASKED, answer, shown)

            print("\n3. The first agent's pairs are withdrawn, with every pair derived from them.")
            gone = await pool.withdraw(writer=limerick.name, by=OWNER, because="found elsewhere")
            print(f"{OWNER} withdraws all of {limerick.name}: {len(gone)} pairs, admitted or not")
            await ask(poet)
            served = pool.served(await pool.state(), chinese.name)
            print(f"is {sonnet.name}'s own still served to {chinese.name}? {'yes' if drawn in served else 'no'}")


async def offer(agent: Member, query: str, answer: str, shown: Sequence[Example]) -> str:
    """Offer a pair, print the verdict, and return its id."""
    judged = await agent.offer(query, answer, shown)
    print(f"{agent.agent} ({agent.model}) offers {query!r}")
    print(f"  {judged.verdict}, {judged.score:g} points: {judged.reasons[0]}")
    return judged.id


async def ask(agent: Member) -> Sequence[Example]:
    """Print and return the exemplars shown to an agent before a question."""
    shown = await agent.examples(ASKED, 1)
    print(f"{agent.agent} ({agent.model}) asks {ASKED!r} and is shown:")
    print(indent("\n".join(map(str, shown)), "  | "))
    return shown


if __name__ == "__main__":
    asyncio.run(main())
