"""Control of residents through REST: begin, act, look, leave; the town's time advances only with acts."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hamlet import hamlet
from mindstream_town.town import Town
from served import Served
from test_rooms import ended

from mindstream.service.operations.offered import Offered

TOWN = "/api/v1/towns/village"
CAFE = "Hamlet:Oak Cafe:cafe"
TEN_PAST_EIGHT = 8 * 360 + 60


async def lived(folder: Path) -> None:
    async with Town.open(folder, hamlet()) as town:
        await town.run(until=TEN_PAST_EIGHT)


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Offered]:
    """A data folder with a village at ten past eight."""
    asyncio.run(lived(tmp_path / "village"))
    return tmp_path / "data", Offered(towns={("local", "village"): tmp_path / "village"})


@pytest.fixture
def served(folders: tuple[Path, Offered]) -> Iterator[Served]:
    data, offered = folders
    with Served(data, model="rules", offered=offered) as running:
        yield running


@pytest.fixture
def client(served: Served) -> Iterator[httpx.Client]:
    with served.client() as asking:
        yield asking


class Person:
    """A client that controls a resident."""

    def __init__(self, client: httpx.Client, name: str, **how: Any) -> None:
        self.client, self.url, self.how = client, f"{TOWN}/embody/{name}", how

    def begin(self, **more: Any) -> dict[str, Any]:
        return self._done(self.client.post(self.url, json=self.how | more))

    def act(self, act: str, **more: Any) -> dict[str, Any]:
        return self._done(self.try_to(act, **more))

    def try_to(self, act: str, **more: Any) -> httpx.Response:
        return self.client.post(f"{self.url}/act", json=self.how | {"act": act} | more)

    def look(self, since: int | None = None) -> dict[str, Any]:
        asked = self.how | ({} if since is None else {"since": since})
        return self._done(self.client.get(self.url, params=asked))

    def leave(self) -> dict[str, Any]:
        return self._done(self.client.post(f"{self.url}/leave", json=self.how))

    def _done(self, answer: httpx.Response) -> dict[str, Any]:
        assert answer.status_code == 200, answer.text
        found: dict[str, Any] = answer.json()
        return found


def refused(answer: httpx.Response, status: int, words: str) -> None:
    """Check that a request was refused, and the message."""
    problem = answer.json()
    assert answer.status_code == status and words in problem["detail"], answer.text


def test_a_visitor_enters_acts_receives_events_and_leaves(client: httpx.Client) -> None:
    maya = Person(client, "Maya", visitor=True)
    came = maya.begin(place="oak cafe:cafe")
    assert came["where"] == "cafe of Oak Cafe" and came["person"] == "Maya" and came["happened"] == []
    assert [each["name"] for each in came["people"]] == ["Ada Brook"]
    done = maya.act("do", text="juggling five lemons", minutes=5, place="piano")
    assert done["step"] >= came["step"] + 30, "the act is done when the request returns"
    assert "juggling five lemons" in [each["text"] for each in done["happened"] if each["kind"] == "did"]
    said = maya.act("say", text="Good morning, I am new here.")
    assert [each["kind"] for each in said["happened"] if each["who"] == "Ada Brook"][:2] == ["said", "heard"]
    assert said["talks_with"] == "Ada Brook" and said["talk"][0]["text"] == "Good morning, I am new here."
    assert maya.act("decline")["talks_with"] == ""
    later = maya.act("wait", minutes=10)
    assert later["step"] >= said["step"] + 60
    gone = maya.leave()
    assert gone["step"] == later["step"] + 1
    here = client.get(TOWN).json()
    assert here["step"] == gone["step"] and "Maya" not in [each["name"] for each in here["residents"]]
    refused(maya.try_to("wait", minutes=1), 422, "take control of it first")


def test_a_user_controls_a_resident_and_releases_it(client: httpx.Client) -> None:
    ada = Person(client, "Ada Brook", person="Maya")
    begun = ada.begin()
    assert begun["person"] == "Maya" and begun["plan"][0]["what"].startswith("serving guests")
    went = ada.act("go", place="Mill House:room")
    assert went["where"].endswith("Mill House") and not went["on_the_way"]
    lived_by = {each["name"]: each["lived_by"] for each in client.get(TOWN).json()["residents"]}
    assert lived_by == {"Ada Brook": "Maya", "Ben Hale": "", "Cleo Marsh": ""}
    assert client.get(TOWN).json()["step"] == went["step"], "time advances only with acts"
    ada.leave()
    doing = {each["name"]: each["doing"] for each in client.get(TOWN).json()["residents"]}
    assert doing["Ada Brook"].startswith("serving guests")


def test_single_steps_report_each_event_once(client: httpx.Client) -> None:
    maya = Person(client, "Maya", visitor=True)
    came = maya.begin(place=CAFE)
    first = maya.act("go", place="Elm House:room", waits=False)
    assert first["step"] == came["step"] + 1 and first["on_the_way"]
    second = maya.act("wait", minutes=1)
    assert second["step"] == first["step"] + 6 and second["spot"] != first["spot"]
    everything = maya.look(since=came["step"])["happened"]
    assert everything and maya.look(since=second["step"])["happened"] == []
    assert [each for each in everything if each["step"] > first["step"]] == maya.look(since=first["step"])["happened"]
    assert maya.look()["step"] == second["step"], "looking takes no time"


def test_impossible_acts_are_refused_with_a_message(client: httpx.Client) -> None:
    maya = Person(client, "Maya", visitor=True)
    refused(client.post("/api/v1/towns/nowhere/embody/Maya", json={"visitor": True}), 404, "no town 'nowhere'")
    refused(client.get(maya.url, params=maya.how), 422, "no user controls 'Maya' now")
    refused(client.post(maya.url, json={}), 422, "Hamlet has no resident 'Maya'")
    refused(client.post(maya.url, json={"visitor": True, "place": "the moon"}), 422, "moon")
    refused(
        client.post(f"{TOWN}/embody/Ada Brook", json={"visitor": True}),
        422,
        "Ada Brook is already a resident of Hamlet",
    )
    assert [each["name"] for each in client.get(TOWN).json()["residents"]] == ["Ada Brook", "Ben Hale", "Cleo Marsh"]
    ended(
        client, client.post(f"{TOWN}/run", json={"steps": 360}).json()["id"]
    )  # at nine the residents of the mill are out
    maya.begin(place=CAFE)
    refused(maya.try_to("go", place="the moon"), 422, "moon")
    refused(maya.try_to("go", place="Mill House:room"), 422, "not open to you")
    refused(maya.try_to("say", text="Hello?", to="Cleo Marsh"), 422, "Cleo Marsh is asleep or not in sight")
    refused(maya.try_to("say", text=" "), 422, "1 to 600 characters")
    refused(maya.try_to("decline"), 422, "there is no talk to end")
    assert maya.try_to("fly").status_code == 422


def test_two_users_cannot_control_one_resident(client: httpx.Client) -> None:
    Person(client, "Ada Brook", person="Maya").begin()
    tom = Person(client, "Ada Brook", person="Tom")
    refused(client.post(tom.url, json=tom.how), 422, "Maya already controls Ada Brook")
    refused(tom.try_to("do", text="dancing"), 422, "Maya already controls Ada Brook")
    assert Person(client, "Ada Brook", person="Maya").begin()["person"] == "Maya", "the same user can continue"


def test_running_a_town_ends_the_control_of_residents(client: httpx.Client) -> None:
    ada = Person(client, "Ada Brook", person="Maya")
    now = ada.begin()["step"]
    one = client.post(f"{TOWN}/run", json={"steps": 60}).json()
    found = ended(client, one["id"])
    assert found["state"] == "done" and found["result"]["step"] == now + 60
    refused(ada.try_to("wait", minutes=1), 422, "take control of it first")
    assert ada.begin()["step"] == now + 61


def test_access_is_limited_by_tenant_and_permission(served: Served, client: httpx.Client) -> None:
    other, reader = served.token("other"), served.token("local", "read")
    url = f"{TOWN}/embody/Maya"
    refused(client.post(url, json={"visitor": True}, headers=other), 404, "no town 'village'")
    refused(client.get(url, headers=other), 404, "no town 'village'")
    assert client.get("/api/v1/towns", headers=other).json() == {"towns": [], "forks": []}
    assert client.post(url, json={"visitor": True}, headers=reader).status_code == 403
    Person(client, "Maya", visitor=True).begin(place=CAFE)
    assert client.get(url, params={"visitor": True}, headers=reader).status_code == 200


def test_control_of_a_visitor_survives_server_restarts(folders: tuple[Path, Offered]) -> None:
    data, offered = folders
    seen: dict[str, Any] = {}
    for act in ("begin", "say", "wait", "leave"):
        with Served(data, model="rules", offered=offered) as served, served.client() as client:
            maya = Person(client, "Maya", visitor=True)
            match act:
                case "begin":
                    seen = maya.begin(place=CAFE)
                case "say":
                    seen = maya.act("say", text="Hello, Ada!", since=seen["step"])
                    assert seen["talk"][0]["text"] == "Hello, Ada!"
                case "wait":
                    assert maya.look()["talk"] == seen["talk"]
                    later = maya.act("wait", minutes=5)
                    assert later["step"] == seen["step"] + 30 or later["talks_with"] != seen["talks_with"]
                case "leave":
                    maya.leave()


def test_a_visitor_moves_by_single_tiles(client: httpx.Client) -> None:
    me = Person(client, "Maya", visitor=True)
    begun = me.begin(place=CAFE)
    x, y = begun["spot"]
    ways = {"left": (-1, 0), "right": (1, 0), "up": (0, -1), "down": (0, 1)}
    dx, dy = next(there for way, there in ways.items() if me.try_to("step", way=way).status_code == 200)
    assert me.look()["spot"] == [x + dx, y + dy] and me.look()["step"] > begun["step"]
    assert me.try_to("step").status_code == me.try_to("step", way="north").status_code == 422
    me.leave()
