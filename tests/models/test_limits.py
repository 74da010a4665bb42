"""An endpoint that sends too much, too slowly, or redirects: the reply ends and the process stays small."""

from __future__ import annotations

import zlib
from collections.abc import Iterable

import pytest
from asking import ADD, Judge, parts_of, talk, text_of
from fake_endpoint import Behaviour, Fails, FakeEndpoint, Floods, Says, delta, forever, redirects

from mindstream.errors import ModelSilent, ModelUnavailable, ReplyInvalid
from mindstream.models.model import TEXT_TOKENS
from mindstream.models.prompt import ask
from mindstream.models.providers.adapter import BYTES_PER_TOKEN, LOCAL, Waits, price
from mindstream.models.providers.address import address
from mindstream.models.providers.provider import Provider, provider
from mindstream.models.providers.wire import MAX_EVENT_BYTES, Allowance, Refusal


def bomb() -> Iterable[bytes]:
    packed = zlib.compressobj(9, zlib.DEFLATED, 31)
    return [packed.compress(b"a" * 50_000_000), packed.flush()]


# Sent limits.


async def test_the_maximum_reply_length_is_sent_to_the_endpoint(door: FakeEndpoint, model: Provider) -> None:
    await parts_of(model)
    door.will(Says('{"score": 1}'))
    await ask(model, Judge())
    free, data = (asked.body["max_tokens"] for asked in door.chats)
    assert TEXT_TOKENS < free < data


async def test_max_completion_tokens_is_used_where_max_tokens_is_refused(door: FakeEndpoint, model: Provider) -> None:
    odd = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    door.will(Fails(400, odd), Fails(400, "Unknown field: max_completion_tokens"))
    assert text_of(await parts_of(model)) == "ok"
    bodies = [asked.body for asked in door.chats]
    assert ["max_tokens" in body for body in bodies] == [True, False, False]
    assert ["max_completion_tokens" in body for body in bodies] == [False, True, False]


async def test_no_compressed_answer_is_requested(door: FakeEndpoint, model: Provider) -> None:
    await parts_of(model)
    assert door.chats[0].headers["accept-encoding"] == "identity"


# Endless replies.

ENDLESS: dict[str, tuple[Behaviour, type[Exception], str]] = {
    "thoughts": (Floods(forever(delta(reasoning_content="hm " * 200))), ReplyInvalid, "maximum length of its thoughts"),
    "a line": (Floods(forever(b"x" * 65_536)), ModelUnavailable, "exceeds a size limit"),
    "comments": (Floods(forever(b": ping\n\n" * 8_192)), ModelUnavailable, "exceeds a size limit"),
    "a header": (Floods(forever(b""), {"X": "a" * 5_000_000}), ModelUnavailable, "protocol"),
    "a bomb": (
        Floods(bomb, {"Content-Encoding": "gzip"}),
        ModelUnavailable,
        "exceeds a size limit",
    ),
    "another encoding": (
        Floods(lambda: [b"x"], {"Content-Encoding": "br"}),
        ModelUnavailable,
        "expected an uncompressed response, found the content encoding 'br'",
    ),
    "damaged gzip": (Floods(lambda: [b"Hi"], {"Content-Encoding": "gzip"}), ModelUnavailable, "body is damaged"),
    "an error's body": (
        Floods(forever(b"no " * 20_000), {}, status="400 Bad"),
        ModelUnavailable,
        "exceeds a size limit",
    ),
}


@pytest.mark.parametrize("what", ENDLESS)
async def test_an_endless_answer_is_refused(door: FakeEndpoint, model: Provider, what: str) -> None:
    behaviour, kind, words = ENDLESS[what]
    door.will(behaviour)
    with pytest.raises(kind, match=words):
        await parts_of(model)
    assert door.sent < 40_000_000
    assert text_of(await parts_of(model)) == "ok", "the next request is as good as any"


async def test_endless_text_is_an_answer_up_to_the_limit(door: FakeEndpoint, model: Provider) -> None:
    door.will(Floods(forever(delta(content="and on, é ") * 50)))
    text = text_of(await parts_of(model))
    assert 0.9 * TEXT_TOKENS * BYTES_PER_TOKEN < len(text.encode()) <= TEXT_TOKENS * BYTES_PER_TOKEN


