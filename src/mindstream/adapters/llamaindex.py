"""LlamaIndex: a chat's memory and a retriever from a memory (docs/adapters/llamaindex.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Self

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr
from llama_index.core.memory import BaseMemory
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.utils import get_tokenizer

from mindstream.adapters.embeddings import as_embedder
from mindstream.adapters.loop import Data, Handle
from mindstream.adapters.storing import Conversation, Message, memory_name, metadata_of, retain_documents, session_name
from mindstream.memory.memory import Memory
from mindstream.memory.recall.recall import Recalled
from mindstream.models.embedders.embedder import Embedder

BY = "llamaindex"
TOKENS = 30_000


class MindstreamMemory(BaseMemory):
    """The messages of a session, stored in a memory: `MindstreamMemory.from_defaults("data", session_id="ann")`.

    Attributes:
        token_limit: maximum tokens of the messages that `get` returns. `get` returns the newest messages, beginning
            with a message of the user or the system; `get_all` returns all messages.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    session_id: str
    token_limit: int = TOKENS
    tokenizer_fn: Callable[[str], list[Any]] = Field(default_factory=get_tokenizer, exclude=True)
    _conversation: Conversation = PrivateAttr()

    @classmethod
    def class_name(cls) -> str:
        return "MindstreamMemory"

    @classmethod
    def from_defaults(  # type: ignore[override]
        cls,
        data: Data = "data",
        session_id: str = "chat",
        user: str = "",
        *,
        embed: Embedder | Any = None,
        **settings: Any,
    ) -> Self:
        """Open a session of a memory.

        Args:
            data: a folder, a database's URL, or a store. The store of a tenant shows only the data of that tenant.
            session_id: the conversation; a memory can have several.
            user: the owner of the memory; "": the session has a memory of its own.
        """
        memory = cls(session_id=session_id, **settings)
        handle = Handle(data, user or memory_name(session_id), as_embedder(embed))
        memory._conversation = Conversation(handle, BY, session_name(session_id))
        return memory

    @property
    def handle(self) -> Handle:
        """The memory; `handle.close()` closes it."""
        return self._conversation.handle

    def get(self, input: str | None = None, **kwargs: Any) -> list[ChatMessage]:  # noqa: ARG002
        """Return the newest messages within the limit of tokens."""
        return self._within_limit(self.get_all())

    def get_all(self) -> list[ChatMessage]:
        """Return the stored messages."""
        return list(map(ChatMessage.model_validate, self._conversation.read()))

    def put(self, message: ChatMessage) -> None:
        """Store a message."""
        self.put_messages([message])

    def put_messages(self, messages: Sequence[ChatMessage]) -> None:
        """Store messages in one commit; a failure is logged, so that the run continues with its answer."""
        self._conversation.add(list(map(_message, messages)))

    def set(self, messages: Sequence[ChatMessage]) -> None:
        """Replace all messages, in one commit; the old ones are archived."""
        self._conversation.set(list(map(_message, messages)))

    def reset(self) -> None:
        """Archive all messages; `memory.purge()` erases them."""
        self.set([])

    def _within_limit(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        used, first = 0, len(messages)
        for at in range(len(messages) - 1, -1, -1):
            used += len(self.tokenizer_fn(_text(messages[at])))
            if used > self.token_limit:
                break
            if messages[at].role in (MessageRole.USER, MessageRole.SYSTEM):
                first = at  # the messages never begin with an answer or a tool's result
        return list(messages[first:])


def _text(message: ChatMessage) -> str:
    more = str(message.additional_kwargs) if message.additional_kwargs else ""
    return "\n".join(filter(None, (message.content or "", more)))


def _message(message: ChatMessage) -> Message:
    role = str(message.role.value)
    return Message(role == "user", role, message.content or "", message.model_dump(mode="json"))


class MindstreamRetriever(BaseRetriever):
    """Recalled records as nodes with scores.

    Args:
        data: a folder, a database's URL, or a store. The store of a tenant shows only the data of that tenant.
        user: the owner of the memory.
        similarity_top_k: maximum number of nodes.
        floor: minimum certainty (0 to 1) that the nodes contain an answer; below this certainty, no nodes are returned.
        kinds: kinds of records to search; None: all.
        where: required values of `by`, `episode`, `slot` or fields of `data`.
        touch: whether a recall strengthens the returned records. False: a recall is a pure read.
        nodes: nodes to store first.
    """

    def __init__(
        self,
        data: Data,
        user: str,
        *,
        similarity_top_k: int = 4,
        floor: float = 0.0,
        kinds: Sequence[Any] | None = None,
        where: Mapping[str, Any] | None = None,
        touch: bool = True,
        embed: Embedder | Any = None,
        nodes: Sequence[BaseNode] = (),
        **settings: Any,
    ) -> None:
        super().__init__(**settings)
        self.handle = Handle(data, user, as_embedder(embed))
        how = {"k": similarity_top_k, "floor": floor, "kinds": kinds, "where": where, "touch": touch}
        self._how: dict[str, Any] = how
        if nodes:
            self.add_nodes(nodes)

    def add_nodes(self, nodes: Sequence[BaseNode]) -> list[str]:
        """Store nodes unchanged, in one commit; return the ids of their records.

        Raises:
            InputError: a node is blank, or has over 100,000 characters. Split long nodes before the call.
        """
        return self.handle.wait(partial(_retain, nodes))

    async def aadd_nodes(self, nodes: Sequence[BaseNode]) -> list[str]:
        """Store nodes unchanged, in one commit; return the ids of their records."""
        return await self.handle.do(partial(_retain, nodes))

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.handle.wait(partial(self._recall, query_bundle.query_str))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await self.handle.do(partial(self._recall, query_bundle.query_str))

    async def _recall(self, query: str, memory: Memory) -> list[NodeWithScore]:
        return list(map(_node, await memory.recall(query, **self._how)))


async def _retain(nodes: Sequence[BaseNode], memory: Memory) -> list[str]:
    parts = ((each.get_content(MetadataMode.NONE), each.metadata, {"node_id": each.node_id}) for each in nodes)
    return await retain_documents(memory, BY, parts)


def _node(found: Recalled) -> NodeWithScore:
    """Return a record as a node, with its own id and metadata, or else with the fields of the record."""
    record = found.record
    metadata, is_own = metadata_of(record, BY)
    id_ = str(record.data["node_id"]) if is_own else record.id
    return NodeWithScore(node=TextNode(id_=id_, text=record.text, metadata=metadata), score=found.score)
