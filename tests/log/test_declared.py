"""Every event of every plugin declares for each of its texts whether it contains people's words."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, JsonValue

from mindstream import plugins
from mindstream.log.declared import NoWords, Quotes, declared, undeclared
from mindstream.log.events import Event, every_kind
from mindstream.plugins import Plugin


@pytest.mark.parametrize("kind", [*every_kind().values()], ids=lambda kind: kind.kind)
def test_an_event_declares_each_of_its_texts(kind: type[Event]) -> None:
    assert list(undeclared(kind)) == []


class Leaf(BaseModel):
    name: NoWords[str]
    says: str


class Ripened(Event):
    kind = "ripened"
    weight: float | None = None
    leaves: tuple[Leaf, ...] = ()
    notes: dict[str, JsonValue] | None = None
    mixed: Leaf | str = ""
    told: Quotes[tuple[str, ...]] = ()


def test_undeclared_texts_are_found_in_nested_models_and_json() -> None:
    assert list(undeclared(Ripened)) == ["leaves.says", "notes", "mixed"]
    assert [name for name, each in declared(Ripened).items() if each.is_searched] == ["notes", "mixed", "told"]


def test_events_of_plugins_are_registered_and_duplicate_names_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    plugins.registered()
    monkeypatch.setattr(plugins, "_plugins", dict(plugins._plugins))
    garden = Plugin("garden", events=lambda: (Ripened,))
    plugins.register(garden)
    assert every_kind()["ripened"] is Ripened
    with pytest.raises(ValueError, match="two different plugins are named 'garden'"):
        plugins.register(Plugin("garden"))
    every_kind().pop("ripened")
