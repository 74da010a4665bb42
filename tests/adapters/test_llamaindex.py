"""LlamaIndex's memory and retriever are a memory's; a program for the framework's own works with ours."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from running import Run

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
