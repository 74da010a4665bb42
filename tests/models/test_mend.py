"""The last resort for a structured reply: parsed by a grammar, without guessing, in bounded time, and marked."""

from __future__ import annotations

import json
import time

import pytest
from asking import Grade, Judge
from fake_endpoint import FakeEndpoint, Says
from hypothesis import given
from hypothesis import strategies as st

from mindstream.clock import ManualClock
from mindstream.errors import ReplyInvalid
from mindstream.minds.calls import build_event
from mindstream.models.fitting import mend_json
from mindstream.models.prompt import ask
from mindstream.models.roles import Models
from mindstream.models.rules import FakeModel
from mindstream.models.wrappers.meter import Meter, Metered, WithListener
from mindstream.models.wrappers.recovery import Mend, Repair


def judged_by(*replies: str, times: int = 2) -> tuple[WithListener, FakeModel, list[Metered]]:
    scripted, told = FakeModel({"judge": replies}), list[Metered]()
    inner = Mend(Repair(Meter(scripted, lambda _: None, ManualClock()), times))
    return WithListener(inner, told.append), scripted, told


@pytest.mark.parametrize(
    ("written", "score"),
    [
        ('{"score": 7,}', 7),
        ("{score: 7}", 7),
        ('{"score": 7 // out of ten\n}', 7),
        ('{/* the grade */ "score": +7}', 7),
        ("Here it is:\n```json\n{score: 7,}\n```\nGood luck!", 7),
    ],
)
async def test_json_with_wrong_punctuation_is_mended_after_the_last_try(written: str, score: int) -> None:
    model, scripted, told = judged_by("seven", "no", written)
    assert await ask(model, Judge()) == Grade(score=score)
    assert len(scripted.asked) == 3
    assert [call.mended for call in told] == [False, False, True]


async def test_a_reply_repaired_by_the_model_is_not_mended() -> None:
    model, _, told = judged_by("{score: 7,}", '{"score": 6}')
    assert (await ask(model, Judge())).score == 6
    assert [call.mended for call in told] == [False, False]


@pytest.mark.parametrize(
    "written",
    [
        '{"score": }', '{"score": , "note": 1}', '{"score": 7', '{"score": 7, "why": "so', '{"score": 7 8}',
        '{"score": seven}', '{"score": 7/10}', '{"score": NaN}', '{"score": Infinity}', '{"score": 1e999}',
        '{"score"}', '{"score": "he said "no" to me"}',
        "{score: 7,} or {score: 8,}", "{'points': 7,}", "{'score': 'high',}", '["score", 7', "no JSON at all", "",
    ],
)  # fmt: skip
async def test_mending_invents_nothing_and_invalid_values_stay_errors(written: str) -> None:
    model, _, told = judged_by(written, times=0)
    with pytest.raises(ReplyInvalid, match="1 invalid answers to the prompt 'judge'"):
        await ask(model, Judge())
    assert [call.mended for call in told] == [False]


async def test_a_mended_call_is_marked_in_the_log() -> None:
    with FakeEndpoint() as door:
        door.otherwise = Says("{score: 7,}")
        told = list[Metered]()
        async with Models.named({"default": f"{door.url}#any"}) as models:
            assert (await ask(models.with_listener(told.append).of("reasoner"), Judge())).score == 7
    assert [build_event(call).mended for call in told] == [False, False, True]


HOSTILE = {
    "brackets": "[" * 32_000,
    "many": "{a:1,} " * 4_500,
    "a text without an end": '{a: "' + "\\" * 32_000,
    "commas in a text": '{"a": "' + 'foo, "bar" baz, ' * 2_000,
    "comments": "{/*" * 10_000,
    "digits": '{"a": ' + "9" * 32_000 + ",}",
    "an exponent": '{"a": 1e' + "9" * 300 + ",}",
    "half a character": '{a: "\\ud800"}',
    "deep": "[" * 49 + "{a:1}" + "]" * 49,
}


@pytest.mark.parametrize("name", HOSTILE)
def test_mending_is_fast_and_safe_for_any_text(name: str) -> None:
    began = time.thread_time()  # CPU time, unaffected by other programs
    found = mend_json(HOSTILE[name])
    assert time.thread_time() - began < 1
    assert found is None or mend_json(found) is None


@given(st.text(alphabet="{}[]:,'\"\\/*#ab1.e+-xN \n"))
def test_mended_text_is_valid_json(text: str) -> None:
    found = mend_json(text)
    assert found is None or mend_json(found) is None


@pytest.mark.parametrize(
    ("written", "read"),
    [
        (r'{"path": "C:\Users\ann"}', {"path": r"C:\Users\ann"}),
        (r'{"formula": "\alpha + \\beta", "pattern": "\d+"}', {"formula": r"\alpha + \beta", "pattern": r"\d+"}),
        ("{'done': True, 'why': None, 'says': 'None: True'}", {"done": True, "why": None, "says": "None: True"}),
        ("{“name”: “Ann, Otto”，“at”：9}", {"name": "Ann, Otto", "at": 9}),
        ('{"says": "a：b，c “so” True",}', {"says": "a：b，c “so” True"}),
        ("{'it': 'is Ann\\'s'}", {"it": "is Ann's"}),
    ],
)
def test_backslashes_python_and_typographic_punctuation_are_read(written: str, read: object) -> None:
    mended = mend_json(written)
    assert mended is not None and json.loads(mended) == read
