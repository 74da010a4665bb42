"""A memory and a bot in a program without asyncio.

MODEL=openai:gpt-5-mini python examples/without_asyncio.py    # without MODEL, scripted answers
"""

import os
import tempfile

from mindstream import FakeModel
from mindstream.sync import ChatBot, Memory

SCRIPT = {"companion_talk": ["It hangs behind the door."], "extract_facts": ['{"facts": []}']}
MODEL = os.environ.get("MODEL") or FakeModel(SCRIPT)


def main() -> None:
    with tempfile.TemporaryDirectory() as data:
        with Memory(data, "ann") as memory:
            memory.retain("The spare key hangs behind the door.")
            memory.retain("The dentist is on 14 March at nine.", created="2026-02-01")
            for hit in memory.recall("when do I see the dentist?", limit=1):
                print(f"{hit.text} (written {hit.created:%d %B %Y}, confidence {hit.confidence:.2f})")
        with ChatBot(data, user="ann", model=MODEL, instructions="Answer in one sentence.") as bot:
            print(bot.send("Where is the spare key?"))


if __name__ == "__main__":
    main()
