"""Send messages to a mind of a server, and wait until they are answered and processed."""

from __future__ import annotations

from itertools import count

from served import Served

BADLY, COFFEE = "Hello, I sleep badly.", "I drink coffee at 9 pm."
GOAL = "I go to bed at 1 and get up at 7, my goal is to sleep 8 hours. Make me a plan please?"
KINDS = "said,thought"


def say(served: Served, user: str, text: str, session: str = "first") -> int:
    """Send a message, and return its log row after it was answered and processed."""
    with served.client() as client:
        sent = client.post(f"/api/v1/users/{user}/send", json={"text": text, "session": session})
        seq = int(sent.raise_for_status().json()["seq"])
        for _ in count():
            rows = client.get(f"/api/v1/users/{user}/log", params={"after": seq, "kinds": KINDS}).json()["rows"]
            if {row["event"] for row in rows} == set(KINDS.split(",")):
                return seq
    raise AssertionError("unreachable")
