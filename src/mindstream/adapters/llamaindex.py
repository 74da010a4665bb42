"""LlamaIndex: a chat's memory and a retriever from a memory (docs/adapters/llamaindex.md)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Self

from llama_index.core.base.llms.types import ChatMessage, MessageRole
from llama_index.core.bridge.pydantic import ConfigDict, Field, PrivateAttr
from llama_index.core.memory import BaseMemory
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import BaseNode, MetadataMode, NodeWithScore, QueryBundle, TextNode
from llama_index.core.utils import get_tokenizer

from mindstream.adapters.embeddings import as_embedder
from mindstream.adapters.keeping import keep, keep_waiting
from mindstream.adapters.loop import Handle
from mindstream.adapters.talks import Message, Talk
from mindstream.memory.memory import Memory
from mindstream.memory.recall.recall import Recalled
from mindstream.memory.store.record import RecordDraft
from mindstream.memory.store.store import Store
from mindstream.models.embedders.embedder import Embedder

BY = "llamaindex"
TOKENS = 30_000


class MindstreamMemory(BaseMemory):
    """The messages of a session, in a memory: `MindstreamMemory.from_defaults("data", session_id="ann")`.

    Attributes:
        token_limit: `get` returns the newest messages within it, from one of the user's on; `get_all` all.
    """

    model_config = ConfigDict(arbitrary_types_allowed=True)

    session_id: str
    token_limit: int = TOKENS
    tokenizer_fn: Callable[[str], list[Any]] = Field(default_factory=get_tokenizer, exclude=True)
    _handle: Handle = PrivateAttr()
    _talk: Talk = PrivateAttr()

    @classmethod
    def class_name(cls) -> str:
        return "MindstreamMemory"

    @classmethod
    def from_defaults(  # type: ignore[override]
        cls,
        data: str | Path | Store = "data",
        session_id: str = "chat",
        user: str = "",
        *,
        embed: Embedder | Any = None,
        **settings: Any,
    ) -> Self:
        """Open a session of a memory.

        Args:
            data: a folder, a database's URL, or a store (a tenant's sees that tenant's alone).
            session_id: which talk; several of a user stand in one memory.
            user: whose memory; "": the session's own.
        """
        memory = cls(session_id=session_id, **settings)
        memory._handle = Handle(data, user or session_id, as_embedder(embed))
        memory._talk = Talk(BY, session_id)
        return memory

    def get(self, input: str | None = None, **kwargs: Any) -> list[ChatMessage]:  # noqa: ARG002
        """Return the newest messages within the limit of tokens."""
        return self._within_limit(self.get_all())

    async def aget(self, input: str | None = None, **kwargs: Any) -> list[ChatMessage]:  # noqa: ARG002
        """Return the newest messages within the limit of tokens."""
        return self._within_limit(await self.aget_all())

    def get_all(self) -> list[ChatMessage]:
        """Return all messages, as they stand in the memory now."""
        return list(map(ChatMessage.model_validate, self._handle.wait(self._talk.read)))

    async def aget_all(self) -> list[ChatMessage]:
        """Return all messages, as they stand in the memory now."""
        return list(map(ChatMessage.model_validate, await self._handle.do(self._talk.read)))

    def put(self, message: ChatMessage) -> None:
        """Write a message down."""
        self.put_messages([message])

    async def aput(self, message: ChatMessage) -> None:
        """Write a message down."""
        await self.aput_messages([message])

    def put_messages(self, messages: Sequence[ChatMessage]) -> None:
        """Write messages down, in one commit; a failure is logged, so that the run goes on with its answer."""
        keep_waiting("the messages", lambda: self._handle.wait(partial(self._talk.add, list(map(_message, messages)))))

    async def aput_messages(self, messages: Sequence[ChatMessage]) -> None:
        """Write messages down, in one commit; a failure is logged, so that the run goes on with its answer."""
        await keep("the messages", self._handle.do(partial(self._talk.add, list(map(_message, messages)))))

    def set(self, messages: Sequence[ChatMessage]) -> None:
        """Put messages in the place of those that are there, in one commit; the old ones go to the archive."""
        self._handle.wait(partial(self._talk.set, list(map(_message, messages))))

    async def aset(self, messages: Sequence[ChatMessage]) -> None:
        """Put messages in the place of those that are there, in one commit; the old ones go to the archive."""
        await self._handle.do(partial(self._talk.set, list(map(_message, messages))))

    def reset(self) -> None:
        """Put all messages into the archive; `memory.purge()` erases them for good."""
        self.set([])

    async def areset(self) -> None:
        """Put all messages into the archive; `memory.purge()` erases them for good."""
        await self.aset([])

    def _within_limit(self, messages: Sequence[ChatMessage]) -> list[ChatMessage]:
        used, first = 0, len(messages)
        for at in range(len(messages) - 1, -1, -1):
            used += len(self.tokenizer_fn(_text(messages[at])))
            if used > self.token_limit:
                break
            if messages[at].role in (MessageRole.USER, MessageRole.SYSTEM):
                first = at  # an answer, or a tool's result, does not stand first
        return list(messages[first:])


def _text(message: ChatMessage) -> str:
    more = str(message.additional_kwargs) if message.additional_kwargs else ""
    return "\n".join(filter(None, (message.content or "", more)))


def _message(message: ChatMessage) -> Message:
    role = str(message.role.value)
    return Message(role == "user", role, message.content or "", message.model_dump(mode="json"))


class MindstreamRetriever(BaseRetriever):
    """What a memory recalls, as nodes with scores.

    Args:
        data: a folder, a database's URL, or a store (a tenant's sees that tenant's alone).
        user: whose memory.
        similarity_top_k: how many; `floor`: with less certainty (0 to 1) that any answers, none.
        kinds: of which kinds of records; None: of all. where: what entries of their data must be.
        touch: a recall counts: what is returned is held better. False: a pure read.
        nodes: are written down first.
    """

    def __init__(
        self,
        data: str | Path | Store,
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
        self._how: dict[str, Any] = {
            "k": similarity_top_k,
            "floor": floor,
            "kinds": kinds,
            "where": where,
            "touch": touch,
        }
        if nodes:
            self.add_nodes(nodes)

    def add_nodes(self, nodes: Sequence[BaseNode]) -> list[str]:
        """Write nodes down, in one commit, each as it stands; return the ids of their records.

        Raises:
            InputError: there is nothing in one, or over 100,000 characters: split it before.
        """
        return self.handle.wait(partial(_keep, nodes))

    async def aadd_nodes(self, nodes: Sequence[BaseNode]) -> list[str]:
        """Write nodes down, in one commit, each as it stands; return the ids of their records."""
        return await self.handle.do(partial(_keep, nodes))

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return self.handle.wait(partial(self._recall, query_bundle.query_str))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        return await self.handle.do(partial(self._recall, query_bundle.query_str))

    async def _recall(self, query: str, memory: Memory) -> list[NodeWithScore]:
        return list(map(_node, await memory.recall(query, **self._how)))


async def _keep(nodes: Sequence[BaseNode], memory: Memory) -> list[str]:
    drafts = [
        RecordDraft(
            text=each.get_content(MetadataMode.NONE),
            kind="document",
            by=BY,
            data={**each.metadata, "node_id": each.node_id, BY: dict(each.metadata)},
        )
        for each in nodes
    ]
    return [record.id for record in await memory.retain_all(drafts)]


def _node(found: Recalled) -> NodeWithScore:
    """Return a record as a node: with its own id and metadata where it was one, else with what a record has."""
    record = found.record
    told = {"kind": record.kind, "by": record.by, "episode": record.episode, "created": record.created, **record.data}
    own = record.data.get(BY) if record.kind == "document" else None
    id_ = str(record.data["node_id"]) if isinstance(own, dict) else record.id
    node = TextNode(id_=id_, text=record.text, metadata=dict(own) if isinstance(own, dict) else told)
    return NodeWithScore(node=node, score=found.score)
