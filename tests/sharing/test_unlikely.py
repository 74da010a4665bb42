"""How unlikely an answer is: of a model in the process by its log-probabilities, of any other as it states it."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.util import find_spec

import pytest
from fake_endpoint import Fails, FakeEndpoint, Says

from mindstream.errors import ModelError, ModelRefused
from mindstream.models.providers.address import address, local_file
from mindstream.models.providers.provider import provider
from mindstream.models.rules import Rules
from mindstream.sharing.retriever.does_it_help import Stated
from mindstream.sharing.retriever.likelihood import Likelihood

needs_model = pytest.mark.skipif(
    local_file() is None or find_spec("xllamacpp") is None,
    reason="the model `local` is not installed: mindstream model get",
)


@dataclass(frozen=True)
class Example:
    id: str
    query: str
    answer: str


FRANCE = Example("a", "What is the capital of France?", "The capital of France is Paris.")
ITALY = Example("b", "What is the capital of Italy?", "The capital of Italy is Rome.")
NOISE = Example("c", "Count down.", "3 2 1 0")


@needs_model
async def test_a_model_in_the_process_finds_an_answer_likelier_after_one_of_its_kind() -> None:
    source = Likelihood(address("local"))
    alike, other = await source.p_not(FRANCE, [ITALY, NOISE])
    assert 0 < alike < other < 1
    assert list(await source.p_not(FRANCE, [NOISE, ITALY])) == pytest.approx([other, alike], abs=0.01)


def test_a_model_elsewhere_cannot_tell_how_likely_a_text_is() -> None:
    with pytest.raises(ModelRefused, match="gguf:FILE"):
        Likelihood(address("http://127.0.0.1:1/v1#any"))


async def test_what_a_model_states_is_its_probability_of_no() -> None:
    with FakeEndpoint() as door:
        yes = Says("Yes", logprobs=(("Yes", -0.105), ("No", -2.303)))
        door.will(yes, Says("No", logprobs=(("No", -0.105), ("Yes", -2.303))))
        model = provider(f"{door.url}#any")
        found = await Stated(model).p_not(FRANCE, [ITALY, NOISE])
        await model.aclose()
    assert list(found) == pytest.approx([0.1, 0.9], abs=0.01)
    first = str(door.chats[0].body["messages"])
    assert "Italy" in first and "is Paris" in first and "Count down" not in first


async def test_without_a_model_nothing_is_stated_and_one_that_is_down_is_an_error() -> None:
    assert list(await Stated(Rules()).p_not(FRANCE, [ITALY])) == pytest.approx([0.5])
    with FakeEndpoint() as door:
        door.otherwise = Fails(400, "no")
        model = provider(f"{door.url}#any")
        with pytest.raises(ModelError):
            await Stated(model).p_not(FRANCE, [ITALY])
        await model.aclose()
