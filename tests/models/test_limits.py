"""An endpoint that sends too much, too slowly, or sends us elsewhere: the reply ends, the process stays small."""

from __future__ import annotations

import subprocess
import sys
import zlib
from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path

import pytest
from asking import ADD, Judge, Talk, parts_of, talk, text_of
from fake_endpoint import Behaviour, Calls, Fails, FakeEndpoint, Floods, Says, delta, forever, redirects

from mindstream.errors import ModelRefused, ModelSilent, ModelUnavailable, ReplyInvalid
from mindstream.models.ask import ask, speak
from mindstream.models.limits import BYTES_A_TOKEN, CALLS, LOCAL, WORDS_TOKENS, Waits, waits
from mindstream.models.model import Call, Request
from mindstream.models.provider import Provider, provider
from mindstream.models.wire import EVENT_BYTES


@pytest.fixture
def door() -> Iterator[FakeEndpoint]:
    with FakeEndpoint() as door:
        yield door


@pytest.fixture
async def model(door: FakeEndpoint) -> AsyncIterator[Provider]:
    model = provider(f"{door.url}#any", api_key="sk-long-enough-to-be-a-key", patience_s=5)
    yield model
    await model.aclose()


def bomb() -> Iterable[bytes]:
    packed = zlib.compressobj(9, zlib.DEFLATED, 31)
    return [packed.compress(b"a" * 50_000_000), packed.flush()]


# What is sent.


async def test_the_endpoint_is_told_how_long_a_reply_may_get(door: FakeEndpoint, model: Provider) -> None:
    await parts_of(model)
    door.will(Says('{"score": 1}'))
    await ask(model, Judge())
    free, data = (asked.body["max_tokens"] for asked in door.chats)
    assert WORDS_TOKENS < free < data


async def test_a_prompt_says_how_long_its_reply_may_get(door: FakeEndpoint, model: Provider) -> None:
    class Short(Talk):
        reply_tokens = 10

        @classmethod
        def label(cls) -> str:
            return "short"

    door.will(Floods(forever(delta(content="word after word, "))))
    parts = await parts_of(model, Request(Short()))
    assert 0 < len(text_of(parts)) <= 10 * BYTES_A_TOKEN


async def test_an_endpoint_that_knows_only_the_new_name_of_the_limit_gets_that(
    door: FakeEndpoint, model: Provider
) -> None:
    odd = "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead."
    door.will(Fails(400, odd), Fails(400, "Unknown field: max_completion_tokens"))
    for _ in range(2):
        with pytest.raises(ModelUnavailable, match="will be asked without"):
            await parts_of(model)
    assert text_of(await parts_of(model)) == "ok"
    bodies = [asked.body for asked in door.chats]
    assert ["max_tokens" in body for body in bodies] == [True, False, False]
    assert ["max_completion_tokens" in body for body in bodies] == [False, True, False]


async def test_no_compressed_answer_is_asked_for(door: FakeEndpoint, model: Provider) -> None:
    await parts_of(model)
    assert door.chats[0].headers["accept-encoding"] == "identity"


# What comes without an end.

ENDLESS: dict[str, tuple[Behaviour, type[Exception], str]] = {
    "thoughts": (Floods(forever(delta(reasoning_content="hm " * 200))), ReplyInvalid, "thought on and on"),
    "a line": (Floods(forever(b"x" * 65_536)), ModelUnavailable, "without an end"),
    "one piece": (Floods(lambda: [delta(content="a" * 2_000_000)]), ModelUnavailable, "without an end"),
    "lines, never an event": (Floods(forever(b"data: x\n" * 8_192)), ModelUnavailable, "without an end"),
    "lines that are said to be JSON": (
        Floods(forever(b"x\n" * 32_768), {"Content-Type": "application/json"}),
        ModelUnavailable,
        "without an end",
    ),
    "comments": (Floods(forever(b": ping\n\n" * 8_192)), ModelUnavailable, "without an end"),
    "a header": (Floods(forever(b""), {"X": "a" * 5_000_000}), ModelUnavailable, "protocol"),
    "a bomb": (Floods(bomb, {"Content-Encoding": "gzip"}), ModelUnavailable, "'gzip' where plain text"),
    "an error's body": (Floods(forever(b"no " * 20_000), {}, status="400 Bad"), ModelUnavailable, "without an end"),
}


