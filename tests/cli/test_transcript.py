"""The transcript in the docs is what the rules say."""

from __future__ import annotations

import write_transcript


async def test_the_transcript_is_what_the_rules_say() -> None:
    written = write_transcript.FILE.read_text("utf-8")
    assert written == await write_transcript.page(), "python tests/cli/write_transcript.py writes it anew"
