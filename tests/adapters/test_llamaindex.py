"""Programs written for LlamaIndex's own memory and retriever work with mindstream's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from foreign_programs import Run

MEMORY = {
    "from llama_index.core.memory import Memory  # <- here":
        "from mindstream.adapters.llamaindex import MindstreamMemory, MindstreamRetriever",
    "Memory.from_defaults(session_id=gardener, token_limit=600)  # <- here":
        'MindstreamMemory.from_defaults("data", session_id=gardener, token_limit=600)',
}  # fmt: skip
RETRIEVER = {
    "retriever = VectorStoreIndex(nodes, embed_model=WordEmbedding()).as_retriever(similarity_top_k=3)  # <- retriever":
        'retriever = MindstreamRetriever("data", "the club", nodes=nodes, similarity_top_k=3)',
}  # fmt: skip


@pytest.mark.parametrize(
    "replaced", [{}, MEMORY, MEMORY | RETRIEVER], ids=["its own", "our memory", "our memory and retriever"]
)
def test_the_program_runs(replaced: dict[str, str], run_program: Run, needs: Callable[..., None]) -> None:
    needs("llama_index.core")
    run_program("llamaindex_memory", replaced)


def test_two_sessions_of_a_user_share_one_memory(folder: Path, needs: Callable[..., None]) -> None:
    needs("llama_index.core")
    from llama_index.core.llms import ChatMessage

    from mindstream.adapters.llamaindex import MindstreamMemory, MindstreamRetriever

    monday, tuesday = (MindstreamMemory.from_defaults(folder, day, "ann") for day in ("monday", "tuesday"))
    monday.put(ChatMessage(role="user", content="The spare key hangs behind the door."))
    tuesday.put(ChatMessage(role="user", content="Two rolls, please."))
    tuesday.put(ChatMessage(role="assistant", content="", additional_kwargs={"tool_calls": [{"id": "1"}]}))
    assert [each.additional_kwargs for each in tuesday.get_all()] == [{}, {"tool_calls": [{"id": "1"}]}]
    (found,) = MindstreamRetriever(folder, "ann", similarity_top_k=1, touch=False).retrieve("Where is the key?")
    assert found.node.get_content() == "The spare key hangs behind the door." and found.node.metadata["by"] == "ann"
    assert MindstreamMemory.from_defaults(folder, "monday", "bob").get_all() == []
    tuesday.reset()
    assert tuesday.get_all() == [] and len(monday.get_all()) == 1
    assert tuesday.handle.wait(lambda memory: memory.purge()) == 2
    tuesday.handle.close()


def test_get_starts_with_a_message_of_the_user(folder: Path, needs: Callable[..., None]) -> None:
    needs("llama_index.core")
    from llama_index.core.llms import ChatMessage

    from mindstream.adapters.llamaindex import MindstreamMemory

    memory = MindstreamMemory.from_defaults(folder, token_limit=5, tokenizer_fn=str.split)
    for role, text in (("user", "one two"), ("assistant", "three"), ("user", "four five"), ("assistant", "six")):
        memory.put(ChatMessage(role=role, content=text))
    assert [each.content for each in memory.get("four?", extra=1)] == ["four five", "six"]
    memory.put(ChatMessage(role="assistant", content="seven eight nine ten"))
    assert memory.get() == [] and len(memory.get_all()) == 5
    memory.handle.close()