@pytest.mark.parametrize("what", ENDLESS)
async def test_what_has_no_end_is_not_taken(door: FakeEndpoint, model: Provider, what: str) -> None:
    behaviour, kind, words = ENDLESS[what]
    door.will(behaviour)
    with pytest.raises(kind, match=words):
        await parts_of(model)
    assert door.sent < 40_000_000
    assert text_of(await parts_of(model)) == "ok", "the next request is as good as any"


async def test_words_without_an_end_are_an_answer_up_to_the_limit(door: FakeEndpoint, model: Provider) -> None:
    door.will(Floods(forever(delta(content="and on, é ") * 50)))
    text = text_of(await parts_of(model))
    assert 0.9 * WORDS_TOKENS * BYTES_A_TOKEN < len(text.encode()) <= WORDS_TOKENS * BYTES_A_TOKEN


async def test_data_without_an_end_is_invalid(door: FakeEndpoint, model: Provider) -> None:
    door.will(Floods(forever(delta(content='{"score": [[[[') * 50)))
    with pytest.raises(ReplyInvalid, match="went on and on"):
        await ask(model, Judge())


async def test_so_many_calls_are_taken_and_no_more(door: FakeEndpoint, model: Provider) -> None:
    door.will(Calls(tuple(("add", '{"a": 1, "b": 2}') for _ in range(200))))
    calls = [part for part in await parts_of(model, talk(tools=(ADD,))) if isinstance(part, Call)]
    assert len(calls) == CALLS


async def test_arguments_without_an_end_are_invalid(door: FakeEndpoint, model: Provider) -> None:
    head = {"index": 0, "id": "c", "type": "function", "function": {"name": "add", "arguments": "1"}}
    more = {"index": 0, "function": {"arguments": "1" * 1_000}}
    door.will(Floods(lambda: [delta(tool_calls=[head]), *[delta(tool_calls=[more])] * 2_000]))
    with pytest.raises(ReplyInvalid, match="arguments without an end"):
        await parts_of(model, talk(tools=(ADD,)))


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the system does not say how large a process grew")
def test_a_process_stays_small_whatever_comes() -> None:
    code = """
import asyncio, re
from pathlib import Path
from asking import parts_of
from fake_endpoint import FakeEndpoint, Floods
from test_limits import ENDLESS, delta, forever
from mindstream.errors import ModelError
from mindstream.models.provider import provider

async def main():
    with FakeEndpoint() as door:
        model = provider(f"{door.url}#any", patience_s=5)
        for behaviour, _, _ in ENDLESS.values():
            door.will(behaviour)
            try:
                await parts_of(model)
            except ModelError:
                pass
        await model.aclose()
    print(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])

asyncio.run(main())
"""
    path = [str(Path(__file__).parent), str(Path(__file__).parents[1]), *sys.path]
    env = {"PYTHONPATH": ":".join(path), "PATH": "/usr/bin:/bin"}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, check=True)
    assert int(done.stdout) < 300_000


# What comes too slowly.


@pytest.mark.parametrize(
    "behaviour",
    [
        Floods(forever(b": ping\n\n"), pause_s=0.05),
        Floods(forever(delta(content="")), pause_s=0.05),
        Floods(lambda: [delta(content="a word "), *[b": ping\n\n"] * 1_000], pause_s=0.05),
    ],
    ids=["pings", "empty pieces", "pings after a word"],
)
async def test_signs_of_life_are_no_words(door: FakeEndpoint, behaviour: Behaviour) -> None:
    model = provider(f"{door.url}#any", patience_s=0.4)
    door.will(behaviour)
    with pytest.raises(ModelSilent, match=r"said nothing for 0\.4 s"):
        await parts_of(model)
    await model.aclose()


async def test_a_reply_has_a_time_in_which_it_must_be_whole(door: FakeEndpoint) -> None:
    model = provider(f"{door.url}#any")
    model.waits = Waits(5.0, 5.0, 0.5)
    door.will(*[Floods(forever(delta(content="word ")), pause_s=0.05)] * 2)
    assert text_of(await parts_of(model)).startswith("word "), "free text: what was said so far is the answer"
    with pytest.raises(ModelSilent, match=r"took longer than 0\.5 s"):
        await ask(model, Judge())
    await model.aclose()


