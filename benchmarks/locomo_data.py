"""LoCoMo's file read as records and questions (github.com/snap-research/LoCoMo, CC BY-NC 4.0: never copied in here)."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from mindstream.memory.store.record import Record, new_id


@dataclass(frozen=True)
class Question:
    """A question of the data, and the turns that answer it."""

    text: str
    category: int
    gold: frozenset[str]


@dataclass(frozen=True)
class Conversation:
    """A conversation: its turns as records (the turn's name in `data`), and its questions."""

    name: str
    records: tuple[Record, ...]
    questions: tuple[Question, ...]


def conversations(path: Path) -> list[Conversation]:
    """Read the data, except the annotators' picture searches (`query`), which would reveal answers."""
    return [_conversation(sample) for sample in json.loads(path.read_text())]


def _conversation(sample: dict[str, Any]) -> Conversation:
    talk, records = sample["conversation"], []
    for number in sorted(int(found[1]) for key in talk if (found := re.fullmatch(r"session_(\d+)", key))):
        at = (
            datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y")
            .replace(tzinfo=UTC)
            .timestamp()
        )
        for turn in talk[f"session_{number}"]:
            shows = f" [shares {turn['blip_caption']}]" if turn.get("blip_caption") else ""
            records.append(
                Record(
                    id=new_id(at), stream=sample["sample_id"], kind="chat", text=turn["text"] + shows, created=at,
                    accessed=at, by=turn["speaker"], episode=f"{number}", data={"turn": turn["dia_id"]},
                )
            )  # fmt: skip
    known = {record.data["turn"] for record in records}
    questions = []
    for asked in sample["qa"]:
        pairs = re.findall(r"D\s*:?\s*(\d+)\s*:\s*0*(\d+)", " ".join(asked.get("evidence") or []))
        if gold := frozenset(f"D{a}:{b}" for a, b in pairs) & known:
            questions.append(Question(asked["question"], asked["category"], frozenset(map(str, gold))))
    return Conversation(sample["sample_id"], tuple(records), tuple(questions))
