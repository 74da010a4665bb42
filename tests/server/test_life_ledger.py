"""A life's ledger is changed and its past is read; users and answering models are listed."""

from __future__ import annotations

import httpx

USER = "/api/v1/users/ann"


def tasks(answer: httpx.Response) -> list[tuple[str, str]]:
    """Return the entries of the ledger, in order."""
    assert answer.status_code == 200, answer.text
    return [(each["text"], each["standing"]) for each in answer.json()["tasks"]]


def test_ledger_tasks_are_added_reordered_dropped_and_reopened(client: httpx.Client) -> None:
    client.post(f"{USER}/life/goal", json={"goal": "Mend the net."}).raise_for_status()
    added = client.post(f"{USER}/life/tasks", json={"text": "Buy twine."})
    assert tasks(added) == [("Mend the net.", "open"), ("Buy twine.", "open")]
    numbers = {each["text"]: each["number"] for each in added.json()["tasks"]}
    twine, net = numbers["Buy twine."], numbers["Mend the net."]
    moved = client.post(f"{USER}/life/tasks/{twine}/move", json={"before": net})
    assert tasks(moved)[0] == ("Buy twine.", "open")
    assert ("Buy twine.", "stopped") in tasks(client.post(f"{USER}/life/tasks/{twine}/drop"))
    assert ("Buy twine.", "open") in tasks(client.post(f"{USER}/life/tasks/{twine}/open"))
    assert client.post(f"{USER}/life/tasks/99/drop").status_code == 422


def test_a_life_is_shown_as_of_a_log_row(client: httpx.Client) -> None:
    client.post(f"{USER}/life/goal", json={"goal": "Mend the net."}).raise_for_status()
    then = client.get(f"{USER}/log", params={"newest": True, "limit": 1}).json()["rows"][0]["seq"]
    client.post(f"{USER}/life/tasks", json={"text": "Buy twine."}).raise_for_status()
    assert tasks(client.get(f"{USER}/life", params={"at": then})) == [("Mend the net.", "open")]
    assert client.get(f"{USER}/life", params={"at": 1}).json()["goal"] == "Mend the net."
    assert len(tasks(client.get(f"{USER}/life"))) == 2


def test_a_lineage_names_each_memory_once(client: httpx.Client) -> None:
    made = client.post(f"{USER}/memories", json={"text": "The net is torn."}).json()["id"]
    found = client.get(f"{USER}/memories/{made}/lineage").json()
    assert (found["memory"]["derived_from"], found["from"], found["memory"]["seq"] > 0) == ([], [], True)


def test_users_and_answering_models_are_listed(client: httpx.Client) -> None:
    assert client.get("/api/v1/users").json() == {"users": []}
    client.post(f"{USER}/memories", json={"text": "The net is torn."}).raise_for_status()
    assert client.get("/api/v1/users").json() == {"users": ["ann"]}
    assert set(client.get("/api/v1/answers").json()) >= {"model", "stand_ins", "roles"}
