"""Talk to the sleep coach without a model, then query its memory."""

import asyncio
import tempfile

from mindstream import BeliefChanged, Coach, Mind, Said


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with Mind.open(folder, responder=Coach.using(pack="sleep"), user="ann") as mind:
            async for event in mind.stream("I wake at three and my thoughts race. Work is stressful.", to_the_end=True):
                match event:
                    case Said(text=text):
                        print("says", text)
                    case BeliefChanged(patch=patch):
                        print("believes", patch)
            for found in await mind.memory.recall("what disturbs the sleep?", k=1):
                print(f"recalls {found.record.text}")


if __name__ == "__main__":
    asyncio.run(main())
