"""Programs written for LangChain's own history, retriever and embeddings work with mindstream's."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest
from foreign_programs import Run, environment

from mindstream.adapters.embeddings import AnyEmbedder
from mindstream.adapters.loop import Handle

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


def test_a_conversation_survives_a_kill_and_is_recalled_in_others(tmp_path: Path, needs: Callable[..., None]) -> None:
    needs("langchain_core")
    code = """
import os, warnings
warnings.simplefilter("ignore")
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from mindstream.adapters.langchain import MindstreamChatMessageHistory
monday = MindstreamChatMessageHistory("monday", "data", "ann")
monday.add_messages([HumanMessage("The spare key hangs behind the door."), AIMessage("I see.")])
tuesday = MindstreamChatMessageHistory("tuesday", "data", "ann")
call = AIMessage("", tool_calls=[{"name": "stock", "args": {"item": "rolls"}, "id": "1"}])
tuesday.add_messages([HumanMessage("Two rolls, please."), call, ToolMessage("12 left", tool_call_id="1")])
os.kill(os.getpid(), 9)
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment(), check=False)
    assert done.returncode == -9
    from mindstream.adapters.langchain import MindstreamChatMessageHistory, MindstreamRetriever

    tuesday = MindstreamChatMessageHistory("tuesday", tmp_path / "data", "ann")
    assert [each.type for each in tuesday.messages] == ["human", "ai", "tool"]
    assert tuesday.messages[1].model_dump()["tool_calls"][0]["args"] == {"item": "rolls"}
    found = MindstreamRetriever(data=tmp_path / "data", user="ann", k=1).invoke("Where does the key hang?")
    assert [each.page_content for each in found] == ["The spare key hangs behind the door."]
    assert found[0].metadata["episode"] == "monday" and found[0].metadata["by"] == "ann"
    texts = tuesday.handle.wait(lambda memory: memory.latest("chat", 9, episode="tuesday"))
    assert [each.text for each in texts] == ["Two rolls, please.", "calls stock", "12 left"]
    tuesday.clear()
    assert (
        tuesday.messages == [] and len(MindstreamChatMessageHistory("monday", tmp_path / "data", "ann").messages) == 2
    )
    assert tuesday.handle.wait(lambda memory: memory.purge()) == 3
    tuesday.handle.close()


def test_documents_are_returned_unchanged_and_records_with_their_kind(folder: Path, needs: Callable[..., None]) -> None:
    needs("langchain_core")
    from langchain_core.documents import Document

    from mindstream.adapters.langchain import MindstreamRetriever

    page = Document("The kettle whistles.", metadata={"source": "kettle.md", "by": "somebody", "pages": [1, 2]})
    retriever = MindstreamRetriever.from_documents([page], folder, "ann", k=5, touch=False)
    retriever._handle.wait(lambda memory: memory.retain("The kettle is new.", "note", by="ann", data={"sure": True}))
    found = {each.page_content: each.metadata for each in retriever.invoke("kettle")}
    assert found["The kettle whistles."] == page.metadata
    assert found["The kettle is new."].items() >= {"kind": "note", "by": "ann", "sure": True}.items()
    only = MindstreamRetriever(data=folder, user="ann", kinds=["document"], where={"source": "kettle.md"})
    assert [each.page_content for each in only.invoke("kettle")] == ["The kettle whistles."]
    assert MindstreamRetriever(data=folder, user="ann", floor=0.99).invoke("the moons of Jupiter") == []
    retriever._handle.close()


def test_our_embedders_work_as_langchain_embeddings(needs: Callable[..., None]) -> None:
    needs("langchain_core")
    from mindstream.adapters.langchain import MindstreamEmbeddings

    ours = MindstreamEmbeddings("wordllama")
    rows = ours.embed_documents(["a kettle", "a whistling kettle", "the moons of Jupiter"])
    assert np.dot(rows[0], rows[1]) > np.dot(rows[0], rows[2]) and len(rows[0]) == 256
    assert asyncio.run(ours.aembed_query("a kettle")) == ours.embed_query("a kettle") == rows[0]
    assert asyncio.run(ours.aembed_documents(["a kettle"])) == [rows[0]]


def test_langchain_embeddings_work_as_our_embedders(folder: Path, needs: Callable[..., None]) -> None:
    needs("langchain_core")
    from langchain_core.embeddings import Embeddings

    class Letters(Embeddings):  # type: ignore[misc, unused-ignore]
        model = "letters-1"
        asked: ClassVar[list[int]] = []

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            self.asked.append(len(texts))
            return [[float(text.lower().count(chr(97 + n))) for n in range(26)] for text in texts]

        def embed_query(self, text: str) -> list[float]:
            return self.embed_documents([text])[0]

    embed = AnyEmbedder(Letters())
    assert embed.name == "langchain:" + Letters.__qualname__ + ":letters-1"
    handle = Handle(folder, "ann", embed)
    handle.wait(lambda memory: memory.retain("The kettle whistles."))
    found = handle.wait(lambda memory: memory.recall("kettles", k=1))
    assert found[0].record.embedder == embed.name
    assert Letters.asked == [1, 1]
    handle.close()
