"""Measure `--redact`: recall and precision by kind of personal data, and false alarms in conversations.

    python benchmarks/redaction.py [--set seen] [--talks FOLDER] [--json]

The sentences (redaction.jsonl) were written for this benchmark, in nine languages, with invented numbers; the held-out
half (`sealed`) was measured after the recognisers were finished. It includes names, addresses and dates of birth,
although no recogniser covers them. FOLDER: conversations as JSON ([{"of": …, "messages": [{"text": …}]}]), in which all
redactions are counted.
"""

from __future__ import annotations

import argparse
import json
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

from mindstream.text.personal import RECOGNISERS, open_redactor

HELD = re.compile(r"\{(\w+)\|([^}]*)\}")
LOOKED_FOR = {"key", *RECOGNISERS}


def measure(lines: list[dict[str, str]]) -> dict[str, dict[str, float]]:
    """Count, by kind: occurrences, those redacted, and other redactions (alarms)."""
    redactor, there, gone, alarms = open_redactor("presidio"), Counter[str](), Counter[str](), Counter[str]()
    for line in lines:
        text = HELD.sub(lambda found: found[2], line["text"])
        cleaned = redactor.clean(text)
        taken = Counter(cleaned.taken)
        for kind, words in HELD.findall(line["text"]):
            there[kind] += 1
            if words not in cleaned.text and all(each not in cleaned.text for each in words.split() if len(each) > 3):
                gone[kind] += 1
                taken[kind if taken[kind] else next(iter(+taken), kind)] -= 1
        alarms.update(+taken)
    return {
        kind: {
            "there": there[kind], "taken": gone[kind], "alarms": alarms[kind],
            "recall": round(gone[kind] / there[kind], 3) if there[kind] else 0.0,
            "precision": round(gone[kind] / (gone[kind] + alarms[kind]), 3) if gone[kind] + alarms[kind] else 0.0,
        }
        for kind in sorted({*there, *alarms}, key=lambda each: (each not in LOOKED_FOR, each))
    }  # fmt: skip


def in_talks(folder: Path) -> list[dict[str, Any]]:
    """Count the redactions in conversations, by file."""
    redactor, told = open_redactor("presidio"), []
    for file in sorted(folder.glob("*.json")):
        found, messages, spent, characters = Counter[str](), 0, 0.0, 0
        for talk in json.loads(file.read_text()):
            for message in talk["messages"]:
                began = time.perf_counter()
                found.update(redactor.clean(message["text"]).taken)
                spent += time.perf_counter() - began
                messages, characters = messages + 1, characters + len(message["text"])
        told.append({"talks": file.stem, "messages": messages, "characters": characters, "taken": dict(found),
                     "ms_a_message": round(1000 * spent / messages, 2)})  # fmt: skip
    return told


def main() -> None:
    """Measure, and print the results."""
    flags = argparse.ArgumentParser(description=__doc__)
    flags.add_argument("--set", choices=("seen", "sealed"), default="sealed")
    flags.add_argument("--talks", type=Path)
    flags.add_argument("--json", action="store_true")
    given = flags.parse_args()
    lines = [json.loads(line) for line in Path(__file__).with_suffix(".jsonl").read_text("utf-8").splitlines()]
    kinds = measure([line for line in lines if line["set"] == given.set])
    talks = in_talks(given.talks) if given.talks else []
    if given.json:
        print(json.dumps({"set": given.set, "kinds": kinds, "talks": talks}))
        return
    for kind, row in kinds.items():
        print(f"{kind:8} {row['taken']:3} of {row['there']:3}, {row['alarms']} more; recall {row['recall']:.2f},"
              f" precision {row['precision']:.2f}")  # fmt: skip
    for row in talks:
        print(row)


if __name__ == "__main__":
    main()
