"""A task solved with tools, its answer as a Pydantic model.

MODEL=openai:gpt-5-mini python examples/typed_plan.py    # without MODEL, scripted answers
"""

import asyncio
import os

from pydantic import BaseModel

from mindstream import FakeModel, Planner, tool

PLAN = "#E1 = population[Ghent]\n#E2 = population[Bruges]"
SCRIPT = {"make_plan": [PLAN], "answer_from_evidence": ["Ghent."], "in_words": ['{"city": "Ghent", "people": 265086}']}
MODEL = os.environ.get("MODEL") or FakeModel(SCRIPT)
PEOPLE = {"Ghent": 265_086, "Bruges": 119_445}


class City(BaseModel):
    city: str
    people: int


@tool
def population(city: str) -> str:
    """Look up how many people live in a city."""
    return f"{city} has {PEOPLE[city]} inhabitants."


async def main() -> None:
    planner = Planner(model=MODEL, tools=[population])
    solution = await planner.solve("Which is larger, Ghent or Bruges?", output=City)
    print(solution.plan.mermaid())
    print(solution.output)


if __name__ == "__main__":
    asyncio.run(main())
