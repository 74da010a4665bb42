"""LangChain's history, retriever and embeddings are a memory's; a program for the framework's own works with ours."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from running import Run

OURS = {
    "langchain_history": {
        "from langchain_core.chat_history import InMemoryChatMessageHistory  # <- here":
            "from mindstream.adapters.langchain import MindstreamChatMessageHistory",
        "sessions[session_id] = InMemoryChatMessageHistory()  # <- here":
            'sessions[session_id] = MindstreamChatMessageHistory(session_id, "data")',
    },
    "langchain_retriever": {
        "from langchain_core.vectorstores import InMemoryVectorStore  # <- here":
            "from mindstream.adapters.langchain import MindstreamRetriever",
        'retriever = InMemoryVectorStore.from_documents(pages, embedding=WordEmbeddings())'
        '.as_retriever(search_kwargs={"k": k})  # <- here':
            'retriever = MindstreamRetriever.from_documents(pages, "data", pages[0].metadata["source"], k=k)',
    },
}  # fmt: skip


@pytest.mark.parametrize("replaced", [False, True], ids=["its own", "ours"])
@pytest.mark.parametrize("name", OURS)
def test_the_program_runs(name: str, replaced: bool, run_program: Run, needs: Callable[..., None]) -> None:
    needs("langchain_core", "langgraph.graph")
    run_program(name, OURS[name] if replaced else {})