@pytest.mark.parametrize(
    ("name", "is_slow"),
    [
        ("ollama:qwen3", True),
        ("http://localhost:8000/v1#any", True),
        ("http://127.0.0.1:8000/v1#any", True),
        ("http://[::1]:8000/v1#any", True),
        ("http://192.168.1.7:8000/v1#any", True),
        ("http://tower:8000/v1#any", True),
        ("http://tower.local/v1#any", True),
        ("openai:any@http://10.0.0.2/v1", True),
        ("https://models.example.org/v1#any", False),
        ("http://8.8.8.8/v1#any", False),
        ("decisions:any", False),
    ],
)
def test_a_machine_in_the_house_may_read_for_minutes(name: str, is_slow: bool) -> None:
    found = provider(name).waits
    assert found == (LOCAL if is_slow else Waits())
    assert provider(name, patience_s=7.0).waits == Waits(7.0, 7.0, found.whole_s)


def test_who_is_patient_waits_for_the_whole_reply_too() -> None:
    assert waits(900.0) == Waits(900.0, 900.0, 2_700.0)


# Who sends elsewhere.


@pytest.mark.parametrize("to", ["http://127.0.0.1:1/v1/chat/completions", "file:///etc/passwd", "/v1/landed", "//x"])
async def test_nobody_is_followed_elsewhere(door: FakeEndpoint, model: Provider, to: str) -> None:
    door.will(redirects(to))
    with pytest.raises(ModelUnavailable, match="HTTP 307: it sends us on to") as caught:
        await parts_of(model)
    assert to in str(caught.value)
    assert len(door.asked) == 1


async def test_a_redirect_takes_neither_words_nor_key_along(door: FakeEndpoint, model: Provider) -> None:
    with FakeEndpoint() as other:
        door.will(redirects(f"{other.url}/chat/completions"))
        with pytest.raises(ModelUnavailable):
            await parts_of(model)
        assert other.asked == []


# What each fault is called.

CALLED: list[tuple[Behaviour, type[Exception], str]] = [
    (Fails(400, "bad temperature"), ModelRefused, "refuses the request"),
    (Fails(401), ModelRefused, "refuses the key"),
    (Fails(403), ModelRefused, "refuses the key"),
    (Fails(404), ModelRefused, "is not there"),
    (Fails(429), ModelUnavailable, "asks to wait"),
    (Fails(500), ModelUnavailable, "failed"),
    (Fails(502), ModelUnavailable, "failed"),
    (Floods(lambda: [delta(content="I hear"), b'data: {"id": "c", "cho']), ModelUnavailable, "broke off"),
    (Floods(list, {}, status="999 What"), ModelUnavailable, "failed"),
]


@pytest.mark.parametrize(("behaviour", "kind", "words"), CALLED, ids=[words for _, _, words in CALLED])
async def test_a_fault_is_called_what_it_is(
    door: FakeEndpoint, model: Provider, behaviour: Behaviour, kind: type[Exception], words: str
) -> None:
    door.will(behaviour)
    with pytest.raises(kind, match=words) as caught:
        await parts_of(model)
    others = {"cannot be reached", "broke off", "refuses the request", "asks to wait", "failed", "is not there"}
    assert not [other for other in others - {words} if other in str(caught.value)]


async def test_a_deep_answer_is_no_fault_of_ours(door: FakeEndpoint, model: Provider) -> None:
    door.will(Floods(lambda: [b"data: " + b"[" * 100_000 + b"\n\n"]))
    with pytest.raises(ModelUnavailable, match="protocol"):
        await parts_of(model)


async def test_half_a_character_is_replaced(door: FakeEndpoint, model: Provider) -> None:
    broken = b'data: {"choices": [{"index": 0, "delta": {"content": "a\\ud800b"}, "finish_reason": "stop"}]}\n\n'
    door.will(Floods(lambda: [broken, b"data: [DONE]\n\n"]))
    assert text_of(await parts_of(model)) == "a?b"


@pytest.mark.parametrize("text", ["\x01\x02\x1b", "\u200b\u202e", " \n\t"])
async def test_signs_that_nobody_sees_are_no_words(door: FakeEndpoint, model: Provider, text: str) -> None:
    door.will(Says(text))
    with pytest.raises(ReplyInvalid, match="no words"):
        [piece async for piece in speak(model, Talk())]


def test_an_event_may_be_as_long_as_a_reply() -> None:
    assert EVENT_BYTES > 2 * 8_000 * BYTES_A_TOKEN
