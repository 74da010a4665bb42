"""A request that exceeds a model's context window is cut, least important parts first, and repeated."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from asking import parts_of, talk, text_of
from fake_endpoint import Asked, Behaviour, Fails, FakeEndpoint, Says

from mindstream.errors import PromptTooLong
from mindstream.models.model import Cut, Message, Request
from mindstream.models.prompt import Prompt
from mindstream.models.roles import Models
from mindstream.models.wrappers.meter import Metered
from mindstream.models.wrappers.recovery import shorten


class Chat(Prompt[str]):
    history: tuple[str, ...] = ()
    recalled: tuple[str, ...] = ()
    known: tuple[str, ...] = ()
    utterance: str = "What now?"

    @classmethod
    def words(cls) -> str:
        return (
            "# system\nStatic words that stay.\n# user\n{{ recalled | join('\n') | data('recalled') }}\n"
            "{{ known | join('\n') | data('known') }}\n{{ history | join('\n') | data('history') }}\n"
            "{{ utterance | data('the_user_says') }}"
        )


def line(name: str, number: int) -> str:
    return f"{name} number {number} is about the nights in spring"


def chat(request: Request) -> Chat:
    assert isinstance(request.prompt, Chat)
    return request.prompt


FULL = Chat(
    history=tuple(line("line", n) for n in range(60)),
    recalled=tuple(line("memory", n) for n in range(6)),
    known=tuple(line("fact", n) for n in range(20)),
)


def test_recalled_things_go_first_then_the_oldest_lines_and_the_newest_words_stay() -> None:
    whole = Request(FULL).tokens
    little = shorten(Request(FULL), whole - 60)
    assert [cut.what for cut in little.cut] == ["recalled"]
    assert chat(little).recalled == FULL.recalled[: len(chat(little).recalled)]
    half = shorten(Request(FULL), whole // 2)
    assert [cut.what for cut in half.cut] == ["recalled", "history"]
    assert chat(half).history == FULL.history[-len(chat(half).history) :]
    assert half.cut[1] == Cut("history", items=60 - len(chat(half).history))
    assert half.tokens <= whole // 2
    least = shorten(Request(FULL), 120)
    assert chat(least).known == FULL.known[: len(chat(least).known)], "numbers still refer to the same facts"
    assert "Static words" in least.messages[0].text and "What now?" in least.messages[-1].text


def test_results_of_tools_are_shortened_before_the_utterance() -> None:
    turns = tuple(Message("tool", f"{n} " + "result " * 1_000, call_id=str(n)) for n in range(3))
    request = shorten(Request(Chat(utterance="u" * 3_000), turns=turns), 3_600)
    assert [len(turn.text) < 1_000 for turn in request.turns] == [True, True, False], "the oldest lines are cut first"
    assert len(chat(request).utterance) == 3_000
    short = shorten(Request(Chat(utterance="begin " + "u" * 30_000 + " end")), 500)
    assert chat(short).utterance.startswith("begin") and chat(short).utterance.endswith("end")
    assert short.cut[-1].what == "utterance" and short.cut[-1].characters > 0


WORDINGS = [
    "This model's maximum context length is 2000 tokens. However, your messages resulted in 2600 tokens.",
    "'max_tokens' or 'max_completion_tokens' is too large: 4000. This model's maximum context length is 2000 tokens "
    "and your request has 2600 input tokens (4000 > 2000 - 2600).",
    "You passed 2600 input tokens and requested 4000 output tokens. However, the model's context length is only 2000",
    "request (2600 tokens) exceeds the available context size (2000 tokens), try increasing it",
    "the request exceeds the available context size. try increasing the context size or enable context shift",
    "prompt is too long: 2600 tokens > 2000 maximum",
    "input length and `max_tokens` exceed context limit: 2600 + 4000 > 2000, decrease input length or `max_tokens`",
    "The input token count (2600) exceeds the maximum number of tokens allowed (2000).",
    "Prompt contains 2600 tokens and 0 draft tokens, too large for model with 2000 maximum context length",
    "`inputs` tokens + `max_new_tokens` must be <= 2000. Given: 2600 `inputs` tokens and 4000 `max_new_tokens`",
    "Trying to keep the first 2600 tokens when context the overflows. However, the model is loaded with context length "
    "of only 2000 tokens",
]


def narrow(words: str, window: int) -> Callable[[Asked], Behaviour]:
    """An endpoint with a context window and an error message."""

    def answer(asked: Asked) -> Behaviour:
        size = sum(len(message["content"]) for message in asked.body["messages"]) // 4
        return Fails(400, words) if size + asked.body.get("max_tokens", 0) > window else Says("It fits.")

    return answer


@pytest.mark.parametrize("words", WORDINGS, ids=lambda words: words[:30])
async def test_any_context_length_error_leads_to_a_shorter_prompt(door: FakeEndpoint, words: str) -> None:
    door.otherwise = narrow(words, 2_000 if "2000" in words else 4_600)
    async with Models.named({"default": f"{door.url}#any"}) as models:
        long = FULL.model_copy(update={"history": FULL.history * 3})
        assert text_of(await parts_of(models.of("talker"), Request(long))) == "It fits."
        assert 1 < len(door.chats) <= 4
        assert "What now?" in door.chats[-1].body["messages"][-1]["content"]
        before = len(door.chats)
        await parts_of(models.of("talker"), Request(long))
        if "2000" in words:
            assert len(door.chats) == before + 1, "the window reported by the endpoint is remembered"


async def test_a_smaller_output_limit_of_a_model_is_used(door: FakeEndpoint) -> None:
    words = (
        "max_tokens is too large: 4000. This model supports at most 512 completion tokens, whereas you provided 4000."
    )
    door.will(Fails(400, words))
    async with Models.named({"default": f"{door.url}#any"}) as models:
        assert text_of(await parts_of(models.of("talker"))) == "ok"
    assert [asked.body["max_tokens"] for asked in door.chats] == [4_000, 512]


async def test_a_known_context_window_is_respected_before_the_call(door: FakeEndpoint) -> None:
    door.otherwise = narrow("too long for the context window", 1_500)
    calls: list[Metered] = []
    async with Models.named({"default": f"{door.url}#any"}, context=1_500, on_call=calls.append) as models:
        assert text_of(await parts_of(models.of("talker"), Request(FULL))) == "It fits."
    assert len(door.chats) == 1
    assert [cut.what for cut in calls[0].cut][:2] == ["recalled", "history"]
    async with Models.named({"default": f"{door.url}#any"}, context={f"{door.url}#any": 1_500}) as models:
        await parts_of(models.of("talker"), Request(FULL))
    assert len(door.chats) == 2


async def test_a_prompt_that_cannot_be_cut_fails_after_few_tries(door: FakeEndpoint) -> None:
    door.otherwise = Fails(400, "prompt is too long: 9000 tokens > 100 maximum")
    async with Models.named({"default": f"{door.url}#any"}) as models:
        with pytest.raises(PromptTooLong, match="prompt is too long for"):
            await parts_of(models.of("talker"), talk("hi"))
    assert len(door.chats) <= 4
