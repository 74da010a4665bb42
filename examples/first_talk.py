"""Ten lines that need no key: talk, then ask the memory."""

import asyncio
import tempfile

from mindstream import Coach, Mind


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with Mind.open(folder, responder=Coach.using(pack="sleep"), user="ann") as mind:
            async for logged in mind.hear("I wake at three and my thoughts race. Work is stressful."):
                print(f"{logged.event.kind:6}", getattr(logged.event, "text", ""))
            await mind.settled()
            print("believes", Coach.of(mind).belief.value.model_dump(exclude_defaults=True))
            for found in await mind.memory.recall("what disturbs the sleep?", k=1):
                print(f"recalls {found.record.text}")


if __name__ == "__main__":
    asyncio.run(main())