async def test_endless_arguments_are_invalid(door: FakeEndpoint, model: Provider) -> None:
    head = {"index": 0, "id": "c", "type": "function", "function": {"name": "add", "arguments": "1"}}
    more = {"index": 0, "function": {"arguments": "1" * 1_000}}
    door.will(Floods(lambda: [delta(tool_calls=[head]), *[delta(tool_calls=[more])] * 2_000]))
    with pytest.raises(ReplyInvalid, match="maximum length of tool arguments"):
        await parts_of(model, talk(tools=(ADD,)))


# Slow replies.


@pytest.mark.parametrize(
    "behaviour",
    [
        Floods(forever(b": ping\n\n"), pause_s=0.05),
        Floods(forever(delta(content="")), pause_s=0.05),
        Floods(lambda: [delta(content="a word "), *[b": ping\n\n"] * 1_000], pause_s=0.05),
    ],
    ids=["pings", "empty pieces", "pings after a word"],
)
async def test_keep_alives_do_not_extend_the_silence_timeout(door: FakeEndpoint, behaviour: Behaviour) -> None:
    model = provider(f"{door.url}#any", patience_s=0.4)
    door.will(behaviour)
    with pytest.raises(ModelSilent, match=r"sent nothing for 0\.4 s"):
        await parts_of(model)
    await model.aclose()


async def test_a_reply_has_a_total_time_limit(door: FakeEndpoint, model: Provider) -> None:
    model.waits = Waits(5.0, 5.0, 0.5)
    door.will(*[Floods(forever(delta(content="word ")), pause_s=0.05)] * 2)
    assert text_of(await parts_of(model)).startswith("word "), "free text: the text received so far is the answer"
    with pytest.raises(ModelSilent, match=r"took longer than 0\.5 s"):
        await ask(model, Judge())


@pytest.mark.parametrize(
    ("name", "is_slow"),
    [
        ("ollama:qwen3", True),
        ("http://localhost:8000/v1#any", True),
        ("http://192.168.1.7:8000/v1#any", True),
        ("http://tower.local/v1#any", True),
        ("https://models.example.org/v1#any", False),
        ("http://8.8.8.8/v1#any", False),
    ],
)
def test_a_model_on_the_local_network_gets_longer_timeouts(name: str, is_slow: bool) -> None:
    found = provider(name).waits
    assert found == (LOCAL if is_slow else Waits())
    assert provider(name, patience_s=7.0).waits == Waits(7.0, 7.0, found.whole_s)


@pytest.mark.parametrize(("name", "usd"), [("ollama:qwen3", 0.0), ("http://localhost:8000/v1#any", None)])
def test_a_model_that_runs_on_this_machine_costs_nothing(name: str, usd: float | None) -> None:
    assert price("any", address(name), 1_000, 1_000) == usd


# Redirects.


async def test_a_redirect_receives_neither_prompt_nor_key(door: FakeEndpoint, model: Provider) -> None:
    with FakeEndpoint() as other:
        door.will(redirects(f"{other.url}/chat/completions"))
        with pytest.raises(ModelUnavailable):
            await parts_of(model)
        assert other.asked == []


async def test_unpaired_surrogates_are_replaced(door: FakeEndpoint, model: Provider) -> None:
    broken = b'data: {"choices": [{"index": 0, "delta": {"content": "a\\ud800b"}, "finish_reason": "stop"}]}\n\n'
    door.will(Floods(lambda: [broken, b"data: [DONE]\n\n"]))
    assert text_of(await parts_of(model)) == "a?b"


def test_events_whose_blank_line_arrives_by_itself_are_counted_one_by_one() -> None:
    allowance = Allowance(0)
    for _ in range(2 * MAX_EVENT_BYTES // 1_000):
        allowance.take(b"data: " + b"x" * 1_000 + b"\n")
        allowance.take(b"\n")
    with pytest.raises(Refusal):
        for _ in range(2 * MAX_EVENT_BYTES // 1_000):
            allowance.take(b"data: " + b"x" * 1_000 + b"\n")
