r"""Measure corrections by the user: is the corrected fact stored afterwards, and is the retracted one gone?

    python benchmarks/corrections.py --data FILE [--model NAME] [--json]

FILE is a JSON list of {language, kind, lines, correction, must_hold, must_not_hold}. The lines are sent to a new mind,
then the correction. Afterwards at least one string of `must_hold` must be in a live note or in the belief (an empty
list requires nothing), and no string of `must_not_hold` may be. A `\b` at the end of a string requires a word boundary.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

from mindstream import Coach, Mind, Models, Timeouts

SILENCE_S = 1_800


async def believed_after(models: Models, lines: list[str]) -> list[str]:
    """Send the lines to a new mind; return its notes and belief after all reasoning has ended."""
    with tempfile.TemporaryDirectory() as folder:
        timeouts = Timeouts(deadline_s=SILENCE_S, thinking_s=SILENCE_S)
        async with Mind.open(folder, user="u", model=models, timeouts=timeouts, responder=Coach.using()) as mind:
            for line in lines:
                async for _ in mind.hear(line):
                    pass
                await mind.settled()
            belief = Coach.of(mind).belief.value.model_dump(mode="json", exclude={"phase"})
            notes = [note.text for note in await mind.memory.latest("note", 1_000)]
    held = [item for value in belief.values() for item in (value if isinstance(value, list) else [value])]
    return notes + [f"{item:g}" if isinstance(item, float) else str(item) for item in held if item is not None]


def stands(wanted: str, held: list[str]) -> bool:
    """Return whether a string occurs in the stored texts, ignoring case."""
    end = r"(?!\w)" if wanted.endswith((r"\b", "\b")) else ""
    words = re.escape(wanted.removesuffix(r"\b").removesuffix("\b"))
    return any(re.search(words + end, text, re.IGNORECASE) for text in held)


async def run(cases: list[dict[str, Any]], models: Models) -> list[dict[str, Any]]:
    """Run all cases; return the failures and the stored texts of each."""
    results = []
    for case in cases:
        held = await believed_after(models, [*case["lines"], case["correction"]])
        wanted = case["must_hold"]
        missing = wanted if wanted and not any(stands(each, held) for each in wanted) else []
        stays = [each for each in case["must_not_hold"] if stands(each, held)]
        results.append({**case, "missing": missing, "stays": stays, "held": held, "good": not missing and not stays})
    return results


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--model", default="rules")
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()
    cases = json.loads(asked.data.read_text("utf-8"))
    async with Models.named({"default": asked.model}, patience_s=SILENCE_S) as models:
        results = await run(cases, models)
    good = [each for each in results if each["good"]]
    if asked.json:
        print(json.dumps({"held": len(good), "of": len(results), "results": results}, ensure_ascii=False))
        return
    for each in results:
        if not each["good"]:
            print(f"{each['kind']}: {' / '.join(each['lines'])} -> {each['correction']}")
            print(f"    missing {each['missing']}, stays {each['stays']}; held {each['held']}")
    by_kind = Counter(each["kind"] for each in good)
    print(f"{len(good)} of {len(results)}: {dict(by_kind)}")


if __name__ == "__main__":
    asyncio.run(main())
