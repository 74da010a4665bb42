"""Log-probabilities of a given text: from an echoing endpoint, from vLLM, and from a local model."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from importlib.util import find_spec

import pytest
from fake_endpoint import Asked, Behaviour, Fails, FakeEndpoint, Sends

from mindstream.errors import ModelRefused
from mindstream.models.prompt import text_logprobs
from mindstream.models.providers.address import local_file
from mindstream.models.providers.provider import provider
from mindstream.sharing.labelling import Likelihood, after

needs_model = pytest.mark.skipif(
    local_file() is None or find_spec("xllamacpp") is None,
    reason="the model `local` is not installed: mindstream model get",
)
BEFORE = after("How many legs has a cow?", "Four.", "And a hen?")
NO_COMPLETIONS = Fails(404, "This is a chat model")


def echoed(asked: Asked) -> Behaviour:
    """Answer like vLLM: the prompt is returned with the log-probabilities of its tokens and one more token."""
    if "echo" not in asked.body:
        return Fails(400, "nothing else")
    tokens = re.findall(r"\s*\S+", asked.body["prompt"])
    told = {"tokens": [*tokens, " so"], "token_logprobs": [None, *[-2.0] * (len(tokens) - 1), -9.0]}
    return Sends(json.dumps({"choices": [{"text": "", "logprobs": told}]}))


def prompt_logprobs(asked: Asked) -> Behaviour:
    """Answer like vLLM without echo."""
    if "echo" in asked.body:
        return Fails(400, "echo is not supported")
    tokens = re.findall(r"\s*\S+", asked.body["prompt"])
    entries = [None, *({str(n): {"logprob": -0.5, "decoded_token": token}} for n, token in enumerate(tokens[1:]))]
    return Sends(json.dumps({"choices": [{"text": "", "prompt_logprobs": entries}]}))


@pytest.mark.parametrize(("speaks", "told"), [(echoed, -2.0), (prompt_logprobs, -0.5)])
async def test_an_endpoint_gives_logprobs_of_a_given_text(
    door: FakeEndpoint, speaks: Callable[[Asked], Behaviour], told: float
) -> None:
    door.otherwise = speaks
    model = provider(f"{door.url}#any")
    assert await text_logprobs(model, BEFORE, "\n<answer>\nTwo legs.") == (told,) * 3
    assert (await text_logprobs(model, BEFORE, " Two."))[-1] == told
    await model.aclose()


async def test_a_chat_only_endpoint_gives_no_logprobs(door: FakeEndpoint) -> None:
    plain = Sends(json.dumps({"choices": [{"text": "x", "logprobs": {"tokens": ["x"], "token_logprobs": [-1.0]}}]}))
    model = provider(f"{door.url}#any")
    for behaviour in (NO_COMPLETIONS, plain):
        door.otherwise = behaviour
        with pytest.raises(ModelRefused, match="reports no log-probabilities of a given text"):
            await text_logprobs(model, BEFORE, " Two.")
        assert not await Likelihood(model).is_supported()
    await model.aclose()


@pytest.mark.slow
@needs_model
async def test_a_local_model_rates_an_answer_higher_after_a_similar_one() -> None:
    model = provider("local")
    weighed = [
        sum(await text_logprobs(model, after(*before, "What is the capital of France?"), "\n<answer>\nIt is Paris."))
        for before in (("What is the capital of Italy?", "It is Rome."), ("Count down.", "3 2 1 0"))
    ]
    assert 0 > weighed[0] > weighed[1]
    await model.aclose()
