"""Words of one's own that cannot be rendered cost the run that they are for, and are told."""

from __future__ import annotations

from pathlib import Path

from mindstream import Mind, Models
from mindstream.log.events import Failed
from mindstream.models.rules import Rules
from mindstream.models.scripted import Scripted
from mindstream.models.wrappers.reworded import Reworded


async def test_bad_words_of_a_reasoner_do_not_stop_the_mind(folder: Path, tmp_path: Path) -> None:
    words = tmp_path / "words"
    words.mkdir()
    (words / "extract_facts.md").write_text("# user\n{{ nobody }}")
    models = Models(Rules(), {"facts": Reworded(Scripted({}), words)})
    async with Mind.open(folder, user="ann", models=models) as mind:
        for text in ("I drink coffee.", "And tea."):
            async for _ in mind.hear(text):
                pass
            await mind.settled()
        failed = [row.event for row in await mind.stream.store.events("ann") if isinstance(row.event, Failed)]
    assert failed and all(
        event.where == "facts" and f"{words / 'extract_facts.md'}: " in event.text for event in failed
    )
