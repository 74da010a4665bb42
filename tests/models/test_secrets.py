"""Keys are never shown, in any spelling; files are readable only by their owner."""

from __future__ import annotations

import base64
import html
import json
import stat
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import pytest
from asking import Judge, parts_of
from fake_endpoint import Fails, FakeEndpoint, Sends, redirects
from hypothesis import given
from hypothesis import strategies as st

from mindstream.errors import MindstreamError, ModelError, ModelRefused, ModelUnavailable
from mindstream.models.embedders.endpoint import Endpoint
from mindstream.models.model import Request
from mindstream.models.providers.address import address, mask, remember
from mindstream.models.providers.provider import provider
from mindstream.models.recording import Cache, Recorder
from mindstream.models.roles import Models
from mindstream.models.rules import FakeModel
from mindstream.service import probe

KEY = 'sk-proj-A+b/c=d&e"f<g>-0123456789'
OTHER = "key-of-another-role-987654321"

WAYS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "URL-encoded": lambda key: quote(key, safe=""),
    "JSON": lambda key: json.dumps({"key": key}),
    "escaped": lambda key: "".join(f"\\u00{ord(c):02x}" for c in key),
    "HTML": html.escape,
    "base64": lambda key: base64.b64encode(key.encode()).decode(),
    "base64 after a word": lambda key: base64.b64encode(f"Bearer {key}".encode()).decode(),
    "hexadecimal": lambda key: key.encode().hex(),
    "cut off": lambda key: key[:20],
}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", OTHER)
    remember(KEY)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("key", [KEY, OTHER], ids=["handed in", "of another vendor"])
def test_a_key_is_masked_in_every_spelling(way: str, key: str) -> None:
    written = WAYS[way](key)
    shown = mask(f"the key {written} is wrong")
    assert written not in shown and "***" in shown
    assert shown.startswith("the key ") and shown.endswith(" is wrong")


def test_keys_of_tools_are_masked_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAVILY_API_KEY", "tvly-0123456789")
    monkeypatch.setenv("WOLFRAM_APP_ID", "ABCDEF-0123456789")
    assert mask("with tvly-0123456789 and ABCDEF-0123456789") == "with *** and ***"


@given(st.text())
def test_text_without_a_key_is_unchanged(text: str) -> None:
    assert mask(text) == text


async def test_no_error_shows_a_key(door: FakeEndpoint) -> None:
    model = provider(f"{door.url}#any", api_key=KEY)
    told = " and ".join(way(key) for way in WAYS.values() for key in (KEY, OTHER))
    door.will(*(Fails(status, f"bad: {told}") for status in (400, 401, 404, 429, 500)), redirects("http://x/" + told))
    door.will(Sends(told, "text/plain"), Fails(400, "x" * 250 + told))
    for _ in range(8):
        with pytest.raises(ModelError) as caught:
            await parts_of(model)
        assert not [way for way in WAYS if WAYS[way](KEY) in str(caught.value)]
        assert OTHER not in str(caught.value)
    await model.aclose()


async def test_an_embedder_shows_no_key(door: FakeEndpoint) -> None:
    door.will(Fails(400, f"bad {KEY} {OTHER}"))
    with pytest.raises(ModelError) as caught:
        await Endpoint(address(f"{door.url}#any", api_key=KEY)).embed(["x"])
    assert KEY not in str(caught.value) and OTHER not in str(caught.value)


# The probe of doctor.


async def test_the_probe_of_doctor_follows_no_redirect(door: FakeEndpoint) -> None:
    with FakeEndpoint() as other:
        door.listing = redirects(f"{other.url}/models")
        with pytest.raises(ModelUnavailable, match="HTTP 307: redirects to") as caught:
            await probe.probe(f"openai:any@{door.url}")
        assert other.asked == [] and OTHER not in str(caught.value)


@pytest.mark.parametrize(
    ("vendor", "listing"),
    [("anthropic", '{"data": [{"id": "small"}]}'), ("google", '{"models": [{"name": "models/small"}]}')],
)
async def test_each_vendor_is_probed_in_its_protocol(
    door: FakeEndpoint, monkeypatch: pytest.MonkeyPatch, vendor: str, listing: str
) -> None:
    monkeypatch.setenv("GOOGLE_API_KEY", OTHER)
    monkeypatch.setitem(probe.HOMES, vendor, door.url)
    for content_type in ("application/json", "text/plain"):
        door.listing = Sends(listing, content_type)
        assert await probe.probe(f"{vendor}:small") == f"{vendor}:small can be reached at {door.url}"
        with pytest.raises(ModelRefused, match="does not offer 'large'; it offers small"):
            await probe.probe(f"{vendor}:large")
    door.listing = Fails(401, f"no such key: {OTHER}")
    with pytest.raises(ModelRefused, match=r"refuses the key \(HTTP 401: no such key: \*\*\*\)"):
        await probe.probe(f"{vendor}:small")


# Stored files.


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


async def test_recordings_and_cached_answers_are_private(tmp_path: Path) -> None:
    scripted = FakeModel({"judge": ['{"score": 1}', '{"score": 2}']})
    recording = tmp_path / "new" / "run.jsonl"
    await parts_of(Recorder(scripted, recording), Request(Judge()))
    await parts_of(Cache(scripted, tmp_path / "cache"), Request(Judge()))
    assert (mode(recording), mode(recording.parent)) == (0o600, 0o700)
    (answer,) = (tmp_path / "cache").rglob("*.json")
    assert (mode(answer), mode(answer.parent), mode(tmp_path / "cache")) == (0o600, 0o700, 0o700)


async def test_keys_of_all_roles_are_masked_in_errors_and_logs(door: FakeEndpoint) -> None:
    door.otherwise = Fails(500, f"the keys are {KEY} and {OTHER}")
    calls: list[str] = []
    async with Models.named(
        {"default": f"{door.url}#any"}, retry=1, on_call=lambda call: calls.append(str(call))
    ) as some:
        for _ in range(2):
            with pytest.raises(MindstreamError) as caught:
                await parts_of(some.of("talker"))
            assert KEY not in str(caught.value) + str(calls) and OTHER not in str(caught.value) + str(calls)
