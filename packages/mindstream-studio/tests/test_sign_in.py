"""A server that requires a token: the pages load, ask for it, and send it in a header, also for the event stream."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from served import Served
from studio import Studio, serve_studio

OpenStudio = Callable[..., Studio]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server that requires a token of every client."""
    with serve_studio(tmp_path_factory.mktemp("studio") / "data", model="rules", require_token=True) as server:
        yield server


def token(served: Served, scopes: str = "read,write") -> str:
    return served.token("acme", scopes)["Authorization"].removeprefix("Bearer ")


def enter(seen: Studio, text: str) -> None:
    seen.page.get_by_label("Token").fill(text)
    seen.page.keyboard.press("Enter")


def test_only_the_static_pages_are_served_without_a_token(served: Served) -> None:
    with served.client() as client:
        assert client.get("/studio/").status_code == client.get("/studio/app.js").status_code == 200
        assert client.get("/studio", follow_redirects=False).status_code == 307
        assert client.get("/studio/../api/v1/users").status_code == 401
        assert client.get("/studio/%2e%2e/api/v1/users").status_code == 404
        for path in ("/api/v1/users", "/recorded/api/v1/users", "/studiox"):
            assert client.get(path).status_code == 401, path


def test_a_token_opens_the_pages_and_is_in_no_link(studio: OpenStudio, served: Served, node_tools: None) -> None:
    seen, given = studio(), token(served)
    sent: list[tuple[str, str]] = []
    seen.forgive("401")
    seen.page.on("request", lambda asked: sent.append((asked.url, asked.headers.get("authorization", ""))))
    seen.page.goto(f"{served.url}/studio/#/talk?user=ann")
    seen.page.get_by_text("This server requires a token").wait_for()
    assert seen.axe() == []
    enter(seen, "ms_mistyped")
    seen.page.get_by_text("The server refused this token").wait_for()
    enter(seen, given)
    seen.page.get_by_label("What you say").fill("Hello, I sleep badly.")
    seen.page.keyboard.press("Enter")
    seen.page.get_by_text("answered in").wait_for()
    events = [header for url, header in sent if "/events?" in url]
    assert events and events[-1] == f"Bearer {given}"
    assert not any(given in url for url, _ in sent) and given not in seen.page.url
    seen.page.reload()
    seen.page.get_by_text("answered in").wait_for()  # it is kept as long as the tab is open
    assert seen.page.evaluate("JSON.stringify(localStorage)").count(given) == 0
    seen.page.get_by_role("button", name="Sign out").click()
    seen.page.get_by_text("This server requires a token").wait_for()


def test_missing_permissions_of_a_token_are_shown(studio: OpenStudio, served: Served) -> None:
    seen = studio()
    seen.forgive("401", "403")
    seen.page.goto(f"{served.url}/studio/#/talk?user=bob")
    enter(seen, token(served, "read"))
    seen.page.get_by_label("What you say").fill("Hello.")
    seen.page.keyboard.press("Enter")
    seen.page.get_by_text("this token needs the scope `write`").wait_for()
    seen.page.get_by_role("button", name="Sign in with another token").click()
    enter(seen, token(served))
    seen.page.get_by_label("What you say").wait_for()


def test_the_page_asks_for_a_new_token_after_revocation(studio: OpenStudio, served: Served) -> None:
    seen = studio()
    seen.forgive("401")
    given, about = served.change_tokens(lambda tokens: tokens.new("acme", "read,write", 1))
    seen.page.goto(f"{served.url}/studio/#/memory?user=ann")
    enter(seen, given)
    seen.page.get_by_role("searchbox", name="Ask this memory").wait_for()
    served.change_tokens(lambda tokens: tokens.revoke(about.id))
    seen.page.evaluate("location.hash = '#/memory?user=ann&q=sleep'")  # or the event stream is refused first
    seen.page.get_by_text("The server refused this token").wait_for()
