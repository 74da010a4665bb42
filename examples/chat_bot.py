"""A bot that remembers its user, calls a tool, and asks before it acts.

MODEL=openai:gpt-5-mini python examples/chat_bot.py    # without MODEL, scripted answers
"""

import asyncio
import os
import tempfile

from mindstream import Call, ChatBot, FakeModel, tool

FACT = '{"facts": [{"text": "The user is allergic to peanuts.", "rests_on": "allergic to peanuts"}]}'
ANSWERS = ["I will remember that.", [Call("order", '{"dish": "fried rice"}')], "Fried rice without peanuts is coming."]
SCRIPT = {"companion_talk": ANSWERS, "extract_facts": [FACT, '{"facts": []}']}
MODEL = os.environ.get("MODEL") or FakeModel(SCRIPT)


@tool(changes=True)
def order(dish: str) -> str:
    """Order a dish from the restaurant."""
    return f"{dish}: half an hour"


async def main() -> None:
    with tempfile.TemporaryDirectory() as data:
        async with ChatBot.open(data, user="ann", model=MODEL, instructions="You help with dinner.") as bot:
            print(await bot.send("I am allergic to peanuts."))
        async with ChatBot.open(data, user="ann", model=MODEL, tools=[order], approve=["order"]) as bot:  # next day
            print("known:", [note.text for note in await bot.memory.list(kinds=["note"])])
            async for piece in bot.stream("Order dinner for me, please."):
                print(piece, end="", flush=True)
            print()


if __name__ == "__main__":
    asyncio.run(main())
