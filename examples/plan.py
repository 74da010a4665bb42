"""Write a plan by hand, check it, run it with a tool, and print the evidence. No model is needed."""

import asyncio

from mindstream import Plan, PlannedStep, Planner, tool


@tool
def convert(value: float, unit: str) -> str:
    """Convert a length (unit: km or mi) into the other unit."""
    return f"{value * 0.621371:.2f} mi" if unit == "km" else f"{value * 1.609344:.2f} km"


async def main() -> None:
    steps = (
        PlannedStep(id="E1", tool="convert", arguments={"value": 26.2, "unit": "mi"}),
        PlannedStep(id="E2", tool="convert", arguments={"value": 10, "unit": "km"}),
    )
    plan = Plan(task="How long are these races?", steps=steps)
    print(plan.mermaid())
    solution = await Planner(model="rules", tools=[convert]).run(plan)
    for name, evidence in solution.evidence.items():
        print(name, evidence.text)


if __name__ == "__main__":
    asyncio.run(main())
