"""Tokens of a coach, by prompt and part, against one plain agent that answers the same conversation.

    python benchmarks/coach_tokens.py --json
    python benchmarks/coach_tokens.py --talk FILE       # another conversation, in the form of coach_tokens.json

Every turn of the conversation has its user's line, the answer (of both sides) and the reasoner's reply, so all replies
are fixed and only the prompts differ. A reply to several utterances is the sum of theirs. An answer that begins with
[WAIT] is asked for twice. Tokens are characters of the request's JSON / 4. `times`: the coach's tokens a turn over the
agent's. `parts`: tokens a call of the system text, the history, the tools, and each tagged part of the last message.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Sequence
from pathlib import Path
from typing import Any

from mindstream_evals.contest.contest import Contest, PlainAgent, SaidLine, Script

from mindstream.coach.belief.think import Think, compose_patches
from mindstream.coach.packs.load import SHIPPED, load
from mindstream.coach.talker import Talk
from mindstream.models.model import Part, Piece, Request, Usage
from mindstream.models.roles import Models

TALK = Path(__file__).with_name("coach_tokens.json")
TAGGED = re.compile(r"<(\w+)>.*?</\1>", re.DOTALL)
CLASSIFIED = "no"


CHARACTERS = 4
"""Characters of JSON that count as one token."""


def size_of(value: object) -> int:
    return len(json.dumps(value))


class Scripted:
    """A model that gives the conversation's replies, and counts the tokens of all requests."""

    name = "scripted"

    def __init__(self, turns: Sequence[dict[str, Any]]) -> None:
        self._turns = {turn["heard"]: turn for turn in turns}
        self.calls, self.sizes, self.replied, self.parts = (
            Counter[str](),
            Counter[str](),
            Counter[str](),
            Counter[Any](),
        )

    async def reply(self, request: Request) -> AsyncGenerator[Part]:
        label, said = request.prompt.label(), self._reply(request.prompt)
        tools = [
            {"name": each.name, "description": each.description, "parameters": each.parameters}
            for each in request.tools
        ]
        sent = size_of(
            {"messages": [{"role": each.role, "content": each.text} for each in request.messages], "tools": tools}
        )
        self.calls[label] += 1
        self.sizes[label] += sent + size_of(said)
        self.replied[label] += size_of(said)
        self._count_parts(label, request, size_of(tools))
        for word in re.findall(r"\S+\s*|\s+", said):
            yield Piece(word)
        yield Usage(sent // CHARACTERS, size_of(said) // CHARACTERS)

    def _reply(self, prompt: object) -> str:
        if isinstance(prompt, Think):
            thoughts = [self._turns[text]["thought"] for text in prompt.utterances]
            patch = compose_patches([each.get("patch", {}) for each in thoughts])
            plan = [edit for each in thoughts for edit in each.get("plan", [])]
            return json.dumps({**thoughts[-1], "patch": patch, "plan": plan}, ensure_ascii=False)
        if isinstance(prompt, Talk):
            said = str(self._turns[prompt.utterance]["said"])
            waits = said.startswith("[WAIT]")
            return said.removeprefix("[WAIT] ") if not waits or prompt.thought else "[WAIT]"
        if isinstance(prompt, PlainAgent):
            return re.sub(r"^\[\w+\] ", "", self._turns[prompt.utterance]["said"])
        return CLASSIFIED

    def _count_parts(self, label: str, request: Request, tools: int) -> None:
        *before, last = request.messages
        for message in before:
            self.parts[label, "system" if message.role == "system" else "history"] += size_of(message.text)
        for found in TAGGED.finditer(last.text):
            self.parts[label, found[1]] += size_of(found[0])
        self.parts[label, "other"] += size_of(TAGGED.sub("", last.text))
        self.parts[label, "tools"] += tools


async def measure(turns: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the tokens a turn of both sides, and those a call of each prompt."""
    model, count = Scripted(turns), len(turns)
    lines = [SaidLine(text=turn["heard"], session=turn.get("session", 1)) for turn in turns]
    with tempfile.TemporaryDirectory() as folder:
        constitution = (SHIPPED / "sleep" / "plain_agent.md").read_text("utf-8")
        contest = Contest(Models(model), load("sleep"), constitution, Path(folder))
        await contest.play([Script(id="talk", lines=tuple(lines))])
    turn = CHARACTERS * count
    agent = model.sizes["plain_agent"] / turn
    coach = model.sizes.total() / turn - agent
    prompts = {
        label: {
            "calls": calls,
            "tokens_a_call": round(model.sizes[label] / calls / CHARACTERS),
            "replied": round(model.replied[label] / calls / CHARACTERS),
            "parts": {
                part: round(n / calls / CHARACTERS)
                for (of, part), n in model.parts.most_common()
                if of == label and n > CHARACTERS * calls
            },
        }
        for label, calls in model.calls.items()
    }
    found = {"turns": count, "coach": round(coach), "agent": round(agent), "times": round(coach / agent, 2)}
    return {**found, "prompts": prompts}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--talk", type=Path, default=TALK)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = asyncio.run(measure(json.loads(options.talk.read_text("utf-8"))))
    if options.json:
        print(json.dumps(found, indent=1))
        return
    print(f"{found['coach']} tokens a turn, the agent {found['agent']}: {found['times']} times, {found['turns']} turns")
    for label, each in found["prompts"].items():
        parts = ", ".join(f"{part} {n}" for part, n in each["parts"].items())
        print(f"{label}: {each['calls']} calls of {each['tokens_a_call']} tokens, reply {each['replied']}; {parts}")


if __name__ == "__main__":
    main()
