"""Gates by name."""

from __future__ import annotations

from mindstream.coach.gates.asking import AskingGate
from mindstream.coach.gates.belief import BeliefGate
from mindstream.coach.gates.gate import Gate
from mindstream.coach.gates.learned import LearnedGate
from mindstream.coach.gates.quick import QuickGate
from mindstream.coach.packs.pack import Pack
from mindstream.errors import SettingsError
from mindstream.memory.sqlite import SqliteStore
from mindstream.memory.store import Store
from mindstream.models.roles import Models

GATES = ("quick", "belief", "learned")


def gate_named(name: str, pack: Pack, models: Models | None = None, store: Store | None = None) -> Gate:
    """Return the gate of that name; `quick` asks the model of the role `gate` where one is configured.

    Args:
        store: whose logged outcomes `learned` learns from; without one it starts anew.

    Raises:
        SettingsError: there is none.
    """
    if name == "belief":
        return BeliefGate()
    if name == "quick":
        quick = QuickGate(pack)
        return AskingGate(quick, pack, models.of("gate")) if models and "gate" in models.names else quick
    if name == "learned":
        return LearnedGate(pack, store, store.folder if isinstance(store, SqliteStore) else None)
    raise SettingsError(f"no gate {name!r}: choose one of {', '.join(GATES)}")
