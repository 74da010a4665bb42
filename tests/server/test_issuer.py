"""Tokens of an OIDC issuer: only those signed for this server open their tenant."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from local_issuer import AUDIENCE, LocalIssuer
from served import Served, ServerProcess

from mindstream.clock import SystemClock
from mindstream.errors import InputError
from mindstream.server.issuer import LEEWAY_S, Issuer, read_keys, read_scopes

USER = "/api/v1/users/ann"


@pytest.fixture
def issuer() -> Iterator[LocalIssuer]:
    with LocalIssuer() as made:
        yield made


@pytest.fixture
def asking(folder: Path, issuer: LocalIssuer) -> Iterator[httpx.Client]:
    """A client of a server that requires tokens of the issuer."""
    known = Issuer(issuer.url, [AUDIENCE], SystemClock())
    with Served(folder, require_token=True, issuer=known) as served, served.client() as client:
        yield client


def status(client: httpx.Client, headers: dict[str, str]) -> int:
    return client.get(f"{USER}/memories", headers=headers).status_code


def test_a_token_opens_its_tenant_with_its_scopes(asking: httpx.Client, issuer: LocalIssuer) -> None:
    issuer.add_key("ec")
    acme, other = issuer.token(), issuer.token("ec", tenant="other", scope=["read"], aud=["else", AUDIENCE])
    assert asking.post(f"{USER}/memories", json={"text": "acme's"}, headers=acme).status_code == 201
    assert asking.post(f"{USER}/memories", json={"text": "x"}, headers=other).status_code == 403
    assert asking.get(f"{USER}/memories", headers=other).json()["memories"] == []
    assert len(asking.get(f"{USER}/memories", headers=acme).json()["memories"]) == 1
    assert status(asking, issuer.token(scope="openid profile")) == 403
    assert status(asking, issuer.token(scope="memory.read")) == 200


def test_keys_of_the_issuer_are_fetched_once(asking: httpx.Client, issuer: LocalIssuer) -> None:
    assert issuer.asked == []
    assert [status(asking, issuer.token()) for _ in range(5)] == [200] * 5
    issuer.is_away = True
    assert status(asking, issuer.token()) == 200
    assert issuer.asked == ["/.well-known/openid-configuration", "/keys"]
    issuer.add_key("unknown", is_shown=False)
    assert [status(asking, issuer.token("unknown")) for _ in range(5)] == [401] * 5
    assert len(issuer.asked) == 2, "unknown key ids cause no further requests"


def test_tokens_for_other_servers_or_times_are_refused(asking: httpx.Client, issuer: LocalIssuer) -> None:
    now = time.time()
    assert status(asking, issuer.token()) == 200
    wrongs: list[dict[str, Any]] = [
        {"exp": now - 60}, {"exp": None}, {"nbf": now + 600}, {"iss": "https://evil.example"}, {"iss": None},
        {"aud": "another"}, {"aud": None}, {"aud": []}, {"tenant": None}, {"tenant": ""}, {"tenant": "../x"},
        {"tenant": "a#b"}, {"tenant": 7}, {"tenant": "local"}, {"tenant": "_town"}, {"tenant": "_"}, {"tenant": "_new"},
    ]  # fmt: skip
    for wrong in wrongs:
        refused = asking.get(f"{USER}/memories", headers=issuer.token(**wrong))
        assert refused.status_code == 401, wrong
        assert refused.headers["www-authenticate"] == 'Bearer error="invalid_token"'
        assert refused.headers["content-type"] == "application/problem+json"


def test_other_signing_methods_are_refused(asking: httpx.Client, issuer: LocalIssuer) -> None:
    issuer.add_key("ec")
    issuer.add_key("short", bits=1_024)
    assert status(asking, issuer.token("ec")) == 200
    for refused in (
        issuer.token(way="none"), issuer.token(way="RS512"), issuer.token(head={}),
        issuer.token("ec", head={"kid": "rsa"}),
        issuer.token(head={"kid": "ec"}), issuer.token("short"), forged(issuer), {"Authorization": "Bearer a.b.c"},
        {"Authorization": "Bearer " + "a" * 9_000 + ".b.c"}, {"Authorization": issuer.token()["Authorization"][:-9]},
    ):  # fmt: skip
        assert status(asking, refused) == 401


def forged(issuer: LocalIssuer) -> dict[str, str]:
    """Sign with HMAC and the public key as the secret (a known attack)."""

    def packed(told: object) -> bytes:
        return base64.urlsafe_b64encode(json.dumps(told).encode()).rstrip(b"=")

    keys = issuer.answer("/keys")
    assert isinstance(keys, dict)
    claims = {"iss": issuer.url, "aud": AUDIENCE, "exp": time.time() + 60, "tenant": "acme", "scope": "admin"}
    signed = packed({"alg": "HS256", "kid": "rsa"}) + b"." + packed(claims)
    made = hmac.new(json.dumps(keys["keys"][0]).encode(), signed, hashlib.sha256).digest()
    return {"Authorization": f"Bearer {(signed + b'.' + base64.urlsafe_b64encode(made).rstrip(b'=')).decode()}"}


def test_an_unreachable_or_renamed_issuer_gives_503(asking: httpx.Client, issuer: LocalIssuer) -> None:
    issuer.named = "https://evil.example"
    away = asking.get(f"{USER}/memories", headers=issuer.token())
    assert away.status_code == 503 and away.headers["retry-after"]


def test_an_invalid_signed_token_is_refused_for_local_requests_too(folder: Path, issuer: LocalIssuer) -> None:
    known = Issuer(issuer.url, [AUDIENCE], SystemClock())
    with Served(folder, issuer=known) as served, served.client() as client:
        assert client.get("/v1/models", headers={"Authorization": "Bearer made-up"}).status_code == 200
        assert client.get("/v1/models", headers=issuer.token(exp=1)).status_code == 401
        assert status(client, {}) == 200
        own = served.token()
        assert status(client, own) == 200


def test_a_claim_can_bind_a_token_to_one_user(folder: Path, issuer: LocalIssuer) -> None:
    known = Issuer(issuer.url, [AUDIENCE], SystemClock(), tenant_claim="org", user_claim="sub")
    with Served(folder, issuer=known) as served, served.client() as client:
        ann = issuer.token(org="acme", sub="ann", tenant=None)
        assert status(client, ann) == 200
        assert client.get("/api/v1/users/bob/memories", headers=ann).status_code == 403
        assert status(client, issuer.token(org="acme", sub=None)) == 401
        assert status(client, issuer.token(org="acme", sub="a\nb")) == 401


def test_a_stream_of_events_ends_with_its_token(asking: httpx.Client, issuer: LocalIssuer) -> None:
    ending = issuer.token(exp=time.time() - LEEWAY_S + 2)
    with asking.stream("GET", "/api/v1/events?user=ann&after=0", headers=ending) as answer:
        assert answer.status_code == 200
        told = [line for line in answer.iter_lines() if line.startswith("event: ")]
    assert told == ["event: end"]
    assert status(asking, ending) == 401


def test_the_mcp_server_names_the_issuer(folder: Path, issuer: LocalIssuer) -> None:
    flags = ("--issuer", issuer.url, "--audience", AUDIENCE, "--require-token")
    with ServerProcess(folder, *flags) as server, httpx.Client(base_url=server.url) as client:
        told = client.get("/.well-known/oauth-protected-resource/mcp").json()
        assert told["authorization_servers"] == [issuer.url]
        assert status(client, issuer.token()) == 200


def test_only_trustworthy_issuer_addresses_are_accepted() -> None:
    for wrong in (
        "",
        "http://id.example.org",
        "ftp://id.example.org",
        "https://",
        "https://a@b.example",
        "https://x/?q",
    ):
        with pytest.raises(InputError):
            Issuer(wrong, [AUDIENCE], SystemClock())
    with pytest.raises(InputError, match="--audience"):
        Issuer("https://id.example.org", [], SystemClock())


def test_unusable_keys_and_unknown_scopes_are_ignored() -> None:
    keys = [None, {}, {"kid": "a"}, {"kid": "a", "kty": "oct", "k": "AAAA"}]
    tolds: list[object] = [None, [], {"keys": 3}, {"keys": keys}]
    for told in tolds:
        assert read_keys(told) == {}
    assert read_scopes({"scope": "openid write evil.nothing read"}) == ["read", "write"]
    assert read_scopes({"scp": ["memory.read", 7]}) == ["memory.read"]
    assert read_scopes({"scope": {"a": 1}}) == []


def test_token_holders_are_stored_as_keyed_digests(tmp_path: Path, issuer: LocalIssuer) -> None:
    def told(folder: Path) -> str:
        known = Issuer(issuer.url, [AUDIENCE], SystemClock(), user_claim="sub")
        with Served(folder, require_token=True, issuer=known) as served, served.client() as client:
            for _ in range(2):
                headers = issuer.token(sub="ann")
                id_ = client.post(f"{USER}/memories", json={"text": "acme's"}, headers=headers).json()["id"]
                client.delete(f"{USER}/memories/{id_}", headers=headers).raise_for_status()
        with closing(sqlite3.connect(folder / "mindstream.db")) as connection:
            ((who,),) = connection.execute("SELECT DISTINCT who FROM audit").fetchall()
            text = f"{connection.execute('SELECT * FROM kept').fetchall()}"
        tried = hashlib.sha256(b"acme\nann").hexdigest()[:20]
        assert who.startswith("iss-") and tried not in who and tried not in text
        return str(who)

    assert told(tmp_path / "one") == told(tmp_path / "one") != told(tmp_path / "two")
