"""Use a pool of exemplars in a conversation, a plan and a life: another agent's answers are shown to each.

No API key, no download: a scripted model reports how many exemplars it was shown, since rules ignore exemplars.
"""

import asyncio
import json
import tempfile
from collections.abc import AsyncGenerator
from pathlib import Path

from mindstream import Call, Coach, Life, LifeConfig, ManualClock, Member, Mind, Models, Planner, Pool, ask, tool
from mindstream.models.model import Part, Piece, Request
from mindstream.models.rules import Rules
from mindstream.sharing.admission import Pair, lay_in
from mindstream.sharing.grading import DraftRubric
from mindstream.sharing.member import plan_shot
from mindstream.tools.calculator import calculator

SEEDS = (
    Pair("How do I water a fern?", "From below: stand the pot in water for ten minutes, once a week."),
    Pair("How many litres do 12 ferns of 0.5 l take?", "Plan: multiply.\n#E1 = calculator[12 * 0.5]"),
)
BENS = Pair("How do I water a cactus?", "Hardly: a small cup every third week, none in winter.")
ASKED, SUM, TASK = (
    "How do I water an orchid?", "How many litres do 8 orchids of 0.2 l take?", "Write down how to water an orchid.",
)  # fmt: skip


class Shown:
    """Report the number of exemplars in each request, and reply as far as this example needs."""

    name = "shown"

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        prompt, label = request.prompt, request.prompt.label()
        shots = len(getattr(prompt, "exemplars", ()))
        if label == "make_plan":
            yield Piece(f"Plan: as in {shots} examples.\n#E1 = calculator[8 * 0.2]")
        elif label == "answer_from_evidence":
            yield Piece("1.6 litres.")
        elif label == "carry_out":
            yield Piece(f"From below, a quarter of an hour every week ({shots} examples were shown).")
        elif label == "live":
            asked = [call.tool for turn in request.turns for call in turn.calls]
            done = json.dumps({"task": 1, "result": "written down"})
            calls = (Call("M1", json.dumps({"task": TASK, "context": ""})), Call("finish_task", done))
            yield calls[len(asked)] if len(asked) < len(calls) else Piece("It is written down.")
        else:
            yield Piece(f"Bathe it once a week ({shots} examples were shown).")


async def main() -> None:
    clock = ManualClock()
    with tempfile.TemporaryDirectory() as folder:
        async with Mind.open(folder, user="olga", responder=None, clock=clock) as olga:
            store, embed = olga.memory.store, olga.memory.embedder
            async with Pool.open(store, "plants", embed=embed, clock=clock) as pool:
                await pool.create("caring for plants", "olga", members=["ann", "ben"])
                await pool.freeze_rubric(await ask(Rules(), DraftRubric(domain="caring for plants")), "olga")
                await lay_in(pool, SEEDS, "olga")
                await Member(pool, "ben", scorer=Rules()).offer(BENS.query, BENS.answer, ())
                await share(Path(folder), pool, Member(pool, "ann", "shown", Rules()), clock)


async def share(folder: Path, pool: Pool, ann: Member, clock: ManualClock) -> None:
    """Talk, plan and live as ann with the pool; then ben withdraws his pairs."""
    models = Models(Rules(), {"talker": Shown()})
    async with Mind.open(folder, user="ann", model=models, responder=Coach.using(exemplars=ann), clock=clock) as mind:
        print(f"> {ASKED}\n  {await mind.send(ASKED)}")
        await mind.settled()
        plans = Member(pool, "ann", render=plan_shot)
        planner = Planner(model=Shown(), tools=[tool(calculator)], exemplars=plans, memory=mind.memory)
        solution = await planner.solve(SUM)
        print(f"? {SUM}\n  {solution.answer} ({solution.plan.steps[0].why})")
        config = LifeConfig(hears=False, offers=True)
        life = Life.open(mind.memory, Models(Shown()), goal=TASK, config=config, exemplars=ann)
        async with life as living:
            await living.run(turns=3)
        offered = [each for each in (await pool.state()).standings.values() if each.exemplar.writer == "ann"]
        print(f"! {TASK}\n  offered to the pool: {offered[0].exemplar.answer}")
        await pool.withdraw(writer="ben", by="ben")
        print(f"> {ASKED} (after ben's withdrawal)\n  {await mind.send(ASKED)}")
        kinds = {row.event.kind for row in await pool.memory.store.events(pool.memory.name, limit=100)}
        print("the pool's log:", ", ".join(sorted(kinds)))


if __name__ == "__main__":
    asyncio.run(main())
