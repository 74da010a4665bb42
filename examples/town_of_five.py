"""Let five people live through a morning, without a model; one piece of news spreads as they meet."""

import asyncio

from mindstream import Place, Resident, Town

NEWS = {"text": "The ferry will not run on Friday.", "weight": 8}  # important enough to be passed on
PLACES = [
    Place(name="Bakery", objects=["oven", "counter"], hours="06:00-18:00", purpose=["eat", "shop"]),
    Place(name="School", objects=["blackboard", "desk"], hours="08:00-16:00"),
    Place(name="Square", objects=["well", "bench"]),
]
RESIDENTS = [
    Resident(name="Ada Brook", home="Mill House", work="Bakery", seeds=[NEWS]),
    Resident(name="Ben Brook", home="Mill House", work="School", about="Ben Brook teaches geography."),
    Resident(name="Cleo Marsh", home="Ferry House", work="Bakery", about="Cleo Marsh came by boat last year."),
    Resident(name="Dan Reed", home="Reed House", work="Square", about="Dan Reed sweeps the square."),
    Resident(name="Eve Reed", home="Reed House", work="School"),
]


async def main() -> None:
    async with Town(residents=RESIDENTS, places=PLACES) as town:
        await town.run(until="13:00")
        for name in town.residents:
            print(name, *await town.timeline(name), sep="\n")


if __name__ == "__main__":
    asyncio.run(main())
