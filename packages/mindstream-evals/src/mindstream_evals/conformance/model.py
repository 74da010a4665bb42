"""Promises of models (models/model): order of parts, early end of reading, `ModelError` for each failure.

A factory opens a model that answers the prompt `Greet` any number of times with text. For `FAILING` it opens a model
whose calls fail.
"""

from __future__ import annotations

import asyncio
from contextlib import aclosing

from mindstream.errors import ModelError
from mindstream.models.model import Call, Model, Part, Piece, Request, Usage
from mindstream.models.prompt import Prompt, rule
from mindstream_evals.conformance.samples import Promises, expect

PROMISES = Promises[Model]()
FAILING = Promises[Model]()

SOON_S = 10.0


class Greet(Prompt[str]):
    """A question that any model can answer."""

    role = "talker"
    who: str = "Ann"

    @classmethod
    def words(cls) -> str:
        return '# system\nGreet each visitor in a few words.\n\n# user\n{{ who | short("who") }} comes in.'


@rule(Greet)
def greet_by_name(asked: Greet) -> str:
    return f"Hello, {asked.who}, come in."


@PROMISES.add
async def it_has_a_name(model: Model) -> None:
    expect(isinstance(model.name, str) and bool(model.name.strip()), "a non-empty name for users and for the log")
    before = model.name
    await _answer(model)
    expect(model.name == before, f"the same name after an answer, not {model.name!r}")


@PROMISES.add
async def it_answers_in_parts_with_the_usage_last(model: Model) -> None:
    parts = await _answer(model)
    expect(all(isinstance(part, Piece | Call | Usage) for part in parts), f"only Piece, Call and Usage, not {parts}")
    places = [place for place, part in enumerate(parts) if isinstance(part, Usage)]
    expect(places in ([], [len(parts) - 1]), f"one Usage at most, as the last part, not at {places} of {len(parts)}")
    expect(bool(_text(parts).strip()), "an answer with text")


@PROMISES.add
async def it_can_be_asked_by_several_at_once(model: Model) -> None:
    answers = await asyncio.gather(*(_answer(model) for _ in range(3)))
    expect(all(_text(parts).strip() for parts in answers), "text in each of three concurrent answers")


@PROMISES.add
async def it_ends_when_nobody_listens(model: Model) -> None:
    before = asyncio.all_tasks()
    reply = model.reply(Request(Greet(), "talker"))
    await anext(reply)
    async with asyncio.timeout(SOON_S):
        await reply.aclose()
    expect([part async for part in reply] == [], "no part after `aclose`")
    for _ in range(100):  # wait at most a second for cancelled tasks to end
        if not (left := asyncio.all_tasks() - before):
            break
        await asyncio.sleep(0.01)
    expect(not left, f"no task that runs after `aclose`, not {left}")
    expect(bool(_text(await _answer(model)).strip()), "text in an answer to the next request")


@PROMISES.add
async def it_lets_itself_be_cancelled(model: Model) -> None:
    for turns in (0, 1, 3):
        asking = asyncio.ensure_future(_answer(model))
        for _ in range(turns):
            await asyncio.sleep(0)
        asking.cancel()
        async with asyncio.timeout(SOON_S):
            (came,) = await asyncio.gather(asking, return_exceptions=True)
        kind = type(came).__name__
        expect(
            isinstance(came, asyncio.CancelledError | list),
            f"CancelledError or an answer after a cancellation, not {kind}",
        )
    expect(bool(_text(await _answer(model)).strip()), "text in an answer to the next request")


@FAILING.add
async def it_fails_with_a_model_error(model: Model) -> None:
    for _ in range(2):
        try:
            parts = await _answer(model)
        except ModelError as error:
            expect(bool(str(error)), "an error with a message")
        except Exception as error:
            raise AssertionError(f"expected a ModelError, not {type(error).__name__}: {error}") from error
        else:
            raise AssertionError(f"expected a ModelError, but the model replied {parts}")


async def _answer(model: Model) -> list[Part]:
    async with asyncio.timeout(60), aclosing(model.reply(Request(Greet(), "talker"))) as parts:
        return [part async for part in parts]


def _text(parts: list[Part]) -> str:
    return "".join(part.text for part in parts if isinstance(part, Piece))
