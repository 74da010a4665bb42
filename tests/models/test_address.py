"""Model names and addresses are read as users and env files write them; errors contain no secret."""

from __future__ import annotations

import pytest

from mindstream.errors import SettingsError
from mindstream.models.providers.address import address, mask

KEY = "sk-0123456789abcdefghij"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "OLLAMA_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", f'"{KEY}"\r\n')


@pytest.mark.parametrize(
    ("name", "model"),
    [
        ("ollama:llama3:8b", "llama3:8b"),
        ("Ollama: llama3:8b\r\n", "llama3:8b"),
        ("ollama:hf.co/org/Llama-3.2-GGUF:Q4_K_M", "hf.co/org/Llama-3.2-GGUF:Q4_K_M"),
        ("openai:org/model@rev", "org/model@rev"),
        ("openai:a@b@http://host/v1", "a@b"),
        ("OPENAI:ft:gpt-4o:org::abc", "ft:gpt-4o:org::abc"),
        ("HTTP://host/v1#org/m:tag", "org/m:tag"),
    ],
)
def test_a_name_may_have_colons_slashes_and_at_signs(name: str, model: str) -> None:
    assert address(name).model == model


@pytest.mark.parametrize(
    ("url", "read"),
    [
        ("", None),
        ("  \r\n", None),
        ("''", None),
        ("http://127.0.0.1:8000", "http://127.0.0.1:8000/v1"),
        ("\ufeffhttp://[::1]:8000/\n", "http://[::1]:8000/v1"),
        ('"http://gpu.lan:8000/v1/"', "http://gpu.lan:8000/v1"),
        ("https://api.openai.com/", "https://api.openai.com/v1"),
        ("https://models.example.org", "https://models.example.org"),
        ("http://host/api/v3/chat/completions", "http://host/api/v3"),
    ],
)
def test_a_base_url_is_read_with_and_without_v1(url: str, read: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    assert address("openai:any").url == read


@pytest.mark.parametrize(
    "url",
    [
        "host:8000/v1",
        "http://::1:8000/v1",
        "http://host:99999/v1",
        "http://host/v1 # local",
        "ftp://ann:s3cret-word@host",
    ],
)
def test_a_wrong_base_url_is_reported_with_its_variable(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", url)
    with pytest.raises(SettingsError, match=r"^OPENAI_BASE_URL: a model's address looks like") as caught:
        address("openai:any")
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("openai/gpt-4o", "did you mean 'openai:gpt-4o'"),
        ("gpt-4o", "did you mean 'openai:gpt-4o'? The forms are rules,"),
        ("llama3:8b", "did you mean 'ollama:llama3:8b'"),
        ("gemini:2.5-flash", "did you mean 'google:2.5-flash'"),
        ("opnai:gpt-4o", "did you mean 'openai:gpt-4o'"),
        ("openai:gpt-4o@localhost:8000/v1", "must begin with http://"),
        ("ftp://ann:s3cret-word@host/v1#m", "is not the name of a model. The forms are rules,"),
        (f"{KEY}xyz", "is not the name of a model"),
    ],
)
def test_a_wrong_name_is_reported_with_a_suggestion_and_without_secrets(name: str, told: str) -> None:
    with pytest.raises(SettingsError) as caught:
        address(name)
    assert told in str(caught.value) and "s3cret" not in str(caught.value) and KEY not in str(caught.value)


@pytest.mark.parametrize(
    "secret", ["sk-proj-Ab1_" + "x" * 40, "gsk_9" + "y" * 50, "hf_1" + "z" * 30, "AIza" + "S" * 35]
)
def test_text_that_looks_like_a_key_is_masked(secret: str) -> None:
    assert mask(f"no such model: {secret}, sk-learn") == "no such model: ***, sk-learn"
