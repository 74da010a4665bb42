"""Store, recall, correct and forget, without a model or an API key."""

import asyncio
import tempfile

from mindstream import Memory


async def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        async with Memory.open(folder, "ann") as memory:
            key = await memory.retain("The spare key hangs behind the door.", "note")
            await memory.retain("Ann is allergic to walnuts.", "note")
            await memory.correct(key.id, "The spare key is under the mat.")
            found = await memory.recall("Where is the spare key?", k=1)
            print(f"{found[0].record.text} (certainty {found.certainty:.2f})")
            print("versions:", [record.text for record in await memory.history(key.id)])
            print(await memory.forget(about="walnuts"))


if __name__ == "__main__":
    asyncio.run(main())
