"""Run a morning in a town without a model, talk to a resident as a visitor, and ask what the resident remembers."""

import asyncio
import tempfile

from mindstream_town.packs import find_pack
from mindstream_town.residents.interview import interview
from mindstream_town.residents.visiting import visit
from mindstream_town.source import setting_of

from mindstream import Town

WHO, FACT = "Isabella Rodriguez", "The fair at Johnson Park on Saturday was moved to Sunday at 3pm."


async def main() -> None:
    setting = setting_of(find_pack("smallville"), seed=1)
    with tempfile.TemporaryDirectory() as folder:
        async with Town.open(folder, setting) as town:
            await town.run(until=setting.step_at(day=0, minute=8 * 60))
            async with visit(town, WHO, by="Maya") as mind:
                for said in ("What are you planning these days?", FACT):
                    print(f"Maya: {said}\n{WHO}: {await mind.send(said)}")
                await mind.settled()  # wait for the reasoners
            await town.run(until=setting.step_at(day=0, minute=8 * 60 + 30))
            answer = await interview(town, WHO, "When is the fair at Johnson Park?")
            print(f"{setting.when(town.step):%H:%M}, asked when the fair is: {answer.answer}")


if __name__ == "__main__":
    asyncio.run(main())
